"""The log of interactions, held against those that a recount closes."""

import hashlib
from collections.abc import Iterable

from rankstream.wire.events import (
    Interaction,
    decode_interaction_record,
    encode_record,
)
from streams.recount.differences import Verdict

DIGEST = 8
"""Bytes of an interaction that are kept to compare with."""


class InteractionsLog:
    """Digests of what stands in `interactions`, by partition of the log and target.

    Numbers that are missing, repeated or out of order are noted at once.
    """

    def __init__(self, records: Iterable[tuple[int, bytes]], verdict: Verdict) -> None:
        self._verdict = verdict
        self._digests: dict[tuple[int, int], bytearray] = {}
        self._n_expected: dict[tuple[int, int], int] = {}
        for target, value in records:
            self._take(target, value)

    def _take(self, target: int, value: bytes) -> None:
        batch = decode_interaction_record(value, f"interactions[{target}]")
        digests = self._digests.setdefault((batch.source, target), bytearray())
        number = batch.first_sequence
        for interaction in batch.interactions:
            present = len(digests) // DIGEST
            where = f"interaction {number} of {batch.source} in {target}"
            if number <= present:
                self._verdict.find("double", f"{where}: written again")
            else:
                if number > present + 1:
                    n_missing = number - present - 1
                    self._verdict.find(
                        "lost", f"{where}: {n_missing} before it missing"
                    )
                    digests += bytes(DIGEST * n_missing)
                digests += digest_of(interaction)
            number += 1

    def compare(
        self, source: int, target: int, interaction: Interaction, *, is_due: bool
    ) -> None:
        """Compare the next interaction; if it is due it must be there."""
        place = (source, target)
        number = self._n_expected.get(place, 0)
        self._n_expected[place] = number + 1
        digests = self._digests.get(place, b"")
        written = bytes(digests[DIGEST * number : DIGEST * (number + 1)])
        where = f"interaction {number + 1} of {source} in {target}"
        if not written:
            if is_due:
                self._verdict.find("lost", where)
        elif written != digest_of(interaction) and written != bytes(DIGEST):
            name = interaction.impression.impression_id
            self._verdict.find("wrong", f"{where}: must be {name!r:.80} and its clicks")

    def conclude(self) -> None:
        """Note what the log does not explain."""
        for place, digests in self._digests.items():
            n_extra = len(digests) // DIGEST - self._n_expected.get(place, 0)
            if n_extra > 0:
                self._verdict.find("extra", f"interactions of {place}", n_extra)


def digest_of(interaction: Interaction) -> bytes:
    """What two equal interactions share."""
    return hashlib.blake2b(encode_record(interaction), digest_size=DIGEST).digest()
