"""What a training brings out, as records: to all at once, or to a share first."""

import logging
import time
from typing import Any

from rankstream.settings import Settings
from rankstream.wire.envelope import Snapshot, encode_snapshot, pointer_of
from rankstream.wire.models.changes import SCHEMA as CHANGED
from rankstream.wire.models.changes import TRAINED, Change, change_record
from rankstream.wire.models.curves import CurveRecord, encode_published, published
from rankstream.wire.models.deployments import deployment_record
from rankstream.wire.models.training import RunRecord
from rankstream.wire.topics import EVALUATIONS, SNAPSHOTS
from streams.kafka.deployment.canary_change import Decided, begun
from streams.stage import Output
from streams.training.inputs import TrainingRefused
from streams.training.model_records import ModelRecords

log = logging.getLogger("rankstream.trainer")


def brought_out(
    settings: Settings,
    records: ModelRecords,
    snapshot: Snapshot,
    run: RunRecord | CurveRecord,
    by: str,
) -> tuple[list[Output], str]:
    """Records of `snapshots` and `evaluations`, and what is to be said of it.

    Parameters
    ----------
    records
        What was read last.
    by
        Names the trainer.

    Raises
    ------
    TrainingRefused
        Where another version of the model is going out.
    """
    if isinstance(run, CurveRecord):
        _warn(run.intervention, run.warning())
        key = run.model.encode()
        curve = Output(EVALUATIONS, 0, key, encode_published(published(run)))
        return [curve, *_served(records, snapshot, run, by)], "was published"
    _warn(run.intervention, run.curve.warning)
    canary = settings.models[run.model].canary
    if canary is not None:
        check_alone(records, run.model)
        fall = {"largest_loss": run.largest_loss, "least_ratio": run.least_ratio}
        decided = Decided(by, run.reason, fall | _chosen(snapshot, run))
        _, outputs = begun(settings, records, snapshot, canary.rules(), decided)
        return outputs, f"goes out to {canary.shares[0]:.0%} of sessions first"
    # A curve serves no list: only what ranks takes a name in statistics.
    note = deployment_record(run.intervention, run.created_ms, snapshot.groups)
    outputs = [Output(SNAPSHOTS, 0, *note), *_served(records, snapshot, run, by)]
    return outputs, "was published"


def _served(
    records: ModelRecords, snapshot: Snapshot, run: RunRecord | CurveRecord, by: str
) -> list[Output]:
    """The change and the envelope."""
    name = run.model
    before = records.newest.get(name)
    made = Change(
        CHANGED,
        records.history.next_number(name),
        time.time_ns() // 1_000_000,
        TRAINED,
        str(pointer_of(snapshot)),
        "" if before is None else str(pointer_of(before)),
        by,
        run.reason,
        {} if isinstance(run, CurveRecord) else _chosen(snapshot, run),
    )
    return [
        Output(SNAPSHOTS, 0, *change_record(name, made)),
        Output(SNAPSHOTS, 0, name.encode(), encode_snapshot(snapshot)),
    ]


def _chosen(snapshot: Snapshot, run: RunRecord) -> dict[str, Any]:
    """Of a kind that was chosen: which, and how far the best of each is behind."""
    tried = sorted(run.losses, key=lambda each: -each.behind)
    behind = {each.kind: (each.behind, each.behind_error) for each in tried}
    return {"kind": snapshot.kind, "behind": behind} if any(behind) else {}


def check_alone(records: ModelRecords, name: str) -> None:
    """Refuse while a version of the model is going out.

    Raises
    ------
    TrainingRefused
    """
    canary = records.canaries.get(name)
    if canary is not None or name in records.unreadable_canaries:
        which = canary.intervention if canary else "one that cannot be read"
        raise TrainingRefused(
            f"a model must have one canary at a time; {which} is going out: wait until "
            f"it has ended, or end it with `rankstream snapshots canary {name} --end`"
        )


def _warn(intervention: str, warning: str) -> None:
    if warning:
        log.warning("event=curve name=%s reason=%s", intervention, warning)
