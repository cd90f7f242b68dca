"""What becomes of a canary, as records of one transaction of its model's one writer.

It begins, its share rises, and it ends: all are served it, or nobody is. The trainer
decides by what was counted, an operator by hand; both have fenced, and read, before.
"""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from rankstream.deployment_rules import check_room
from rankstream.settings import Settings
from rankstream.wire.envelope import (
    Snapshot,
    deployed,
    encode_snapshot,
    pointer_of,
)
from rankstream.wire.models.canaries import (
    SCHEMA,
    Canary,
    CanaryRules,
    canary_key,
    encode_canary,
)
from rankstream.wire.models.changes import (
    CANARY,
    PROMOTED,
    WITHDRAWN,
    Change,
    change_record,
)
from rankstream.wire.models.changes import SCHEMA as CHANGED
from rankstream.wire.models.deployments import deployment_record
from rankstream.wire.topics import SNAPSHOTS
from streams.stage import Output
from streams.training.model_records import ModelRecords


class Decided(NamedTuple):
    """Who decides it, the reason that is given, and names and figures."""

    by: str
    why: str = ""
    evidence: Mapping[str, Any] = {}


def begun(
    settings: Settings,
    records: ModelRecords,
    snapshot: Snapshot,
    rules: CanaryRules,
    decided: Decided,
) -> tuple[Change, list[Output]]:
    """Serve a version to the first share of sessions.

    Parameters
    ----------
    snapshot
        Of the model, deployed in an epoch that no version had, or of an earlier one.

    Raises
    ------
    DeploymentRefused
        Where the era has no room for one more name.
    """
    model, at_ms = snapshot.model, _now_ms()
    check_room(settings, records.deployments(), at_ms=at_ms)
    epoch = next_epoch(records, model)
    new = snapshot if snapshot.epoch == epoch else deployed(snapshot, epoch)
    served = records.newest[model]
    canary = Canary(
        SCHEMA,
        new.intervention,
        1,
        rules.shares[0],
        str(pointer_of(served)),
        at_ms,
        rules,
        encode_snapshot(new),
    )
    # What is served goes on: it is noted again where it has a name of its own.
    notes = [
        Output(SNAPSHOTS, 0, *deployment_record(each.intervention, at_ms, each.groups))
        for each in (served, new)
        if each.intervention
    ]
    made = _change(records, canary, CANARY, decided, at_ms)
    return made, [_row(model, made), *notes, _record(canary)]


def risen(
    records: ModelRecords, canary: Canary, decided: Decided
) -> tuple[Change, list[Output]]:
    """Serve it to the next share of sessions; all of before stay in it."""
    at_ms = _now_ms()
    following = msgspec.structs.replace(
        canary,
        stage=canary.stage + 1,
        share=canary.rules.shares[canary.stage],
        begun_ms=at_ms,
    )
    made = _change(records, following, CANARY, decided, at_ms)
    return made, [_row(canary.model, made), _record(following)]


def promoted(
    records: ModelRecords, canary: Canary, decided: Decided
) -> tuple[Change, list[Output]]:
    """Serve it to all, under the name that it has."""
    made = _change(records, canary, PROMOTED, decided, _now_ms())
    name = canary.model
    return made, [
        _row(name, made),
        Output(SNAPSHOTS, 0, canary_key(name), None),
        Output(SNAPSHOTS, 0, name.encode(), canary.envelope),
    ]


def ended(
    records: ModelRecords, canary: Canary, what: str, decided: Decided
) -> tuple[Change, list[Output]]:
    """Serve it to nobody any more.

    Parameters
    ----------
    what
        `WITHDRAWN` or `UNDECIDED` of `rankstream.wire.models.changes`.
    """
    made = _change(records, canary, what, decided, _now_ms())
    gone = Output(SNAPSHOTS, 0, canary_key(canary.model), None)
    return made, [_row(canary.model, made), gone]


def removed(
    records: ModelRecords, model: str, decided: Decided
) -> tuple[Change, list[Output]]:
    """Take away a canary that cannot be read; nobody was served it."""
    served = records.newest.get(model)
    place = "" if served is None else str(pointer_of(served))
    made = Change(
        CHANGED,
        records.history.next_number(model),
        _now_ms(),
        WITHDRAWN,
        place,
        place,
        decided.by,
        decided.why,
        dict(decided.evidence),
    )
    gone = Output(SNAPSHOTS, 0, canary_key(model), None)
    return made, [_row(model, made), gone]


def is_last(canary: Canary) -> bool:
    """Whether no share is left but that of all."""
    return canary.stage >= len(canary.rules.shares)


def next_epoch(records: ModelRecords, model: str) -> int:
    """An epoch in which no version of a model was deployed, canaries among them."""
    known = [each.pointer for each in records.deployments() if each.model == model]
    if model in records.newest:
        known.append(pointer_of(records.newest[model]))
    return max((each.epoch for each in known), default=0) + 1


def _change(
    records: ModelRecords, canary: Canary, what: str, decided: Decided, at_ms: int
) -> Change:
    evidence = dict(decided.evidence)
    if what == CANARY:
        evidence |= {"stage": canary.stage, "share": canary.share}
    return Change(
        CHANGED,
        records.history.next_number(canary.model),
        at_ms,
        what,
        canary.intervention.rpartition("@")[2],
        canary.before,
        decided.by,
        decided.why,
        evidence,
    )


def _row(model: str, made: Change) -> Output:
    return Output(SNAPSHOTS, 0, *change_record(model, made))


def _record(canary: Canary) -> Output:
    return Output(SNAPSHOTS, 0, canary_key(canary.model), encode_canary(canary))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
