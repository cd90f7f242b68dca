"""When a model is to be trained: at counts of interactions, and at event times."""

from collections.abc import Iterator

from rankstream.sections import TrainingSettings
from rankstream.wire.training import COUNT, TIME, Position


def count_points(training: TrainingSettings) -> list[int]:
    """Numbers of interactions at which a model is trained, ascending, each once.

    Those of `after`, and `interventions` points from `first` to `last` that are evenly
    spaced on a log scale.

    Examples
    --------
    >>> plan = TrainingSettings(first=10, last=1_000, interventions=3, after=[50])
    >>> count_points(plan)
    [10, 50, 100, 1000]
    """
    return sorted({*training.after, *_log_points(training)})


def _log_points(training: TrainingSettings) -> Iterator[int]:
    n, first, last = training.interventions, training.first, training.last
    if n == 1:
        yield first
    for number in range(n if n > 1 else 0):
        yield round(first * (last / first) ** (number / (n - 1)))


def due(
    training: TrainingSettings,
    position: Position | None,
    n_counted: int,
    watermark_ms: int | None,
) -> str | None:
    """Why a model is to be trained now; None where it is not.

    Each point is passed once, and several that were passed since the last intervention
    are one intervention. Points that an earlier schedule had are forgotten.

    Parameters
    ----------
    position
        After the last intervention; None before the first.
    n_counted
        Interactions that the statistics have counted, of all partitions.
    watermark_ms
        The least of theirs; None before each has one.

    Returns
    -------
    `COUNT` or `TIME`.
    """
    counted_before = position.n_counted if position else 0
    if any(counted_before < each <= n_counted for each in count_points(training)):
        return COUNT
    if watermark_ms is None:
        return None
    passed_ms = position.watermark_ms if position else -1
    if any(passed_ms < each <= watermark_ms for each in training.at_ms):
        return TIME
    return None
