"""Memory that is free in this process, given back to the system."""

import ctypes


def give_back_free_pages() -> None:
    """Return the pages that the C library keeps, where it is one that can.

    What a training takes lies between objects that live on, so that glibc keeps most
    of it after it was freed: 90 MB of 300 in forty trainings of the same sums.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
