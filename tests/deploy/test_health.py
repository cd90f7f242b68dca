"""What a container says of its own health, asked of real pages."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from deploy.health import faults

UNHEARD = "http://127.0.0.1:1/livez"
"""No server of ours listens below port 1024."""


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/good" else 503)
        self.end_headers()
        self.wfile.write(b'{"reasons": ["it starts"]}\n')

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a server with a page that is well, and others."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_what_does_not_listen_is_passed_over(address: str) -> None:
    """One image has several commands, each with pages of its own."""
    assert faults([UNHEARD, f"{address}/good"]) == []


def test_each_must_listen_where_that_is_asked(address: str) -> None:
    """As of a worker whose roles are known."""
    said = f"{UNHEARD} does not listen"
    assert faults([UNHEARD, f"{address}/good"], needs_all=True) == [said]


def test_a_page_that_is_not_well_is_told_with_its_reason(address: str) -> None:
    """Beside one that is."""
    (said,) = faults([f"{address}/good", f"{address}/bad"])
    assert said == f'{address}/bad says 503: {{"reasons": ["it starts"]}}'


def test_something_must_listen() -> None:
    """A container in which nothing does is not well."""
    assert faults([UNHEARD]) == ["a page must listen; none does"]


@pytest.mark.parametrize(("page", "status"), [("good", 0), ("bad", 1)])
def test_the_command_ends_with_a_status(address: str, page: str, status: int) -> None:
    """Which is all that an engine looks at; what it says can be read afterwards."""
    done = subprocess.run(
        [sys.executable, "-m", "deploy.health", "--all", f"{address}/{page}"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == status
    assert (f"{address}/bad says 503" in done.stderr) is bool(status)
