"""Memory that was freed stays with its process, to be taken again.

A commit copies what it writes some eight times on its way to the socket, megabytes at a
time, and a fetch what it reads. The C library gives each of these copies back to the
system at once, which clears every page before it gives it out again: that took ten
times as long as the copying.
"""

import ctypes

from rankstream.wire.topics import MIB

KEPT_BYTES = 128 * MIB
"""Most that stays with each thread of what it freed."""

MAPPED_BYTES = 32 * MIB
"""What is larger goes back as soon as it is freed; the most that glibc lets be said."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""As glibc's malloc.h names them."""


def keep_freed_pages() -> None:
    """Have it so from now on, where the C library is one that can."""
    say = getattr(ctypes.CDLL(None), "mallopt", None)
    if say is not None:
        say(_TRIM_THRESHOLD, KEPT_BYTES)
        say(_MMAP_THRESHOLD, MAPPED_BYTES)
