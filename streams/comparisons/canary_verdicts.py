"""Judgement on a canary, by what was counted of its stages."""

from collections.abc import Mapping

import numpy as np

from models.evaluation.canary import judge
from models.evaluation.canary_judgement import Judgement, Rules
from rankstream.settings import Settings
from rankstream.wire.models.canaries import WITHOUT_CLICK as NAME_WITHOUT
from rankstream.wire.models.canaries import Canary
from streams.comparisons.canary_lists import (
    FIRST_CLASS,
    LISTS,
    WITHOUT_CLICK,
    StageSums,
    merged,
)
from streams.native.intervention_lists import N_GROUPS


def judged(
    canary: Canary, values: Mapping[bytes, bytes], settings: Settings
) -> Judgement:
    """What is to be done with a canary, by all lists of its stages so far.

    Only stages that were are looked at: whatever else events name counts nowhere.

    Parameters
    ----------
    values
        The last value of each key of `preferences`.

    Raises
    ------
    SchemaRefused, ValueError
        Where sums are those of another release, or lack a guardrail.
    """
    rules = rules_of(canary)
    columns = [settings.statistics.reward, *rules.guardrails]
    stages = [
        _columns(merged(values, f"{canary.intervention}/{stage}"), columns)
        for stage in range(1, canary.stage + 1)
    ]
    return judge(np.array(stages), rules)


def rules_of(canary: Canary) -> Rules:
    """By what it is judged, as it was fixed when it began."""
    given = canary.rules
    return Rules(
        shares=tuple(given.shares),
        planned=given.planned,
        least=given.least,
        alpha=given.alpha,
        margin=given.margin,
        guardrails=tuple(given.guardrails),
    )


def _columns(
    stage: StageSums | None, names: list[str]
) -> "np.ndarray[tuple[int, ...], np.dtype[np.int64]]":
    """Lists, then what is named. [100 groups, 2 arms, 1 + n_names]."""
    if stage is None:
        return np.zeros((N_GROUPS, 2, 1 + len(names)), np.int64)
    at = [LISTS]
    for name in names:
        if name != NAME_WITHOUT and name not in stage.names:
            raise ValueError(
                f"a canary must be judged by classes of actions that are counted; got "
                f"{name!r} where {list(stage.names)} are: correct statistics.actions, "
                "or end it with `rankstream snapshots canary MODEL --end`"
            )
        is_without = name == NAME_WITHOUT
        at.append(
            WITHOUT_CLICK if is_without else FIRST_CLASS + stage.names.index(name)
        )
    return stage.sums[..., at]
