"""The function of the wheel's library that scores by trees, where there is one.

The library is that of the pipeline's core. A ranker needs nothing else of it, and ranks
without it, to the same bits.
"""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "streams" / "native"

LIBRARIES = ("libfold.core.so", "libfold.core.dylib", "libfold.core.dll")
"""What it is called, by platform; the wheel has one of them."""

FUNCTION = "forest_scores_1"
"""Its name changes with the layout of what it takes."""

_PLACE, _NUMBER = ctypes.c_void_p, ctypes.c_int64


@cache
def compiled_scores() -> Any:
    """The function, or None where the library is missing or of another release."""
    for name in LIBRARIES:
        path = FOLDER / name
        if not path.exists():
            continue
        try:
            found = getattr(ctypes.CDLL(str(path)), FUNCTION)
        except (OSError, AttributeError):
            return None
        found.argtypes = (
            _PLACE, _NUMBER, _PLACE, _PLACE, _PLACE, _NUMBER, _NUMBER, _NUMBER, _PLACE,
        )  # fmt: skip
        found.restype = _NUMBER
        return found
    return None
