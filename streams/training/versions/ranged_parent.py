"""Ranges of features in the log, for a model that normalises by fixed ones."""

from collections.abc import Iterable

import msgspec
import numpy as np

from models.arrays import Singles
from rankstream.configuration.models import FIXED
from rankstream.ranking.fixed_ranges import with_ranges
from streams.training.checks import Checks
from streams.training.feature_records import FeatureRecords, FeaturesRefused
from streams.training.inputs import TrainingRefused, sets_known


def ranged(checks: Checks) -> Checks:
    """The same; a parent that nothing was learned for has ranges where it needs them.

    Those of the settings, or else of all features that the training reads. Versions
    that follow keep them: weights are of features on that scale.

    Raises
    ------
    TrainingRefused
        Where the log has no features, or others than the model's.
    """
    name, model, inputs, parent = checks
    if model.normalisation != FIXED or parent.updates or parent.scale:
        return checks
    sets = sets_known(name, model, inputs.statistics)
    try:
        ranges = model.feature_ranges or ranges_of_log(inputs.features, sets)
    except FeaturesRefused as error:
        raise TrainingRefused(f"{name!r} cannot be trained: {error}") from error
    if ranges is None:
        raise TrainingRefused(checks.no_features())
    # Of a snapshot from before the setting: nothing of it was learned.
    plain = msgspec.structs.replace(parent, normalisation="none")
    return checks._replace(parent=with_ranges(plain, ranges))


def ranges_of_log(
    features: FeatureRecords, sets: Iterable[tuple[str, list[bytes]]]
) -> Singles | None:
    """The least and the most of each feature, [n_features, 2]; None where none is.

    Numbers that are not finite are passed over here, and refused by who trains.

    Parameters
    ----------
    sets
        Queries and their candidate sets.

    Raises
    ------
    FeaturesRefused
    """
    found = [np.zeros((0, features.n_features), np.float32)]
    for query, names in sets:
        table = features.of(query, names)
        if table is not None:
            rows = np.concatenate([table.features, *found])
            is_known = np.isfinite(rows)
            least = rows.min(axis=0, initial=np.inf, where=is_known)
            most = rows.max(axis=0, initial=-np.inf, where=is_known)
            found = [np.stack([least, most])]
    if not len(found[0]):
        return None
    return np.where(np.isfinite(found[0]), found[0], np.float32(0.0)).T
