"""Records that left a topic before they were folded, and going on without them.

Reading never jumps. Where retention was faster than a stage, the start is refused with
the offsets that are missing and with the option that accepts exactly these.
"""

import logging
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self

import msgspec

from rankstream.settings import Settings
from streams.kafka.state.resume_position import (
    Loss,
    ResumePosition,
    SourcePartition,
    StateRefused,
    check_position,
    start_of,
)
from streams.topology import STAGES, StageKind, written_topics

OPTION = "--accept-loss"
FORM = "TOPIC:PARTITION:FROM-TO"

log = logging.getLogger("rankstream.commit")


class AcceptedLoss(NamedTuple):
    """Offsets of a partition that an operator goes on without.

    `topic` is the name without namespace; both ends of `loss` are included.
    """

    topic: str
    partition: int
    loss: Loss

    @classmethod
    def parsed(cls, words: str) -> Self:
        """What follows the option.

        Raises
        ------
        ValueError
            Where it has another form, or names what cannot be gone on without.
        """
        try:
            topic, partition, offsets = words.split(":")
            first, last = map(int, offsets.split("-"))
            accepted = cls(topic, int(partition), Loss(first, last))
        except ValueError as error:
            raise ValueError(f"{OPTION} must be {FORM}; got {words!r}") from error
        if topic not in dispensable_topics():
            names = " or ".join(sorted(dispensable_topics()))
            raise ValueError(f"TOPIC of {OPTION} must be {names}; got {topic!r}")
        if not 0 <= first <= last:
            raise ValueError(f"FROM of {OPTION} must be TO at most; got {words!r}")
        return accepted

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.loss}"


def dispensable_topics() -> frozenset[str]:
    """Sources from outside; stages number what they write, so a gap in it shows."""
    return frozenset(kind.source for kind in STAGES if is_dispensable(kind))


def is_dispensable(kind: StageKind) -> bool:
    """Whether a stage can go on behind records that it never saw."""
    return kind.source not in written_topics()


@dataclass(frozen=True)
class LossRule:
    """What one partition of a stage may go on without.

    Parameters
    ----------
    accepted
        What the operator goes on without, if anything. It must be all that is missing;
        where nothing is, it says nothing.
    """

    kind: StageKind
    partition: int
    settings: Settings
    accepted: Loss | None = None

    def behind(
        self, position: ResumePosition, source: SourcePartition
    ) -> ResumePosition:
        """The position itself, or behind a loss that was accepted.

        Raises
        ------
        StateRefused
            Where records are missing that are needed, or that nobody agreed to lose.
        """
        start = start_of(position)
        if source.first <= start:
            return position
        missing = Loss(start, source.first - 1)
        remedy = self._remedy(position, missing)
        if remedy:
            raise StateRefused(
                f"{source.name} must still hold offset {start}; it begins at "
                f"{source.first}: offsets {missing} ({len(missing)}) left it before "
                "they were folded, as its retention is shorter than the stage was "
                f"behind, or as somebody deleted them. {remedy}"
            )
        log.warning(
            "event=loss-accepted partition=%s offsets=%s count=%d",
            source.name, missing, len(missing),
        )  # fmt: skip
        moved: ResumePosition = msgspec.structs.replace(
            position, next_offset=source.first, losses=(*position.losses, missing)
        )
        return moved

    def tell_beginning(self, source: SourcePartition) -> None:
        """Say so where the first start ever finds a beginning that has left."""
        if source.first > 0:
            log.warning(
                "event=begins-late partition=%s first=%d reason=nothing was folded of "
                "it yet, and what it held before that offset, if anything, was deleted "
                "unread: no count has it",
                source.name, source.first,
            )  # fmt: skip

    def check_there(self, position: ResumePosition, first: int, end: int) -> None:
        """Refuse to go on where what comes next is not in the source.

        Parameters
        ----------
        first, end
            Offset of its oldest record, and the one behind its newest.

        Raises
        ------
        StateRefused
            With the offsets that are missing, and what to do.
        """
        name = f"{self.kind.source}[{self.partition}]"
        at = position.topic_id, position.n_partitions, first, end
        source = SourcePartition(name, *at)
        check_position(position, source, self.kind)
        self.behind(position, source)

    def _remedy(self, position: ResumePosition, missing: Loss) -> str:
        """What is to be done about it; empty where the loss was accepted."""
        if position.checkpoint_offset < position.offset:
            return (
                f"The state is that of offset {position.checkpoint_offset}, and all up "
                f"to {position.offset} must be folded again: use a new --namespace"
            )
        if not is_dispensable(self.kind):
            return (
                f"Its records are numbered, and {self.kind.name} folds no log with a "
                "gap: use a new --namespace"
            )
        if self.accepted == missing:
            return ""
        given = f"; got {self.accepted}" if self.accepted else ""
        return f"To go on without them, run `{self._command(missing)}`{given}"

    def _command(self, missing: Loss) -> str:
        words = ["rankstream", "worker"]
        if self.settings.file:
            words += ["--config", self.settings.file]
        if self.settings.namespace:
            words += ["--namespace", self.settings.namespace]
        accepted = AcceptedLoss(self.kind.source, self.partition, missing)
        return shlex.join([*words, OPTION, str(accepted)])


def loss_of(
    accepted: Iterable[AcceptedLoss], topic: str, partition: int
) -> Loss | None:
    """What was accepted for a partition."""
    found = [one.loss for one in accepted if one[:2] == (topic, partition)]
    return found[-1] if found else None
