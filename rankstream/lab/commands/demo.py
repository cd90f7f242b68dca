"""`rankstream demo`: the whole pipeline in one process, live, with nothing but Python.

Simulated users click on the lists of a ranker that learns from their clicks; events
pass the same folds as on Kafka. Relevance and position bias are planted, so that
what is learned can be compared with the truth.
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console
from rich.live import Live

from rankstream.lab.demonstration.demonstration import Demonstration
from rankstream.lab.demonstration.view import DemoState, end_of, result_of, view_of

WARM_UP = 100
"""Lists that are shown before the view, so that everything is compiled."""

COMPILING = "compiling, a minute or two the first time"

LINE_EVERY_S = 3.0
"""Between two lines of progress where there is no live view."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  rankstream demo\n"
        "  rankstream demo --data Fold1/train.txt --impressions 10000\n"
    )
    parser.add_argument(
        "--data", type=Path, help="a LETOR file, instead of generated data"
    )
    parser.add_argument("--impressions", type=int, default=12_000, help="lists to show")
    parser.add_argument("--seed", type=int, default=7, help="seed of all random draws")
    parser.add_argument(
        "--plain", action="store_true", help="print the last tables only, no live view"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the demonstration; ends with what was learned against the truth."""
    if arguments.impressions < 1:
        raise ValueError(
            f"--impressions must be at least 1; got {arguments.impressions}"
        )
    # Objects of the folds hold no cycles; a collector that walks them only costs.
    gc.set_threshold(100_000, 50, 1_000)
    console = Console()
    is_plain = arguments.plain or not console.is_terminal
    with nullcontext() if is_plain else console.status(COMPILING):
        if is_plain:
            sys.stderr.write(f"{COMPILING}\n")
        few = Demonstration(arguments.data, n_impressions=WARM_UP, seed=arguments.seed)
        few.run(lambda: None)
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

    def tell() -> None:
        nonlocal said_s
        if time.monotonic() - said_s >= LINE_EVERY_S:
            said_s = time.monotonic()
            sys.stderr.write(f"{state.shown:,} of {state.n_impressions:,} lists\n")

    return tell
