"""All that a rewrite is a function of: statistics, features, policies and a curve."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from models.arrays import Integers
from models.decisions.meta_policy import Rule
from models.estimators.policy_reward import dcg_weights
from models.estimators.splits import Shares, Splits, split_groups
from models.evaluation.bounds.families import Bound
from rankstream.settings import Settings
from streams.decisions.closed_sets import CandidateSets
from streams.decisions.decide import Decisions, decide
from streams.decisions.declared_policies import DeclaredPolicy, snapshot_policy
from streams.decisions.evidence import Evidence, evidence_of
from streams.decisions.judging import (
    confidence_of,
    judgements_of,
    rule_of,
)
from streams.decisions.refused import UNSEEN
from streams.decisions.rewrite import (
    Deployed,
    Occasion,
    Rewrite,
    newest_first,
    rewritten,
)
from streams.estimation.curve_replicates import CurveReplicates
from streams.statistics.reader import Statistics
from streams.training.feature_records import FeatureRecords
from streams.training.inputs import counts_of

BY_CLICK = Bound.PER_ITEM, Bound.PER_CLICK
"""Bounds on clicks; the others are on lists."""


class DecisionsRefused(RuntimeError):
    """Nothing can be decided from what there is, and the message says why.

    Operator action: as the message says; what is served stays.
    """


class DecisionInputs(NamedTuple):
    """What a rewrite is made of.

    Parameters
    ----------
    statistics
        Of all partitions of `events`.
    features
        Of candidates, by the hash of their list.
    deployed
        Snapshots of both models.
    curve
        Of bias, or why there is none.
    """

    statistics: Statistics
    features: Mapping[bytes, FeatureRecords]
    deployed: Deployed
    curve: CurveReplicates | str


class Made(NamedTuple):
    """A rewrite, and what it was decided on.

    Parameters
    ----------
    rewrite
        Records to write.
    evidence, decisions
        Set by set.
    """

    rewrite: Rewrite
    evidence: Evidence
    decisions: Decisions


def rewrite_of(
    name: str,
    settings: Settings,
    inputs: DecisionInputs,
    *,
    number: int,
    at_ms: int,
    check: Callable[[], object] = lambda: None,
) -> Made:
    """Decide what is served from now on by the rule of a name.

    Parameters
    ----------
    number
        Of the rewrite, higher than of all before.
    at_ms
        By the clock of who writes it.
    check
        Is called between steps; what it raises ends all.

    Raises
    ------
    DecisionsRefused
        Where nothing can be decided from this, in words.
    """
    try:
        return _made(name, settings, inputs, number, at_ms, check)
    except ValueError as error:
        raise DecisionsRefused(f"{name!r} cannot decide: {error}") from error


def _made(
    name: str,
    settings: Settings,
    inputs: DecisionInputs,
    number: int,
    at_ms: int,
    check: Callable[[], object],
) -> Made:
    plan, deployed = settings.decisions[name], inputs.deployed
    splits = _splits(settings, inputs.statistics)
    curve = _curve(name, plan.bound, inputs.curve, splits)
    weights = dcg_weights(curve.curve.n_ranks).relevant
    found = evidence_of(inputs.statistics, splits, curve.curve, weights)
    check()

    def declared(which: str) -> DeclaredPolicy:
        snapshot = getattr(deployed, which)
        features = inputs.features[snapshot.features_hash]
        policy = snapshot_policy(
            snapshot, features, found.sets, weights, plan.temperature
        )
        check()
        return policy

    rule = rule_of(plan, len(found.sets.queries))
    decided = decide(
        found,
        declared("general"),
        declared("logging"),
        judgements_of(plan, rule),
        Rule(plan.meta_policy),
    )
    check()
    counts = counts_of(inputs.statistics)
    occasion = Occasion(
        name,
        number,
        sum(counts.values()),
        at_ms,
        tuple(sorted({*splits.training, *curve.groups})),
    )
    eras = _newest_eras(inputs.statistics, found.sets)
    kept = newest_first(eras, found.lists(), plan.queries)
    refused = {str(why): n for why, n in found.refused.items()}
    n_unseen = int(decided.general.unsupported.sum())
    if n_unseen:
        refused[UNSEEN] = n_unseen
    rewrite = rewritten(
        occasion, deployed, found.sets, decided, kept, confidence_of(rule),
        confidence_of(rule_of(plan, 1)), refused,
    )  # fmt: skip
    return Made(rewrite, found, decided)


def _splits(settings: Settings, statistics: Statistics) -> Splits:
    counts = statistics.counted
    n_groups = counts[0].groups if counts else settings.statistics.groups
    return split_groups(n_groups, Shares(*settings.statistics.split_shares))


def _curve(
    name: str, bound: str, curve: CurveReplicates | str, splits: Splits
) -> CurveReplicates:
    """The curve, which must have no part in what judges."""
    if isinstance(curve, str):
        raise DecisionsRefused(
            f"{name!r} must have a curve of bias to decide by; {curve}: set "
            "`training.examination` of the general model, or fit a curve"
        )
    both = sorted({*curve.groups} & {*splits.selection})
    if both:
        raise DecisionsRefused(
            f"{name!r} must judge by clicks that its curve does not come from; it is "
            f"from selection groups {both[:5]} too: take a curve of the other groups, "
            "or set `training.examination` of the general model"
        )
    if bound in BY_CLICK and curve.curve.beta.any():
        raise DecisionsRefused(
            f"{name!r} must have a bound that holds under trust bias; {bound} bounds "
            "clicks one by one, and some of them come anyway: set `bound` to any-time "
            "or one-look"
        )
    return curve


def _newest_eras(statistics: Statistics, sets: CandidateSets) -> Integers:
    """The newest era of lists of each set. [n_sets]."""
    eras: dict[tuple[str, bytes], int] = {}
    for scope in statistics.scopes():
        key = scope.query, scope.candidate_set
        eras[key] = max(eras.get(key, scope.era), scope.era)
    keys = zip(sets.queries, sets.names, strict=True)
    return np.array([eras[key] for key in keys], np.int64)
