"""Log lines about commits: one a minute, however many commits there were."""

import logging
import time

from streams.kafka.partitions.backlog import Commit

SAY_EVERY_S = 60.0

log = logging.getLogger("rankstream.commit")


class CommitLines:
    """Counts the commits of a partition, and tells of them now and then.

    The first one is told at once, so that a start is seen to have come through.

    Parameters
    ----------
    name
        Topic and partition.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._said_s: float | None = None
        self._begin()

    def take(self, offset: int, commit: Commit) -> None:
        """Count a commit; `offset` is that of the last record that it covers."""
        self._n_commits += 1
        self._n_outputs += len(commit.outputs)
        if commit.is_checkpoint:
            self._n_checkpoints += 1
            self._n_changes += len(commit.changes)
        now_s = time.monotonic()
        if self._said_s is None or now_s - self._said_s >= SAY_EVERY_S:
            self._said_s = now_s
            log.info(
                "event=commits partition=%s offset=%d commits=%d outputs=%d "
                "checkpoints=%d state_records=%d",
                self._name, offset, self._n_commits, self._n_outputs,
                self._n_checkpoints, self._n_changes,
            )  # fmt: skip
            self._begin()

    def _begin(self) -> None:
        self._n_commits = self._n_outputs = self._n_checkpoints = self._n_changes = 0
