"""`rankstream monitor`: experiments, interventions, health and the log, live."""

import argparse
import contextlib
import threading

from rich.console import Console
from rich.live import Live

from producers.stop_signal import Stop
from rankstream.operations.commands import settings_of
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.poller import Poller
from rankstream.operations.monitoring.terminal import view_of
from rankstream.operations.monitoring.web import Server


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


def watch(gathered: Gathered, selected: str | None, stop: Stop) -> None:
    """Draw in the terminal until asked to stop."""
    console = Console()
    with Live(
        view_of(gathered, selected),
        console=console,
        screen=console.is_terminal,
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
    with contextlib.closing(server):
        while not stop.wait(0.5):
            pass
