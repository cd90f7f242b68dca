"""The rival of `bench serve`: the same server, which only decodes a body and answers.

It is what the server's library calls, with nothing between: no router, no middleware,
no object for a request or a response.
"""

import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec
import uvicorn

from rankstream.operations.serving.requests import RankRequest
from rankstream.operations.serving.server import options
from rankstream.settings import ServeSettings
from rankstream.wire.events import ClickEvent

_decode_rank = msgspec.json.Decoder(RankRequest).decode
_decode_clicks = msgspec.json.Decoder(ClickEvent | list[ClickEvent]).decode
_to_json = msgspec.json.Encoder().encode

Message = MutableMapping[str, Any]


def ranked(body: bytes) -> dict[str, Any]:
    """The first ten items, as they came."""
    return {"ranking": [item.id for item in _decode_rank(body).items[:10]]}


def counted(body: bytes) -> dict[str, Any]:
    """How many clicks there are."""
    found = _decode_clicks(body)
    return {"clicks": len(found) if isinstance(found, list) else 1}


ANSWERS = {"/v1/rank": (200, ranked), "/v1/events": (202, counted)}


async def application(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    """Answer a body of either path; to anything else there is no method."""
    status, answer = 405, b""
    if scope["method"] == "POST":
        status, answered = ANSWERS[scope["path"]]
        message = await receive()
        body = message["body"]
        while message["more_body"]:
            message = await receive()
            body += message["body"]
        answer = _to_json(answered(body))
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(answer)),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def configuration(port: int) -> uvicorn.Config:
    """The same server as ours, but for limits of connections."""
    serve = ServeSettings(port=port)
    return uvicorn.Config(
        application, http="httptools", lifespan="off", **options(serve)
    )


def main(port: int) -> None:
    """Serve until killed."""
    uvicorn.Server(configuration(port)).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
