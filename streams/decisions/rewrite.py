"""A rewrite of a rule: what is served from now on, as records of one transaction.

References
----------
Oosterhuis & de Rijke (WWW 2021), the meta-policy that is deployed.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

import msgspec
import numpy as np

from models.arrays import Floats, Integers
from models.decisions import meta_policy
from models.decisions.click_sums import Differences
from models.evaluation.bounds.families import (
    FAMILIES,
    Bound,
    Confidence,
    intervals,
    mirrored,
)
from models.evaluation.bounds.several_queries import (
    lower_bound_over_queries,
    sums_of_classes,
)
from rankstream.wire.decision_shards import DecisionError, digest_of, pack_shards
from rankstream.wire.decisions import (
    GENERAL,
    LOGGING,
    NO_SHARDS,
    OWN,
    SCHEMA,
    Decision,
    Evidence,
    Manifest,
    decision_key,
    decode_decision,
    encode_decision,
    encode_manifest,
    entry_of,
    manifest_key,
)
from rankstream.wire.envelope import (
    Pointer,
    Snapshot,
    encode_snapshot,
    intervention_of,
    pointer_of,
)
from rankstream.wire.models.deployments import deployment_record
from rankstream.wire.topics import DECISIONS, SNAPSHOTS
from streams.decisions.closed_sets import CandidateSets
from streams.decisions.decide import Comparison, Decisions
from streams.stage import Output

NAMES = {meta_policy.SPECIALISED: OWN, meta_policy.LOGGING: LOGGING}
"""Of policies whose orders single sets are left to."""

Records = Mapping[bytes, bytes]
"""Values of decisions of one rule by their keys."""


class Deployed(NamedTuple):
    """Snapshots that a rule compares and serves."""

    general: Snapshot
    logging: Snapshot


class Occasion(NamedTuple):
    """Which rewrite it is.

    Parameters
    ----------
    name
        Of the rule.
    number
        Of the rewrite, higher than of all before.
    version
        Lists that were counted.
    at_ms
        By the clock of who writes it.
    groups
        Whose clicks the orders of single queries came from.
    """

    name: str
    number: int
    version: int
    at_ms: int
    groups: tuple[int, ...]


class Rewrite(NamedTuple):
    """What is served from now on.

    Parameters
    ----------
    manifest
        Names all of it.
    decisions
        Records by key, also of sets for which nothing is decided yet.
    groups
        Whose clicks it came from, for the note of its deployment; None where that was
        noted before.
    """

    manifest: Manifest
    decisions: dict[bytes, Decision]
    groups: tuple[int, ...] | None

    def outputs(self, before: Records) -> list[Output]:
        """Records of one transaction: what changed, the manifest, and a note.

        Parameters
        ----------
        before
            What the topic has of the rule.
        """
        written = [
            Output(DECISIONS, 0, key, encode_decision(decision))
            for key, decision in self.decisions.items()
            if not _is_known(decision, before.get(key))
        ]
        gone = [
            Output(DECISIONS, 0, key, None)
            for key in before
            if key not in self.decisions
        ]
        made = self.manifest
        notes = []
        if made.intervention and self.groups is not None:
            record = deployment_record(made.intervention, made.at_ms, self.groups)
            notes = [Output(SNAPSHOTS, 0, *record)]
        value = encode_manifest(made)
        last = Output(DECISIONS, 0, manifest_key(made.name), value)
        return [*gone, *written, *notes, last]


def rewritten(  # noqa: PLR0913  all that a rewrite has
    occasion: Occasion,
    deployed: Deployed,
    sets: CandidateSets,
    decided: Decisions,
    kept: Integers,
    sure: Confidence,
    sure_of_all: Confidence,
    refused: Mapping[str, int],
) -> Rewrite:
    """Make a rewrite of what was decided.

    Parameters
    ----------
    kept : [n_kept]
        Numbers of the sets that the rule has room for.
    sure, sure_of_all
        Of the bounds that are told beside: of single queries, and over all of them.
    refused
        Lists that may judge nothing, by reason.

    Raises
    ------
    DecisionError
        Where an order is none.
    """
    decisions = {
        decision_key(occasion.name, sets.queries[number], sets.names[number]): each
        for number, each in _decisions(occasion.number, sets, decided, kept, sure)
    }
    queries = [sets.queries[number] for number in kept.tolist()]
    shards = pack_shards(
        entry_of(query, each)
        for query, each in zip(queries, decisions.values(), strict=True)
        if each.order
    )
    general, name = deployed.general, occasion.name
    is_better = decided.default == meta_policy.GENERAL
    default = general if is_better else deployed.logging
    speaking = _over_queries(decided.general, sure_of_all)
    manifest = Manifest(
        schema=SCHEMA,
        name=name,
        number=occasion.number,
        at_ms=occasion.at_ms,
        model=general.model,
        stands_on=str(pointer_of(general)),
        intervention=intervention_of(name, Pointer(occasion.number, occasion.version)),
        default=f"{default.model}@{pointer_of(default)}",
        envelope=encode_snapshot(default),
        n_decisions=sum(bool(each.order) for each in decisions.values()),
        n_left_out=len(sets.queries) - len(kept),
        shards=[digest_of(each) for each in shards],
        refused=dict(refused),
        general=speaking,
        n_logging=sum(
            bool(each.order) and each.policy == LOGGING for each in decisions.values()
        ),
        paired=[decided.over_all.low, decided.over_all.high] if speaking else [],
        lacking=[str(each) for each in decided.over_all.lacking],
        n_counted=occasion.version,
    )
    learned = {*occasion.groups, *general.groups, *deployed.logging.groups}
    return Rewrite(manifest, decisions, tuple(sorted(learned)))


def withdrawn(before: Manifest, number: int, at_ms: int) -> Rewrite:
    """A rewrite after which rankers go on as without the rule.

    Parameters
    ----------
    before
        The last one.
    number, at_ms
        As of `Occasion`.
    """
    made = Manifest(
        schema=SCHEMA,
        name=before.name,
        number=number,
        at_ms=at_ms,
        model=before.model,
        stands_on=before.stands_on,
        intervention="",
        default=f"{before.model}@{before.stands_on}",
        envelope=b"",
        n_decisions=0,
        n_left_out=0,
        shards=NO_SHARDS,
    )
    return Rewrite(made, {}, ())


def newest_first(eras: Integers, lists: Integers, most: int) -> Integers:
    """Numbers of the sets that stay, rising: those with the newest lists.

    Parameters
    ----------
    eras, lists : [n_sets]
        The newest era of which there are lists, and how many lists there are; of two
        of one era that with more stays.
    most
        How many may stay.
    """
    order = np.lexsort((np.arange(len(eras)), -lists, -eras))
    return np.sort(order[:most])


def _over_queries(found: Differences, sure: Confidence) -> Evidence | None:
    """The general policy against the logging one, with the bounds that judge."""
    n = int(found.interactions()[0])
    if not n:
        return None
    lower, upper = intervals(found.sums, found.starts, sure)[0].tolist()
    if FAMILIES[sure.family] is Bound.ANY_TIME:
        lower, higher = (
            lower_bound_over_queries(sums_of_classes(sums), 1.0 - sure.error)
            for sums in (found.sums, mirrored(found.sums))
        )
        upper = -higher
    clicks, groups = int(found.clicks()[0]), int(_n_groups(found)[0])
    mean = float(found.means()[0])
    return Evidence(LOGGING, n, clicks, groups, mean, lower, upper, GENERAL)


def _decisions(
    number: int,
    sets: CandidateSets,
    decided: Decisions,
    kept: Integers,
    sure: Confidence,
) -> Iterator[tuple[int, Decision]]:
    told = [
        _Told.of(decided.over_general, OWN, GENERAL, sure),
        _Told.of(decided.over_logging, OWN, LOGGING, sure),
        _Told.of(decided.logging_over_general, LOGGING, GENERAL, sure),
    ]
    is_decided = decided.is_decided()
    for each in kept.tolist():
        order: list[int] = []
        blocks: list[int] = []
        name = OWN
        if is_decided[each]:
            policy = int(decided.chosen[each])
            order, blocks = decided.orders[policy].of_set(each)
            name = NAMES[policy]
        yield (
            each,
            Decision(
                SCHEMA,
                number,
                [*sets.items[each]],
                order,
                blocks,
                [*chain.from_iterable(of.of_set(each) for of in told)],
                name,
            ),
        )


class _Told(NamedTuple):
    """A comparison of two policies as it is told; numbers [n_sets]."""

    policy: str
    against: str
    lists: Integers
    clicks: Integers
    groups: Integers
    means: Floats
    ends: Floats

    @classmethod
    def of(
        cls, comparison: Comparison, policy: str, against: str, sure: Confidence
    ) -> "_Told":
        found = comparison.differences
        return cls(
            policy,
            against,
            found.interactions(),
            found.clicks(),
            _n_groups(found),
            found.means(),
            intervals(found.sums, found.starts, sure),
        )

    def of_set(self, number: int) -> Iterator[Evidence]:
        """Evidence of a set, where there is any."""
        if not self.lists[number]:
            return
        lower, upper = self.ends[number].tolist()
        yield Evidence(
            self.against,
            int(self.lists[number]),
            int(self.clicks[number]),
            int(self.groups[number]),
            float(self.means[number]),
            lower,
            upper,
            self.policy,
        )


def _n_groups(found: Differences) -> Integers:
    """Groups of sessions that have lists of each set, [n_sets]."""
    n_sets = len(found.starts) - 1
    owners = np.repeat(np.arange(n_sets), np.diff(found.starts))
    pairs = np.unique(np.column_stack((owners, found.sums.groups)), axis=0)
    return np.bincount(pairs[:, 0], minlength=n_sets)


def _is_known(decision: Decision, value: bytes | None) -> bool:
    """Whether a record says the same, of whichever rewrite it is."""
    if value is None:
        return False
    try:
        known = decode_decision(value)
    except DecisionError:
        return False
    return msgspec.structs.replace(known, number=decision.number) == decision
