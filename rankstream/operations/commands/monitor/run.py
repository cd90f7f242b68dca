"""What `rankstream monitor` does: watch in the terminal, or serve the page."""

import argparse
import contextlib
import sys
import threading
import time

import msgspec
from rich.console import Console
from rich.live import Live

from producers.readiness import SAY_EVERY_S
from producers.stop_signal import Stop
from rankstream.operations.commands import nothing, settings_of, tell
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.poller import Poller
from rankstream.operations.monitoring.terminal import view_of
from rankstream.operations.terminal.words import visible
from rankstream.wire.nearest_name import suggestion

LOOK_S = 0.5


def run(arguments: argparse.Namespace) -> int:
    """Watch until Ctrl-C, or look once; the workers are never touched."""
    settings = settings_of(arguments)
    gathered = Gathered(settings.schedules)
    poller = Poller(settings, gathered)
    poller.start()
    try:
        with Stop() as stop:
            if arguments.once or arguments.json:
                while not poller.has_looked and not stop.wait(0.05):
                    pass
                return look_once(gathered, arguments.experiment, arguments.json)
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
        else:
            tell(f"{visible(trouble)}; Ctrl-C ends the monitor")


def look_once(gathered: Gathered, selected: str | None, is_json: bool) -> int:
    """Print what is known; 1 where something did not answer, or has no verdict."""
    overview = gathered.overview()
    if is_json:
        name = selected or next((x["name"] for x in overview["experiments"]), "")
        found = overview | {"experiment": gathered.experiment(name)}
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    else:
        Console().print(view_of(gathered, selected))
    if overview["away"]:
        return 1
    names = [each["name"] for each in overview["experiments"]]
    if selected is None or selected in names:
        return 0
    return nothing(
        f"experiment {selected!r} must have a verdict; it has none"
        f"{suggestion(selected, names)}"
    )


def watch(gathered: Gathered, selected: str | None, stop: Stop) -> None:
    """Draw in the terminal until asked to stop; a file gets the last state alone."""
    console = Console()
    if not console.is_terminal:
        told = TroubleTold(gathered)
        while not stop.wait(LOOK_S):
            told.look()
        console.print(view_of(gathered, selected))
        return
    with Live(
        view_of(gathered, selected),
        console=console,
        screen=True,
        auto_refresh=False,
    ) as live:
        while not stop.wait(LOOK_S):
            live.update(view_of(gathered, selected), refresh=True)


def serve(gathered: Gathered, host: str, port: int, stop: Stop) -> None:
    """Offer the page until asked to stop."""
    # The extra `serve` is needed for the page alone.
    from rankstream.operations.monitoring.web import Server  # noqa: PLC0415

    server = Server(host, port, gathered)
    thread = threading.Thread(target=server.serve_forever, name="page", daemon=True)
    thread.start()
    Console().print(f"monitor at {server.url}", highlight=False, markup=False)
    if server.warning:
        Console(stderr=True).print(server.warning, highlight=False, markup=False)
    told = TroubleTold(gathered)
    with contextlib.closing(server):
        while not stop.wait(LOOK_S):
            told.look()
