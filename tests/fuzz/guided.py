"""Mutation that keeps whatever reached a new line, or came to a new end.

Most of decoding is compiled code that shows no lines. What it says is a signal too: an
error names the field that it stands at. So an input is new if it went from a line to
another that no input went from, or if its end was said in words that none was.
"""

import lzma
import re
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import numpy as np

from tests.fuzz.decoders import TARGETS, Target
from tests.fuzz.mutating import spoilt

CORPUS = Path(__file__).with_name("corpus.msgpack.xz")
"""By target: inputs of earlier runs, each with something that no other reached."""

_values = re.compile(r"(?s:(?<=unknown field ).*)|0x[0-9a-f]+|-?\d+|'[^']*'|\"[^\"]*\"")
"""What differs between two errors of one kind."""

Feature = tuple[str, int, int] | str


@dataclass
class Explored:
    """What a run of one target found."""

    n_tried: int = 0
    seen: set[Feature] = field(default_factory=set)
    kept: list[bytes] = field(default_factory=list)
    ends: set[str] = field(default_factory=set)
    faults: dict[str, bytes] = field(default_factory=dict)
    """By the place of the fault: the shortest input that leads to it."""


def explore(target: Target, known: Sequence[bytes], n: int, seed: int) -> Explored:
    """Try what is known, then `n` mutations of whatever was new."""
    found, rng = Explored(), np.random.default_rng(seed)
    watched = frozenset(str(module.__file__) for module in target.modules)
    for value in known:
        _try(target, watched, value, found)
    for _ in range(n):
        pool = found.kept or known
        # The newest are the least tried.
        parent = pool[-1 - int(len(pool) * rng.random() ** 2)]
        _try(target, watched, spoilt(parent, pool, rng), found)
    return found


def _try(
    target: Target, watched: frozenset[str], value: bytes, found: Explored
) -> None:
    seen: set[Feature] = set()
    found.n_tried += 1
    try:
        with _Lines(watched, seen):
            end = target.take(value)
    except Exception as error:  # noqa: BLE001  it is what is looked for
        place = traceback.extract_tb(error.__traceback__)[-1]
        name = Path(place.filename).name
        fault = f"{type(error).__name__} in {name}, {place.name}"
        if len(value) < len(found.faults.get(fault, value + b"-")):
            found.faults[fault] = value
        return
    ends = {_values.sub("#", each) for each in end.split("\t")}
    found.ends |= ends
    seen |= ends
    if not seen <= found.seen:
        found.seen |= seen
        found.kept.append(value)


class _Lines:
    """Notes, inside, which line came after which in the files that are watched."""

    def __init__(self, watched: frozenset[str], seen: set[Feature]) -> None:
        self._watched = watched
        self._seen = seen
        self._last: dict[FrameType, int] = {}

    def __enter__(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(self._called)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _called(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        return self._line if frame.f_code.co_filename in self._watched else None

    def _line(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            last, now = self._last.get(frame, 0), frame.f_lineno
            self._seen.add((frame.f_code.co_filename, last, now))
            self._last[frame] = now
        elif event == "return":
            self._last.pop(frame, None)
        return self._line


def stored_corpus() -> dict[str, list[bytes]]:
    """The inputs in the file, by target."""
    if not CORPUS.exists():
        return {}
    packed = lzma.decompress(CORPUS.read_bytes())
    return msgspec.msgpack.decode(packed, type=dict[str, list[bytes]])


def store_corpus(explored: dict[str, Explored]) -> None:
    """Write, by target, the shortest inputs that reach together what was reached."""
    kept = {name: _needed(TARGETS[name], each) for name, each in explored.items()}
    CORPUS.write_bytes(lzma.compress(msgspec.msgpack.encode(kept), preset=9))


def _needed(target: Target, explored: Explored) -> list[bytes]:
    shortest_first = sorted(explored.kept, key=lambda value: (len(value), value))
    return explore(target, shortest_first, 0, 0).kept
