"""`POST /v1/events`: documents in, all of them to Kafka or none.

What ingestion would refuse is refused here, with the same code and words, so that the
sender learns of it. The time of the server stands for the broker's.
"""

import contextlib
import time
from collections import ChainMap, OrderedDict
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qsl

import msgspec

from rankstream.adapters.adapter import AdapterOptions, NotAdapted
from rankstream.adapters.adapter import Headers as Carried
from rankstream.adapters.fields import marks_of, may_tell_of_list
from rankstream.adapters.impressions import Making, Seen, SeenItems
from rankstream.adapters.registry import ADAPTERS, options_of
from rankstream.operations.serving.calls import Answer, Call
from rankstream.operations.serving.deliveries import Delivery
from rankstream.operations.serving.document_checks import (
    PlainClicks,
    letter_of,
    plain_clicks,
    refusal_of,
    rejected_of,
)
from rankstream.operations.serving.http.bodies import (
    CLOUD_EVENT,
    CLOUD_EVENTS,
    JSON_KINDS,
    LINE_KINDS,
    documents_of,
)
from rankstream.operations.serving.http.elements import Elements, Values
from rankstream.operations.serving.http.limits import SLICE_BYTES, Turn
from rankstream.operations.serving.problems import Problem, malformed
from rankstream.operations.serving.requests import EventsAnswer, Rejected
from rankstream.operations.serving.sender import Outgoing, Sender
from rankstream.settings import Settings
from rankstream.wire.bounds import LETTER_BYTES, WIRE_BYTES
from rankstream.wire.refusal_codes import Code
from rankstream.wire.topics import CLICKS, MAX_EVENT_BYTES, QUERIES
from streams.dead_letter import Origin
from streams.ingest.refusal import Refused, refuse
from streams.ingest.validation import EventValidator

MOST_QUERIES = 10_000
"""Lists whose query is remembered for clicks that do not name it."""

MOST_CHARACTERS = 512
"""Of an id and a query that are remembered."""

MOST_BYTES = MAX_EVENT_BYTES - WIRE_BYTES - LETTER_BYTES
"""Of an event, or of a document with the reason why it is none: Kafka takes no more."""

DOCUMENT_BYTES = 1_536
"""What it takes to check a document, beside its bytes, as bytes that are checked."""

MOST_OPTIONS = 30

CLOUD = "cloudevents"

LISTS = {"hit_fields", "impression_actions", "actions"}
"""Options that are several words, with commas between them."""

NUMBERS, SWITCHED = {"ordinal_base", "impression_ms"}, {"ordinals"}
SWITCHES = {"true": True, "false": False}

CLOUD_HEADERS = (b"ce-specversion", b"ce-id", b"ce-source", b"ce-type")
"""Those that a CloudEvent of the binary mode must have."""

_to_json = msgspec.json.Encoder().encode


class Queries(OrderedDict[str, str]):
    """Queries by list, of the newest lists only, unless they are long."""

    def __setitem__(self, impression: str, query: str) -> None:
        if len(impression) + len(query) > MOST_CHARACTERS:
            return
        super().__setitem__(impression, query)
        if len(self) > MOST_QUERIES:
            self.popitem(last=False)


class _Asked(NamedTuple):
    """What the query string says: the format, its options, what to do with refusals."""

    name: str
    options: AdapterOptions
    makes_letters: bool


class _Found(NamedTuple):
    """What documents came to: events, refusals, dead letters, and none of these."""

    events: list[Outgoing]
    rejected: list[Rejected]
    letters: list[Outgoing]
    n_ignored: int


class Documents:
    """Takes documents of every format; knows nothing but the newest lists' queries."""

    def __init__(self, settings: Settings, sender: Sender) -> None:
        self._most = settings.serve.events
        self._bounds = Values(settings.serve.values)
        # So many bytes cannot hold too many documents, nor too many values.
        self._few_bytes = min(2 * self._most, self._bounds.most)
        self._max_documents = settings.limits.documents
        # Clicks of a clock that is ahead are sent apart: in one record they would agree
        # with each other, and be believed, in the partition that has them all.
        self._together_ms = min(settings.time.ahead_ms, settings.time.disorder_ms)
        self._sender = sender
        self._validator = EventValidator(
            max_documents=settings.limits.documents,
            ahead_ms=settings.time.ahead_ms,
            segment=settings.ingestion.segment,
        )
        self._adapters = {each.name: each for each in ADAPTERS}
        self._queries = Queries()

    async def take(self, call: Call) -> Answer:
        """Answer once Kafka has every event of the request.

        Raises
        ------
        Problem
        """
        asked = self._asked(call)
        body = await call.body(self._elements(call, asked))
        seen = SeenItems()
        try:
            sending, answer = await self._begun(call, asked, body, seen)
            # What was read is not held while others wait for Kafka too.
            call.close()
            if sending is not None:
                await self._sender.wait(sending)
        except BaseException:
            # A list that may not be in Kafka is made again of the next request.
            for list_id in seen.made:
                self._queries.pop(list_id, None)
            raise
        return _accepted(answer)

    def begin(self, call: Call) -> tuple[Delivery, Answer] | None:
        """Plain clicks that are all here, on their way, and the answer once they came.

        None of anything else, which `take` looks at as long as it needs.

        Raises
        ------
        Problem
        """
        if b"content-encoding" in call.headers or self._asked(call) is not PLAIN:
            return None
        body = call.whole()
        if body is None or len(body) > SLICE_BYTES:
            return None
        if len(body) > self._few_bytes:
            self._elements(call, PLAIN).take(body)
        plain = self._plain(body)
        if plain is None:
            return None
        sending = self._sender.begin_records(CLICKS, plain.records, plain.n)
        return sending, _accepted(EventsAnswer(queries=0, clicks=plain.n))

    def _elements(self, call: Call, asked: _Asked) -> Elements:
        """What counts in a body: its documents, or the values of the only one."""
        is_one = asked.name == CLOUD and _is_binary(call)
        return Elements(
            self._bounds.most_loose if is_one else self._most,
            self._bounds.too_many_values if is_one else self._too_many,
            self._bounds.most,
            self._bounds.too_many_values,
            are_lines=call.kind in LINE_KINDS and not is_one,
        )

    def _too_many(self) -> Problem:
        return Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "too-many",
            f"a request must hold at most {self._most:,} documents (serve.events); "
            "this one holds more: send several",
            is_last=True,
        )

    async def _begun(
        self, call: Call, asked: _Asked, body: bytes, seen: SeenItems
    ) -> tuple[Delivery | None, EventsAnswer]:
        """Events on their way, if there are any, and what to answer then."""
        if len(body) > SLICE_BYTES:
            await call.turn.begin()
        # A line that is an array is one document, and no way around `serve.events`.
        is_array_line = call.kind in LINE_KINDS and body.startswith(b"[")
        if asked == PLAIN and not is_array_line and (plain := self._plain(body)):
            sending = self._sender.begin_records(CLICKS, plain.records, plain.n)
            return sending, EventsAnswer(queries=0, clicks=plain.n)
        carried = _carried(call) if asked.name == CLOUD else ()
        # Headers name one event, so the body is one.
        documents = [body] if carried else documents_of(body, call.kind)
        found = await self._found(call.turn, documents, asked, carried, seen)
        if found.rejected:
            raise refusal_of(found.rejected, len(documents))
        n_queries = sum(each.kind == QUERIES for each in found.events)
        answer = EventsAnswer(
            queries=n_queries,
            clicks=len(found.events) - n_queries,
            ignored=found.n_ignored,
            dead_letters=len(found.letters),
        )
        outgoing = found.events + found.letters
        return self._sender.begin(outgoing) if outgoing else None, answer

    def check(self, kind: str, value: bytes) -> None:
        """Refuse what ingestion would refuse.

        Raises
        ------
        Refused
        """
        if len(value) > MOST_BYTES:
            refuse(
                Code.TOO_LARGE,
                f"an event must take at most {MOST_BYTES:,} bytes; got {len(value):,}",
            )
        now_ms = time.time_ns() // 1_000_000
        if kind == QUERIES:
            self._validator.query(value, now_ms)
        else:
            self._validator.click(value, now_ms, NOWHERE)

    def _plain(self, body: bytes) -> PlainClicks | None:
        """The clicks of a body that is nothing else."""
        return plain_clicks(
            body,
            latest_ms=time.time_ns() // 1_000_000 + self._together_ms,
            most=self._max_documents,
        )

    def _asked(self, call: Call) -> _Asked:
        text = call.scope["query_string"].decode("latin-1")
        if not text and not _is_binary(call) and call.kind in JSON_KINDS:
            return PLAIN
        try:
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_OPTIONS)
        except ValueError as error:
            raise malformed(
                f"the query string must hold options of the format; {error}", "format"
            ) from error
        given = dict(pairs)
        name = given.pop("format", _name_of_kind(call))
        if name not in self._adapters:
            raise malformed(
                f"format must be one of {sorted(self._adapters)}; got {name[:100]!r}",
                "format",
            )
        refused = given.pop("refused", "request")
        if refused not in ("request", "dead-letter"):
            raise malformed(
                f"refused must be request or dead-letter; got {refused[:100]!r}",
                "format",
            )
        try:
            read = options_of({key: _option(key, each) for key, each in given.items()})
        except ValueError as error:
            raise malformed(str(error), "format") from error
        return _Asked(name, read, refused == "dead-letter")

    async def _found(
        self,
        turn: Turn,
        documents: list[bytes],
        asked: _Asked,
        carried: Carried,
        seen: SeenItems,
    ) -> _Found:
        adapter = self._adapters[asked.name]
        # An impression that comes alone is no list: its others are not known.
        making = Making(seen) if len(documents) > 1 else None
        if making is not None and asked.name != PLAIN.name:
            await self._read_ahead(turn, documents, asked, carried, Seen(seen))
        events: list[Outgoing] = []
        rejected: list[Rejected] = []
        letters: list[Outgoing] = []
        n_ignored = 0
        for index, document in enumerate(documents):
            await turn.spend(len(document) + DOCUMENT_BYTES)
            self._bounds.check(document, is_own=asked.name == PLAIN.name)
            try:
                adapted = adapter.adapt(
                    document, asked.options, carried, self._queries, making
                )
                for event in adapted:
                    self.check(event.kind, event.value)
            except (NotAdapted, Refused) as error:
                if asked.makes_letters and len(document) <= MOST_BYTES:
                    letters.append(letter_of(document, error))
                else:
                    rejected.append(rejected_of(index, document, error, asked.name))
                continue
            n_ignored += not adapted
            events += [Outgoing(event.kind, event.value) for event in adapted]
        return _Found(events, rejected, letters, n_ignored)

    async def _read_ahead(
        self,
        turn: Turn,
        documents: list[bytes],
        asked: _Asked,
        carried: Carried,
        noting: Seen,
    ) -> None:
        """Note what impressions say of lists; lists of their own count before them."""
        adapter, marks = self._adapters[asked.name], marks_of(asked.options)
        found: dict[str, str] = {}
        known = ChainMap(found, self._queries)
        for document in documents:
            await turn.spend(len(document) + DOCUMENT_BYTES)
            if may_tell_of_list(document, marks):
                self._bounds.check(document, is_own=False)
                with contextlib.suppress(NotAdapted):
                    adapter.adapt(document, asked.options, carried, known, noting)
        for list_id, query in found.items():
            self._queries.setdefault(list_id, query)


PLAIN = _Asked("rankstream", AdapterOptions(), makes_letters=False)
"""Our own events, as a request that says nothing has them."""

NOWHERE = Origin(CLICKS, 0, 0, 0)
"""Stands for the record of a click that is not sent yet."""


def _accepted(answer: EventsAnswer) -> Answer:
    return Answer(_to_json(answer), HTTPStatus.ACCEPTED)


def _name_of_kind(call: Call) -> str:
    if _is_binary(call) or call.kind in (CLOUD_EVENT, CLOUD_EVENTS):
        return CLOUD
    return "rankstream"


def _is_binary(call: Call) -> bool:
    """Whether headers are of a CloudEvent, which the adapter then wants all of."""
    return any(map(call.headers.get, CLOUD_HEADERS))


def _carried(call: Call) -> Carried:
    """What headers say of a CloudEvent of the binary mode; nothing of others."""
    if not _is_binary(call):
        return ()
    return tuple(
        (name.decode("latin-1"), bytes(value))
        for name, value in call.scope["headers"]
        if name.startswith(b"ce-")
    )


def _option(name: str, text: str) -> str | int | bool | list[str]:
    """An option of the query string, as settings would have it."""
    if name in LISTS:
        return text.split(",") if text else []
    if name in NUMBERS and text.isdecimal():
        return int(text[:9])
    return SWITCHES.get(text, text) if name in SWITCHED else text
