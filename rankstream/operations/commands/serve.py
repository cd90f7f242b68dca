"""`rankstream serve`: events, rankings and combined lists over HTTP."""

import argparse
import gc
import logging
import sys

import msgspec

from rankstream.configuration.serve import serve_faults
from rankstream.operations.commands import settings_of
from rankstream.operations.serving.application import parts_of
from rankstream.operations.serving.server import Server
from rankstream.settings import (
    Settings,
    SettingsError,
)

EPILOG = """examples:
  rankstream serve --config shop.toml
  rankstream serve --port 8080
  curl -d '{"impression_id": "i1", "query_id": "shoes", "shown": ["a", "b"],
            "at_ms": '$(date +%s)000'}' http://127.0.0.1:8088/v1/events

It listens on loopback unless [serve] says otherwise, and then asks for tokens.
GET /openapi.json describes it; docs/http.md says more.

SIGTERM and Ctrl-C: no new connections; what was begun is answered, and the exit
status is 0.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--host", help="where to listen (default: serve.host)")
    parser.add_argument(
        "--port", type=int, help="0 takes any free one (default: serve.port)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C."""
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s level=%(levelname)s %(message)s",
        stream=sys.stderr,
    )
    # Clients tell of every attempt during an outage; we say once what is waited for.
    for noisy in ("aiokafka", "uvicorn"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    settings = settings_of(arguments)
    server = Server(parts_of(_with_options(settings, arguments)), _tell)
    # Modules stay: to look through all of them, as lists of a body make the collector
    # do, holds up everybody for tens of milliseconds.
    gc.collect()
    gc.freeze()
    try:
        server.run()
    except SystemExit as ended:
        serve = server.config
        raise OSError(
            f"an address must be free to listen at; {serve.host}:{serve.port} is not: "
            "choose another with --port"
        ) from ended
    return 0


def _with_options(settings: Settings, arguments: argparse.Namespace) -> Settings:
    given = {
        name: getattr(arguments, name)
        for name in ("host", "port")
        if getattr(arguments, name) is not None
    }
    serve = msgspec.structs.replace(settings.serve, **given)
    changed: Settings = msgspec.structs.replace(settings, serve=serve)
    found = next(serve_faults(serve), None)
    if found:
        raise SettingsError(f"{found[1]}; in --host")
    return changed


def _tell(url: str) -> None:
    sys.stdout.write(f"serving at {url}\n")
    sys.stdout.flush()
