"""`rankstream serve`: events, rankings and combined lists over HTTP."""

import argparse

from rankstream.operations.commands.options.ports import port

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
        "--port", type=port, help="0 takes any free one (default: serve.port)"
    )
