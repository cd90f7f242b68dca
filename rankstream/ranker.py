"""The ranker's side: load a model's snapshots, follow them, rank, and say so.

A service imports this module; it needs numpy, redis and msgspec.

    ranker = Ranker("search", store=SnapshotStore("redis://127.0.0.1:6379/0"))
    ranker.follow()
    ranking = ranker.rank(features, cutoff=10, seed=seed)
    queries.send(ranker.query_event(ranking, query_id="shoes", items=ids, at_ms=now))

Serving costs no round trip: `rank` uses the last verified snapshot in memory.
"""

import base64
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rankstream.routing import normalised_query, route_of_query, routed_impression_id
from rankstream.scoring import normalised, scores_of
from rankstream.snapshots import (
    Pointer,
    Snapshot,
    SnapshotError,
    SnapshotStore,
    StoreUnavailable,
    decode_snapshot,
)

Floats = npt.NDArray[np.float32]

POLICIES = ("plackett-luce", "deterministic", "tail-shuffle")

_to_json = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Ranking:
    """A list, and what has to be logged about how it came to be.

    `order` holds rows of the candidates in displayed order, `scores` [n_documents]
    those of the policy, `features` [n_documents, n_features] as they were scored.
    """

    order: npt.NDArray[np.int64]
    scores: Floats
    features: Floats
    policy: str
    seed: int
    model: str
    version: int


class NoSnapshot(RuntimeError):
    """There is no model to rank with yet.

    Operator action: start the worker with a `[models.NAME]` of this name.
    """


class Ranker:
    """One model as a service uses it; keeps the last good snapshot on any failure.

    Parameters
    ----------
    model
        Name of the model.
    store
        Where snapshots lie.
    source
        Instead of a store: gives the newest envelope, or None.
    """

    def __init__(
        self,
        model: str,
        *,
        store: SnapshotStore | None = None,
        source: Callable[[], bytes | None] | None = None,
    ) -> None:
        if (store is None) == (source is None):
            raise ValueError("a ranker must have a store or a source, and not both")
        self.model = model
        self.failures: dict[str, int] = {}
        self._store = store
        self._source = source
        self._given: bytes | None = None
        self._snapshot: Snapshot | None = None
        self._weights: Floats = np.zeros(0, np.float32)
        self._loaded_s = 0.0
        self._stop = threading.Event()
        self._follower: threading.Thread | None = None

    @property
    def version(self) -> int:
        """Interactions folded into the model that is served; -1 before the first."""
        return self._snapshot.version if self._snapshot else -1

    @property
    def pointer(self) -> Pointer | None:
        """Epoch and version that are served."""
        served = self._snapshot
        return Pointer(served.epoch, served.version) if served else None

    @property
    def age_s(self) -> float:
        """Seconds since a new snapshot was taken."""
        return time.monotonic() - self._loaded_s if self._snapshot else float("inf")

    def refresh(self) -> bool:
        """Look for a newer snapshot; True if one was taken. Never raises for Redis."""
        try:
            envelope = self._newest()
            if not envelope:
                return False
            return self._take(decode_snapshot(envelope))
        except SnapshotError as error:
            self._failed(error.reason)
        except StoreUnavailable:
            self._failed("unavailable")
        return False

    def follow(self) -> None:
        """Take newer snapshots in a thread of its own, until `close`."""
        if self._follower is None:
            self.refresh()
            self._follower = threading.Thread(
                target=self._follow, name=f"follow-{self.model}", daemon=True
            )
            self._follower.start()

    def wait(self, timeout_s: float = 30.0) -> bool:
        """Wait for the first snapshot; False if none came in time."""
        deadline = time.monotonic() + timeout_s
        while self._snapshot is None and time.monotonic() < deadline:
            self.refresh()
            time.sleep(0.05)
        return self._snapshot is not None

    def close(self) -> None:
        """Stop following."""
        self._stop.set()
        if self._follower is not None:
            self._follower.join(timeout=5.0)

    def rank(
        self,
        features: npt.ArrayLike,
        *,
        cutoff: int = 10,
        policy: str = "plackett-luce",
        seed: int | None = None,
    ) -> Ranking:
        """Rank the candidates of one query.

        Parameters
        ----------
        features : [n_documents, n_features]
            As they are; the snapshot says how to normalise them.
        cutoff
            Length of the list, at most as many as there are documents.
        policy
            `plackett-luce` draws from the scores, `deterministic` sorts,
            `tail-shuffle` sorts and draws the last place from the rest.
        seed
            Of the draw, logged so that it can be made again; random where absent.

        Raises
        ------
        NoSnapshot
            Before the first snapshot.
        ValueError
            Where features do not fit the model, or are not finite.
        """
        snapshot, weights = self._snapshot, self._weights
        if snapshot is None:
            raise NoSnapshot(f"model {self.model!r} must have a snapshot; it has none")
        values = np.asarray(features, np.float32)
        if values.ndim != 2 or values.shape[1] != snapshot.n_features:
            raise ValueError(
                f"features must be documents by {snapshot.n_features}; "
                f"got shape {values.shape}"
            )
        if not len(values) or not np.isfinite(values).all():
            raise ValueError("features must be finite, of at least one document")
        if policy not in POLICIES:
            raise ValueError(f"policy must be one of {POLICIES}; got {policy!r}")
        scaled = normalised(values, snapshot.normalisation)
        scores = scores_of(scaled, weights, snapshot.hidden)
        drawn = secrets.randbits(63) if seed is None else seed
        order = draw_list(scores, cutoff=cutoff, policy=policy, seed=drawn)
        return Ranking(
            order, scores, scaled, policy, drawn, self.model, snapshot.version
        )

    def query_event(  # noqa: PLR0913  what is said about one list
        self,
        ranking: Ranking,
        *,
        query_id: str,
        items: Sequence[str],
        at_ms: int,
        impression_id: str | None = None,
        **fields: Any,
    ) -> bytes:
        """The event to send to `queries`: what was shown, and how it came to be.

        Parameters
        ----------
        items : [n_documents]
            Ids of the candidates, in the order of the features.
        impression_id
            A new one that carries the route, where absent.
        fields
            Further fields of the event: user, session, intervention, attributes ...
        """
        if impression_id is None:
            impression_id = self.impression_id(secrets.token_hex(16), query_id)
        event = {
            "impression_id": impression_id,
            "query_id": query_id,
            "at_ms": at_ms,
            "model": ranking.model,
            "version": ranking.version,
            "seed": ranking.seed,
            "policy": ranking.policy,
            "shown": [items[row] for row in ranking.order],
            "candidates": list(items),
            "scores": _base64(ranking.scores),
            "features": _base64(ranking.features[ranking.order]),
            **fields,
        }
        return _to_json(event)

    @staticmethod
    def impression_id(unique: str, query_id: str) -> str:
        """An id that lets a click find its way without its query."""
        return routed_impression_id(unique, route_of_query(normalised_query(query_id)))

    @staticmethod
    def click_event(impression_id: str, *, at_ms: int, **fields: Any) -> bytes:
        """The event to send to `clicks`; name the position or the item_id."""
        return _to_json({"impression_id": impression_id, "at_ms": at_ms, **fields})

    def _newest(self) -> bytes | None:
        if self._store is not None:
            answer = self._store.current(self.model, self.pointer)
            if answer is None:
                return None
            pointer, envelope = answer
            if envelope == b"":
                raise SnapshotError("missing", f"version {pointer} must be there")
            return envelope
        envelope = self._source() if self._source else None
        if envelope is self._given:
            return None
        self._given = envelope
        return envelope

    def _take(self, snapshot: Snapshot) -> bool:
        if snapshot.model != self.model:
            raise SnapshotError("model", f"got a snapshot of {snapshot.model!r}")
        now = self.pointer
        if now is not None and Pointer(snapshot.epoch, snapshot.version) <= now:
            return False
        weights = np.frombuffer(snapshot.weights, "<f4").astype(np.float32)
        if not np.isfinite(weights).all():
            raise SnapshotError("weights", "weights must be finite")
        self._snapshot, self._weights = snapshot, weights
        self._loaded_s = time.monotonic()
        return True

    def _failed(self, reason: str) -> None:
        self.failures[reason] = self.failures.get(reason, 0) + 1

    def _follow(self) -> None:
        while not self._stop.is_set():
            try:
                if self._store is None:
                    self._stop.wait(0.05)
                    self.refresh()
                    continue
                for _ in self._store.notifications(self.model):
                    self.refresh()
                    if self._stop.is_set():
                        return
            except StoreUnavailable:
                self._failed("unavailable")
                self._stop.wait(0.5)


def draw_list(
    scores: Floats, *, cutoff: int, policy: str, seed: int
) -> npt.NDArray[np.int64]:
    """Rows in displayed order, drawn from PCG64 of the seed.

    Plackett-Luce by the Gumbel trick; ties of the other policies by row.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    if policy == "plackett-luce":
        keys = scores.astype(np.float64) + rng.gumbel(size=len(scores))
        return np.argsort(-keys, kind="stable")[:cutoff]
    order = np.argsort(-scores, kind="stable")
    if policy == "tail-shuffle" and len(order) > cutoff:
        last = cutoff - 1 + int(rng.integers(len(order) - cutoff + 1))
        order[cutoff - 1], order[last] = order[last], order[cutoff - 1]
    return order[:cutoff]


def _base64(values: Floats) -> str:
    return base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")
