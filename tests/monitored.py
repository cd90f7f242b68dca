"""What a monitor may know, for its page: nothing, something of everything, too much."""

import math
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from rankstream.operations.monitoring.overview import Gathered
from rankstream.wire.decisions import encode_manifest, manifest_key
from rankstream.wire.models.canary_reports import (
    OUT,
    CanaryDifference,
    CanaryReport,
    encode_report,
)
from rankstream.wire.models.model_evaluations import (
    UNKNOWN,
    InterventionRate,
    ModelRates,
    ModelValues,
    PolicyValue,
    encode_rates,
    encode_values,
)
from rankstream.wire.models.training import SCHEMA, Status, encode_record, training_key
from rankstream.wire.verdicts import (
    Ends,
    HealthCheck,
    MethodVerdict,
    PairVerdict,
    SessionCoverage,
    Verdict,
    encode_verdict,
)
from streams.comparisons.verdicts import QUESTIONS, RULE
from tests.decision_factory import rewrite
from tests.rankstream.training_topic import RUN

LEAST = 400
"""Lists before anything is said of sessions to come."""

HOUR_MS = 3_600_000


def verdict_at(
    n: int,
    name: str = "search-box",
    rankers: Sequence[str] = ("new", "old"),
    worth: Sequence[float] = (0.4, 0.0),
    **changes: Any,
) -> Verdict:
    """A verdict of an A/B comparison after so many lists.

    Parameters
    ----------
    worth
        Of each ranker, in clicks a list; a course about it goes by the name.
    """
    rng = np.random.default_rng(list(name.encode()))
    drift = rng.normal(size=len(rankers)).tolist()
    half = 2.2 * len(rankers) / math.sqrt(n)
    found = [w + half * d / 4.0 for w, d in zip(worth, drift, strict=True)]
    pairs = [
        _pair(rankers, found, i, j, n, half)
        for i in range(len(rankers))
        for j in range(i + 1, len(rankers))
    ]
    lows: dict[str, list[float]] = {name: [] for name in rankers}
    for each in pairs:
        low, high = each.to_come
        lows[each.a].append(-1.0 if low is None else low)
        lows[each.b].append(-1.0 if high is None else -high)
    winner = next((x for x in lows if min(lows[x]) > 0.0), None)
    is_enough = n >= LEAST
    groups = min(100.0, n / 12.0)
    why = (
        ""
        if is_enough
        else (
            "No winner yet: too few sessions. They fill "
            f"{groups:.1f} groups of 100 evenly, and more than 35.0 are needed."
        )
    )
    method = MethodVerdict(
        impressions=n,
        sessions=SessionCoverage(
            effective_groups=groups, needed=35.0, enough=is_enough, why=why
        ),
        matrix=[[a - b for b in found] for a in found],
        pairs=pairs,
        winner=winner,
        copeland=[float(sum(a > b for b in found)) for a in found],
        bradley_terry=found,
        cycles=[],
        decided_cycles=[],
    )
    now_ms = time.time_ns() // 1_000_000
    settings: dict[str, Any] = {
        "experiment": name,
        "epoch": 1,
        "method": "ab",
        "rankers": list(rankers),
        "alpha": 0.05,
        "correction": f"Bonferroni over {len(pairs)} pairs",
        "first_ms": now_ms - 90 * HOUR_MS,
        "last_ms": now_ms - 90 * HOUR_MS + n * 60_000,
        "totals": {"impressions": n},
        "questions": {**QUESTIONS, "winner": RULE},
        "methods": {"ab": method},
        "clicks_per_list": [
            {
                **{x: getattr(p, x) for x in ("a", "b", "mean", "to_come", "came")},
                "fixed": p.fixed, "sessions": p.sessions, "lists": (n // 2, n // 2),
            }
            for p in pairs
        ],
        "health": [check("coverage", 0.8), check("sample ratio", 0.2)],
    }  # fmt: skip
    return msgspec.convert(msgspec.to_builtins(settings) | changes, Verdict)


def record_at(n: int) -> bytes:
    """The same as the record of an evaluation."""
    return encode_verdict(verdict_at(n))


def check(name: str, value: float, state: str = "ok", detail: Any = None) -> Any:
    """A check of health."""
    return msgspec.to_builtins(
        msgspec.convert(
            {"name": name, "value": value, "state": state, "detail": detail},
            HealthCheck,
        )
    )


def _pair(
    rankers: Sequence[str], found: Sequence[float], i: int, j: int, n: int, half: float
) -> PairVerdict:
    mean = found[i] - found[j]
    ends = (mean - half, mean + half) if n >= LEAST else (None, None)
    return PairVerdict(
        a=rankers[i], b=rankers[j], mean=mean, to_come=ends,
        came=(mean - half, mean + half), fixed=ends, sessions=ends, log_e_a=1.0,
        log_e_b=0.0, preferred_a=n // 2, preferred_b=n // 3, possible=n,
    )  # fmt: skip


def empty(n_steps: int = 2) -> Gathered:
    """A monitor of a cluster where queries have come, and nothing else."""
    gathered = Gathered()
    for part in ("Kafka", "Redis"):
        gathered.heard(part, time.time_ns() // 1_000_000)
    gathered.set_steps([i < n_steps for i in range(5)])
    return gathered


def full(longest: int = 12_000) -> Gathered:
    """A monitor that knows something of everything."""
    gathered = empty(5)
    for part in ("role ingest", "role fold", "role learn"):
        gathered.heard(part, time.time_ns() // 1_000_000)
    for n in range(200, longest + 1, 200):
        gathered.take_verdict(encode_verdict(verdict_at(n)))
        _others(gathered, n)
    _models(gathered)
    gathered.set_examination(examination())
    for k in range(40):
        pages = {
            "ingest": {"consumed": 900 * k + 40 * (k % 5) * k, "lag_records": 12},
            "fold": {"consumed": 890 * k + 30 * (k % 7) * k, "lag_records": 340},
            "learn": {"learned": 210 * k + 9 * (k % 4) * k, "lag_records": 0},
            "publish": {"source_lag_records": 0},
        }
        gathered.take_flow(pages, 2.0 * k)
    gathered.set_counts({
        "applied_impressions": 412_345, "applied_clicks": 98_120, "pending": 1_204,
        "duplicate": 12, "late": 40, "orphan": 7, "dead_letter": 3, "lag_records": 352,
    })  # fmt: skip
    return gathered


def _others(gathered: Gathered, n: int) -> None:
    four = ("semantic", "lexical", "hybrid", "popular")
    gathered.take_verdict(
        encode_verdict(verdict_at(n, "four-rankers", four, (0.31, 0.12, 0.28, 0.0)))
    )
    small = verdict_at(n // 3, "filters", ("slim", "as is"), (0.03, 0.0))
    gathered.take_verdict(encode_verdict(small))
    same = verdict_at(4 * n, "typo-tolerance", ("two", "one"), (0.0, 0.0))
    gathered.take_verdict(encode_verdict(same))
    sick = verdict_at(
        n, "synonyms", ("with", "without"), (0.1, 0.0),
        health=[
            check("sample ratio", 9.4, "alarm", [6_200, 5_300]),
            check("late", 0.023, "warning"), check("coverage", 0.7),
        ],
    )  # fmt: skip
    gathered.take_verdict(encode_verdict(sick))
    early = verdict_at(max(1, n // 60), "new-ranker", ("b", "a"), (0.2, 0.0))
    gathered.take_verdict(encode_verdict(early))


def examination() -> list[dict[str, Any]]:
    """Position bias of ten ranks."""
    ratios = [1.0 / rank**0.8 for rank in range(1, 11)]
    return [
        {
            "ratio": ratio,
            "interval": None if rank == 10 else [0.93 * ratio, 1.07 * ratio],
            "reason": "" if rank < 10 else "too few clicks",
        }
        for rank, ratio in enumerate(ratios, 1)
    ]


def _models(gathered: Gathered) -> None:
    now_ms = time.time_ns() // 1_000_000
    for k in range(30):
        gathered.set_snapshots([
            snapshot("search", 40 * k * k, now_ms - 60_000 * (30 - k)),
            snapshot("shop", 90 * k, now_ms - 65_000 * (30 - k)),
            snapshot("related", 1_200, now_ms - 40 * 60_000, is_trained=True),
        ])  # fmt: skip
    first = msgspec.structs.replace(
        RUN, model="related", intervention="related@0.1200", reward=0.47,
        created_ms=now_ms - 50 * HOUR_MS, reward_reason="",
    )  # fmt: skip
    second = msgspec.structs.replace(
        first, intervention="related@1.2400", created_ms=now_ms - 2 * HOUR_MS
    )
    status = Status(SCHEMA, "done", "related@1.2400", now_ms - HOUR_MS)
    gathered.take_training(
        [
            (training_key("run", each.intervention), encode_record(each))
            for each in (first, second)
        ]
        + [(training_key("status", "related"), encode_record(status))]
    )
    rates = [
        rate_of("related", 9_000, 0.3, (0.28, 0.32)),
        rate_of("related@0.1200", 5_200, 0.45, (0.42, 0.48)),
        rate_of("related@1.2400", 60, 0.5, (None, None), "Sessions fill 3.0 groups."),
    ]
    told = ModelRates(
        model="related", alpha=0.05, planned=10_000, question="Whenever one looks.",
        interventions=rates,
    )  # fmt: skip
    gathered.take_verdict(encode_rates(told))
    gathered.take_verdict(encode_values(values(now_ms)))
    gathered.take_verdict(encode_report(canary(now_ms)))
    made = rewrite(2, intervention="rule@2.1000", at_ms=now_ms, n_left_out=1_234)
    gathered.take_decisions(manifest_key("rule"), encode_manifest(made.manifest))


def rate_of(
    name: str, n: int, mean: float, ends: Ends, why: str = ""
) -> InterventionRate:
    """Clicks per list of an intervention."""
    return InterventionRate(
        intervention=name, lists=n, clicks=round(n * mean), mean=mean, to_come=ends,
        effective_groups=90.0, needed=35.0, why=why,
    )  # fmt: skip


def values(at_ms: int) -> ModelValues:
    """What two policies are worth."""
    logged = PolicyValue(
        policy="logged", value=0.31, interval=(0.3, 0.32), difference_interval=UNKNOWN,
        unseen=0.0, largest_share=0.01, effective_clicks=9_000.0,
    )  # fmt: skip
    better = PolicyValue(
        policy="related@1.2400", value=0.43, interval=(0.38, 0.48), difference=0.12,
        difference_interval=(0.07, 0.17), unseen=0.06, largest_share=0.02,
        effective_clicks=2_450.0,
    )  # fmt: skip
    return ModelValues(
        model="related", at_ms=at_ms, estimator="intervention-aware",
        curve="bias@0.700", groups=[16, 17, 18, 19], queries=40, lists=9_000,
        clicks=11_000, lists_all=10_000, policies=[logged, better], remarks=[],
    )  # fmt: skip


def canary(at_ms: int) -> CanaryReport:
    """A version that goes out to a share of sessions."""
    return CanaryReport(
        model="shop", canary="shop@3.1000", before="2.900", state=OUT, stage=2,
        stages=4, share=0.05, at_ms=at_ms, canary_lists=1_234, served_lists=23_000,
        needed=3_766, planned=5_000, largest_loss=0.25,
        words="neither 0 nor -0.05 is excluded",
        differences=[
            CanaryDifference(name="clicks", mean=0.0123, interval=(-0.02, 0.05)),
            CanaryDifference(name="without click", mean=0.01, interval=(-0.01, 0.03)),
        ],
    )  # fmt: skip


def snapshot(
    model: str, version: int, created_ms: int, *, is_trained: bool = False
) -> dict[str, Any]:
    """What rankers can read of a model."""
    return {
        "model": model,
        "version": f"0.{version}",
        "created_ms": created_ms,
        "updates": version // 2,
        "is_trained": is_trained,
    }


def many(n_experiments: int = 200, n_models: int = 50) -> Gathered:
    """More than a screen has room for, each with as long a course as is kept."""
    gathered = empty(5)
    rng = np.random.default_rng(7)
    for i in range(n_experiments):
        name, worth = f"experiment-{i:03}", (float(rng.normal(0.0, 0.2)), 0.0)
        for n in range(200, 12_001, 200):
            verdict = verdict_at(n, name, worth=worth)
            gathered.take_verdict(encode_verdict(verdict))
    now_ms = time.time_ns() // 1_000_000
    for k in range(240):
        gathered.set_snapshots([
            snapshot(f"model-{i:02}", 1_000 * k + i, now_ms - 1_000 * (240 - k))
            for i in range(n_models)
        ])  # fmt: skip
    return gathered
