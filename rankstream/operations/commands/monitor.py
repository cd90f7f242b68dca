"""`rankstream monitor`: experiments, interventions, health and the log, live."""

import argparse
import contextlib
import threading
import time

from rich.console import Console
from rich.live import Live

from producers.readiness import SAY_EVERY_S, STOPS
from producers.stop_signal import Stop
from rankstream.operations.commands import settings_of, tell
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.poller import Poller
from rankstream.operations.monitoring.terminal import view_of
from rankstream.operations.monitoring.web import Server
from rankstream.operations.terminal.words import visible


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "experiment", nargs="?", help="the one to show in detail (default: the first)"
    )
    parser.add_argument("--web", action="store_true", help="serve a page for browsers")
    parser.add_argument("--host", default="127.0.0.1", help="where the page listens")
    parser.add_argument("--port", type=int, default=8087, help="0 takes any free one")


def run(arguments: argparse.Namespace) -> int:
    """Watch until Ctrl-C; the workers are never touched."""
    settings = settings_of(arguments)
    gathered = Gathered(settings.schedules)
    poller = Poller(settings, gathered)
    poller.start()
    try:
        with Stop() as stop:
            if arguments.web:
                serve(gathered, arguments.host, arguments.port, stop)
            else:
                watch(gathered, arguments.experiment, stop)
    finally:
        poller.close()
    return 0


class TroubleTold:
    """Says on standard error what cannot be reached, where no screen shows it.

    Parameters
    ----------
    gathered
        Knows what it is.
    """

    def __init__(self, gathered: Gathered) -> None:
        self._gathered = gathered
        self._last = ""
        self._said_s = 0.0

    def look(self) -> None:
        """Tell what is new, once a minute what stays so, and once that it is over."""
        trouble, now_s = self._gathered.trouble, time.monotonic()
        is_due = trouble and now_s - self._said_s >= SAY_EVERY_S
        if trouble == self._last and not is_due:
            return
        self._last, self._said_s = trouble, now_s
        if not trouble:
            tell("all that the monitor reads can be reached")
        elif STOPS in trouble:
            tell(visible(trouble))
        else:
            tell(f"{visible(trouble)}; Ctrl-C ends the monitor")


def watch(gathered: Gathered, selected: str | None, stop: Stop) -> None:
    """Draw in the terminal until asked to stop; a file gets the last state alone."""
    console = Console()
    if not console.is_terminal:
        told = TroubleTold(gathered)
        while not stop.wait(0.5):
            told.look()
        console.print(view_of(gathered, selected))
        return
    with Live(
        view_of(gathered, selected),
        console=console,
        screen=True,
        auto_refresh=False,
    ) as live:
        while not stop.wait(0.5):
            live.update(view_of(gathered, selected), refresh=True)


def serve(gathered: Gathered, host: str, port: int, stop: Stop) -> None:
    """Offer the page until asked to stop."""
    server = Server(host, port, gathered)
    thread = threading.Thread(target=server.serve_forever, name="page", daemon=True)
    thread.start()
    Console().print(f"monitor at {server.url}", highlight=False, markup=False)
    if server.warning:
        Console(stderr=True).print(server.warning, highlight=False, markup=False)
    told = TroubleTold(gathered)
    with contextlib.closing(server):
        while not stop.wait(0.5):
            told.look()
