"""The version of a model that follows another one: its weights, and what stays."""

from collections.abc import Sequence

from models.arrays import Floats
from rankstream.wire.envelope import Pointer, Snapshot, intervention_of
from streams.training.checks import Checks


def following(
    checks: Checks, pointer: Pointer, weights: Floats, groups: Sequence[int]
) -> Snapshot:
    """The snapshot that is served next.

    Parameters
    ----------
    weights : [n_weights]
        Rounded to single precision, as they are served.
    groups
        Whose clicks it came from.
    """
    name, model, inputs, parent = checks
    return Snapshot(
        model=name,
        epoch=pointer.epoch,
        version=pointer.version,
        parent=parent.version,
        created_ms=inputs.watermark_ms,
        kind=model.kind,
        hidden=model.hidden,
        normalisation=model.normalisation,
        n_features=model.features,
        features_hash=parent.features_hash,
        sources=list(inputs.counts.items()),
        updates=parent.updates + 1,
        weights=weights.astype("<f4").tobytes(),
        intervention=intervention_of(name, pointer),
        feature_names=model.feature_names,
        shift=parent.shift,
        scale=parent.scale,
        groups=[*groups],
        log_candidates=model.logs_candidates,
        parent_epoch=parent.epoch,
    )
