"""Lists by the ids that clients gave them, so that to ask again gives the same list.

What was sent first is what counts: a second list under its id would be shown, and the
clicks on it counted on the first.
"""

from collections import OrderedDict
from http import HTTPStatus
from typing import NamedTuple

from rankstream.operations.serving.deliveries import Delivery
from rankstream.operations.serving.problems import Problem

MOST_LISTS = 10_000
MOST_BYTES = 16 << 20


class Kept(NamedTuple):
    """An answer, the digest of its request, and the event on its way."""

    answer: bytes
    digest: int
    sending: Delivery | None


class Remembered:
    """The newest answers whose ids came from clients."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._n_bytes = 0

    def of(self, impression: str, digest: int) -> Kept | None:
        """What was answered, or is about to be; None where nothing was sent.

        Raises
        ------
        Problem
            Where another request has used the id.
        """
        kept = self._kept.get(impression)
        if kept is None:
            return None
        if kept.sending is not None and kept.sending.has_failed:
            self._drop(impression)
            return None
        if kept.digest != digest:
            raise Problem(
                HTTPStatus.CONFLICT,
                "impression",
                f"impression_id must name one list; another request has used "
                f"{impression[:100]!r}: leave it out for a new one",
            )
        return kept

    def keep(self, impression: str, kept: Kept) -> None:
        """Remember an answer, and forget the oldest where there are too many."""
        self._drop(impression)
        self._kept[impression] = kept
        self._n_bytes += len(kept.answer)
        while len(self._kept) > MOST_LISTS or self._n_bytes > MOST_BYTES:
            self._drop(next(iter(self._kept)))

    def _drop(self, impression: str) -> None:
        kept = self._kept.pop(impression, None)
        if kept is not None:
            self._n_bytes -= len(kept.answer)
