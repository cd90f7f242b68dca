"""Flow of fetched records: only fetches from where a stage goes on are handed over.

Between a revocation and the seek that follows the next assignment, a client reads from
wherever it was or the group has committed, and a stage goes on elsewhere. If records
from there are folded, those before them are left out, and nobody notices. Faust does
not keep them back: its flow is resumed by any seek that ends, also by one that began
before the revocation, and whatever comes then counts as of the new generation.
"""

import asyncio


class Flow:
    """Whether, and since which seek, fetched records are handed over.

    Attributes
    ----------
    is_assigned
        Whether partitions were assigned since they were last revoked. A seek of an
        assignment that is over opens nothing.
    fetching
        Held by a fetch, and by a seek while it moves positions: a fetch that began
        before moves on from wherever the client was sent meanwhile, and what it
        brings is dropped.
    """

    def __init__(self) -> None:
        self.is_assigned = False
        self.fetching = asyncio.Lock()
        self._n_stops = 0
        self._is_open = False

    @property
    def current(self) -> int | None:
        """Which flow this is; None where nothing may be fetched.

        A fetch that began in another flow than the one it ends in is dropped.
        """
        return self._n_stops if self._is_open else None

    def revoke(self) -> None:
        """Stop until partitions were assigned, and their starts were sought."""
        self.is_assigned = False
        self.stop()

    def assign(self) -> None:
        """Hear that partitions are assigned; their starts are to be sought yet."""
        self.is_assigned = True
        self.stop()

    def stop(self) -> int:
        """Stop, as a seek begins; gives the number of this stop."""
        self._n_stops += 1
        self._is_open = False
        return self._n_stops

    def resume(self, stop: int) -> None:
        """Go on, as that seek has ended, unless something stopped it once more."""
        if stop == self._n_stops and self.is_assigned:
            self._is_open = True
