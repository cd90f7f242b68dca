"""A store of snapshots and decisions that holds what a test put there."""

from collections.abc import Iterator, Sequence

from rankstream.redis_store.decision_scripts import HeldDecisions
from rankstream.redis_store.redis_scripts import Newest
from rankstream.snapshots import Pointer, SnapshotStore, StoreUnavailable
from rankstream.wire.decisions import place_of
from rankstream.wire.models.canary_snapshots import KnownCanary
from tests.decision_factory import Written
from tests.snapshot_factory import envelope


class Held(SnapshotStore):
    """A store that holds what a test put there, and tells what it was asked for."""

    def __init__(self, written: Written | None = None, rule: str = "rule") -> None:
        self.rule = rule
        self.pointer, self.envelope = Pointer(0, 1), envelope(1)
        self.canary, self.is_away = b"", False
        self.held: HeldDecisions | None = None
        self.shards: dict[bytes, bytes] = {}
        self.asked: list[bytes] = []
        if written is not None:
            self.put(written)

    def put(self, written: Written) -> None:
        """Switch to a rewrite."""
        self.shards |= written.shards
        place = place_of(written.value, written.manifest.number)
        self.held = HeldDecisions(place, written.value)

    def serve(self, version: int, epoch: int) -> None:
        """Switch to another version of the model."""
        self.pointer = Pointer(epoch, version)
        self.envelope = envelope(version, epoch=epoch)

    def newest(
        self,
        model: str,  # noqa: ARG002  there is one
        known: Pointer | None = None,
        known_canary: KnownCanary = KnownCanary(),  # noqa: ARG002, B008
    ) -> Newest | None:
        """What Redis would answer."""
        is_known = known == self.pointer
        return Newest(self.pointer, None if is_known else self.envelope, self.canary)

    def decisions(self, name: str, known: str = "") -> HeldDecisions | None:
        """What Redis would answer."""
        assert name == self.rule
        if self.is_away:
            raise StoreUnavailable("away")
        if self.held is None or self.held.place != known:
            return self.held
        return HeldDecisions(known, None)

    def decision_shards(
        self,
        name: str,  # noqa: ARG002  there is one
        digests: Sequence[bytes],
    ) -> Iterator[tuple[bytes, bytes]]:
        """What Redis would answer."""
        self.asked += digests
        return iter([(each, self.shards.get(each, b"")) for each in digests])
