"""Kernels of comparisons compiled, or read from their cache, before a record is folded.

Plain lists are credited in C; the rest of a method is compiled when it is first needed,
for up to a minute, and a worker that did it between two records would look dead.
"""

import msgspec
import numpy as np

from rankstream.settings import ExperimentSettings, Settings
from rankstream.wire.events import (
    MULTILEAVE,
    ClickMark,
    Impression,
    Interaction,
)
from rankstream.wire.routing import identity
from streams.comparisons.comparison import Comparison
from streams.comparisons.extra import decode_extra
from streams.comparisons.logged_lists import ListReader

ITEMS = ["a", "b", "c"]


def warm_up(settings: Settings) -> None:
    """Credit a made-up list of every experiment, and forget it."""
    for name, experiment in settings.experiments.items():
        shown = _compared(name, experiment)
        clicks = [ClickMark(position, 1, "click") for position in (1, 2)]
        comparison = Comparison(name, experiment)
        comparison.take(
            Interaction(shown, clicks), decode_extra(shown.extra), ListReader()
        )


def _compared(name: str, of: ExperimentSettings) -> Impression:
    """An impression of an experiment: each ranker begins with another item."""
    rankers = sorted(of.rankers)
    extra = {
        "experiment": {"id": name, "epoch": of.epoch, "method": of.method},
        "rankings": {
            ranker: [ITEMS[(i + n) % len(ITEMS)] for n in range(len(ITEMS))]
            for i, ranker in enumerate(rankers)
        },
        "assignments": [i % len(rankers) for i in range(len(ITEMS))],
    }
    return Impression(
        identity("i", name), name, "q", 0, "", 0, "", 0, MULTILEAVE,
        msgspec.msgpack.encode(ITEMS), np.arange(len(ITEMS)).astype("<u2").tobytes(),
        False, b"", b"", b"", 0, 0, msgspec.msgpack.encode(extra),
    )  # fmt: skip
