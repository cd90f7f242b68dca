"""What `rankstream serve` does: serve until it is stopped."""

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
from rankstream.tls import in_the_clear

log = logging.getLogger("rankstream.serve")


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
    if warning := in_the_clear(settings.kafka):
        log.warning("event=in-the-clear reason=%s", warning)
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
