"""Closed loop: users who are shown a ranker's lists, and click on them.

The ranker reads what the learner published; the learner reads the clicks that the
lists got. Event time is the simulation's own: each impression comes `step_ms`
after the one before, so that windows close while the loop runs.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from models.evaluation.ndcg import ndcg_of_ranking
from producers.formats.letor import LetorData
from producers.readiness import Waiting
from producers.replay import utc
from rankstream.ranker import Ranker
from rankstream.ranking.multileaving import ONE_CANDIDATE, Multileaving
from rankstream.wire.topics import CLICKS, QUERIES

DISCOUNT = 0.9995
"""Per impression, in the discounted sum of shown NDCG (Hofmann et al., 2013)."""

CLICK_MS = 1_000
"""After so long, times the rank, a list is clicked there."""

PAUSE_S = 0.2
"""A shorter one lets no source fall idle."""

RESUMING, RESUMING_S = 100, 0.02
"""Lists after a long pause, and what lies between two of them by the clock.

Sources that fell idle hold no time back: until each is heard, a list must not pass by
more than the disorder those that came before it and are not read yet.
"""

LONG_PAUSE_S = 1.0
"""A longer one may have let sources fall idle."""

PATIENCE_S = 300.0
"""How long to wait for a learner that does not move before giving up."""


class Users(Protocol):
    """A click model."""

    def sample_clicks(
        self, labels: npt.NDArray[np.int64], *, rng: np.random.Generator
    ) -> npt.NDArray[np.bool_]:
        """Clicks [k] on a list of documents with these `labels` [k]."""


class Sink(Protocol):
    """Where events go: Kafka, or the pipeline in process."""

    def send(self, topic: str, value: bytes, /) -> object:
        """Take one input event."""

    def flush(self) -> object:
        """Send what was taken, without waiting."""

    def end(self) -> None:
        """Say that nothing more comes."""


@dataclass(frozen=True)
class Plan:
    """What to simulate.

    Parameters
    ----------
    max_behind
        Impressions that the served model may lack of those that were shown.
    follow
        Whether the ranker takes newer versions at all.
    policy
        How lists are made; see `Ranker.rank`.
    multileaving
        Where rankers are compared, how.
    log_candidates
        Whether events carry the features of all candidates.
    learns_online
        Whether versions come all the time, so that one can wait for them.
    is_live
        Whether event time passes while nothing is shown, as it does on a broker whose
        sources fall idle: lists after a pause are then as much later.
    """

    n_impressions: int
    start_ms: int
    step_ms: int
    cutoff: int = 10
    max_behind: int = 200
    follow: bool = True
    policy: str = "plackett-luce"
    multileaving: Multileaving = ONE_CANDIDATE
    log_candidates: bool = False
    n_users: int = 4_000
    learns_online: bool = True
    is_live: bool = False


@dataclass
class Progress:
    """What has happened so far; lists have one entry per impression.

    `resuming` counts down the lists after a pause that come at a gentle pace.
    """

    shown: int = 0
    clicks: int = 0
    paused_ms: int = 0
    resuming: int = 0
    shown_ndcg: list[float] = field(default_factory=list)
    behind: list[int] = field(default_factory=list)
    versions: set[int] = field(default_factory=set)

    def discounted(self) -> float:
        """The discounted sum of the NDCG of shown lists."""
        values = np.array(self.shown_ndcg)
        return float(values @ DISCOUNT ** np.arange(len(values)))

    def recent(self) -> float:
        """Mean NDCG of the last 1,000 lists; queries without relevance count 0."""
        return float(np.mean(self.shown_ndcg[-1_000:])) if self.shown_ndcg else 0.0


class LearnerStuck(RuntimeError):
    """The learner has not moved for a long time while the simulation waited.

    Operator action: look at the worker's log, and at its lag.
    """


def simulate(  # noqa: PLR0913  a loop joins so many things
    queries: LetorData,
    users: Users,
    ranker: Ranker,
    sink: Sink,
    plan: Plan,
    *,
    rng: np.random.Generator,
    on_progress: Callable[[Progress], None] = lambda _: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Progress:
    """Show lists, click, send, and wait for the learner where it falls behind.

    Queries are drawn uniformly. The same seed draws the same queries; lists and
    clicks follow what the ranker had learned by then. Whoever stops it gets what
    happened so far.
    """
    progress, waiting = Progress(), Waiting()
    for number in range(plan.n_impressions):
        if is_stopped():
            break
        began_s = time.monotonic()
        if plan.follow and not plan.learns_online:
            ranker.refresh()
            progress.versions.add(ranker.version)
        elif plan.follow:
            _wait(ranker, sink, plan, progress, waiting)
        _pause(plan, progress, time.monotonic() - began_s)
        _show(number, queries, users, ranker, sink, plan, progress, rng)
        _resume(sink, progress)
        began_s = time.monotonic()
        on_progress(progress)
        _pause(plan, progress, time.monotonic() - began_s)
    sink.flush()
    return progress


def _pause(plan: Plan, progress: Progress, seconds: float) -> None:
    """Let event time pass by what was waited, where it does."""
    if plan.is_live and seconds > PAUSE_S:
        progress.paused_ms += round(1_000 * seconds)
    if plan.is_live and seconds > LONG_PAUSE_S:
        progress.resuming = RESUMING


def _resume(sink: Sink, progress: Progress) -> None:
    """Send one list after the other for a while, so that all sources are heard."""
    if progress.resuming:
        progress.resuming -= 1
        sink.flush()
        time.sleep(RESUMING_S)


def _wait(
    ranker: Ranker, sink: Sink, plan: Plan, progress: Progress, waiting: Waiting
) -> None:
    ranker.refresh()
    moved = time.monotonic()
    if progress.shown - ranker.version > plan.max_behind:
        sink.flush()
        ranker.refresh()
    while progress.shown - ranker.version > plan.max_behind:
        time.sleep(0.002)
        ranker.refresh()
        if ranker.awaited:
            waiting.waits(ranker.awaited)
            moved = time.monotonic()
        if time.monotonic() - moved > PATIENCE_S:
            raise LearnerStuck(
                f"the learner must not stand still; version {ranker.version} for "
                f"{PATIENCE_S:.0f} s while {progress.shown} impressions were shown"
            )
    waiting.over()
    progress.behind.append(progress.shown - ranker.version)
    progress.versions.add(ranker.version)


def _show(  # noqa: PLR0913  one impression needs all of the loop
    number: int,
    queries: LetorData,
    users: Users,
    ranker: Ranker,
    sink: Sink,
    plan: Plan,
    progress: Progress,
    rng: np.random.Generator,
) -> None:
    query = int(rng.integers(len(queries.query_ids)))
    rows = slice(queries.offsets[query], queries.offsets[query + 1])
    labels = queries.labels[rows]
    seed = int(rng.integers(2**63))
    ranking = ranker.rank(
        queries.features[rows],
        cutoff=plan.cutoff,
        policy=plan.policy,
        seed=seed,
        multileaving=plan.multileaving,
    )
    at_ms = plan.start_ms + number * plan.step_ms + progress.paused_ms
    query_id = queries.query_ids[query]
    unique = f"{plan.start_ms:x}-{seed:016x}-{number}"
    impression_id = ranker.impression_id(unique, query_id)
    event = ranker.query_event(
        ranking,
        query_id=query_id,
        items=[f"{query_id}/{row}" for row in range(len(labels))],
        at_ms=at_ms,
        impression_id=impression_id,
        log_candidates=plan.log_candidates,
        user=f"user {int(rng.integers(plan.n_users))}",
    )
    sink.send(QUERIES, event)
    clicked = users.sample_clicks(labels[ranking.order], rng=rng)
    for row in np.flatnonzero(clicked).tolist():
        sink.send(
            CLICKS,
            ranker.click_event(
                impression_id,
                query_id=query_id,
                position=row + 1,
                at_ms=at_ms + CLICK_MS * (row + 1),
            ),
        )
    progress.shown += 1
    progress.clicks += int(clicked.sum())
    progress.shown_ndcg.append(ndcg_of_ranking(labels, ranking.order, plan.cutoff))


def start_ms_for(
    plan: Plan, *, now_ms: int, after_ms: int | None, ahead_ms: int, namespace: str
) -> int:
    """Event time of the first list: that the last one is of now, or later.

    Parameters
    ----------
    plan
        Its start is not looked at.
    after_ms
        What lists must come after, or they are late; None where nothing was before.
    ahead_ms
        How far events may be ahead of the clock.

    Raises
    ------
    ValueError
        Where so many lists do not fit between.
    """
    start_ms = now_ms - plan.n_impressions * plan.step_ms
    if after_ms is None or start_ms > after_ms:
        return start_ms
    end_ms = after_ms + plan.n_impressions * plan.step_ms + CLICK_MS * plan.cutoff
    if end_ms < now_ms + ahead_ms:
        return after_ms + 1
    place = f"namespace {namespace!r}" if namespace else "the default namespace"
    lists = f"{plan.n_impressions:,} lists, {plan.step_ms / 1_000:g} s apart,"
    raise ValueError(
        f"lists must come after what was shown before, or they are late: {place} is at "
        f"{utc(after_ms)}, and {lists} would end at {utc(end_ms)}, further ahead of "
        "now than time.ahead_ms: "
        "name another --namespace, with a worker of its own, or try again after "
        f"{utc(end_ms - ahead_ms)}"
    )


def step_ms_for(max_behind: int, *, window_ms: int, disorder_ms: int) -> int:
    """Event time between impressions that lets windows close well before the limit.

    A window and the disorder together span half of `max_behind` impressions,
    but never less than one.
    """
    return max(1, -(-(window_ms + disorder_ms) * 2 // max(max_behind, 2)))
