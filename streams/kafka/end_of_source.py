"""When a source is at its end: what the broker has said of a partition, and when.

Only answers count. While the broker is silent nothing is known of a partition, so that
time neither makes a source idle nor lets event time pass.
"""

from streams.event_time import OUTAGE_MS


class EndOfSource:
    """What the broker's answers say of one partition.

    Attributes
    ----------
    told_ms
        By the wall clock, when the last answer came, if it said that there is nothing
        more; else None. What is read next was appended after it.
    """

    def __init__(self) -> None:
        self.told_ms: int | None = None
        self._answer_ms: int | None = None
        self._answered_s = 0.0
        self._position = -1
        self._since_s: float | None = None

    def hear(
        self,
        answer_ms: int | None,
        position: int,
        highwater: int | None,
        *,
        now_s: float,
    ) -> None:
        """Take how far a partition was read.

        Parameters
        ----------
        answer_ms
            When the broker's last answer came, by the wall clock. It only tells one
            answer from the next.
        position
            Offset of what is read next.
        highwater
            The end of the partition, as of that answer.
        now_s
            A monotonic clock, seconds.
        """
        is_new = answer_ms != self._answer_ms
        has_moved = position != self._position
        if answer_ms is None or not (is_new or has_moved):
            return
        was_away = is_new and self._is_away(now_s)
        if is_new:
            self._answer_ms, self._answered_s = answer_ms, now_s
        if highwater is None or position < highwater:
            self._since_s = self.told_ms = None
        else:
            self.told_ms = answer_ms
            if self._since_s is None or has_moved or was_away:
                self._since_s = now_s
        self._position = position

    def at_end_ms(self, now_s: float) -> int:
        """For how long the broker has been saying that there is nothing more.

        As of its last answer, and without a break; 0 where it has more, or has not
        answered lately.
        """
        if self._since_s is None or self._is_away(now_s):
            return 0
        return max(0, int((self._answered_s - self._since_s) * 1_000))

    def _is_away(self, now_s: float) -> bool:
        return (now_s - self._answered_s) * 1_000 > OUTAGE_MS
