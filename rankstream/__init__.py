"""Clicks of a search engine into unbiased statistics, and into rankers that learn.

In a notebook, with `pip install 'rankstream[local]'`:

    import rankstream
    log = rankstream.read(clicks, features=products)  # DataFrames, files, "kafka://..."
    log                              # what became of each event
    log.bias()                       # how often users look at each rank, from clicks
    log.relevance("red shoes")       # its items, corrected for the ranks they stood at
    ranker = log.train()             # a ranker that learned from corrected clicks
    log.evaluate({"new": ranker})    # what it would earn, beside what was logged
    ranker.save("search.snapshot")   # rankstream.load reads it back

`clicks` has a row for each shown item, with the columns impression, query, item, at and
clicked; `columns={"item": "sku"}` says where one has another name. Each answer prints
as a table, and is one by to_pandas() or to_polars(). `help(rankstream.Log)` has the
rest: statistics, compare, simulate. `rankstream.simulate()` makes a log to try it on.

A service imports what it needs: rankstream.ranker, .experiments, .settings, .snapshots.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankstream.notebook import ClickRanker as ClickRanker
    from rankstream.notebook import Log as Log
    from rankstream.notebook import load as load
    from rankstream.notebook import read as read
    from rankstream.notebook import simulate as simulate

__all__ = ["ClickRanker", "Log", "load", "read", "simulate"]


def __getattr__(name: str) -> Any:
    """What a notebook uses is loaded when it is asked for: a service needs none of it.

    Raises
    ------
    NotInstalled
        Where a package that it needs is missing; it says what to install.
    """
    if name not in __all__:
        raise AttributeError(f"module 'rankstream' has no attribute {name!r}")
    from rankstream.installation import not_installed  # noqa: PLC0415

    try:
        from rankstream import notebook  # noqa: PLC0415
    except ImportError as error:
        raise not_installed(error, asked=f"rankstream.{name}") from error
    found = getattr(notebook, name)
    # Asked for once: from now on it is found without this.
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Names that can be completed; what a notebook uses only where it can be loaded."""
    from importlib.util import find_spec  # noqa: PLC0415

    has_extra = find_spec("numba") and find_spec("pyarrow")
    own = {*globals()} - {"Any", "TYPE_CHECKING"}
    return sorted({*own, *(__all__ if has_extra else ())})
