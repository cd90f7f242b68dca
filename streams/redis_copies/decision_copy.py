"""The decisions of each rule in Redis, as their topic has them.

Records come in the order of one partition, those of a rewrite before its manifest and
in one transaction with it. What they make is taken as a rewrite only where the digests
of its manifest say the same: then it is whole. So neither a batch that ends within a
transaction nor a topic that was compacted half way is ever taken for one. The last
whole rewrite is kept for a refill, as shards; what speaks for decisions is not.
"""

import logging
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from rankstream.redis_store.decision_scripts import DecisionStanding, Switched
from rankstream.redis_store.decision_store import DecisionStore
from rankstream.wire.decision_shards import (
    N_SHARDS,
    DecisionError,
    Entry,
    digest_of,
    pack_shard,
    shard_number,
)
from rankstream.wire.decisions import (
    DecisionKey,
    Manifest,
    decode_decision,
    decode_key,
    decode_manifest,
    default_snapshot,
    entry_of,
    named_shards,
    place_of,
)
from rankstream.wire.envelope import LARGEST_NUMBER
from rankstream.wire.routing import hash_of_query
from streams.redis_copies.unexpected_entries import UnexpectedEntries

LONGEST_NUMBER = len(str(LARGEST_NUMBER))
"""Digits of a number that some rewrite may have."""

log = logging.getLogger("rankstream.publisher")


class Rewrite(NamedTuple):
    """A whole rewrite: its manifest, the bytes of that, and its shards by digest."""

    manifest: Manifest
    value: bytes
    shards: dict[bytes, bytes]

    @property
    def place(self) -> str:
        """What the pointer says of it."""
        return place_of(self.value, self.manifest.number)

    @property
    def pieces(self) -> list[tuple[bytes, bytes]]:
        """Digest and bytes of all that Redis must have; first the manifest."""
        return [(b"", self.value), *self.shards.items()]


class Sight(NamedTuple):
    """What was looked for, what was found, and which piece was read as a whole."""

    rewrite: Rewrite
    looked_at: int
    standing: DecisionStanding


class DecisionWork(NamedTuple):
    """Of one rule: a rewrite and its shards that Redis lacks; none to forget it."""

    name: str
    rewrite: Rewrite | None
    shards: dict[bytes, bytes]
    is_forced: bool


@dataclass
class _Rule:
    """What the topic has of a rule so far, packed, and its last whole rewrite."""

    entries: list[dict[bytes, Entry]] = field(
        default_factory=lambda: [{} for _ in range(N_SHARDS)]
    )
    packed: dict[int, bytes] = field(default_factory=dict)
    """Shards of `entries` that did not change since they were packed."""
    found: Rewrite | None = None
    """The last whole rewrite of this reading of the topic."""
    has_manifest: bool = False
    """Whether this reading came across one, whole or not, and no removal since."""
    is_removed: bool = False
    """Whether it came across a removal, and no manifest since."""
    rewrite: Rewrite | None = None
    """What Redis is to have."""
    written: str = ""
    """The place of what was written last."""
    n_looks: int = 0

    def put(self, number: int, key: bytes, entry: Entry | None) -> None:
        of_shard = self.entries[number]
        if of_shard.get(key) != entry:
            self.packed.pop(number, None)
        of_shard.pop(key, None)
        if entry is not None:
            of_shard[key] = entry

    def shards(self) -> list[bytes]:
        for number in range(N_SHARDS):
            if number not in self.packed:
                self.packed[number] = pack_shard(self.entries[number].values())
        return [self.packed[number] for number in range(N_SHARDS)]


class DecisionCopy:
    """Takes records of the topic of decisions, and writes to Redis what differs there.

    Only `look` and `write` speak to Redis, and may run in another thread.
    """

    def __init__(self, store: DecisionStore) -> None:
        self._store = store
        self._rules: defaultdict[str, _Rule] = defaultdict(_Rule)
        self._is_anew = False
        self._gone: set[str] = set()
        self._work: list[DecisionWork] = []
        self._ahead: UnexpectedEntries[str, str] = UnexpectedEntries()
        self._counts = dict.fromkeys(
            (
                "rewrites_published",
                "rewrites_incomplete",
                "rewrites_refilled",
                "decisions_rejected",
            ),
            0,
        )

    def take(self, key: bytes | None, value: bytes | None) -> bool:
        """Take one record; whether Redis is to have something else from now on.

        Never raises for what it holds.
        """
        try:
            named = decode_key(key or b"")
            if not named.is_manifest:
                self._take_decision(key or b"", named, value)
                return False
            if value is None:
                return self._take_removal(named.name)
            return self._take_manifest(named.name, value)
        except DecisionError as error:
            self._counts["decisions_rejected"] += 1
            log.warning(
                "event=decision-rejected key=%r reason=%s", (key or b"")[:100], error
            )
        return False

    def begin_anew(self) -> None:
        """Hear that all that the topic has comes again; removals do not.

        Until `finish` Redis is to have what it had.
        """
        self._is_anew = True
        for name, rule in self._rules.items():
            self._rules[name] = _Rule(rewrite=rule.rewrite, written=rule.written)

    def finish(self) -> bool:
        """Hear that the end was reached; whether Redis is to have something else."""
        if not self._is_anew:
            return False
        self._is_anew = False
        for name, rule in list(self._rules.items()):
            is_lost = rule.rewrite is not None and not rule.has_manifest
            if rule.found is not None:
                rule.rewrite = rule.found
            elif rule.is_removed or is_lost:
                self._forget(name)
        return True

    def settle(self) -> None:
        """Hear that a settled batch came: see `CommittedBatch`."""
        self._ahead.settle()

    def look(self) -> list[Sight]:
        """What Redis has; one piece of each rule is read, another with each look.

        Raises
        ------
        StoreUnavailable
        """
        rules = [(rule, rule.rewrite) for rule in list(self._rules.values())]
        return [self._sight(rule, rewrite) for rule, rewrite in rules if rewrite]

    def compare(self, found: list[Sight]) -> int:
        """Note what Redis must be given; of how many rules."""
        self._work = [DecisionWork(name, None, {}, False) for name in self._gone]
        for rewrite, looked_at, standing in found:
            name, pieces = rewrite.manifest.name, rewrite.pieces
            lacking = set(standing.lacking)
            if standing.looked_at != pieces[looked_at][1]:
                lacking.add(looked_at)
            if self._rules[name].rewrite is not rewrite:
                continue  # another one came since, and is looked for next
            is_ahead = _number_of(standing.place) > rewrite.manifest.number
            if standing.place == rewrite.place and not lacking:
                self._ahead.clear(name)
                continue
            if is_ahead and not self._ahead.is_confirmed(name, standing.place):
                continue
            if self._rules[name].written == rewrite.place:
                self._counts["rewrites_refilled"] += 1
                log.warning(
                    "event=redis-refill rule=%s reason=pointer %s in place of %s, and "
                    "%d pieces missing or damaged",
                    name, standing.place or "missing", rewrite.place, len(lacking),
                )  # fmt: skip
            shards = dict(pieces[each] for each in lacking if each)
            self._work.append(DecisionWork(name, rewrite, shards, is_ahead))
        return len(self._work)

    def work(self) -> list[DecisionWork]:
        """What there is to write, by rule."""
        return self._work

    def write(self, each: DecisionWork) -> Switched:
        """Write some of it; what became of it.

        Raises
        ------
        StoreUnavailable
        """
        if each.rewrite is None:
            self._store.forget_decisions(each.name)
            return Switched.MOVED
        self._store.put_decision_shards(each.name, each.shards)
        manifest, value, _ = each.rewrite
        return self._store.switch_decisions(manifest, value, is_forced=each.is_forced)

    def wrote(self, each: DecisionWork, outcome: Switched) -> None:
        """Hear what became of it; what was not moved is seen by the next look."""
        self._work = [other for other in self._work if other is not each]
        if each.rewrite is None:
            self._gone.discard(each.name)
        elif outcome is Switched.MOVED:
            self._counts["rewrites_published"] += 1
            self._rules[each.name].written = each.rewrite.place

    def counters(self) -> dict[str, int]:
        """What happened so far."""
        return dict(self._counts)

    def _sight(self, rule: _Rule, rewrite: Rewrite) -> Sight:
        pieces = rewrite.pieces
        look_at = rule.n_looks % len(pieces)
        rule.n_looks += 1
        standing = self._store.standing_decisions(
            rewrite.manifest.name,
            [(digest, len(piece)) for digest, piece in pieces],
            look_at,
        )
        return Sight(rewrite, look_at, standing)

    def _take_decision(
        self, key: bytes, named: DecisionKey, value: bytes | None
    ) -> None:
        number = shard_number(hash_of_query(named.query))
        rule, entry = self._rules[named.name], None
        try:
            decision = None if value is None else decode_decision(value)
            if decision is not None and decision.order:
                entry = entry_of(named.query, decision)
        finally:
            # Without it the digests will tell that something is not there.
            rule.put(number, key, entry)

    def _take_manifest(self, name: str, value: bytes) -> bool:
        rule = self._rules[name]
        rule.has_manifest, rule.is_removed = True, False
        manifest = decode_manifest(value)
        default_snapshot(manifest)
        if manifest.name != name:
            raise DecisionError(
                f"a rewrite must lie under its name; got {manifest.name!r:.60} under "
                f"{name!r:.60}"
            )
        shards = rule.shards()
        if [digest_of(each) for each in shards] != manifest.shards:
            self._counts["rewrites_incomplete"] += 1
            log.info(
                "event=rewrite-incomplete rule=%s number=%d", name, manifest.number
            )
            return False
        self._gone.discard(name)
        rule.found = Rewrite(manifest, value, dict(named_shards(shards)))
        if self._is_anew:
            return False
        rule.rewrite = rule.found
        return True

    def _take_removal(self, name: str) -> bool:
        rule = self._rules[name]
        rule.found, rule.has_manifest, rule.is_removed = None, False, True
        if self._is_anew:
            return False
        self._forget(name)
        return True

    def _forget(self, name: str) -> None:
        self._rules[name].rewrite = None
        self._gone.add(name)


def _number_of(place: str) -> int:
    number = place.partition(".")[0]
    is_number = number.isdecimal() and len(number) <= LONGEST_NUMBER
    return int(number) if is_number else 0
