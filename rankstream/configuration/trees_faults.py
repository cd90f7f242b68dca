"""What settings of a training cannot be so for trees, or without them."""

import math
from collections.abc import Iterator, Sequence

from rankstream.configuration.section import Fault
from rankstream.configuration.training import SELECTED, TrainingSettings
from rankstream.configuration.trees import TreesSettings
from rankstream.wire.envelope import TREES

CONVEX_LOSSES = (
    "truncated-lambda",
    "lambda-loss-at-k",
    "lambda-loss",
    "lambda-rank",
    "arp-logistic",
)
"""Those of `models.losses` by whose curvature a tree can step; services do without."""

OF_LAYERS = ("epochs", "batch", "learning_rate", "patience")
"""Settings of a training that steps down slopes."""


def trees_faults(
    place: str, kind: str, names: Sequence[str], training: TrainingSettings
) -> Iterator[Fault]:
    """Each setting of a training that cannot be so for trees, or without them.

    Parameters
    ----------
    place
        Of the training.
    kind, names
        Of the model, and of its features.
    """
    default, trees = TrainingSettings(), training.trees
    if kind not in (TREES, SELECTED):
        if trees != default.trees:
            yield (
                f"{place}.trees",
                f"{place}.trees must be set where kind is 'trees' or 'selected' only; "
                f"got it with {kind!r}: take it out, or set kind = 'trees'",
            )
        return
    for name in OF_LAYERS if kind == TREES else ():
        if (value := getattr(training, name)) != getattr(default, name):
            own = "rounds" if name == "epochs" else name
            remedy = f", or set {place}.trees.{own}" if hasattr(trees, own) else ""
            yield (
                f"{place}.{name}",
                f"{place}.{name} must be left out where kind is 'trees'; got {value}: "
                f"take it out{remedy}",
            )
    yield from _of_losses(place, training)
    yield from _of_rounds(f"{place}.trees", names, trees)


def _of_losses(place: str, training: TrainingSettings) -> Iterator[Fault]:
    is_selected = training.loss == SELECTED
    setting = f"{place}.{'losses' if is_selected else 'loss'}"
    asked = training.losses if is_selected else [training.loss]
    wrong = [each for each in asked if each not in CONVEX_LOSSES]
    if wrong:
        yield (
            setting,
            f"{setting} must have a curvature that trees can step by; got "
            f"{', '.join(wrong)}: take {', '.join(CONVEX_LOSSES)}",
        )


def _of_rounds(
    place: str, names: Sequence[str], trees: TreesSettings
) -> Iterator[Fault]:
    if trees.rounds_at_most < trees.rounds:
        yield (
            f"{place}.rounds_at_most",
            f"{place}.rounds_at_most must be rounds, {trees.rounds}, or more; got "
            f"{trees.rounds_at_most}",
        )
    if not math.isfinite(trees.regularisation):
        yield (
            f"{place}.regularisation",
            f"{place}.regularisation must be finite; got {trees.regularisation}",
        )
    unknown = sorted(trees.monotone.keys() - {*names})
    if unknown:
        yield (
            f"{place}.monotone",
            f"{place}.monotone must name features of the model; got "
            f"{', '.join(unknown)}: it has {', '.join(names[:20])}",
        )
