"""The monitor's page: static files, and JSON that it asks for again and again.

Loopback only unless told otherwise. Nothing is taken from a request but the name of
an experiment and the number of a pair. A page elsewhere cannot read ours: the host
must be one that was bound, and everything is said to be for this origin only.
"""

import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from rankstream.listening import openness
from rankstream.operations.monitoring.overview import Gathered

STATIC = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_to_json = msgspec.json.Encoder().encode


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: "Server"
    protocol_version = "HTTP/1.1"
    timeout = 30.0

    def do_GET(self) -> None:
        """Answer."""
        try:
            place = urlsplit(self.path)
        except ValueError:  # as of a host that is half an address
            self._send(HTTPStatus.BAD_REQUEST, "text/plain", b"no such address\n")
            return
        if self.headers.get("Host", "") not in self.server.hosts:
            self._send(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", b"wrong host\n")
        elif place.path in STATIC:
            name, kind = STATIC[place.path]
            self._send(HTTPStatus.OK, kind, _static(name))
        elif place.path == "/overview":
            self._json(self.server.gathered.overview())
        elif place.path == "/experiment":
            asked = parse_qs(place.query)
            name, pair = asked.get("name", [""])[0], asked.get("pair", ["0"])[0]
            number = int(pair) if pair.isdecimal() and len(pair) < 9 else 0
            self._json(self.server.gathered.experiment(name, number))
        elif place.path == "/favicon.ico":
            self._send(HTTPStatus.NO_CONTENT, "image/x-icon", b"")
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"not here\n")

    do_HEAD = do_GET  # noqa: N815  what is named so is called

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log no requests."""

    def _json(self, value: object) -> None:
        status = HTTPStatus.NOT_FOUND if value is None else HTTPStatus.OK
        self._send(status, "application/json", _to_json(value))

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """The page of one monitor."""

    daemon_threads = True

    def __init__(self, host: str, port: int, gathered: Gathered) -> None:
        super().__init__((host, port), Handler)
        self.gathered = gathered
        bound = self.server_address[1]
        names = {host, "localhost", "127.0.0.1", "[::1]"}
        self.hosts = {f"{name}:{bound}" for name in names}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing about clients that hang up before the answer."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """Where it is."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/"

    @property
    def warning(self) -> str:
        """About who can reach it; empty where only this machine can."""
        host, port = self.server_address[:2]
        return openness(str(host), port)

    def close(self) -> None:
        """Answer nobody any more."""
        self.shutdown()
        self.server_close()


def _static(name: str) -> bytes:
    return files("rankstream.operations.monitoring").joinpath(name).read_bytes()
