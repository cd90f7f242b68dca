"""What looking a decision up adds to a list, where very many are in force.

Both sides rank the same candidates with the same snapshot, best first, in turns; the
figures are differences of the least times, as whatever else runs only adds. 100,000
queries have decisions. A query is the same one again, or none that was asked before.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, repeat

import numpy as np

from rankstream.lab.benchmarks.harness import (
    Figure,
    alone_figure,
    least_microseconds,
    timed,
)
from rankstream.ranker import Ranker
from rankstream.redis_store.decision_scripts import HeldDecisions
from rankstream.redis_store.redis_scripts import Newest
from rankstream.snapshots import (
    Pointer,
    Snapshot,
    SnapshotStore,
    encode_snapshot,
    features_hash,
)
from rankstream.wire.decision_shards import (
    Entry,
    digest_of,
    hash_of_items,
    pack_order,
    pack_shards,
)
from rankstream.wire.decisions import (
    SCHEMA,
    Manifest,
    encode_manifest,
    named_shards,
    place_of,
)
from rankstream.wire.models.canary_snapshots import KnownCanary
from rankstream.wire.routing import route_of_query

N_DECISIONS = 100_000
N_FEATURES = 10
SIZES = (20, 100)
N_TIED_FROM = 5
"""Ranks before the items that are tied."""

WITHOUT_US = (2.0, 4.0)
WITH_US = {20: (5.0, 10.0), 100: (15.0, 30.0)}
"""Goal and floor by the number of candidates."""

UNKNOWN = "a query without a decision"
TIMES = 500


class InMemory(SnapshotStore):
    """A store of one snapshot and one rewrite, of which nothing changes."""

    def __init__(
        self, snapshot: bytes, manifest: Manifest, shards: list[bytes]
    ) -> None:
        self._snapshot, self._shards = snapshot, named_shards(shards)
        self._manifest = encode_manifest(manifest)
        self._place = place_of(self._manifest, manifest.number)

    @property
    def n_bytes(self) -> int:
        """Of all shards."""
        return sum(map(len, self._shards.values()))

    def newest(
        self,
        model: str,  # noqa: ARG002  there is one
        known: Pointer | None = None,
        known_canary: KnownCanary = KnownCanary(),  # noqa: ARG002, B008  there is none
    ) -> Newest:
        """The snapshot, whatever is known."""
        own = Pointer(0, 1)
        return Newest(own, None if known == own else self._snapshot, b"")

    def decisions(self, name: str, known: str = "") -> HeldDecisions:  # noqa: ARG002
        """The rewrite."""
        return HeldDecisions(self._place, None if known else self._manifest)

    def decision_shards(
        self,
        name: str,  # noqa: ARG002  there is one
        digests: Sequence[bytes],
    ) -> Iterator[tuple[bytes, bytes]]:
        """Shards by their digests."""
        return ((digest, self._shards[digest]) for digest in digests)


def measure_lists(*, quick: bool = False) -> list[Figure]:
    """Microseconds that decisions add, and what many of them take."""
    n_decisions, n_times = (300, 2) if quick else (N_DECISIONS, TIMES)
    figures: list[Figure] = []
    for n_items in SIZES:
        rng = np.random.default_rng(1)
        items = [f"item {row}" for row in rng.permutation(n_items)]
        store = store_of_decisions(n_decisions, items)
        plain, decided = (
            Ranker("m", store=store),
            Ranker("m", store=store, decisions="d"),
        )
        plain.refresh()
        took = timed(decided.refresh)
        features = rng.random((n_items, N_FEATURES), np.float32)
        rank, plain_rank = (
            partial(each.rank, features, seed=5, policy="deterministic")
            for each in (decided, plain)
        )
        for what, queries, bounds in (
            ("no decision", repeat(UNKNOWN), WITHOUT_US),
            ("no decision, new query", asked(UNKNOWN, 0, 1), WITHOUT_US),
            ("a decision", repeat("query 0"), WITH_US[n_items]),
            ("a decision, new query", asked("query", 0, 2), WITH_US[n_items]),
            ("ties", repeat("query 1"), WITH_US[n_items]),
            ("ties, new query", asked("query", 1, 2), WITH_US[n_items]),
        ):
            ours = partial(_of_next, rank, queries, items)
            mine, plain_us = least_microseconds(ours, plain_rank, n_times)
            name = f"`rank` of {n_items} items, {what}"
            figures.append(alone_figure(name, mine - plain_us, "us more", bounds))
        told = f"{n_decisions:,} decisions of {n_items} items taken by a ranker"
        figures.append(alone_figure(told, took.seconds, "s of CPU"))
        size = store.n_bytes / n_decisions
        figures.append(alone_figure(f"{told}, each", size, "bytes in Redis"))
    return figures


def _of_next(
    rank: Callable[..., object], queries: Iterator[str], items: Sequence[str]
) -> None:
    rank(query_id=next(queries), items=items)


def asked(name: str, first: int, step: int) -> Iterator[str]:
    """Queries of which each comes once, so that nothing is known of any."""
    return (f"{name} {number}" for number in count(first, step))


def store_of_decisions(n_decisions: int, items: Sequence[str]) -> InMemory:
    """Decisions of so many queries with the same items, every second one with ties."""
    rng = np.random.default_rng(0)
    candidates, n_items = hash_of_items(sorted(items)), len(items)
    tied = [1] * N_TIED_FROM + [n_items - N_TIED_FROM]
    shards = pack_shards(
        Entry(
            route_of_query(f"query {number}"),
            candidates,
            pack_order(
                rng.permutation(n_items).tolist(), tied if number % 2 else [1] * n_items
            ),
        )
        for number in range(n_decisions)
    )
    manifest = Manifest(
        SCHEMA, "d", 1, 1, "m", "0.1", "d@1", "m@0.1", b"", n_decisions, 0,
        [digest_of(each) for each in shards],
    )  # fmt: skip
    weights = rng.normal(size=N_FEATURES).astype("<f4").tobytes()
    snapshot = Snapshot(
        "m", 0, 1, 0, 1, "linear", [], "none", N_FEATURES, features_hash(N_FEATURES),
        [(0, 1)], 1, weights,
    )  # fmt: skip
    return InMemory(encode_snapshot(snapshot), manifest, shards)
