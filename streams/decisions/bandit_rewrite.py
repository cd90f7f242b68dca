"""A rewrite of a bandit: what it shows until its next look at clicks.

It has one intervention over all of its rewrites, as an era has room for few names and
its lists log how likely they were: nothing needs to tell its rewrites apart.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from rankstream.configuration.bandits import CASCADE, PIE, BanditSettings
from rankstream.settings import Settings
from rankstream.wire.decision_shards import digest_of, pack_shards
from rankstream.wire.decisions import (
    SCHEMA,
    Decision,
    Manifest,
    decision_key,
    entry_of,
)
from rankstream.wire.envelope import Pointer, Snapshot, intervention_of, pointer_of
from streams.decisions.bandit_policies import (
    SetPolicy,
    cascade_list,
    hotfix_list,
    pie_list,
)
from streams.decisions.bandit_sums import BanditSums, bandit_sums
from streams.decisions.declared_policies import snapshot_policy
from streams.decisions.inputs import DecisionsRefused
from streams.decisions.rewrite import Rewrite, newest_first
from streams.statistics.reader import Statistics
from streams.training.curves.known_curve import published_curve
from streams.training.feature_records import FeatureRecords
from streams.training.inputs import counts_of


class BanditInputs(NamedTuple):
    """What a rewrite is made of.

    Parameters
    ----------
    statistics
        Of all partitions of `events`.
    served
        The snapshot of the model.
    features
        Of candidates, of its list; None where its order is not asked for.
    curve
        The newest version of the curve of the model; None where there is none.
    before
        The last rewrite of the bandit.
    """

    statistics: Statistics
    served: Snapshot
    features: FeatureRecords | None
    curve: Snapshot | None
    before: Manifest | None


def kept_intervention(
    plan: BanditSettings, served: Snapshot, before: Manifest | None
) -> str:
    """The intervention that a bandit goes on under; empty where it needs another one.

    Parameters
    ----------
    served
        The snapshot of its model.
    before
        Of its last rewrite.
    """
    if before is None:
        return ""
    was = before.bandit, before.model, before.pointer.epoch
    is_same = was == (plan.bandit, plan.model, served.epoch)
    return before.intervention if is_same else ""


def bandit_rewrite(
    name: str,
    settings: Settings,
    inputs: BanditInputs,
    *,
    number: int,
    at_ms: int,
    check: Callable[[], object] = lambda: None,
) -> Rewrite:
    """Decide what the bandit of a name shows from now on.

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
    inputs: BanditInputs,
    number: int,
    at_ms: int,
    check: Callable[[], object],
) -> Rewrite:
    plan, statistics, served = settings.bandits[name], inputs.statistics, inputs.served
    of_set = None
    if plan.policy == PIE:
        of_set = pie_list(_examination(name, settings, inputs.curve))
    sums = bandit_sums(statistics, name)
    check()
    if of_set is None:
        of_set = cascade_list if plan.policy == CASCADE else _hotfix(plan, inputs, sums)
    kept = newest_first(sums.eras, sums.lists, plan.queries)
    decisions: dict[bytes, Decision] = {}
    entries = []
    for each in kept[sums.lists[kept] > 0].tolist():
        decision = _decision(number, plan.policy, of_set, sums, each)
        if decision is not None:
            query = sums.sets.queries[each]
            key = decision_key(name, query, sums.sets.names[each])
            decisions[key] = decision
            entries.append(entry_of(query, decision))
        check()
    n_counted = sum(counts_of(statistics).values())
    intervention = kept_intervention(plan, served, inputs.before)
    groups = None
    if not intervention:
        counted = statistics.counted
        n_groups = counted[0].groups if counted else settings.statistics.groups
        groups = tuple(range(n_groups))
        intervention = intervention_of(name, Pointer(number, n_counted))
    manifest = Manifest(
        schema=SCHEMA,
        name=name,
        number=number,
        at_ms=at_ms,
        model=served.model,
        stands_on=str(pointer_of(served)),
        intervention=intervention,
        default=f"{served.model}@{pointer_of(served)}",
        envelope=b"",
        n_decisions=len(decisions),
        n_left_out=len(sums.lists) - len(kept),
        shards=[digest_of(shard) for shard in pack_shards(entries)],
        refused={str(why): n for why, n in sums.refused.items()},
        bandit=plan.bandit,
        n_counted=n_counted,
    )
    return Rewrite(manifest, decisions, groups)


def _hotfix(plan: BanditSettings, inputs: BanditInputs, sums: BanditSums) -> SetPolicy:
    ranking = None
    if inputs.features is not None:
        # Only the order is asked for, whatever ranks are worth.
        ranking = snapshot_policy(
            inputs.served, inputs.features, sums.sets, np.ones(1)
        ).ranking
    return hotfix_list(plan.top, ranking)


def _decision(
    number: int, policy: str, of_set: SetPolicy, sums: BanditSums, which: int
) -> Decision | None:
    found = of_set(sums, which)
    if found is None:
        return None
    return Decision(
        SCHEMA,
        number,
        [*sums.sets.items[which]],
        found.order,
        found.blocks,
        policy=policy,
        slot=found.slot,
        lists=int(sums.lists[which]),
        values=found.values.tolist(),
    )


def _examination(name: str, settings: Settings, curve: Snapshot | None) -> Floats:
    """How often each rank of a list is examined, [length]."""
    plan = settings.bandits[name]
    model = settings.models[plan.model]
    if model.training.examination:
        return np.array(model.training.examination[: plan.length])
    if curve is None:
        raise DecisionsRefused(
            f"{name!r} must have a version of a curve to know how often ranks are "
            f"examined; {settings.curve_for(model)!r}, the curve of its model, has no "
            "version yet: fit it (`rankstream intervene`), or set its schedule"
        )
    known = published_curve(curve).curve
    if known.has_trust_bias or known.n_ranks < plan.length:
        wrong = "has trust bias" if known.has_trust_bias else f"has {known.n_ranks}"
        raise DecisionsRefused(
            f"{name!r} must know how often each of {plan.length} ranks is examined, "
            f"without trust bias; {curve.intervention!r} {wrong}: set "
            "`training.examination` of the model, or fit a curve of more lists"
        )
    # Ratios are in units of the first rank; another one may be examined more.
    return known.alpha[: plan.length] / max(1.0, float(known.alpha.max()))
