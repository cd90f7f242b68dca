"""The version of a model that follows another one: its weights, and what stays."""

from collections.abc import Sequence

from models.arrays import Floats
from models.rankers.ranker import Scorer
from rankstream.configuration.models import ModelSettings
from rankstream.wire.envelope import Pointer, Snapshot, intervention_of
from rankstream.wire.models.forests import pack_forest
from streams.training.checks import Checks
from streams.training.inputs import TrainingRefused
from streams.training.versions.either_ranker import EitherRanker
from streams.training.versions.forest_ranker import ForestRanker


def following(
    checks: Checks,
    pointer: Pointer,
    ranker: Scorer,
    weights: Floats,
    groups: Sequence[int],
) -> Snapshot:
    """The snapshot that is served next.

    Parameters
    ----------
    ranker
        Whose parameters the weights are.
    weights : [n_parameters]
        Rounded to single precision, as they are served.
    groups
        Whose clicks it came from.

    Raises
    ------
    TrainingRefused
        Where trees take more than the settings allow.
    """
    name, model, inputs, parent = checks
    form = model.forms[0]
    if isinstance(ranker, EitherRanker):
        ranker, weights = ranker.side(weights)
        form = model.forms[isinstance(ranker, ForestRanker)]
    # Another kind than the parent's begins without what that was scaled by.
    is_alike = form.kind == parent.kind
    return Snapshot(
        model=name,
        epoch=pointer.epoch,
        version=pointer.version,
        parent=parent.version,
        created_ms=inputs.watermark_ms,
        kind=form.kind,
        hidden=model.hidden,
        normalisation=form.normalises_queries,
        n_features=model.features,
        features_hash=parent.features_hash,
        sources=list(inputs.counts.items()),
        updates=parent.updates + 1,
        weights=_packed(name, model, ranker, weights),
        intervention=intervention_of(name, pointer),
        feature_names=model.feature_names,
        shift=parent.shift if is_alike else b"",
        scale=parent.scale if is_alike else b"",
        groups=[*groups],
        log_candidates=model.logs_candidates,
        parent_epoch=parent.epoch,
    )


def _packed(name: str, model: ModelSettings, ranker: Scorer, weights: Floats) -> bytes:
    """Weights [n_parameters] as snapshots hold them."""
    if not isinstance(ranker, ForestRanker):
        return weights.astype("<f4").tobytes()
    forest = ranker.forest(weights)
    packed, most, n_trees = pack_forest(forest), model.snapshot_bytes, len(forest.roots)
    if len(packed) > most:
        raise TrainingRefused(
            f"trees of {name!r} must take at most models.{name}.snapshot_bytes, "
            f"{most:,}; {n_trees:,} of {len(forest.leaves):,} leaves take "
            f"{len(packed):,}: raise it, or lower rounds_at_most, and rounds, of "
            f"models.{name}.training.trees to {max(1, n_trees * most // len(packed)):,}"
        )
    return packed
