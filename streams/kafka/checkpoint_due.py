"""When a partition's state is to be written, beside its resume position."""

import time

from rankstream.settings import DeliverySettings


class CheckpointDue:
    """Counts records and seconds since the last checkpoint of a partition."""

    def __init__(self, delivery: DeliverySettings) -> None:
        self._delivery = delivery
        self._n_records = 0
        self._since_s = time.monotonic()

    def stagger(self, share: float) -> None:
        """Be due earlier by a share of the interval.

        Partitions of a process checkpoint one after another, not all at once.
        """
        self._since_s = time.monotonic() - self._delivery.state_s * share

    def take(self) -> None:
        """Count a record that was folded."""
        self._n_records += 1

    def written(self) -> None:
        """Begin anew, as there is a checkpoint."""
        self._n_records = 0
        self._since_s = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether so much has come, or so long ago, as the settings say."""
        return (
            time.monotonic() - self._since_s >= self._delivery.state_s
            or self._n_records >= self._delivery.state_records
        )
