"""The rival of `bench serve`: the same server and library, which only decode a body."""

import sys

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rankstream.serving.requests import RankRequest
from rankstream.wire.events import ClickEvent

_decode_rank = msgspec.json.Decoder(RankRequest).decode
_decode_clicks = msgspec.json.Decoder(ClickEvent | list[ClickEvent]).decode
_to_json = msgspec.json.Encoder().encode


async def rank(request: Request) -> Response:
    """The first ten items, as they came."""
    asked = _decode_rank(await request.body())
    answer = {"ranking": [item.id for item in asked.items[:10]]}
    return Response(_to_json(answer), media_type="application/json")


async def events(request: Request) -> Response:
    """How many there are."""
    found = _decode_clicks(await request.body())
    answer = {"clicks": len(found) if isinstance(found, list) else 1}
    return Response(_to_json(answer), 202, media_type="application/json")


def application() -> Starlette:
    """Both endpoints."""
    return Starlette(
        routes=[
            Route("/v1/rank", rank, methods=["POST"]),
            Route("/v1/events", events, methods=["POST"]),
        ]
    )


def main(port: int) -> None:
    """Serve until killed."""
    config = uvicorn.Config(
        application(),
        port=port,
        http="httptools",
        ws="none",
        log_config=None,
        access_log=False,
    )
    uvicorn.Server(config).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
