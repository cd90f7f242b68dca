"""Trees of files that nest them, or point from node to node, as arrays."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from rankstream.operations.tree_files.tree_file import Tree, damaged
from rankstream.wire.models.forests import MOST_DEEP

Node = TypeVar("Node")


class Split(NamedTuple, Generic[Node]):
    """A node that is no leaf; see `rankstream.wire.models.forests.Forest`."""

    feature: int
    threshold: float
    missing: int
    left: Node
    right: Node


def grown(form: str, root: Node, read: Callable[[Node], "Split[Node] | float"]) -> Tree:
    """A tree, parents before their children, by a stack: Python calls no deeper.

    Parameters
    ----------
    form
        What the file is read as.
    read
        What a node is: a split, or the value of a leaf.

    Raises
    ------
    ModelFileRefused
        Where it is deeper than a ranker takes; what `read` raises, too.
    """
    splits: list[Split[Node]] = []
    children: list[list[int]] = []
    leaves: list[float] = []
    places: list[int] = []
    waiting: list[tuple[Node, list[int], int]] = [(root, places, 1)]
    while waiting:
        node, above, deep = waiting.pop()
        found = read(node)
        if not isinstance(found, Split):
            above.append(-1 - len(leaves))
            leaves.append(found)
            continue
        if deep > MOST_DEEP:
            raise damaged(form, f"a tree is deeper than {MOST_DEEP} nodes")
        above.append(len(splits))
        splits.append(found)
        below: list[int] = []
        children.append(below)
        # The left one is taken, with all below it, before the right one.
        waiting += [(found.right, below, deep + 1), (found.left, below, deep + 1)]
    return Tree(
        places[0],
        [split.feature for split in splits],
        [split.threshold for split in splits],
        [left for left, _ in children],
        [right for _, right in children],
        [split.missing for split in splits],
        leaves,
    )
