"""The report on a canary, from a judgement."""

import math

from models.evaluation.canary_judgement import Difference, Judgement
from rankstream.wire.models.canaries import Canary
from rankstream.wire.models.canary_reports import CanaryDifference, CanaryReport


def report_of(
    canary: Canary,
    found: Judgement,
    *,
    state: str,
    at_ms: int,
    largest_loss: float | None,
) -> CanaryReport:
    """What is told of it."""
    return CanaryReport(
        model=canary.model,
        canary=canary.intervention,
        before=canary.before,
        state=state,
        stage=canary.stage,
        stages=len(canary.rules.shares),
        share=canary.share,
        at_ms=at_ms,
        canary_lists=found.canary_lists,
        served_lists=found.served_lists,
        needed=found.needed,
        planned=canary.rules.planned,
        differences=[_told(each) for each in (found.clicks, *found.guardrails)],
        largest_loss=largest_loss,
        words=found.words,
    )


def _told(each: Difference) -> CanaryDifference:
    is_known = math.isfinite(each.low) and math.isfinite(each.high)
    return CanaryDifference(
        name=each.name,
        mean=each.mean if is_known else None,
        interval=(each.low, each.high) if is_known else (None, None),
    )
