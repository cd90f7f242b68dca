"""A stage as its partition's state left it, and the proof that it is the same.

What is stored names the fingerprint that the stage had at the checkpoint, and the one
at the last commit. A state or a log that gives others is not gone on from.
"""

import asyncio
import logging
from typing import Any, NamedTuple

import msgspec

from streams.kafka.state.lost_records import LossRule
from streams.kafka.state.resume_position import (
    ResumePosition,
    StateRefused,
    first_position,
    taken_position,
)
from streams.kafka.state.state_log import StateRead
from streams.kafka.status.start_phases import Opening
from streams.stage import Change, Stage
from streams.topology import StageKind

log = logging.getLogger("rankstream.commit")


class RestoredPosition(NamedTuple):
    """Where a stage goes on, and whether the log has yet to be told."""

    position: ResumePosition
    is_new: bool


def tell_restored(
    name: str, read: StateRead, position: ResumePosition, opening: Opening
) -> None:
    """Write a log line of what was read back, and how long that took."""
    log.info(
        "event=restored partition=%s records=%d keys=%d checkpoint=%d position=%d "
        "seconds=%.2f fence=%.2f read=%.2f restore=%.2f",
        name, read.n_records, len(read.items),
        position.checkpoint_offset, position.offset, sum(opening), *opening,
    )  # fmt: skip


async def restored(
    stage: Stage,
    kind: StageKind,
    read: StateRead,
    pinned: dict[str, Any],
    losses: LossRule,
    committed: int | None,
) -> RestoredPosition:
    """Give a new stage its state back, and say where it goes on.

    Parameters
    ----------
    pinned
        Settings that the state depends on, as they are now.
    losses
        What the partition may go on without.
    committed
        What the consumer group committed for it, if anything.

    Raises
    ------
    StateRefused
        Where state and log do not belong together.
    """
    items, _, source = read
    found = taken_position(items, source, kind, pinned, committed)
    position = found and losses.behind(found, source)
    if found is None:
        losses.tell_beginning(source)
    changes = (Change(topic, key, value) for (topic, key), value in items.items())
    # Beside the loop, which reads what other partitions need meanwhile.
    await asyncio.to_thread(stage.restore, changes)
    position = position or first_position(source, kind.version, stage.fingerprint())
    is_new = position is not found
    return RestoredPosition(msgspec.structs.replace(position, settings=pinned), is_new)


def check_checkpoint(stage: Stage, position: ResumePosition, name: str) -> None:
    """See that a stage with its state back is the one that made the checkpoint.

    Parameters
    ----------
    name
        Topic and partition, for the refusal.

    Raises
    ------
    StateRefused
        Where it is not.
    """
    if stage.fingerprint() != position.checkpoint_fingerprint:
        raise StateRefused(
            f"the state of {name} must match its resume position; it does "
            "not: fold the log from its beginning in a new --namespace"
        )


def check_folded_again(stage: Stage, position: ResumePosition, name: str) -> None:
    """See that records behind the checkpoint gave the same when folded again.

    Raises
    ------
    StateRefused
        Where they did not.
    """
    if stage.fingerprint() != position.fingerprint:
        raise StateRefused(
            f"folding {name} again up to {position.offset} must give "
            "the same; it did not: was it written by another version? Run that one "
            "and stop it gracefully, or fold the log in a new --namespace"
        )
