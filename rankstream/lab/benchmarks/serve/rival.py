"""The rivals of `bench serve`: the same server, which only decodes a body and answers.

It is what the server's library calls, with nothing between: no router, no middleware,
no object for a request or a response. One of them only answers. The other one also
gives the body to Kafka, as one record, and answers once all replicas have it: what is
left of ours beyond it is checks, limits and counts.
"""

import sys
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any

import msgspec
import uvicorn
from aiokafka import AIOKafkaProducer

from rankstream.operations.serving.requests import RankRequest
from rankstream.operations.serving.server import options
from rankstream.settings import ServeSettings
from rankstream.wire.events import ClickEvent
from rankstream.wire.topics import BATCH_BYTES

_decode_rank = msgspec.json.Decoder(RankRequest).decode
_decode_clicks = msgspec.json.Decoder(ClickEvent | list[ClickEvent]).decode
_to_json = msgspec.json.Encoder().encode

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Keep = Callable[[bytes], Awaitable[object]]


def ranked(body: bytes) -> dict[str, Any]:
    """The first ten items, as they came."""
    return {"ranking": [item.id for item in _decode_rank(body).items[:10]]}


def counted(body: bytes) -> dict[str, Any]:
    """How many clicks there are."""
    found = _decode_clicks(body)
    return {"clicks": len(found) if isinstance(found, list) else 1}


ANSWERS = {"/v1/rank": (200, ranked), "/v1/events": (202, counted)}


async def application(
    scope: Message, receive: Receive, send: Send, keep: Keep | None = None
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
        if keep is not None:
            await keep(body)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(answer)),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


class Keeping:
    """The same, with a producer whose options are those of ours."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._keep: Keep | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a body once Kafka has it."""
        if scope["type"] == "http":
            await application(scope, receive, send, self._keep)
            return
        await receive()
        producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap,
            acks="all",
            enable_idempotence=True,
            max_batch_size=BATCH_BYTES,
        )
        await producer.start()
        self._keep = partial(producer.send_and_wait, self._topic)
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await producer.stop()
        await send({"type": "lifespan.shutdown.complete"})


def configuration(port: int, kept: Keeping | None = None) -> uvicorn.Config:
    """The same server as ours, but for limits of connections."""
    serve = ServeSettings(port=port)
    return uvicorn.Config(
        kept or application,
        http="httptools",
        lifespan="on" if kept else "off",
        **options(serve),
    )


def main(port: int, *kafka: str) -> None:
    """Serve until killed; with an address of Kafka and a topic, keep what comes."""
    kept = Keeping(*kafka) if kafka else None
    uvicorn.Server(configuration(port, kept)).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
