"""The server: uvicorn, with connections that are bounded and a stop that drains."""

import contextlib
import logging
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import uvicorn

from rankstream.operations.serving.application import Parts, application
from rankstream.operations.serving.http.connections import (
    GRACE_S,
    BoundedProtocol,
    BoundedServer,
)
from rankstream.settings import ServeSettings, SettingsError, secret

FILES_BESIDE = 200
"""Descriptors that are needed beside those of connections."""

log = logging.getLogger("rankstream.serve")


class Server(BoundedServer):
    """One server; SIGTERM and Ctrl-C let what was begun be answered.

    Parameters
    ----------
    parts
        Of the application.
    tell
        Hears the address once the server listens.
    """

    def __init__(
        self, parts: Parts, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self._parts = parts
        self._tell = tell
        super().__init__(configuration(parts), parts.counts)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.servers[0].sockets[0].getsockname()[1])

    async def startup(self, sockets: Any = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        serve = self._parts.serve
        scheme = "https" if serve.certificate_file else "http"
        host = f"[{serve.host}]" if ":" in serve.host else serve.host
        self._tell(f"{scheme}://{host}:{self.port}")

    async def shutdown(self, sockets: Any = None) -> None:
        """Answer what was begun, then end."""
        self._parts.pages.is_draining = True
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGTERM and Ctrl-C with status 0; uvicorn would die of them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self._stop)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.handle_exit(number, frame)


def configuration(parts: Parts) -> uvicorn.Config:
    """How uvicorn is to run.

    Raises
    ------
    SettingsError
        Where the certificate cannot be used.
    """
    serve = parts.serve
    allow_connections(serve.connections)
    door = application(parts)
    protocol: Any = partial(
        BoundedProtocol, serve, parts.counts, parts.room, door.begin
    )
    config = uvicorn.Config(door, http=protocol, lifespan="on", **options(serve))
    try:
        config.load()
    except OSError as error:
        raise SettingsError(
            "serve.certificate_file and serve.key_file must be a certificate and its "
            f"key, as PEM; got {serve.certificate_file} and "
            f"{serve.key_file or 'the same file'}: {error.strerror or error}"
        ) from error
    return config


def options(serve: ServeSettings) -> dict[str, Any]:
    """Options of uvicorn, whatever it runs."""
    return {
        "host": serve.host,
        "port": serve.port,
        "ws": "none",
        "log_config": None,
        "access_log": False,
        "proxy_headers": False,
        "server_header": False,
        "timeout_keep_alive": max(1, round(serve.head_s)),
        "timeout_graceful_shutdown": round(serve.answer_s + GRACE_S),
        "ssl_certfile": serve.certificate_file or None,
        "ssl_keyfile": serve.key_file or None,
        "ssl_keyfile_password": secret("SERVE_KEY_PASSWORD", serve.key_password_file)
        or None,
    }


def allow_connections(n_connections: int) -> None:
    """Raise the limit of open files as far as it may be, and say where it is low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = n_connections + FILES_BESIDE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
        if most < wanted:
            log.warning(
                "event=few-files limit=%d wanted=%d: raise it with ulimit -n, or lower "
                "serve.connections",
                most,
                wanted,
            )
