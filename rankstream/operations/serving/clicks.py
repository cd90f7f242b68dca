"""`POST /v1/click`: clicks from browsers, and the script that sends them."""

import time
from http import HTTPStatus
from importlib.resources import files
from typing import Any

import msgspec

from rankstream.operations.serving.calls import Answer, Call
from rankstream.operations.serving.documents import Documents
from rankstream.operations.serving.http.bodies import JSON_KINDS
from rankstream.operations.serving.http.elements import Elements
from rankstream.operations.serving.problems import Problem, malformed
from rankstream.operations.serving.requests import ClickRequest, EventsAnswer
from rankstream.operations.serving.sender import Outgoing, Sender
from rankstream.wire.schemas import decoded
from rankstream.wire.topics import CLICKS
from streams.ingest.refusal import Refused

MOST_CLICKS = 100
"""Of one request: a page has no more to tell at once."""

MOST_VALUES = 1_000
"""Of a click, which has seven."""

_decode = msgspec.json.Decoder(ClickRequest | list[ClickRequest]).decode
_to_json = msgspec.json.Encoder().encode


class Clicks:
    """Takes clicks, of which those without a time happened now."""

    def __init__(self, sender: Sender, documents: Documents) -> None:
        self._sender = sender
        self._documents = documents
        room = files("rankstream.operations.serving")
        self._script = room.joinpath("beacon.js").read_bytes()

    async def take(self, call: Call) -> Answer:
        """Answer once Kafka has every click of the request.

        Raises
        ------
        Problem
        """
        if call.kind not in JSON_KINDS:
            raise Problem(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                "type",
                "content-type must be application/json or text/plain; got "
                f"{call.kind[:100]!r}",
            )
        body = await call.body(
            Elements(MOST_CLICKS, _wrong_number, MOST_VALUES, _wrong_number)
        )
        try:
            found = decoded(_decode, body)
        except msgspec.ValidationError as error:
            raise malformed(f"a body must be a click; {error}") from error
        except msgspec.DecodeError as error:
            raise malformed(f"a body must be JSON; {error}", "not-json") from error
        clicks = found if isinstance(found, list) else [found]
        if not 1 <= len(clicks) <= MOST_CLICKS:
            raise _wrong_number(f"{len(clicks)}")
        events = [self._event_of(click) for click in clicks]
        call.close()
        await self._sender.send(events)
        answer = EventsAnswer(queries=0, clicks=len(clicks))
        return Answer(_to_json(answer), HTTPStatus.ACCEPTED)

    async def script(self, call: Call) -> Answer:
        """The script for pages."""
        del call
        return Answer(
            self._script,
            kind=b"text/javascript; charset=utf-8",
            headers=(
                (b"cache-control", b"public, max-age=3600"),
                (b"cross-origin-resource-policy", b"cross-origin"),
            ),
        )

    def _event_of(self, click: ClickRequest) -> Outgoing:
        fields: dict[str, Any] = {
            name: value
            for name, value in msgspec.structs.asdict(click).items()
            if value is not None
        }
        fields.setdefault("at_ms", time.time_ns() // 1_000_000)
        event = _to_json(fields)
        try:
            self._documents.check(CLICKS, event)
        except Refused as error:
            raise Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY, str(error.code), str(error)
            ) from error
        return Outgoing(CLICKS, event)


def _wrong_number(got: str = "more") -> Problem:
    return malformed(f"a request must hold 1 to {MOST_CLICKS} clicks; got {got}")
