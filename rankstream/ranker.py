"""The ranker's side: load a model's snapshots, follow them, rank, and report.

A service imports this module; it needs numpy, redis and msgspec.

    ranker = Ranker("search", store=SnapshotStore("redis://127.0.0.1:6379/0"))
    ranker.follow()
    ranking = ranker.rank(features, cutoff=10, seed=seed)
    queries.send(ranker.query_event(ranking, query_id="shoes", items=ids, at_ms=now))

Serving costs no round trip: `rank` uses the last verified snapshot in memory.
"""

import random
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy.typing as npt

from rankstream.followed_decisions import FollowedDecisions
from rankstream.followed_snapshots import FollowedSnapshots, NoSnapshot
from rankstream.ranking.logged_sets import LoggedSets
from rankstream.ranking.multileaving import ONE_CANDIDATE, Multileaving
from rankstream.ranking.ranked_list import Ranking
from rankstream.ranking.served_model import ServedModel
from rankstream.ranking.taken_versions import TakenVersions
from rankstream.snapshots import (
    Pointer,
    Snapshot,
    SnapshotError,
    SnapshotStore,
    StoreUnavailable,
)
from rankstream.wire.decision_shards import DecisionError
from rankstream.wire.routing import (
    normalised_query,
    route_of_query,
    routed_impression_id,
)
from rankstream.wire.segments import query_of_list
from rankstream.wire.topics import MAX_EVENT_BYTES

RETRY_S = 0.5
"""Pause, at least, before a following ranker tries again a store that is away."""

ROOM_BYTES = MAX_EVENT_BYTES - (1 << 17)
"""An event of this size is accepted, whatever its texts take in the log."""

__all__ = ["Multileaving", "NoSnapshot", "Ranker", "Ranking"]

_to_json = msgspec.json.Encoder().encode


class Ranker:
    """One model as a service uses it; keeps the last good snapshot on any failure.

    Safe to use from several threads. What is served never goes back, except by a
    rollback, which is a later epoch.

    Parameters
    ----------
    model
        Name of the model.
    store
        Where snapshots lie.
    source
        Instead of a store: gives the newest envelope, or None.
    n_features
        What the service can give, else what its first snapshot needs; snapshots
        that need another number are refused.
    feature_names
        The same by name, instead of `n_features`. Snapshots of another list are
        refused, and without it those of another list than the first one's.
    decisions
        Name of the rule whose decisions are served, with a store; "" for none.
    segment
        The attribute of lists that is part of their query, as `ingestion.segment` has
        it; "" for none.

    Attributes
    ----------
    failures
        Counts of failures by reason: those of `SnapshotError`, `unavailable`,
        `canary`: one that cannot be served, while the version beside it is, and
        `decisions`: those that cannot be, while the last good ones are.
    trouble
        What was wrong at the last look, while the last good one is served; else empty.
    candidates_left_out
        Lists whose candidates' features were to be logged, but fit no event.
    """

    def __init__(  # noqa: PLR0913  what a service says of its lists
        self,
        model: str,
        *,
        store: SnapshotStore | None = None,
        source: Callable[[], bytes | None] | None = None,
        n_features: int | None = None,
        feature_names: Sequence[str] | None = None,
        decisions: str = "",
        segment: str = "",
    ) -> None:
        self._snapshots = FollowedSnapshots(model, store, source)
        self._decisions: FollowedDecisions | None = None
        if decisions:
            self._decisions = FollowedDecisions(store, decisions, model)
        self.model = model
        self.failures: dict[str, int] = {}
        self.trouble = ""
        self._store = store
        self.candidates_left_out = 0
        self._logged = LoggedSets()
        self._segment = segment
        self._taken = TakenVersions(model, n_features, feature_names)
        self._heard_s = float("-inf")
        self._taking = threading.Lock()
        self._is_cut_off = False
        self._stop = threading.Event()
        self._follower: threading.Thread | None = None

    @property
    def version(self) -> int:
        """Interactions folded into the model that is served; -1 before the first."""
        served = self._served
        return served.pointer.version if served else -1

    @property
    def pointer(self) -> Pointer | None:
        """Epoch and version that are served."""
        served = self._served
        return served.pointer if served else None

    @property
    def canary(self) -> str:
        """The tag of the canary in force, which names its stage; empty of none."""
        serving = self._taken.serving
        return serving.canary.tag if serving and serving.canary else ""

    @property
    def rewrite(self) -> int:
        """The number of the rewrite whose decisions are in force; 0 of none."""
        serving = self._taken.serving
        decided = serving.decided if serving else None
        return decided.manifest.number if decided else 0

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that is served.

        Raises
        ------
        NoSnapshot
            Before the first.
        """
        if self._served is None:
            raise self._snapshots.lack(self.awaited)
        return self._served.snapshot

    @property
    def age_s(self) -> float:
        """Seconds since a new snapshot was taken; infinite before the first."""
        served = self._served
        return time.monotonic() - served.taken_s if served else float("inf")

    @property
    def silence_s(self) -> float:
        """Seconds since the source last answered, with a new snapshot or without."""
        return time.monotonic() - self._heard_s

    @property
    def awaited(self) -> str:
        """Which Redis did not answer at the last look; empty where it did."""
        if self._store is None or not self._is_cut_off:
            return ""
        return f"Redis at {self._store.place}"

    def load(self) -> None:
        """Take the newest snapshot now, or say why there is none.

        Raises
        ------
        NoSnapshot, SnapshotError, StoreUnavailable
        """
        with self._taking:
            self._look()
            self._look_at_decisions()
        if self._served is None:
            raise self._snapshots.lack(self.awaited)

    def refresh(self) -> bool:
        """Look for a newer snapshot; True if one was taken. Never raises for Redis."""
        is_taken = False
        with self._taking:
            try:
                try:
                    is_taken = self._look()
                except SnapshotError as error:
                    self._failed(error.reason, error)
                self._look_at_decisions()
            except StoreUnavailable as error:
                self._failed("unavailable", error)
        return is_taken

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
        while not self.refresh() and self._served is None:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        return True

    def close(self) -> None:
        """Stop following."""
        self._stop.set()
        if self._follower is not None:
            self._follower.join(timeout=5.0)

    def rank(  # noqa: PLR0913  all that a list follows from
        self,
        features: npt.ArrayLike,
        *,
        cutoff: int = 10,
        policy: str = "plackett-luce",
        seed: int | None = None,
        multileaving: Multileaving = ONE_CANDIDATE,
        session: str | None = None,
        query_id: str | None = None,
        items: Sequence[str] | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> Ranking:
        """Rank the candidates of one query.

        Parameters
        ----------
        features : [n_documents, n_features]
            As they are; the snapshot says how to normalise them.
        cutoff
            Length of the list; fewer where there are fewer documents.
        policy
            `plackett-luce` draws from the scores, `deterministic` sorts,
            `tail-shuffle` sorts and draws the last place from the rest, `multileave`
            compares the ranker with random candidates near it.
        seed
            Of the draw, logged so that it can be made again; random where absent.
        multileaving
            For the policy `multileave`: as the learner of the model has it.
        session
            Whose list it is. While a canary goes out it decides which version makes the
            list; without one that is the version which all others are served.
        query_id, items
            And ids of the candidates, by row: decisions need both, whatever the policy.
        attributes
            Those of the event, where a segment is part of the query.

        Raises
        ------
        NoSnapshot
            Before the first snapshot.
        ValueError
            Where features do not fit the model, decisions cannot be looked up, or a
            segment is missing.
        """
        serving = self._taken.serving
        if serving is None:
            raise self._snapshots.lack(self.awaited)
        served, tag = serving.of(session)
        intervention, decided, rewrite = None, None, serving.decided
        if self._decisions is not None:
            if query_id is None or items is None or policy == "multileave":
                raise self._decisions.misuse(query_id, items)
            if rewrite is not None and not tag:
                served = rewrite.default or served
                intervention = rewrite.manifest.intervention
                query = query_of_list(query_id, attributes, self._segment)
                decided = rewrite.list_of(query, items)
        return served.rank(
            features, cutoff=cutoff, policy=policy, seed=seed,
            multileaving=multileaving, session=session or "", canary=tag,
            intervention=intervention, decided=decided,
        )  # fmt: skip

    def query_event(
        self,
        ranking: Ranking,
        *,
        query_id: str,
        items: Sequence[str],
        at_ms: int,
        impression_id: str | None = None,
        log_candidates: bool = False,
        **fields: Any,
    ) -> bytes:
        """The event to send to `queries`: what was shown, and how it came to be.

        Parameters
        ----------
        items : [n_documents]
            Ids of the candidates, in the order of the features.
        impression_id
            A new one that carries the route, where absent.
        log_candidates
            Log the features of all candidates, for learners that need them. A model
            that has them logged does it by itself: the first time that a query has
            these candidates, and hourly again.
        fields
            Further fields of the event: user, session, intervention, attributes ...

        Raises
        ------
        ValueError
            Where items and ranked documents differ in number, or the session is not
            that of `rank`, or a segment is missing.
        """
        ranking.check_event(items, fields)
        query = query_of_list(query_id, fields.get("attributes"), self._segment)
        if impression_id is None:
            impression_id = self.impression_id(secrets.token_hex(16), query_id)
        is_due = log_candidates or (
            ranking.raw is not None
            and self._logged.is_due(query, items, ranking.features_hash, at_ms)
        )
        named = {"impression_id": impression_id, "query_id": query_id, "at_ms": at_ms}
        event = ranking.event(named, items, fields, log_candidates=is_due)
        if is_due and not log_candidates and len(event) > ROOM_BYTES:
            # The list counts without them; an event that is too large counts nowhere.
            self.candidates_left_out += 1
            event = ranking.event(named, items, fields, log_candidates=False)
        return event

    @staticmethod
    def impression_id(unique: str, query_id: str) -> str:
        """An id that carries the route, so that clicks need not name the query."""
        return routed_impression_id(unique, route_of_query(normalised_query(query_id)))

    @staticmethod
    def click_event(impression_id: str, *, at_ms: int, **fields: Any) -> bytes:
        """The event to send to `clicks`; name the position or the item_id."""
        return _to_json({"impression_id": impression_id, "at_ms": at_ms, **fields})

    def _look(self) -> bool:
        snapshot, canary = self._snapshots.newest(self._taken)
        self._heard_s, self._is_cut_off = time.monotonic(), False
        is_taken, trouble = self._taken.take(snapshot, canary)
        self._snapshots.took()
        self.trouble = ""
        if trouble is not None:
            self._failed(trouble.reason, trouble)
        return is_taken

    def _look_at_decisions(self) -> None:
        if self._decisions is None:
            return
        try:
            self._decisions.look(self._taken)
        except DecisionError as error:
            self._failed("decisions", error)

    @property
    def _served(self) -> ServedModel | None:
        serving = self._taken.serving
        return serving.served if serving else None

    def _failed(self, reason: str, error: Exception) -> None:
        self.failures[reason] = self.failures.get(reason, 0) + 1
        self.trouble = f"{reason}: {error}"
        self._is_cut_off = reason == "unavailable"
        if not self._is_cut_off:
            self._heard_s = time.monotonic()

    def _follow(self) -> None:
        while not self._stop.is_set():
            if self._store is None:
                self._stop.wait(0.05)
                self.refresh()
                continue
            try:
                for _ in self._store.notifications(self.model):
                    if self._stop.is_set():
                        return
                    self.refresh()
            except StoreUnavailable as error:
                with self._taking:
                    self._failed("unavailable", error)
                # Many rankers lose one Redis at once; they should not retry at once.
                self._stop.wait(RETRY_S * (1.0 + random.SystemRandom().random()))
