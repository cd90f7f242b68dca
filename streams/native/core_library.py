"""The compiled core as Python calls it: loaded once, argument types declared.

Arrays are passed by address and must be contiguous and of the named type: nothing
checks that but these functions' types. Calls let other threads run.
"""

import ctypes
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from streams.native.compiler import FOLDER, library_name, sources_digest

_PLACE, _NUMBER = ctypes.c_void_p, ctypes.c_int64

_ARGUMENTS = {
    "fold_find_head": (_PLACE, _NUMBER, _PLACE),
    "fold_find_elements": (_PLACE, _NUMBER, _NUMBER, _NUMBER, _PLACE, _PLACE),
}
"""What each function takes; all return an int64."""

COMPILE_IT = (
    "run `make native`, or install rankstream again with `pip install -e .` "
    "(a wheel brings it)"
)


def loaded(path: Path) -> ctypes.CDLL:
    """A compiled core.

    Raises
    ------
    ImportError
        Where it is missing, is no library that this machine loads, or is of other
        sources than those beside this module.
    """
    if not path.exists():
        raise ImportError(
            f"the fold's core must be compiled; {path} is missing: {COMPILE_IT}",
            name=__name__,
        )
    try:
        library = ctypes.CDLL(str(path))
        library.fold_sources.restype = ctypes.c_char_p
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"the fold's core must be a library that this machine loads; {path} is "
            f"none ({error}): {COMPILE_IT}",
            name=__name__,
        ) from error
    compiled_from, expected = library.fold_sources().decode(), sources_digest()
    if compiled_from != expected:
        raise ImportError(
            f"the fold's core must be of the sources beside it, {expected!r}; "
            f"{path} is of {compiled_from!r}: {COMPILE_IT}",
            name=__name__,
        )
    for name, arguments in _ARGUMENTS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, _NUMBER
    return library


core = loaded(FOLDER / library_name())
"""All that it exports; each caller declares the types of what it calls."""

Bytes = NDArray[np.uint8]
Int64 = NDArray[np.int64]


def find_head(data: Bytes, end: int, head: Int64) -> int:
    """Schema, source, sequence and number of elements of a record.

    Parameters
    ----------
    data : [n_bytes]
    end
        How many bytes of it are the record.
    head : [4]
        Where they are written.

    Returns
    -------
    int
        Where the elements begin, -1 if this is no record.
    """
    return int(core.fold_find_head(data.ctypes.data, end, head.ctypes.data))


def find_elements(
    data: Bytes, at: int, end: int, tags: NDArray[np.int8], places: Int64
) -> int:
    """All elements of a record; 0, or -1 where it is not whole.

    Parameters
    ----------
    data : [n_bytes]
    at
        Where the first begins.
    tags : [n]
        Their kinds are written here.
    places : [n, 20]
        Where their fields begin; the first place is that of the element, the last
        its end. Those of fields that it does not have stay as they are.
    """
    return int(
        core.fold_find_elements(
            data.ctypes.data, at, end, len(tags), tags.ctypes.data, places.ctypes.data
        )
    )
