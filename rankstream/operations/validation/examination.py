"""Ingestion and the join, asked of one event after another what became of it.

It is the code of the workers, so what it says is what they would do. Time moves every
few events, as with their commits.
"""

from collections.abc import Iterable

from rankstream.operations.terminal.words import counted
from rankstream.operations.validation import checks
from rankstream.operations.validation.checks import CHECK_OF_CODE, Found
from rankstream.settings import Settings
from rankstream.wire.events import Click
from rankstream.wire.input_events import Event, recognised
from rankstream.wire.refusal_codes import Code
from rankstream.wire.topics import CLICKS, EVENTS, QUERIES
from rankstream.wire.units_of_time import unit_of
from streams.dead_letter import HEADER_PREFIX
from streams.fold.join import Join
from streams.ingest.ingest import END_HEADER, Ingest
from streams.local import local_settings
from streams.native.elements import FRONTIER, Elements
from streams.stage import Output, SourceRecord

MOVE_EVERY = 64
"""Events after which time moves."""

ZERO_POSITION = "got 0"
"""How the reason ends of a position that counts from 0."""


class Examination:
    """Takes events in the order in which they are to be judged.

    Parameters
    ----------
    settings
        Limits and times hold; there is one partition of everything.
    now_ms
        When ingestion takes the events, all of them.

    Attributes
    ----------
    found
        What broke each rule, by the name of the check.
    n_lists, n_clicks
        Events of each kind that ingestion accepted.
    n_made
        How many of these lists were made of impression events.
    n_past
        How many of these events are so old that no window can be open for them, where
        the log goes on: sent there, each would be late or an orphan.
    """

    def __init__(self, settings: Settings, *, now_ms: int) -> None:
        settings = local_settings(settings)
        self.found = {check.name: Found() for check in checks.CHECKS}
        self.n_lists = self.n_clicks = self.n_refused = self.n_made = self.n_past = 0
        self._made: set[int] = set()
        self._now_ms = now_ms
        self._disorder_ms = settings.time.disorder_ms
        self._past_ms = (
            now_ms - settings.time.click_window_ms - settings.time.disorder_ms
        )
        self._is_past = False
        self._ingests = {kind: Ingest(kind, 0, settings) for kind in (QUERIES, CLICKS)}
        self._join = Join(settings.time, self._closed, settings.limits)
        self._early: set[int] = set()
        self._frontiers: dict[str, Elements] = {}
        self._n_taken = 0
        self._is_partial = False
        self._latest: dict[str, int] = {}

    def order(self, document: int, event: Event) -> None:
        """Compare the time of an event with those before it in the files."""
        latest_ms = self._latest.get(event.kind, event.at_ms)
        behind_ms = latest_ms - event.at_ms
        if behind_ms > self._disorder_ms:
            why = f"{behind_ms / 1_000:,.1f} s behind one of {event.kind} before it"
            self.found[checks.TIME_ORDER].add(document, why)
        self._latest[event.kind] = max(latest_ms, event.at_ms)

    @property
    def is_partial(self) -> bool:
        """Whether a file, or the rest of one, could not be read."""
        return self._is_partial

    @property
    def is_blind(self) -> bool:
        """Whether files could not be read, and nothing else was there to judge."""
        return self._is_partial and not (self.n_of("events") or self.n_refused)

    def note_made(self, document: int) -> None:
        """Know that the list of this number was made of impression events."""
        self._made.add(document)

    def refuse(self, document: int, check: str, why: str, code: str = "") -> None:
        """Count what is no event."""
        self.n_refused += 1
        self.found[check].add(document, why, code)

    def miss(self, document: int, check: str, why: str) -> None:
        """Count a file that is not read to its end: what is in it is not known."""
        self._is_partial = True
        self.found[check].add(document, why)

    def take(self, document: int, event: Event) -> None:
        """Judge one event."""
        # Ingestion refuses seconds and microseconds itself, and what is no event.
        if not unit_of(event.at_ms) and _is_event(event.value):
            why = f"at_ms is {event.at_ms}, which is in no unit"
            self.refuse(document, checks.EPOCH_UNIT, why)
            return
        record = SourceRecord(
            event.kind, 0, document, self._now_ms, None, event.value, ()
        )
        self._is_past = event.at_ms < self._past_ms
        self._fold(record)
        self._n_taken += 1
        if self._n_taken % MOVE_EVERY == 0:
            self._move(document)

    def conclude(self) -> None:
        """Close all windows: what still waits for its list has none."""
        for kind in (QUERIES, CLICKS):
            self._fold(SourceRecord(kind, 0, 0, self._now_ms, None, b"", (END_HEADER,)))
        self._move(0)
        for document in sorted(self._early):
            why = "its list bears a later time"
            self.found[checks.AFTER_LIST].add(document, why)
        found = self.found[checks.BOTH_KINDS]
        lists, clicks = counted(self.n_lists, "list"), counted(self.n_clicks, "click")
        for n, what, others in (
            (self.n_lists, "list", clicks),
            (self.n_clicks, "click", lists),
        ):
            if not n and not self._is_partial:
                found.add(None, f"there is no {what}, and {others}")

    @property
    def outcomes(self) -> dict[str, int]:
        """What became of the events that ingestion accepted, and of the others."""
        counts = dict(self._join.counts)
        counts["dead_letter"] += self.n_refused
        counts["consumed"] += self.n_refused
        return counts

    def n_of(self, what: str) -> int:
        """How many of these there were."""
        by_name = {"clicks": self.n_clicks, "events": self.n_lists + self.n_clicks}
        return by_name.get(what, by_name["events"] + self.n_refused)

    def _fold(self, record: SourceRecord) -> None:
        ingest = self._ingests[record.topic]
        ingest.fold(record)
        for output in ingest.outputs():
            if output.topic != EVENTS:
                self._bury(record.offset, output)
                continue
            elements = Elements(output.value or b"")
            if elements.tags[0] == FRONTIER:
                self._frontiers[record.topic] = elements
            else:
                self._join_in(record, elements)

    def _move(self, document: int) -> None:
        """Let the join know what time it is."""
        for elements in self._frontiers.values():
            self._join.take(elements)
        self._frontiers.clear()
        self._take_aside(document)

    def _join_in(self, record: SourceRecord, elements: Elements) -> None:
        join = self._join
        n_before = join.counts["consumed"]
        n_duplicates, n_waiting = join.counts["duplicate"], join.n_waiting
        join.take(elements)
        n_new = join.counts["consumed"] - n_before
        self.n_past += n_new * self._is_past
        if record.topic == QUERIES:
            self.n_lists += n_new
            if record.offset in self._made:
                self.n_made += n_new
        else:
            self.n_clicks += n_new
        for _ in range(join.counts["duplicate"] - n_duplicates):
            self.found[checks.DUPLICATES].add(record.offset, "it came before")
        if n_new and record.topic == CLICKS and join.n_waiting > n_waiting:
            self._early.add(record.offset)
        self._take_aside(record.offset)

    def _take_aside(self, document: int) -> None:
        join = self._join
        for outcome, event in join.set_aside:
            at = event.origin[2] if isinstance(event, Click) else document
            self._early.discard(at)
            if outcome == "orphan" and isinstance(event, Click):
                why = f"its list did not come in time; item {event.item_id!r:.60}"
                self.found[checks.HAS_LIST].add(at, why)
            else:
                self.found[checks.IN_TIME].add(at, "the window of its list has closed")
        join.set_aside.clear()
        for click in join.not_shown:
            why = f"item {click.item_id!r:.60} at position {click.position or 'none'}"
            self._late_letter(click, Code.NOT_SHOWN, why)
        join.not_shown.clear()
        for click in join.beyond:
            self._late_letter(click, Code.TOO_MANY_CLICKS, "its list has enough")
        join.beyond.clear()

    def _late_letter(self, click: Click, code: Code, why: str) -> None:
        self._early.discard(click.origin[2])
        self.found[CHECK_OF_CODE[code]].add(click.origin[2], why, code)

    def _bury(self, document: int, letter: Output) -> None:
        reasons = _reasons(letter.headers)
        code, why = reasons.get("code", ""), reasons.get("exception.message", "")
        check = CHECK_OF_CODE.get(code, checks.FIELDS)
        if code == Code.POSITION and why.endswith(ZERO_POSITION):
            check = checks.ORDINALS
        self.refuse(document, check, why, code)

    def _closed(self) -> None:
        # Nobody counts them here.
        self._join.closed.clear()


def _is_event(value: bytes) -> bool:
    """Whether it has a time of its own; what has none was given one to sort it."""
    try:
        recognised(value)
    except ValueError:
        return False
    return True


def _reasons(headers: Iterable[tuple[str, bytes]]) -> dict[str, str]:
    return {
        name.removeprefix(HEADER_PREFIX): content.decode("utf-8", "replace")
        for name, content in headers
        if name.startswith(HEADER_PREFIX)
    }
