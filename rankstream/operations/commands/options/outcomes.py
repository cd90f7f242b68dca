"""How `feed` and `replay` end: what became of what they sent, and the exit status."""

import shlex
from collections import Counter

from producers.event_sink import SentRecords
from producers.outcomes import Outcomes, OutcomeWatch
from producers.patience import check_patience
from producers.stop_signal import Stop
from producers.topic_reader import TopicUnreadable
from rankstream.operations.answers.sent import BecameOf
from rankstream.operations.commands import tell
from rankstream.operations.terminal.words import counted
from rankstream.settings import Settings


class OutcomeReport:
    """Says what became of records; looks where dead letters end before they are sent.

    Parameters
    ----------
    is_strict
        Whether losses, and what is not known, make a bad exit status.

    Attributes
    ----------
    became_of
        What was told at the end; None before, and where it cannot be told.
    """

    def __init__(self, settings: Settings, stop: Stop, *, is_strict: bool) -> None:
        self._settings = settings
        self._stop = stop
        self._is_strict = is_strict
        self._unreadable = ""
        self._watch: OutcomeWatch | None = None
        self.became_of: BecameOf | None = None
        try:
            self._watch = OutcomeWatch(settings, is_stopped=lambda: stop.asked)
        except TopicUnreadable as error:
            # Who may only write may not see what became of it.
            self._unreadable = str(error)

    def await_begun(self, sent: SentRecords) -> None:
        """Wait, before a sender says that it ends, until workers have begun with it."""
        if self._watch is None:
            return
        try:
            self._watch.await_begun(sent, is_thorough=self._is_strict)
        except TopicUnreadable as error:
            self._unreadable = str(error)

    def conclude(self, sent: SentRecords, newest_click_ms: int | None) -> int:
        """Tell, on standard error; the exit status, 0 or 1.

        Parameters
        ----------
        newest_click_ms
            The latest time of a click among them; None where there is none.

        Raises
        ------
        TimedOut
            Where it is not known, and the time is up that one may wait.
        """
        outcomes = None
        if self._watch is not None:
            try:
                outcomes = self._watch.outcomes(
                    sent, is_thorough=self._is_strict, newest_click_ms=newest_click_ms
                )
            except TopicUnreadable as error:
                self._unreadable = str(error)
        if outcomes is None:
            tell(f"what became of them cannot be told: {self._unreadable}")
            return int(self._is_strict)
        self.became_of = BecameOf(
            outcomes.letters, outcomes.set_aside, outcomes.n_unread,
            outcomes.n_unjoined, outcomes.may_wait,
        )  # fmt: skip
        for line in lines_of(outcomes, self._settings):
            tell(line)
        if not outcomes.is_known:
            check_patience("workers to judge all that was sent", goes_on="they go on")
        return int(self._is_strict and not outcomes.is_clean)


def lines_of(found: Outcomes, settings: Settings) -> list[str]:
    """What a person is told; nothing where nothing was lost."""
    lines = []
    if found.n_letters:
        lines.append(
            f"{counted(found.n_letters, 'dead letter')}: {_each(found.letters)}; see "
            f"`{_command(settings, 'dlq', 'list')}`"
        )
    if found.set_aside:
        n_events = found.set_aside.total()
        lines.append(
            f"late or without a list, of all senders: {counted(n_events, 'event')} "
            f"({_each(found.set_aside)})"
        )
    later = f"`{_command(settings, 'dlq', 'count')}` will tell of them"
    if found.n_unread:
        lines.append(
            f"not read by ingestion yet: {counted(found.n_unread, 'record')}; {later}"
        )
    elif found.n_unjoined:
        lines.append(
            "not joined yet, of all senders: "
            f"{counted(found.n_unjoined, 'record')} of the log; {later}"
        )
    elif found.may_wait:
        lines.append(
            "cannot be told yet: the last clicks may wait for their lists until "
            f"time.disorder_ms has passed; {later}"
        )
    return lines


def _each(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.most_common())


def _command(settings: Settings, *words: str) -> str:
    said = ["rankstream", *words]
    if settings.file:
        said += ["--config", settings.file]
    if settings.namespace:
        said += ["--namespace", settings.namespace]
    return shlex.join(said)
