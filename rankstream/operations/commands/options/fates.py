"""How `feed` and `replay` end: what became of what they sent, and the exit status."""

import argparse
import shlex
from collections import Counter

from producers.event_sink import SentRecords
from producers.fates import Fates, FateWatch
from producers.formats.adapted import Adapted
from producers.stop_signal import Stop
from producers.topic_reader import TopicUnreadable
from rankstream.operations.commands import tell
from rankstream.operations.terminal.words import counted
from rankstream.settings import Settings


def add_strict(parser: argparse.ArgumentParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--strict",
        action="store_true",
        help="exit status 1 where an event became a dead letter, late or an orphan, or "
        "where that cannot be told yet; waits until workers have judged all, or stand "
        "still",
    )


class FateReport:
    """Says what became of records; looks where dead letters end before they are sent.

    Parameters
    ----------
    is_strict
        Whether losses, and what is not known, make a bad exit status.
    """

    def __init__(self, settings: Settings, stop: Stop, *, is_strict: bool) -> None:
        self._settings = settings
        self._stop = stop
        self._is_strict = is_strict
        self._unreadable = ""
        self._watch: FateWatch | None = None
        try:
            self._watch = FateWatch(settings, is_stopped=lambda: stop.asked)
        except TopicUnreadable as error:
            # Who may only write may not see what became of it.
            self._unreadable = str(error)

    def conclude(self, sent: SentRecords, newest_click_ms: int | None) -> int:
        """Tell, on standard error; the exit status, 0 or 1.

        Parameters
        ----------
        newest_click_ms
            The latest time of a click among them; None where there is none.
        """
        fates = None
        if self._watch is not None:
            try:
                fates = self._watch.fates(
                    sent, is_thorough=self._is_strict, newest_click_ms=newest_click_ms
                )
            except TopicUnreadable as error:
                self._unreadable = str(error)
        if fates is None:
            tell(f"what became of them cannot be told: {self._unreadable}")
            return int(self._is_strict)
        for line in lines_of(fates, self._settings):
            tell(line)
        return int(self._is_strict and not fates.is_clean)


def lines_of(fates: Fates, settings: Settings) -> list[str]:
    """What a person is told; nothing where nothing was lost."""
    lines = []
    if fates.n_letters:
        lines.append(
            f"{counted(fates.n_letters, 'dead letter')}: {_each(fates.letters)}; see "
            f"`{_command(settings, 'dlq', 'list')}`"
        )
    if fates.set_aside:
        n_events = fates.set_aside.total()
        lines.append(
            f"late or without a list, of all senders: {counted(n_events, 'event')} "
            f"({_each(fates.set_aside)})"
        )
    later = f"`{_command(settings, 'dlq', 'count')}` will tell of them"
    if fates.n_unread:
        lines.append(
            f"not read by ingestion yet: {counted(fates.n_unread, 'record')}; {later}"
        )
    elif fates.n_unjoined:
        lines.append(
            "not joined yet, of all senders: "
            f"{counted(fates.n_unjoined, 'record')} of the log; {later}"
        )
    elif fates.may_wait:
        lines.append(
            "cannot be told yet: the last clicks may wait for their lists until "
            f"time.disorder_ms has passed; {later}"
        )
    return lines


def lines_of_adapted(adapted: Adapted, form: str) -> list[str]:
    """What a person is told of documents of another format."""
    if not adapted.documents:
        return [*adapted.notes]
    lines = [
        f"{counted(adapted.documents, 'document')} of {form}, of which "
        f"{adapted.silent:,} say nothing of lists or clicks"
    ]
    if n_made := adapted.seen.n_made:
        lines.append(f"made of impression events: {counted(n_made, 'list')}")
    if n_refused := adapted.refused.total():
        lines.append(
            f"not adapted, and sent to the dead letters: "
            f"{counted(n_refused, 'document')} ({_each(adapted.refused)})"
        )
    return lines + adapted.notes


def _each(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.most_common())


def _command(settings: Settings, *words: str) -> str:
    said = ["rankstream", *words]
    if settings.file:
        said += ["--config", settings.file]
    if settings.namespace:
        said += ["--namespace", settings.namespace]
    return shlex.join(said)
