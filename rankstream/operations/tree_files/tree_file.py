"""What a file of trees holds, whichever library wrote it, and why one is refused."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rankstream.wire.models.forests import (
    MISSING_LEFT,
    NO_TREES,
    Forest,
    Int32,
    fault_of_forest,
    pack_forest,
)

LARGEST = float(np.finfo(np.float32).max)
"""A feature is finite, and so none is beyond it."""


class ModelFileRefused(ValueError):
    """A model file cannot be read as trees, or trees cannot be written as one.

    Operator action: what the message says; `docs/trees.md` has what is taken.
    """


class Tree(NamedTuple):
    """One tree; children are places in its own arrays, or -1 - leaf.

    Parameters
    ----------
    root
        Where it begins.
    features, thresholds, left, right, missing : [n_nodes]
        As `rankstream.wire.models.forests.Forest` has them.
    leaves : [n_leaves]
    """

    root: int
    features: Sequence[int] | npt.NDArray[np.int64]
    thresholds: Sequence[float] | npt.NDArray[np.float64]
    left: Sequence[int] | npt.NDArray[np.int64]
    right: Sequence[int] | npt.NDArray[np.int64]
    missing: Sequence[int] | npt.NDArray[np.int64]
    leaves: Sequence[float] | npt.NDArray[np.float64]


def one_leaf(value: float) -> Tree:
    """A tree that adds the same to every score."""
    return Tree(-1, [], [], [], [], [], [value])


def single(value: float | str) -> np.float32:
    """A number in single precision; infinite where it is beyond that.

    Raises
    ------
    ValueError, TypeError
        Where it is no number.
    """
    with np.errstate(over="ignore"):
        return np.float32(value)


class TreeFile(NamedTuple):
    """Trees, and what their features are called.

    Parameters
    ----------
    forest
        Whose features are counted as the file counts them, from 0.
    n_features
        Of the file.
    names
        Of its features, in their order; empty where it only counts them.
    counts_all
        Whether `n_features` are all that it was trained on, or those up to the last
        that a split looks at.
    """

    forest: Forest
    n_features: int
    names: list[str]
    counts_all: bool = True


def joined(trees: Iterable[Tree]) -> Forest:
    """The forest of trees, in their order."""
    parts: list[Forest] = [NO_TREES]
    n_nodes = n_leaves = 0
    for tree in trees:
        children = np.array([tree.left, tree.right], np.int64).T.reshape(-1, 2)
        root = np.array([tree.root], np.int64)
        parts.append(
            Forest(
                _moved(root, n_nodes, n_leaves),
                _moved(np.array(tree.features, np.int64), 0, 0),
                np.array(tree.thresholds, np.float64),
                _moved(children, n_nodes, n_leaves),
                np.array(tree.missing).astype(np.uint8),
                np.array(tree.leaves, np.float64),
            )
        )
        n_nodes, n_leaves = n_nodes + len(tree.features), n_leaves + len(tree.leaves)
    return Forest(*map(np.concatenate, zip(*parts, strict=True)))


def trees_of(
    forest: Forest,
) -> Iterator[tuple[npt.NDArray[np.int64], list[int]]]:
    """Nodes and leaves of each tree, parents before their children, left before right.

    Leaves are in the order in which they hang, from the left.
    """
    for root in forest.roots.tolist():
        nodes, leaves, waiting = [], [], [root]
        while waiting:
            at = waiting.pop()
            if at < 0:
                leaves.append(-1 - at)
                continue
            nodes.append(at)
            waiting += forest.children[at, ::-1].tolist()
        yield np.array(nodes, np.int64), leaves


def check_leaves(forest: Forest, system: str) -> None:
    """Refuse a leaf that is infinite in single precision.

    Parameters
    ----------
    system
        Named in the refusal.

    Raises
    ------
    ModelFileRefused
    """
    with np.errstate(over="ignore"):
        is_beyond = ~np.isfinite(forest.leaves.astype(np.float32))
    if is_beyond.any():
        raise ModelFileRefused(
            f"leaves must be of single precision for {system}; one is "
            f"{forest.leaves[is_beyond][0]:.3g}: export it to LightGBM"
        )


def in_single(forest: Forest, system: str, *, goes_below: bool) -> Forest:
    """The same decisions and leaves, where single precision has all their numbers.

    LightGBM parts what is missing from the rest by an infinite threshold. A split that
    sends every number one way is turned where the system can say only the other way.

    Parameters
    ----------
    goes_below
        Whether the system goes left below a number, or up to it. The one can send all
        numbers right, the other all left.

    Raises
    ------
    ModelFileRefused
        As `check_leaves`.
    """
    check_leaves(forest, system)
    thresholds = forest.thresholds
    is_turned = thresholds >= LARGEST if goes_below else thresholds < -LARGEST
    everywhere = -np.inf if goes_below else LARGEST
    missing = forest.missing ^ np.uint8(MISSING_LEFT)
    return forest._replace(
        thresholds=np.where(is_turned, everywhere, thresholds),
        children=np.where(
            is_turned[:, None], forest.children[:, ::-1], forest.children
        ),
        missing=np.where(is_turned, missing, forest.missing),
    )


def _moved(places: npt.NDArray[np.int64], n_nodes: int, n_leaves: int) -> Int32:
    """Places in the arrays of one tree, in those of all."""
    # No absolute values: the least number of 64 bits has none.
    is_beyond = (places <= -(1 << 30)) | (places >= 1 << 30)
    if is_beyond.any():
        raise ModelFileRefused(
            "children and features in a model file must be numbers of its own; got "
            f"{places[is_beyond][0]}: write the file again"
        )
    return np.where(places >= 0, places + n_nodes, places - n_leaves).astype(np.int32)


def checked(found: TreeFile, form: str) -> TreeFile:
    """The same, where it is whole.

    Parameters
    ----------
    form
        What the file was read as.

    Raises
    ------
    ModelFileRefused
    """
    fault = fault_of_forest(pack_forest(found.forest), found.n_features)
    if fault:
        raise ModelFileRefused(
            f"trees in a model file must be whole: {fault}; read as {form}: write the "
            "file again"
        )
    if found.names and len(found.names) != found.n_features:
        raise ModelFileRefused(
            f"a model file must name each of its {found.n_features} features; got "
            f"{len(found.names)} names: write the file again"
        )
    return found


def unknown_field(form: str, place: str, names: Iterable[str]) -> ModelFileRefused:
    """The refusal of what nobody here knows: it may change what scores are."""
    told = ", ".join(sorted(names))
    return ModelFileRefused(
        f"a model file must have fields that are known here; {form} has {told!r:.200} "
        f"in {place}, which may change what scores are: leave it out if it does not"
    )


def unfit(form: str, what: str, remedy: str) -> ModelFileRefused:
    """The refusal of what is known, and no sum of plain trees."""
    return ModelFileRefused(
        f"a model file must be a sum of trees with numbers at their splits; {form} "
        f"has {what}: {remedy}"
    )


def damaged(form: str, what: object) -> ModelFileRefused:
    """The refusal of what is cut off, or is something else."""
    return ModelFileRefused(
        f"a model file must be whole; read as {form}, {what!s:.300}: write the file "
        "again, or say --format"
    )
