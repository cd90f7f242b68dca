"""How long a process took from its start until it did its work, phase by phase.

The phases follow one another, so that their seconds add up to all of it.
"""

import time
from pathlib import Path
from typing import NamedTuple

_LOADED_S = time.monotonic()

_STAT = Path("/proc/self/stat")

TICKS_S = 0.01
"""Of the kernel's clock of processes, whatever the machine's own is."""

_STARTED = 19
"""Place of the start time in `/proc/self/stat`, counted behind the process's name."""


def began_s() -> float:
    """When this process began, on the monotonic clock: also of one that was forked.

    Where the system does not tell, it is when this module was loaded.
    """
    try:
        fields = _STAT.read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        since_boot_s = int(fields.split()[_STARTED]) * TICKS_S
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot_s
    except (OSError, ValueError, IndexError, AttributeError):
        return _LOADED_S
    now_s = time.monotonic()
    # A sandbox may count from elsewhere.
    return now_s - age_s if age_s >= 0.0 else _LOADED_S


class Opening(NamedTuple):
    """Seconds until the former owner was fenced, the state read, and taken back."""

    fence: float = 0.0
    read: float = 0.0
    restore: float = 0.0


class StartPhases:
    """Seconds of each phase.

    Parameters
    ----------
    began_s
        When the first of them began, on the monotonic clock.
    """

    def __init__(self, began_s: float) -> None:
        self._began_s = self._last_s = began_s
        self._seconds: dict[str, float] = {}

    def ended(self, name: str, at_s: float | None = None) -> None:
        """Hear that a phase has ended, now or at a time of the monotonic clock."""
        at_s = time.monotonic() if at_s is None else at_s
        self.lasted(name, max(0.0, at_s - self._last_s))

    def lasted(self, name: str, seconds: float) -> None:
        """Hear how long the next phase took."""
        self._seconds[name] = seconds
        self._last_s += seconds

    def __str__(self) -> str:
        """For a log line.

        Examples
        --------
        >>> phases = StartPhases(10.0)
        >>> phases.ended("imports", 10.5)
        >>> phases.lasted("topics", 1.5)
        >>> print(phases)
        seconds=2.00 imports=0.50 topics=1.50
        """
        parts = {"seconds": self._last_s - self._began_s} | self._seconds
        return " ".join(f"{name}={seconds:.2f}" for name, seconds in parts.items())
