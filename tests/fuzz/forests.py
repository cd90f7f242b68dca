"""Spoilt forests: those that decoding lets pass are scored under sanitizers."""

import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rankstream.ranking.tree_scoring import TreeScorer
from rankstream.wire.models.forests import (
    HEADER,
    Forest,
    fault_of_forest,
    pack_forest,
    unpack_forest,
)
from streams.native.compiler import FOLDER
from tests.forest_factory import drawn_forest, telling_documents
from tests.fuzz.fuzzing import FLAGS, Sanitizer

N_FEATURES = 5

PLACES = ("roots", "features", "children")


def spoilt(forest: Forest, rng: np.random.Generator) -> bytes:
    """A forest with something in it changed: a place, some bytes, or its sizes."""
    packed = bytearray(pack_forest(forest))
    how = int(rng.integers(5))
    if how < 2:
        name = PLACES[int(rng.integers(len(PLACES)))]
        values = getattr(forest, name).copy()
        flat = values.reshape(-1)
        one, other = rng.integers(len(flat), size=2).tolist()
        if how:
            # What passes the check must often be another forest.
            flat[one], flat[other] = flat[other], flat[one]
        else:
            flat[one] = rng.integers(-9, 9) + (flat[one] if rng.random() < 0.7 else 0)
        return pack_forest(forest._replace(**{name: values}))
    if how == 2:
        for _ in range(int(rng.integers(1, 4))):
            packed[int(rng.integers(HEADER.size, len(packed)))] ^= 1 << rng.integers(8)
        return bytes(packed)
    if how == 3:
        number = struct.pack("<I", int(rng.integers(0, 80)))
        at = 4 * int(rng.integers(4))
        packed[at : at + 4] = number
        return bytes(packed)
    return bytes(packed[: int(rng.integers(len(packed) + 1))])


def passed(n_tried: int, seed: int) -> Iterator[bytes]:
    """Those of so many spoilt forests in which decoding finds nothing."""
    rng = np.random.default_rng(seed)
    for number in range(n_tried):
        n_trees, n_leaves = int(rng.integers(1, 5)), int(rng.integers(2, 9))
        forest = drawn_forest(
            number, n_trees=n_trees, n_leaves=n_leaves, n_features=N_FEATURES
        )
        found = spoilt(forest, rng)
        if not fault_of_forest(found, N_FEATURES):
            yield found


def driver(by: Sanitizer, folder: Path, sources: Path = FOLDER) -> Path:
    """The program that scores, with sanitizers.

    Raises
    ------
    RuntimeError
        With what the compiler said.
    """
    program, own = folder / "forests", Path(__file__).with_name("forests.c")
    done = subprocess.run(
        [
            *by.command, *FLAGS, f"-I{sources}", str(sources / "trees.c"), str(own),
            "-o", str(program), "-lm",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the driver must compile; the compiler said {done.stderr}")
    return program


def case_of(packed: bytes, seed: int) -> tuple[bytes, npt.NDArray[np.float64]]:
    """A forest as the program reads it, and its scores by numpy."""
    forest = unpack_forest(packed)
    scorer = TreeScorer(forest)
    features = telling_documents(forest, 7, N_FEATURES, seed)
    if seed % 2:
        features[np.isnan(features)] = 1.5
    is_plain = scorer._is_plain(features)
    sizes = len(forest.roots), len(forest.features), len(forest.leaves)
    head = np.array([*sizes, *features.shape, is_plain], np.int64)
    told = head.tobytes() + forest.roots.tobytes()
    told += scorer._nodes.tobytes() + forest.leaves.tobytes() + features.tobytes()
    return told, scorer.scores_in_numpy(features)
