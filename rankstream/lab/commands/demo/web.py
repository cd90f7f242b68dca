"""The demonstration on the monitor's page."""

import argparse
import contextlib
import os
import sys
import threading
import webbrowser
from collections.abc import Iterator

from rich.console import Console

from producers.stop_signal import Stop
from rankstream.lab.demonstration.demonstration import (
    COMPILING,
    Demonstration,
    warm_up,
)
from rankstream.lab.demonstration.view import result_of
from rankstream.lab.demonstration.watched import Watched
from rankstream.operations.commands import STOPPED, tell
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.web import Server

HOST = "127.0.0.1"

PER_S = 60.0
"""Lists a second, so that one sees how verdicts and rankers come about."""


def run_on_page(arguments: argparse.Namespace) -> int:
    """Run the demonstration beside its page, which stays until it is asked to stop."""
    gathered = Gathered()
    with Stop() as stop, _page(gathered, arguments.port) as server:
        Console().print(f"demonstration at {server.url}", highlight=False, markup=False)
        if not arguments.no_browser and _has_display():
            webbrowser.open(server.url)
        tell(f"{COMPILING}; Ctrl-C ends it")
        warm_up(arguments.data, seed=arguments.seed, is_stopped=lambda: stop.asked)
        demonstration = Demonstration(
            arguments.data,
            n_impressions=arguments.impressions,
            seed=arguments.seed,
            is_compared=True,
        )
        watched = Watched(gathered)
        demonstration.run(
            lambda: watched.look(demonstration),
            per_s=PER_S,
            is_stopped=lambda: stop.asked,
        )
        if stop.asked:
            return STOPPED
        watched.look(demonstration, is_last=True)
        Console().print(result_of(demonstration.results()))
        tell("all lists were shown; the page stays until Ctrl-C")
        while not stop.wait(1.0):
            pass
    return 0


@contextlib.contextmanager
def _page(gathered: Gathered, port: int) -> Iterator[Server]:
    """The monitor's page, in a thread of its own."""
    server = Server(HOST, port, gathered)
    thread = threading.Thread(target=server.serve_forever, name="page", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


def _has_display() -> bool:
    """Whether a browser would open a window, and not take the terminal."""
    if sys.platform in {"darwin", "win32"}:
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
