"""`rankstream bench`: speed and memory, each beside a rival in the same run."""

import argparse
import importlib
import importlib.metadata
import json
import multiprocessing
import os
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rankstream.lab.benchmarks.harness import Figure, cpu_line, standing
from rankstream.lab.benchmarks.pipeline import FIGURES, chosen_figures

BENCHMARKS = {
    "placement": "exact placement probabilities, against sampled rankings",
    "memory": "bytes of a pair and of an open impression; growth in a long run",
    "learners": "PDGD, linear and neural, and P-MGD, against numpy; updates",
    "pdgd": "PDGD's closed loop, against the tensor formula in numpy",
    "evaluation": "inference of multileaving, against numpy; its fold",
    "curves": "curves of bias from sums of clicks, against raw sessions",
    "statistics": "statistics into columns, against cell after cell; memory",
    "logging-policy": "a step of LogOpt, against drawn clicks; its lists in services",
    "decisions": "statistics of many queries as evidence, and their decisions",
    "training": "rankers from sums of clicks, against numpy query by query; losses",
    "trees": "scores by trees, and a training of them, against LightGBM's own",
    "serve": "requests over HTTP, against endpoints that only decode the same bodies",
    "ingestion": "JSON events into the canonical log, in process; times decoding alone",
    "interventions": "a ranker that learns from its own lists, against naive clicks",
    "capacity": "what `rankstream plan` multiplies by; three loads beside their plan",
    "pipeline": "events through the pipeline, against Kafka Streams and bare Faust",
}
"""Name and one line of each benchmark; its module has the same name, but for some."""

MEASURES = {
    "logging-policy": ("logging_policy", "measure"),
    "pdgd": ("learners", "measure_pdgd"),
    "training": ("trainings.training", "measure"),
    "trees": ("trainings.trees", "measure"),
    "serve": ("serve.rates", "measure"),
    "pipeline": ("pipeline.measure", "measure"),
    "capacity": ("capacity.measure", "measure"),
}
"""Module and function of those whose module has another name."""

WITH_NAMED_FIGURES = "pipeline"

WITH_CONSTANTS = "capacity"

FILES = {
    "save": "measure constants of this machine first, and write them",
    "constants": "plan by these, not by those that are shipped",
}
"""Options of capacity, which name a file."""

SIZES = {
    "events": (int, None, "of the first log of end-to-end (default: 200,000)"),
    "seconds": (float, None, "so long each run is measured (20; trickle and idle 30)"),
    "repeats": (
        int,
        None,
        "so many runs of either side (end-to-end 2; trickle and idle 1)",
    ),
    "rates": (int, "+", "events a second of trickle (200 and 2,000)"),
    "partitions": (int, "+", "of each topic, in trickle and idle (4 and 16)"),
    "threads": (int, None, "of Kafka Streams (2)"),
}
"""Options of the figures beside Kafka Streams: their type, how many, and what."""

ON_ONE_CORE = {
    "placement",
    "learners",
    "pdgd",
    "evaluation",
    "ingestion",
    "curves",
    "statistics",
    "logging-policy",
    "decisions",
    "training",
    "trees",
}
"""Those where neither side may use a second thread."""

EXAMPLES = """examples:
  rankstream bench pipeline                             the short figures
  rankstream bench pipeline --figures latency restart   the long ones
  rankstream bench pipeline --figures end-to-end trickle idle --markdown
                                        beside Kafka Streams, as rows of the page

A figure of pipeline is the median of its repeats; in brackets are the least
and the largest. Ours and its rival run in turns, and each ratio is that of one
repeat.

Goals and floors of rates are those of the ratio ("0.6 x"). Of what is better the
less it is, they are in its unit ("<= 350").

exit status: 1 where a figure misses its floor or is void, else 0; with --quick
only where one is void, as its figures say nothing else"""

THREAD_COUNTS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

COLOURS = {"goal": "green", "floor": "yellow", "below": "red", "void": "red"}
"""Of a ratio, by what it reaches."""

PACKAGES = ("faust-streaming", "aiokafka", "numpy", "numba", "msgspec", "redis")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "benchmarks:\n" + "\n".join(
        f"  {name:14} {line}" for name, line in BENCHMARKS.items()
    )
    parser.epilog += f"\n\nfigures of pipeline:\n{figure_lines()}\n\n{EXAMPLES}"
    parser.add_argument("name", choices=sorted(BENCHMARKS), help="which benchmark")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--figures",
        nargs="+",
        metavar="FIGURE",
        default=[],
        help="only these figures of pipeline (default: those that are short)",
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="say what the figures of pipeline are, and measure nothing",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a short run that only shows that it works; do not quote its figures",
    )
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="print rows for docs/benchmarks.md",
    )
    constants = parser.add_argument_group("capacity")
    for name, words in FILES.items():
        constants.add_argument(f"--{name}", type=Path, metavar="FILE", help=words)
    streams = parser.add_argument_group("figures beside Kafka Streams")
    for name, (kind, number, words) in SIZES.items():
        streams.add_argument(f"--{name}", type=kind, nargs=number, help=words)


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; 1 if a figure misses its floor, or is void.

    A short run is too small for a floor: its figures must only be there.

    Raises
    ------
    ValueError
        Where figures are named that the benchmark does not have.
    """
    given = {name: getattr(arguments, name) for name in ("figures", *SIZES)}
    given = {name: value for name, value in given.items() if value not in (None, [])}
    if arguments.name != WITH_NAMED_FIGURES and (given or arguments.list):
        options = ", ".join(f"--{name}" for name in ("figures", "list", *SIZES))
        raise ValueError(
            f"{options} go with {WITH_NAMED_FIGURES}; got {arguments.name}"
        )
    files = {name: getattr(arguments, name) for name in FILES}
    files = {name: path for name, path in files.items() if path is not None}
    if files and arguments.name != WITH_CONSTANTS:
        options = ", ".join(f"--{name}" for name in FILES)
        raise ValueError(f"{options} go with {WITH_CONSTANTS}; got {arguments.name}")
    if arguments.list:
        sys.stdout.write(f"{figure_lines()}\n")
        return 0
    chosen_figures(arguments.figures)
    load = os.getloadavg()
    figures = measured(arguments.name, quick=arguments.quick, **given, **files)
    result = {
        "name": arguments.name,
        "command": command_of(arguments),
        "date": time.strftime("%Y-%m-%d"),
        "versions": versions(),
        "cores": os.cpu_count(),
        "load": {"before": load, "after": os.getloadavg()},
        "figures": figures,
    }
    if arguments.json:
        json.dump(result, sys.stdout, indent=2)
        sys.stdout.write("\n")
    elif arguments.markdown:
        sys.stdout.write(markdown_of(result))
    else:
        console = Console()
        console.print(table_of(arguments.name, figures))
        console.print(
            f"{result['date']}, {result['cores']} cores; load average over a minute "
            f"{load[0]:.1f} before, {os.getloadavg()[0]:.1f} after",
            highlight=False,
        )
    failing = {"void"} if arguments.quick else {"void", "below"}
    return 1 if failing & {standing(figure) for figure in figures} else 0


def command_of(arguments: argparse.Namespace) -> str:
    """The command that takes the same figures again."""
    words = ["rankstream bench", arguments.name]
    words += ["--figures", *arguments.figures] if arguments.figures else []
    for name in FILES:
        path = getattr(arguments, name)
        words += [f"--{name}", str(path)] if path is not None else []
    words += ["--quick"] if arguments.quick else []
    for name, (_, number, _) in SIZES.items():
        value = getattr(arguments, name)
        if value is not None:
            words += [
                f"--{name}",
                *(f"{one:g}" for one in (value if number else [value])),
            ]
    return " ".join(words)


def figure_lines() -> str:
    """Name and one line of each figure of `bench pipeline`."""
    return "\n".join(
        f"  {name:19} {row.summary}{' (only when named)' if row.is_long else ''}"
        for name, row in FIGURES.items()
    )


def measured(name: str, *, quick: bool, **options: Any) -> list[Figure]:
    """The figures of a benchmark; those on one core come from their own process."""
    if name not in ON_ONE_CORE:
        return measure(name, quick, **options)
    # Libraries read these when they are loaded, which has already happened here.
    os.environ.update(dict.fromkeys(THREAD_COUNTS, "1"))
    own = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=own) as pool:
        return pool.submit(measure, name, quick).result()


def measure(name: str, quick: bool, **options: Any) -> list[Figure]:
    """The figures of a benchmark, measured in this process."""
    place, function = MEASURES.get(name, (name, "measure"))
    module = importlib.import_module(f"rankstream.lab.benchmarks.{place}")
    figures: list[Figure] = getattr(module, function)(quick=quick, **options)
    return figures


def versions() -> dict[str, str]:
    """Versions of what the figures depend on."""
    found = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), **found}


def table_of(name: str, figures: list[Figure]) -> Table:
    """The figures as people read them."""
    table = Table(title=f"rankstream bench {name}", title_justify="left")
    for heading in ("figure", "value", "unit", "rival"):
        table.add_column(heading, justify="left" if heading == "figure" else "right")
    for heading in ("ratio", "goal", "floor"):
        table.add_column(heading, justify="right")
    for figure in figures:
        table.add_row(
            figure["name"] + _told(figure),
            _number(figure["value"]) + _spread(figure, "value"),
            figure["unit"],
            _number(figure["rival"]) + _spread(figure, "rival"),
            _ratio(figure),
            _bound(figure, "goal"),
            _bound(figure, "floor"),
        )
    return table


def markdown_of(result: dict[str, Any]) -> str:
    """The figures as a table of docs/benchmarks.md."""
    before, after = (result["load"][when][0] for when in ("before", "after"))
    first = (
        f"{result['date']}, `{result['command']}`, {result['cores']} cores, load "
        f"{before:.1f} before, {after:.1f} after"
    )
    rows = [
        [first, "ours", "rival", "ratio (least to largest)", "goal", "floor", "told"],
        ["---"] * 7,
    ]
    for figure in result["figures"]:
        rows.append(
            [
                figure["name"],
                f"{_number(figure['value'])} {figure['unit']}",
                _number(figure["rival"]),
                _plain_ratio(figure) + _spread(figure, "ratio"),
                _bound(figure, "goal"),
                _bound(figure, "floor"),
                "; ".join(_lines(figure)),
            ]
        )
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _told(figure: Figure) -> str:
    """What is known beside the figure, below its name."""
    return "".join(f"\n  {line}" for line in _lines(figure))


def _lines(figure: Figure) -> list[str]:
    """CPU of each process, what binds and what was written, where they are known."""
    lines = []
    for whose, prefix in (("", ""), ("rival: ", "rival_")):
        if f"{prefix}binds" in figure:
            least, most = figure[f"{prefix}lasted_s"]
            lines += [
                f"{whose}{least:.0f} to {most:.0f} s a run",
                whose + cpu_line(figure[f"{prefix}cpu_us"]),
                whose + figure[f"{prefix}binds"],
            ]
        if f"{prefix}percent" in figure:
            each = figure[f"{prefix}percent"].items()
            shares = ", ".join(f"{name} {share:.1f}" for name, share in each)
            topics = ", ".join(
                f"{topic} {each['records']:,}, {each['n_bytes'] / 1e3:,.0f} kB"
                for topic, each in figure[f"{prefix}topics"].items()
            )
            lines += [
                f"{whose}% of a core: {shares}",
                f"{whose}records and bytes of topics: {topics}",
            ]
    return lines


def _number(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float | int):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
    return str(value)


def _ratio(figure: Figure) -> str:
    colour = COLOURS[standing(figure)]
    return f"[{colour}]{_plain_ratio(figure)}[/]{_spread(figure, 'ratio')}"


def _plain_ratio(figure: Figure) -> str:
    if figure["ratio"] is None:
        return "void"
    return "-" if figure["rival"] is None else f"{figure['ratio']:.3g} x"


def _bound(figure: Figure, key: str) -> str:
    """A goal or a floor, so that one sees what it is compared with."""
    number = _number(figure[key])
    if figure[key] is None:
        return number
    ratio = f"{number} x"
    if figure.get("less_is_better"):
        return f"<= {ratio if figure.get('bounds_are_ratios') else number}"
    return ratio


def _spread(figure: Figure, key: str) -> str:
    """The least and the largest of the repeats, where there are several."""
    if figure.get("repeats", 1) == 1 or key not in figure["spread"]:
        return ""
    least, most = figure["spread"][key]
    return f" ({_number(least)} to {_number(most)})"
