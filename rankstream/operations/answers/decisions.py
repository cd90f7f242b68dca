"""What is served for which query, on what evidence, and what would change it."""

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.decisions.over_all_queries import Lack
from producers.topic_reader import TopicReader
from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.answers.bandit_sets import (
    VALUES,
    BanditSet,
    remark_on_bandit,
)
from rankstream.settings import Settings
from rankstream.wire.decision_shards import DecisionError
from rankstream.wire.decisions import (
    LOGGING,
    OWN,
    Decision,
    Evidence,
    Manifest,
    decode_decision,
    decode_key,
    decode_manifest,
    entry_of,
    manifest_key,
)
from rankstream.wire.topics import DECISIONS
from streams.decisions.rewrite import withdrawn
from streams.kafka.clients import Cluster
from streams.kafka.committed_reader import client_options
from streams.kafka.decisions.decision_log import DecisionLog
from streams.kafka.decisions.rewriting import next_number, now_ms
from streams.kafka.deployment.operator_change import ChangeRefused

DEFAULT = "default"
"""What serves a set that no order is decided for."""

LACKS: Mapping[str, str] = {
    Lack.BOUND: "its lower bound must be above 0",
    Lack.GROUPS: "its lower bound must be above 0 without any group of sessions, too",
    Lack.SESSIONS: "it must hold for sessions to come, too",
    Lack.INTERVAL: "the paired interval over groups of sessions must be above 0",
}
"""What the general model has yet to show, in words."""


KEPT = "stays while the logging model is better for sure than the general model"
AS_PRINTED = (
    "left to the logging model, as printed: its own order is better for sure than the "
    "general model, and not than that one"
)


class Remarked(Answer):
    """An answer with a remark, which is among its names."""

    @property
    def remark(self) -> str:
        """In words."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """It by names, with the remark."""
        return {**super().to_dict(), "remark": self.remark}

    @classmethod
    def gives(cls) -> dict[str, Any]:
        """As `to_dict`."""
        return {**super().gives(), "remark": str}


@dataclass(frozen=True)
class Rule(Remarked):
    """The newest rewrite of a rule or a bandit.

    Parameters
    ----------
    decided, undecided
        Candidate sets for which an order is decided, and those that have evidence but
        none yet.
    by_logging
        Of those that are decided, the ones that the logging model keeps.
    left_out
        Sets for which there was no room.
    default
        The snapshot, MODEL@EPOCH.VERSION, that serves all others.
    refused
        Lists that may judge nothing, by reason.
    general
        What speaks for the general model over all queries.
    paired
        Ends of the paired interval of that difference; none where nothing speaks.
    lacking
        What it has yet to show to replace the logging model, as
        `models.decisions.over_all_queries` names it.
    bandit
        Policy and lists of a bandit, in words; empty of a rule.
    """

    name: str
    number: int
    intervention: str
    at_ms: int
    decided: int
    by_logging: int
    undecided: int
    left_out: int
    default: str
    model: str
    refused: Mapping[str, int]
    general: Evidence | None
    paired: list[float]
    lacking: list[str]
    bandit: str = ""

    @classmethod
    def of(cls, manifest: Manifest, n_sets: int) -> "Rule":
        """That of a manifest, of so many sets."""
        return cls(
            manifest.name, manifest.number, manifest.intervention, manifest.at_ms,
            manifest.n_decisions, manifest.n_logging,
            n_sets - manifest.n_decisions, manifest.n_left_out,
            manifest.default, manifest.model, manifest.refused, manifest.general,
            manifest.paired, manifest.lacking, manifest.bandit,
        )  # fmt: skip

    @property
    def remark(self) -> str:
        """What the general model has yet to show, in words; empty where nothing."""
        return lacking_in_words(self.lacking)


@dataclass(frozen=True)
class DecidedSet(Remarked):
    """What is decided for a query and one candidate set.

    Parameters
    ----------
    candidate_set
        Its name.
    served
        Whose order it is: `own`, `logging`, or `default` where none is decided; or the
        policy of a bandit.
    order
        Items, the best first, in blocks of those that are tied; empty where the default
        serves it.
    evidence
        Of its own order against both models, and of the logging one against the
        general one.
    lacking
        As of `Rule`.
    bandit
        What a bandit knows of the set; None of a rule.
    """

    query: str
    candidate_set: bytes
    number: int
    served: str
    order: list[list[str]]
    evidence: list[Evidence]
    lacking: list[str]
    bandit: BanditSet | None = None

    @property
    def remark(self) -> str:
        """What would change it, in words."""
        return remark_on(self)


@dataclass(frozen=True)
class Withdrawn(Answer):
    """A rule that was ended, and the number of the rewrite that did it."""

    rule: str
    rewrite: int


def rules(settings: Settings) -> tuple[list[Rule], list[str]]:
    """The newest rewrite of each rule, by name; and what could not be read.

    Raises
    ------
    TopicUnreadable
    """
    manifests: dict[str, Manifest] = {}
    n_sets: dict[str, set[bytes]] = {}
    faults: list[str] = []
    for key, value in _records(settings):
        try:
            found = decode_key(key)
            if found.is_manifest:
                manifests.pop(found.name, None)
                if value is not None:
                    manifests[found.name] = decode_manifest(value)
                continue
        except DecisionError as error:
            faults.append(str(error))
            continue
        of_rule = n_sets.setdefault(found.name, set())
        if value is None:
            of_rule.discard(key)
        else:
            of_rule.add(key)
    known = sorted(manifests.items())
    return [Rule.of(x, len(n_sets.get(name, ()))) for name, x in known], faults


def withdraw(settings: Settings, name: str) -> int:
    """End a rule: rankers go on as without it; returns the number of that rewrite.

    Raises
    ------
    ChangeRefused
        Where the settings have it, so that it would be written again, or nobody wrote
        it yet.
    WriterFenced, KafkaError
    """
    if name in settings.decided:
        section = "bandits" if name in settings.bandits else "decisions"
        raise ChangeRefused(
            f"a rule must be out of the settings to be withdrawn; {name!r} is in them: "
            f"take [{section}.{name}] out, and start the worker again"
        )

    async def written() -> int:
        cluster = Cluster(settings.namespace, client_options(settings.kafka), {})
        own = DecisionLog(cluster, name, settings.delivery.transaction_timeout_ms)
        try:
            await own.fence()
            known = await own.read(frozenset(), lambda: None)
            before = known.decisions.manifest
            if before is None:
                raise ChangeRefused(
                    f"a rule must have been written to be withdrawn; {name!r} was not: "
                    "`rankstream decisions list` tells which there are"
                )
            made = withdrawn(before, next_number(name, known), now_ms())
            await own.write(made.outputs(known.decisions.values))
            return made.manifest.number
        finally:
            await own.close()

    return asyncio.run(written())


def decided_sets(
    settings: Settings, name: str, wanted: str | None = None
) -> list[DecidedSet]:
    """What a rule says of all candidate sets, or of those of one query.

    `wanted` is the query as statistics are kept by it; None for all.

    Those with an order of their own come first, by how much is sure to be gained; the
    others follow by how many lists judge them.

    Raises
    ------
    TopicUnreadable
    DecisionError
        Where a record is another release's, or no order of its items.
    """
    values: dict[bytes, bytes] = {}
    for key, value in _records(settings):
        values.pop(key, None)
        if value is not None:
            values[key] = value
    manifest = values.pop(manifest_key(name), None)
    lacking = decode_manifest(manifest).lacking if manifest else []
    found = []
    for key, value in values.items():
        at = decode_key(key)
        if at.name != name or wanted not in (None, at.query):
            continue
        decision = decode_decision(value)
        if decision.order:
            entry_of(at.query, decision)  # raises for what no ranker would take
        found.append(_set_of(at.query, at.candidate_set, decision, lacking))
    return sorted(found, key=_rank_of)


def remark_on(decided: DecidedSet) -> str:
    """What would change a decision, in words."""
    if decided.bandit is not None:
        return remark_on_bandit(decided.served, decided.order, decided.bandit)
    if not decided.evidence:
        return "no list of the selection groups was counted that may judge it"
    if decided.served == OWN:
        return (
            "stays while its own order is better for sure than both models; lists that "
            "show it judge it only where they show all items that the models move"
        )
    own = [x for x in decided.evidence if x.policy == OWN]
    behind = [x for x in own if not x.lower > 0.0]
    said = [_lacking(each) for each in behind] or [
        "its own order is better by the bounds, but not yet for all sessions"
    ]
    keeping = [x for x in decided.evidence if x.policy == LOGGING]
    if decided.served == LOGGING:
        is_better = any(x.lower > 0.0 for x in keeping)
        said.insert(0, KEPT if is_better else AS_PRINTED)
    else:
        said += [_lacking(x) for x in keeping if x.estimate > 0.0 >= x.lower]
        if decided.lacking:
            said.append(lacking_in_words(decided.lacking))
    return "; ".join(said)


def lacking_in_words(lacking: Sequence[str]) -> str:
    """What the general model has yet to show over all queries; empty where nothing."""
    if not lacking:
        return ""
    lacks = ", and ".join(LACKS.get(each, each) for each in lacking)
    return f"the general model does not replace the logging one yet: {lacks}"


def _lacking(each: Evidence) -> str:
    which = "its own order" if each.policy == OWN else f"the {each.policy} model"
    against = f"the {each.against} model"
    if not each.estimate > 0.0:
        return f"{which} does not look better than {against}"
    width = each.estimate - each.lower
    if not math.isfinite(width):
        return (
            f"nothing bounds the difference of {which} from {against}: lists are too "
            "few, or `confidence` is 1"
        )
    # A bound narrows as one over the root of the lists.
    wanted = each.interactions * (width / each.estimate) ** 2
    return (
        f"about {_rounded(wanted):,} lists would show {which} better than {against}, "
        f"if it stays as it looks; {each.interactions:,} are counted"
    )


def _rounded(number: float) -> int:
    """To two digits."""
    unit: int = 10 ** max(0, len(str(math.ceil(number))) - 2)
    return math.ceil(number / unit) * unit


def _rank_of(decided: DecidedSet) -> tuple[bool, float, str]:
    """Decided ones by the least that is sure to be gained, the others by lists."""
    if decided.bandit is not None:
        return False, -float(decided.bandit.lists), decided.query
    if decided.order:
        gained = [x.lower for x in decided.evidence if x.policy == decided.served]
        return False, -min(gained, default=0.0), ""
    lists = max((x.interactions for x in decided.evidence), default=0)
    return True, -float(lists), decided.query


def _set_of(
    query: str, candidate_set: bytes, decision: Decision, lacking: list[str]
) -> DecidedSet:
    ordered = iter([decision.items[number] for number in decision.order])
    blocks = [[next(ordered) for _ in range(size)] for size in decision.blocks]
    served = decision.policy if decision.order else DEFAULT
    return DecidedSet(
        query, candidate_set, decision.number, served, blocks, decision.evidence,
        lacking, BanditSet.of(decision) if served in VALUES else None,
    )  # fmt: skip


def _records(settings: Settings) -> Iterator[tuple[bytes, bytes | None]]:
    with TopicReader(settings) as reader:
        if not reader.partitions(DECISIONS):
            return
        for record in reader.records(DECISIONS):
            yield record.key or b"", record.value
