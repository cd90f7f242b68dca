"""Bytes in flight: how many of requests and unsent records are held at once."""

from rankstream.operations.serving.problems import busy

RECORD_BYTES = 512
"""What a record takes in memory beside its own bytes, about."""


class InFlight:
    """Counts bytes of requests that are read, and of records that Kafka has not.

    Parameters
    ----------
    n_bytes
        As many as may be under way.

    Attributes
    ----------
    taken
        Bytes that are under way.
    refused
        How often there was no room.
    """

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes
        self.taken = 0
        self.refused = 0

    def take(self, n_bytes: int, *, is_last: bool = False) -> None:
        """Take so many bytes, to be given back.

        Raises
        ------
        Problem
            Where there is no room; ask again later.
        """
        if self.taken + n_bytes > self.n_bytes:
            self.refused += 1
            raise busy(
                f"at most {self.n_bytes:,} bytes may be under way; {self.taken:,} are "
                f"and {n_bytes:,} more were asked for: ask again later",
                is_last=is_last,
            )
        self.taken += n_bytes

    def give(self, n_bytes: int) -> None:
        """Give bytes back."""
        self.taken -= n_bytes
