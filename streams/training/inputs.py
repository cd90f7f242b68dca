"""Statistics and features together, as a training reads them."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from rankstream.configuration.models import ModelSettings
from rankstream.wire.envelope import features_hash
from streams.statistics.reader import Statistics
from streams.training.feature_records import FeatureRecords
from streams.training.model_lists import scopes_for

if TYPE_CHECKING:
    from rankstream.settings import Settings


class TrainingRefused(RuntimeError):
    """A model cannot be trained from what there is, and the message says why.

    Operator action: as the message says; nothing was published.
    """


class Inputs(NamedTuple):
    """What a training reads.

    Parameters
    ----------
    statistics
        Of all partitions of `events`.
    features
        Of the model's list; see `feature_records_for`.
    """

    statistics: Statistics
    features: FeatureRecords

    @property
    def counts(self) -> dict[int, int]:
        """See `counts_of`."""
        return counts_of(self.statistics)

    @property
    def watermarks(self) -> dict[int, int | None]:
        """See `watermarks_of`."""
        return watermarks_of(self.statistics)

    @property
    def watermark_ms(self) -> int:
        """See `least_watermark_of`."""
        return least_watermark_of(self.statistics)


def counts_of(statistics: Statistics) -> dict[int, int]:
    """Interactions that were counted, by partition of `events`, sorted."""
    found: dict[int, int] = {}
    for one in statistics.counted:
        found |= one.sources
    return dict(sorted(found.items()))


def watermarks_of(statistics: Statistics) -> dict[int, int | None]:
    """That of each partition, sorted; None before there is one."""
    found = {
        source: one.watermark_ms for one in statistics.counted for source in one.sources
    }
    return dict(sorted(found.items()))


def least_watermark_of(statistics: Statistics) -> int:
    """The least watermark; 0 before there is one."""
    known = [x for x in watermarks_of(statistics).values() if x is not None]
    return min(known, default=0)


def list_hash(model: ModelSettings) -> bytes:
    """The hash of the model's list of features."""
    return features_hash(model.feature_names or model.features)


def feature_records_for(
    settings: "Settings", name: str, items: Iterable[tuple[bytes, bytes | None]]
) -> FeatureRecords:
    """Those of records of `candidates` that a model is trained from."""
    model = settings.models[name]
    return FeatureRecords(
        items, list_hash(model), model.features, n_partitions=settings.kafka.partitions
    )


def sets_known(
    name: str, model: ModelSettings, statistics: Statistics
) -> Iterator[tuple[str, list[bytes]]]:
    """Queries, sorted, and their candidate sets that a training reads features of.

    A set is named once for each intervention that it was shown under. Features are of
    sets that are whole, hence never of one that grows.
    """
    is_wanted = scopes_for(model.sources_of(name))
    wanted = (scope for scope in statistics.scopes() if is_wanted(scope))
    for query, of_query in groupby(wanted, lambda scope: scope.query):
        yield query, [one.candidate_set for one in of_query if not one.is_growing]
