"""What an operator deploys: a version of a model, in one transaction of its one writer.

An old version is served again, and later the newest one, by a record in an epoch of its
own: publishers, now or after a restart, serve it and let no earlier epoch in. Both are
interventions: their lists are logged as those of `MODEL@EPOCH.VERSION`.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rankstream.configuration.models import ONLINE
from rankstream.deployment_rules import check_room
from rankstream.settings import Settings
from rankstream.wire.envelope import (
    CURVE,
    Pointer,
    Snapshot,
    deployed,
    encode_snapshot,
    pointer_of,
)
from rankstream.wire.models.canaries import canary_key
from rankstream.wire.models.changes import FOLLOWED, SCHEMA, STAY, Change, change_record
from rankstream.wire.models.deployments import deployment_record
from rankstream.wire.models.snapshot_names import following_key
from rankstream.wire.topics import SNAPSHOTS
from streams.kafka.clients import Cluster
from streams.kafka.deployment.canary_change import next_epoch
from streams.kafka.deployment.model_log import ModelLog
from streams.stage import Output
from streams.training.model_records import ModelRecords


class ChangeRefused(RuntimeError):
    """What is served of a model was not changed, for what it is now.

    Operator action: look at `rankstream snapshots history MODEL` and decide again.
    """


class Wanted(NamedTuple):
    """What an operator decided.

    Parameters
    ----------
    seen
        The version that was served when it was decided; None where none is known.
    by, why
        Who decides it, and the reason that is given.
    """

    model: str
    seen: Pointer | None
    by: str
    why: str = ""


class Chosen(NamedTuple):
    """What is to be served: a version that another release or model may have made.

    Parameters
    ----------
    snapshot
        None where nothing is to be served in place of what is.
    what
        A word of `rankstream.wire.models.changes`.
    evidence
        Names and figures.
    """

    snapshot: Snapshot | None
    what: str
    evidence: Mapping[str, Any] = {}


async def change(
    settings: Settings,
    cluster: Cluster,
    wanted: Wanted,
    choose: Callable[[ModelRecords], Chosen],
) -> tuple[Change, bytes]:
    """Fence, read, compare, and write what was chosen; returns it with its envelope.

    Without an envelope where nothing else is served.

    Parameters
    ----------
    choose
        Decides on what was read after the fence; what it raises ends it.

    Raises
    ------
    ChangeRefused
        Where another version is served than was seen.
    WriterFenced
        Where a trainer or another operator came between: nothing was written.
    DeploymentRefused
        Where the era has no room for one more name.
    """

    def make(records: ModelRecords) -> tuple[Change, list[Output]]:
        check_seen(settings, wanted, records)
        return _records_of(settings, wanted, choose(records), records)

    made, outputs = await write_once(settings, cluster, wanted.model, make)
    return made, (outputs[-1].value or b"") if made.what not in STAY else b""


async def write_once(
    settings: Settings,
    cluster: Cluster,
    model: str,
    make: Callable[[ModelRecords], tuple[Change, list[Output]]],
) -> tuple[Change, list[Output]]:
    """Fence, read, and write what is made of that, in one transaction.

    Raises
    ------
    WriterFenced
        Where a trainer or another operator came between: nothing was written.
    """
    own = ModelLog(cluster, model, settings.delivery.transaction_timeout_ms)
    try:
        await own.fence()
        made, outputs = make(await own.read(frozenset({model}), lambda: None))
        await own.write(outputs)
    finally:
        await own.close()
    return made, outputs


def check_seen(settings: Settings, wanted: Wanted, records: ModelRecords) -> None:
    """Refuse where another version is served than who decided has seen.

    What learns online has a later version with each list: of it the epochs are
    compared.

    Raises
    ------
    ChangeRefused
    """
    name, seen = wanted.model, wanted.seen
    newest = records.newest.get(name)
    if newest is None or seen is None:
        return
    now = pointer_of(newest)
    model = settings.models.get(name)
    # Of what no settings name nobody knows; it may learn online.
    moves = model.versions == ONLINE if model else name not in settings.curves
    if now == seen or (moves and now.epoch == seen.epoch):
        return
    last = records.history.last(name)
    told = f"{last.what} by {last.by}" if last else "by whom is not recorded"
    raise ChangeRefused(
        f"a model must be served as it was when its change was decided; {name!r} went "
        f"from {seen} to {now} meanwhile, {told}: nothing was changed. Look at "
        f"`rankstream snapshots history {name}`, and say --expect {now} to go on"
    )


def _records_of(
    settings: Settings, wanted: Wanted, chosen: Chosen, records: ModelRecords
) -> tuple[Change, list[Output]]:
    """The change, and its records: the envelope is the last where there is one."""
    name, at_ms = wanted.model, time.time_ns() // 1_000_000
    newest = records.newest.get(name)
    before = None if newest is None else pointer_of(newest)
    outputs, place, evidence = [], before, dict(chosen.evidence)
    if chosen.snapshot is not None:
        seen = -1 if wanted.seen is None else wanted.seen.epoch
        new = deployed(chosen.snapshot, max(next_epoch(records, name), seen + 1))
        place = pointer_of(new)
        if new.kind != CURVE:
            # A curve of bias makes no list, so it takes no room of those that do.
            check_room(settings, records.deployments(), at_ms=at_ms)
            note = deployment_record(new.intervention, at_ms, new.groups)
            outputs.append(Output(SNAPSHOTS, 0, *note))
        if name in records.canaries or name in records.unreadable_canaries:
            # Who changes what all are served ends what some are.
            canary = records.canaries.get(name)
            evidence["withdrew"] = canary.intervention if canary else "unreadable"
            outputs.append(Output(SNAPSHOTS, 0, canary_key(name), None))
        key = following_key(name) if chosen.what == FOLLOWED else name.encode()
        outputs.append(Output(SNAPSHOTS, 0, key, encode_snapshot(new)))
    made = Change(
        SCHEMA,
        records.history.next_number(name),
        at_ms,
        chosen.what,
        str(place or ""),
        str(before or ""),
        wanted.by,
        wanted.why,
        evidence,
    )
    outputs.insert(0, Output(SNAPSHOTS, 0, *change_record(name, made)))
    return made, outputs
