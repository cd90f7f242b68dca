"""How much memory a training or a rewrite takes beyond what its process had before."""

import ctypes
import resource
from pathlib import Path

from streams.training.inputs import TrainingRefused

_STATM = Path("/proc/self/statm")
_RESIDENT = 1
"""Place of the resident pages in `/proc/self/statm`."""

MIB = 1 << 20


def resident_mb() -> float:
    """MiB of this process that are in memory; 0 where the system does not tell."""
    try:
        pages = int(_STATM.read_text().split()[_RESIDENT])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * resource.getpagesize() / MIB


class MemoryLimit:
    """From now on, not more than so many MiB.

    Parameters
    ----------
    most_mb
        See `train.memory_mb`.
    what
        Takes it.
    setting
        Says how much it may be.
    """

    def __init__(
        self, most_mb: int, what: str = "a training", setting: str = "train.memory_mb"
    ) -> None:
        self._most_mb = most_mb
        self._what = what
        self._setting = setting
        self._before_mb = resident_mb()

    def check(self) -> None:
        """See that it holds.

        Raises
        ------
        TrainingRefused
            Where it does not.
        """
        took_mb = resident_mb() - self._before_mb
        if took_mb > self._most_mb:
            raise TrainingRefused(
                f"{self._what} must fit {self._setting}, {self._most_mb} MiB; it took "
                f"{took_mb:,.0f} MiB: raise it, or let fewer queries be counted"
            )


def give_back_free_pages() -> None:
    """Return the pages that the C library keeps, where it is one that can.

    What a training takes lies between objects that live on, so that glibc keeps most
    of it after it was freed: 90 MB of 300 in forty trainings of the same sums.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
