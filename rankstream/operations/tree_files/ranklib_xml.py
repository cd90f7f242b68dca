"""RankLib's ensembles of regression trees (LambdaMART, MART): XML, read and written.

Its features are numbered from 1, and one that is missing counts as 0. Thresholds and
leaves are of single precision.
"""

import math
from collections.abc import Iterator
from xml.parsers import expat

import numpy as np
import numpy.typing as npt

from rankstream.operations.tree_files.nested_trees import Split, grown
from rankstream.operations.tree_files.tree_file import (
    LARGEST,
    ModelFileRefused,
    Tree,
    TreeFile,
    checked,
    damaged,
    in_single,
    joined,
    single,
    trees_of,
    unknown_field,
)
from rankstream.wire.models.forests import (
    MISSING_LEFT,
    MOST_DEEP,
    NAN_IS_ZERO,
    ZERO_IS_MISSING,
    Forest,
)

FORM = "RankLib's XML"

INSIDE = {
    "ensemble": {"tree"},
    "tree": {"split"},
    "split": {"split", "feature", "threshold", "output"},
    "feature": set(),
    "threshold": set(),
    "output": set(),
}
"""Elements, and which may lie in each."""

ATTRIBUTES = {"tree": {"id", "weight"}, "split": {"pos"}}


def is_ranklib(beginning: bytes) -> bool:
    """Whether a file begins as RankLib's do: remarks, then the ensemble."""
    lines = beginning.lstrip().splitlines() or [b""]
    first = next((line for line in lines if not line.startswith(b"##")), b"")
    return first.lstrip().startswith(b"<ensemble") or lines[0].startswith(
        (b"## LambdaMART", b"## MART")
    )


def read_ranklib(content: bytes) -> TreeFile:
    """The trees of an ensemble, each leaf times the weight of its tree.

    Features have no names: the number of one is its place in the model's list.

    Raises
    ------
    ModelFileRefused
    """
    lines = content.splitlines(keepends=True)
    xml = b"".join(line for line in lines if not line.lstrip().startswith(b"##"))
    reader = _Reader()
    try:
        reader.parse(xml)
        forest = joined(reader.trees)
    except (expat.ExpatError, ValueError, OverflowError, LookupError) as error:
        if isinstance(error, ModelFileRefused):
            raise
        raise damaged(FORM, error) from error
    n_features = int(forest.features.max(initial=-1)) + 1
    return checked(TreeFile(forest, max(1, n_features), [], counts_all=False), FORM)


class _Split:
    """An element `split`: a node, or a leaf."""

    def __init__(self, side: str) -> None:
        self.side = side
        self.texts: dict[str, str] = {}
        self.below: dict[str, _Split] = {}


class _Reader:
    """Reads element by element; types of documents, and so entities, are refused."""

    def __init__(self) -> None:
        self.trees: list[Tree] = []
        self._open: list[str] = []
        self._splits: list[_Split] = []
        self._root: _Split | None = None
        self._weight = 1.0
        self._texts: list[str] = []

    def parse(self, xml: bytes) -> None:
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._take
        parser.StartDoctypeDeclHandler = self._refuse_type
        parser.Parse(xml, True)

    def _refuse_type(self, *_: object) -> None:
        raise damaged(FORM, "it declares a type of document")

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        above = self._open[-1] if self._open else ""
        allowed = INSIDE[above] if above else {"ensemble"}
        if name not in allowed:
            raise unknown_field(FORM, above or "the file", [name])
        if unknown := attributes.keys() - ATTRIBUTES.get(name, set()):
            raise unknown_field(FORM, name, unknown)
        if len(self._splits) > MOST_DEEP:
            raise damaged(FORM, f"a tree is deeper than {MOST_DEEP} nodes")
        self._open.append(name)
        self._texts = []
        if name == "tree":
            self._root = None
            self._weight = _single(attributes.get("weight", "1"))
        if name == "split":
            self._splits.append(_Split(attributes.get("pos", "")))

    def _take(self, text: str) -> None:
        # Each line comes by itself: what was put together so far is not copied again.
        self._texts.append(text)

    def _end(self, name: str) -> None:
        self._open.pop()
        if name in ("feature", "threshold", "output"):
            texts = self._splits[-1].texts
            if name in texts:
                raise damaged(FORM, f"{name} comes twice in a split")
            texts[name] = "".join(self._texts).strip()
        if name == "split":
            self._close(self._splits.pop())
        if name == "tree":
            if self._root is None:
                raise damaged(FORM, f"tree {len(self.trees) + 1} has no split")
            self.trees.append(_tree(self._root, self._weight))

    def _close(self, split: _Split) -> None:
        if not self._splits:
            if self._root is not None:
                raise damaged(FORM, f"tree {len(self.trees) + 1} has several roots")
            self._root = split
            return
        below = self._splits[-1].below
        if split.side not in ("left", "right") or split.side in below:
            raise damaged(FORM, f"a split lies to the side {split.side!r}, or again")
        below[split.side] = split


def _single(text: str) -> float:
    found = float(single(text))
    if not math.isfinite(found):
        raise damaged(FORM, f"{text!r} is no finite number of single precision")
    return found


def _tree(root: _Split, weight: float) -> Tree:
    def read(split: _Split) -> Split[_Split] | float:
        if not split.below and set(split.texts) == {"output"}:
            return _single(split.texts["output"]) * weight
        if set(split.texts) != {"feature", "threshold"} or len(split.below) != 2:
            raise damaged(FORM, f"a split has {sorted(split.texts)} and no two below")
        number = int(split.texts["feature"])
        if number < 1:
            raise damaged(FORM, f"a split has feature {number}, and the first is 1")
        threshold = _single(split.texts["threshold"])
        below = split.below
        return Split(number - 1, threshold, NAN_IS_ZERO, below["left"], below["right"])

    return grown(FORM, root, read)


def write_ranklib(forest: Forest, names: list[str], n_features: int) -> bytes:
    """An ensemble; thresholds and leaves are rounded to single precision.

    Features are numbered from 1, in the order of the model, whatever their names.

    Raises
    ------
    ModelFileRefused
        Where a split or a leaf can be none of RankLib's.
    """
    del names, n_features
    forest = in_single(forest, "RankLib", goes_below=False)
    lines = [
        "## LambdaMART",
        f"## No. of trees = {len(forest.roots)}",
        "",
        "<ensemble>",
    ]
    for number, (nodes, _) in enumerate(trees_of(forest), 1):
        check_missing(forest, nodes, "RankLib")
        lines.append(f'\t<tree id="{number}" weight="1.0">')
        lines += _lines(forest, int(forest.roots[number - 1]))
        lines.append("\t</tree>")
    return "\n".join([*lines, "</ensemble>", ""]).encode()


def check_missing(forest: Forest, nodes: npt.NDArray[np.int64], system: str) -> None:
    """Refuse a split that sends 0 elsewhere than a comparison does.

    Parameters
    ----------
    nodes : [n]
        Places of nodes in the forest.
    system
        Named in the refusal.

    Raises
    ------
    ModelFileRefused
    """
    missing = forest.missing[nodes]
    takes_zero = (missing & ZERO_IS_MISSING) != 0
    goes_left = (missing & MISSING_LEFT) != 0
    if (takes_zero & (goes_left != (forest.thresholds[nodes] >= 0.0))).any():
        raise ModelFileRefused(
            f"splits must compare 0 like other numbers for {system}; the model has "
            "some by which 0 is missing: export it to LightGBM"
        )


def _lines(forest: Forest, root: int) -> Iterator[str]:
    """A tree from its root on, by a stack: it may be deeper than Python calls."""
    waiting: list[tuple[int, str, int] | str] = [(root, "", 2)]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield found
            continue
        at, side, deep = found
        tabs = "\t" * deep
        yield f'{tabs}<split pos="{side}">' if side else f"{tabs}<split>"
        if at < 0:
            yield f"{tabs}\t<output> {_short(forest.leaves[-1 - at])} </output>"
            yield f"{tabs}</split>"
            continue
        yield f"{tabs}\t<feature> {int(forest.features[at]) + 1} </feature>"
        yield f"{tabs}\t<threshold> {_below(forest.thresholds[at])} </threshold>"
        left, right = forest.children[at].tolist()
        waiting += [
            f"{tabs}</split>", (right, "right", deep + 1), (left, "left", deep + 1),
        ]  # fmt: skip


def _short(value: float) -> str:
    return str(float(np.float32(value)))


def _below(threshold: float) -> str:
    """The largest number of single precision that goes left."""
    threshold = min(threshold, LARGEST)
    near = np.float32(threshold)
    if float(near) > threshold:
        near = np.nextafter(near, np.float32(-np.inf))
    return str(float(near))
