"""What `rankstream demo` does: live the whole pipeline, and draw it."""

import argparse
import gc
import time
from collections.abc import Callable
from contextlib import nullcontext

from rich.console import Console
from rich.live import Live

from rankstream.lab.demonstration.demonstration import (
    COMPILING,
    Demonstration,
    warm_up,
)
from rankstream.lab.demonstration.view import DemoState, end_of, result_of, view_of
from rankstream.operations.commands import tell

LINE_EVERY_S = 3.0
"""Between two lines of progress where there is no live view."""


def run(arguments: argparse.Namespace) -> int:
    """Run the demonstration; ends with what was learned against the truth."""
    if arguments.impressions < 1:
        raise ValueError(
            f"--impressions must be at least 1; got {arguments.impressions}"
        )
    # Objects of the folds hold no cycles; a collector that walks them only costs.
    gc.set_threshold(100_000, 50, 1_000)
    if arguments.web:
        # The page is of the extra `serve`.
        from rankstream.lab.commands.demo.web import run_on_page  # noqa: PLC0415

        return run_on_page(arguments)
    console = Console()
    is_plain = arguments.plain or not console.is_terminal
    with nullcontext() if is_plain else console.status(COMPILING):
        if is_plain:
            tell(COMPILING)
        warm_up(arguments.data, seed=arguments.seed)
    demonstration = Demonstration(
        arguments.data, n_impressions=arguments.impressions, seed=arguments.seed
    )
    if is_plain:
        demonstration.run(_teller(demonstration.state))
        console.print(end_of(demonstration.state))
    else:
        with Live(
            console=console, auto_refresh=False, transient=False, screen=False
        ) as live:
            demonstration.run(_drawer(live, demonstration.state))
    console.print(result_of(demonstration.results()))
    return 0


def _drawer(live: Live, state: DemoState) -> Callable[[], None]:
    def draw() -> None:
        live.update(view_of(state), refresh=True)

    return draw


def _teller(state: DemoState) -> Callable[[], None]:
    """A line on standard error every few seconds, for whoever waits."""
    said_s = time.monotonic()

    def tell_now() -> None:
        nonlocal said_s
        if time.monotonic() - said_s >= LINE_EVERY_S:
            said_s = time.monotonic()
            tell(f"{state.shown:,} of {state.n_impressions:,} lists")

    return tell_now
