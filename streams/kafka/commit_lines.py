"""Log lines about commits: one a minute, however many commits there were."""

import logging
import time

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

    def take(self, offset: int, *, n_outputs: int, n_changes: int | None) -> None:
        """Count a commit.

        Parameters
        ----------
        offset
            Of the last record that it covers.
        n_outputs
            Records that it wrote for others.
        n_changes
            Records of state, None where it was no checkpoint.
        """
        self._n_commits += 1
        self._n_outputs += n_outputs
        if n_changes is not None:
            self._n_checkpoints += 1
            self._n_changes += n_changes
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
