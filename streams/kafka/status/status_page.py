"""What a role's process says of itself, and the page that offers it.

`/livez` says whether the process turns, whatever becomes of Kafka and Redis: starting
it again would bring neither back. `/readyz` says whether it does its work, with reasons
where it does not. `/metrics` has its counts for Prometheus.

The page is there before Kafka is. Another thread serves it, so the process's event loop
leaves word once a second, and nothing that it works with is touched from outside.
"""

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import make_wsgi_app
from prometheus_client.core import Metric
from prometheus_client.exposition import ThreadingWSGIServer

from rankstream.listening import openness
from rankstream.settings import MetricsSettings
from streams.kafka.status.exposition import accepted, process_registry
from streams.kafka.status.metrics import families_of
from streams.kafka.status.start_phases import StartPhases, began_s
from streams.series import Series

BEAT_S = 1.0

SILENT_S = 5.0
"""An event loop that left no word for so long does not turn."""

REQUEST_S = 5.0
"""How long a client may take to send its request."""

log = logging.getLogger("rankstream.metrics")

Answer = Callable[..., Any]


class Status:
    """What the process is doing; written by the process, read by its page.

    Parameters
    ----------
    role
        Its name.
    worker
        Names the worker that the process is of, among all there ever were.

    Attributes
    ----------
    registry
        Of what `/metrics` shows.
    phases
        Of its start.
    """

    def __init__(self, role: str, worker: str = "") -> None:
        self.role = role
        self.worker = worker
        self.registry = process_registry()
        self.registry.register(self)
        self.phases = StartPhases(began_s())
        self._troubles: tuple[str, ...] = ("it starts",)
        self._beat_s: float | None = None

    def wait_for(self, what: str) -> None:
        """Say what the start waits for, before there is an event loop."""
        self._troubles = (what,)

    async def beat(self, troubles: Callable[[], Iterable[str]]) -> None:
        """Leave word of the event loop for ever, and of what keeps it from its work."""
        while True:
            self._troubles = tuple(troubles())
            self._beat_s = time.monotonic()
            await asyncio.sleep(BEAT_S)

    def collect(self) -> Iterator[Metric]:
        """Whether it does its work, for Prometheus."""
        yield from families_of([Series("ready", {}, not self.troubles())], self.role)

    def faults(self) -> list[str]:
        """Why the process does not live, though it answers; none if it does."""
        beat_s = self._beat_s  # None before there is a loop: the start may take long
        silent_s = 0.0 if beat_s is None else time.monotonic() - beat_s
        if silent_s <= SILENT_S:
            return []
        return [f"its event loop has not turned for {silent_s:.0f} s"]

    def troubles(self) -> list[str]:
        """Why the process does not do its work; none if it does."""
        return self.faults() + list(self._troubles)


class _Handler(WSGIRequestHandler):
    timeout = REQUEST_S

    def log_message(self, *_: Any) -> None:
        """Log no requests."""


class _Server(ThreadingWSGIServer):
    def handle_error(self, *_: Any) -> None:
        """Nothing: a client that went away is no concern of the log."""


def offer_page(status: Status, settings: MetricsSettings) -> _Server | None:
    """Serve the page where a port is set; go on without it if the port is taken."""
    if not settings.port:
        return None
    try:
        server = make_server(
            settings.host, settings.port, _application(status), _Server, _Handler
        )
    except OSError as error:
        log.warning(
            "event=no-metrics at=%s:%d reason=%s",
            settings.host, settings.port, error.strerror,
        )  # fmt: skip
        return None
    host, port = server.server_address[:2]
    warning = openness(str(host), port)
    if warning:
        log.warning("event=page-is-open reason=%s", warning)
    threading.Thread(target=server.serve_forever, name="page", daemon=True).start()
    return server


def _application(status: Status) -> Answer:
    metrics: Any = make_wsgi_app(status.registry)
    answers: dict[str, tuple[str, Callable[[], Sequence[str]]]] = {
        "/livez": ("live", status.faults),
        "/readyz": ("ready", status.troubles),
    }

    def answer(environ: dict[str, Any], start: Any) -> Any:
        path, method = environ.get("PATH_INFO", ""), environ["REQUEST_METHOD"]
        if path == "/metrics":
            environ["HTTP_ACCEPT"] = accepted(environ.get("HTTP_ACCEPT", ""))
            return metrics(environ, start)
        if path not in answers:
            return _json(start, "404 Not Found", {"paths": ["/metrics", *answers]})
        if method not in ("GET", "HEAD"):
            return _json(start, "405 Method Not Allowed", {"methods": ["GET", "HEAD"]})
        name, ask = answers[path]
        reasons = list(ask())
        code = "503 Service Unavailable" if reasons else "200 OK"
        said = {"role": status.role, name: not reasons, "reasons": reasons}
        return _json(start, code, said)

    return answer


def _json(start: Any, code: str, said: dict[str, Any]) -> list[bytes]:
    start(
        code,
        [
            ("Content-Type", "application/json"),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ],
    )
    return [json.dumps(said).encode() + b"\n"]
