"""Formats of model files, by the names that commands know them by."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rankstream.operations.tree_files.elasticsearch_model import (
    is_elasticsearch,
    read_elasticsearch,
)
from rankstream.operations.tree_files.lightgbm_text import (
    is_lightgbm,
    read_lightgbm,
)
from rankstream.operations.tree_files.ranklib_xml import (
    is_ranklib,
    read_ranklib,
)
from rankstream.operations.tree_files.tree_file import ModelFileRefused, TreeFile
from rankstream.operations.tree_files.xgboost_model import (
    is_xgboost,
    read_xgboost,
)
from rankstream.wire.topics import MIB

AUTO = "auto"

LARGEST_FILE = 512 * MIB
"""Text takes ten times what the largest snapshot does, and more is not read."""

BEGINNING = 4_096


class Format(NamedTuple):
    """How one format is recognised and read."""

    recognise: Callable[[bytes], bool]
    read: Callable[[bytes], TreeFile]


FORMATS = {
    "lightgbm": Format(is_lightgbm, read_lightgbm),
    "xgboost": Format(is_xgboost, read_xgboost),
    "ranklib": Format(is_ranklib, read_ranklib),
    "elasticsearch": Format(is_elasticsearch, read_elasticsearch),
}


class ReadFile(NamedTuple):
    """A model file, and as what it was read."""

    trees: TreeFile
    form: str
    content: bytes


def read_model_file(path: Path, form: str = AUTO) -> ReadFile:
    """The trees of a file.

    Parameters
    ----------
    form
        One of `FORMATS`, or `auto`: by how the file begins.

    Raises
    ------
    ModelFileRefused
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ModelFileRefused(
            f"a model file must be readable; {error.strerror}; at {path}"
        ) from error
    if len(content) > LARGEST_FILE:
        raise ModelFileRefused(
            f"a model file must have at most {LARGEST_FILE:,} bytes; {path} has more: "
            "train fewer trees"
        )
    if form == AUTO:
        form = _recognised(path, content[:BEGINNING])
    return ReadFile(FORMATS[form].read(content), form, content)


def _recognised(path: Path, beginning: bytes) -> str:
    for name, each in FORMATS.items():
        if each.recognise(beginning):
            return name
    raise ModelFileRefused(
        f"a model file must begin as one of {', '.join(FORMATS)} does; {path} does "
        "not: say --format, or save the model anew"
    )
