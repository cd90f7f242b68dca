"""What only some schedules have beside the rest.

Each is drawn by generators of its own, and those of a later day only where a seed can
be divided by three: what told something before goes on to tell it.
"""

from random import Random
from typing import NamedTuple


class Conditions(NamedTuple):
    """Under which processes run.

    Parameters
    ----------
    hears_late
        Assignments are heard late, and those that are over all the same.
    has_instances
        Members have names of their own, which a successor takes.
    is_group_first
        Offsets of a group count before the markers of partitions are written.
    is_split
        Members are voted out as they begin to commit.
    is_hurried
        Commits are due by bytes, folding waits for them, and state is due by time.
    is_unanswered
        A broker ends a transaction, and answers with an error that does not say so.
    is_forgetful
        A broker forgets to end positions, and often to end records.
    is_deadly
        One process after another dies within a commit or while it opens, or is voted
        out and goes on.
    is_paired
        The role has two stages.
    """

    hears_late: bool
    has_instances: bool
    is_group_first: bool
    is_split: bool
    is_hurried: bool
    is_unanswered: bool
    is_forgetful: bool
    is_deadly: bool
    is_paired: bool


def conditions_of(seed: int) -> Conditions:
    """Those of a schedule."""
    harsh, rare = Random(~seed), Random(f"rare {seed}")  # noqa: S311
    is_harsh, is_rare = seed % 2 == 1, seed % 3 == 0
    return Conditions(
        *(is_harsh and harsh.random() < share for share in (0.5, 0.5, 0.5, 0.2)),
        *(is_rare and rare.random() < 0.35 for _ in range(5)),
    )
