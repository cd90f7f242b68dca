"""Counts and times with labels, as stages and roles tell them; `metrics` shows them.

Labels may come from what users write. So each is made printable and short, and of one
metric no more than `MOST` series are shown: `metrics` counts those that are left out.
"""

import hashlib
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

MOST = 500
"""Series of one metric on one page, where labels come from what users write."""

LONGEST = 80
"""Characters of a label; of a longer one the beginning is kept, and a digest."""

DIGESTED = re.compile(r"~[0-9a-f]{8}\Z")
"""How a label ends that was changed."""

COMMIT_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
JOIN_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0)
SNAPSHOT_S = (1.0, 5.0, 15.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 21_600.0)
TRAINING_S = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1_800.0, 3_600.0, 14_400.0)
"""Upper ends of the buckets of histograms, seconds; one without an end follows."""


class SecondsHistogram:
    """How often something took how long.

    One thread observes, and another may read: it sees each observation whole or later.

    Parameters
    ----------
    ends_s
        Upper ends of the buckets, ascending, each within its bucket.
    """

    def __init__(self, ends_s: Sequence[float]) -> None:
        self._ends_s = tuple(ends_s)
        self._state = (0.0, (0,) * (len(ends_s) + 1))

    def observe(self, seconds: float, n: int = 1) -> None:
        """Note that so many took so long; what is below 0 took no time."""
        seconds = max(0.0, seconds)
        total_s, counts = self._state
        place = bisect_left(self._ends_s, seconds)
        counts = (*counts[:place], counts[place] + n, *counts[place + 1 :])
        self._state = (total_s + n * seconds, counts)

    def read(self) -> tuple[list[tuple[str, float]], float]:
        """How many took at most so long, by the end of each bucket, and the sum, s.

        Examples
        --------
        >>> found = SecondsHistogram((0.5, 1.0))
        >>> found.observe(0.5)
        >>> found.observe(3.0, 2)
        >>> found.read()
        ([('0.5', 1), ('1.0', 1), ('+Inf', 3)], 6.5)
        """
        total_s, counts = self._state
        ends = [*map(str, self._ends_s), "+Inf"]
        return [(end, sum(counts[: n + 1])) for n, end in enumerate(ends)], total_s


class Series(NamedTuple):
    """One series of a metric, by its name in `meanings`."""

    name: str
    labels: Mapping[str, str]
    value: float | SecondsHistogram


def label_of(text: str) -> str:
    r"""A label as it is shown: printable, and of `LONGEST` characters at most.

    What was changed ends with eight digits of the SHA-256 of what it was. So does what
    looks as if it were changed: two become one only where these digits are alike.

    Examples
    --------
    >>> label_of("boost"), label_of("a\nb")
    ('boost', 'a?b~7e18f737')
    """
    shown = "".join(each if each.isprintable() else "?" for each in text)
    looks_changed = DIGESTED.search(text) or len(text) > LONGEST
    if shown == text and not looks_changed:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{shown[: LONGEST - len(digest) - 1]}~{digest}"
