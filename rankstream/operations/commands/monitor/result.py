"""What `rankstream monitor --json` prints: all that the page shows, by its types."""

from typing import Any

from rankstream.operations.answers.as_builtins import types_of
from rankstream.operations.answers.comparisons.attention import Attention
from rankstream.operations.answers.comparisons.experiment_standing import Standing
from rankstream.operations.answers.installation.first_steps import Step
from rankstream.operations.monitoring.flow import RoleFlow
from rankstream.operations.monitoring.parts import Away, Part
from rankstream.wire.models.canary_reports import CanaryReport
from rankstream.wire.models.curves import PublishedCurve
from rankstream.wire.models.model_evaluations import InterventionRate, ModelValues
from rankstream.wire.verdicts import Verdict

EXPERIMENT: dict[str, Any] = {
    **dict.fromkeys(("name", "method", "state", "words", "health"), str),
    **dict.fromkeys(("epoch", "rankers", "impressions", "warnings"), int),
    "winner": str | None,
    "is_safe_to_stop": bool,
}

DETAIL: dict[str, Any] = {
    "verdict": Verdict,
    "standing": Standing,
    "attention": list[Attention],
    "pair": int,
    "course": list[list[float]],
}

SNAPSHOT: dict[str, Any] = {
    **dict.fromkeys(("model", "version"), str),
    **dict.fromkeys(("created_ms", "updates", "learned"), int),
    "is_trained": bool,
    "per_minute": float | None,
    "course": list[list[int]],
}

RUN: dict[str, Any] = {
    **dict.fromkeys(("reason", "reward_reason"), str),
    **dict.fromkeys(("created_ms", "interactions", "clicks", "items", "below"), int),
    "share_below": float,
    "reward": float | None,
}

INTERVENTIONS: dict[str, Any] = {
    "rows": [
        {
            "name": str,
            "is_first": bool,
            "run": (None, RUN),
            "rate": InterventionRate | None,
        }
    ],
    "n_older": int,
    "states": [{"model": str, "state": str, "said": str, "at_ms": int}],
    "next": [{"model": str, "said": str}],
    "question": str,
    "alpha": float | None,
}

REWRITE: dict[str, Any] = {
    **dict.fromkeys(("rule", "intervention", "default"), str),
    **dict.fromkeys(("at_ms", "decided", "left_out"), int),
}

RANK: dict[str, Any] = {
    "ratio": float | None,
    "interval": list[float] | None,
    "reason": str,
}

MONITORED: dict[str, Any] = {
    "number": int,
    "now_ms": int,
    "away": list[Away],
    "parts": list[Part],
    "trouble": str,
    "steps": list[Step],
    "experiments": [EXPERIMENT],
    "counts": dict[str, int],
    "flow": list[RoleFlow],
    "snapshots": [SNAPSHOT],
    "examination": [RANK],
    "curves": [types_of(PublishedCurve) | {"type": str}],
    "interventions": INTERVENTIONS,
    "canaries": list[CanaryReport],
    "decisions": [REWRITE],
    "values": list[ModelValues],
    "experiment": (None, DETAIL),
}
"""As `Gathered.overview` and, of one experiment, `Gathered.experiment` give it."""
