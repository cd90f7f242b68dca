"""The answers where data scientists ask: a log, what it says, and rankers from it.

`rankstream` itself offers these names, and loads them when one is asked for.
"""

from rankstream.notebook.log import Log
from rankstream.notebook.ranker import ClickRanker, load
from rankstream.notebook.reading import read
from rankstream.notebook.simulating import simulate

__all__ = ["ClickRanker", "Log", "load", "read", "simulate"]
