"""`rankstream experiments`: which rankers are compared, and what came out."""

import argparse
import sys
from typing import Any

from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table

from rankstream.operations.answers.comparisons.experiments import (
    Judged,
    check_foldable,
    comparisons,
    course,
    judged,
    publish,
)
from rankstream.operations.answers.models.snapshots import opened_store
from rankstream.operations.commands import nothing, settings_of, write_json
from rankstream.operations.commands.options.plot import add_plot, draw_if_asked
from rankstream.operations.plots.picture import Estimate, Picture
from rankstream.operations.terminal.bars import bars_of
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.words import counted
from rankstream.settings import Settings
from rankstream.wire.nearest_name import suggestion
from rankstream.wire.verdicts import Ends, MethodVerdict, Verdict, encode_verdict

SPARE = ("e-value", "sessions that came")
"""Columns that a narrow terminal can do without."""

LIGHTS = {"ok": "green", "warning": "yellow", "alarm": "red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = """examples:
  rankstream experiments list          the settings, and what clients follow
  rankstream experiments publish       make clients follow the settings
  rankstream experiments show boost    preferences, intervals, health
  rankstream experiments show boost --refit    under the newest curve of bias
  rankstream experiments show boost --plot boost.svg    with its course

An experiment is a table of the settings:
  [experiments.boost]
  epoch = 1                                raise it with every change
  method = "pairwise-preference"
  rankers = { old = "search", new = "" }   names, each with the model that ranks
  share = 0.1                              of the sessions"""
    actions = parser.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="all experiments")
    publishing = actions.add_parser("publish", help="make clients follow the settings")
    show = actions.add_parser("show", help="the verdict on one experiment")
    show.add_argument("experiment")
    show.add_argument("--epoch", type=int, help="which one (default: the last)")
    show.add_argument(
        "--method", help="which one (default: the one that drew the lists)"
    )
    show.add_argument(
        "--refit",
        action="store_true",
        help="of lists of logging policies: under the newest curve of bias, with an "
        "interval that has the curve's own error",
    )
    add_plot(show)
    for action in (listing, publishing, show):
        action.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; 1 if there is nothing."""
    settings = settings_of(arguments)
    if arguments.action == "show":
        return _show(settings, arguments)
    if arguments.action == "publish":
        check_foldable(settings)
    with opened_store(settings) as store:
        if arguments.action == "publish":
            return _told(publish(settings, store), arguments)
        found, refused = comparisons(settings, store)
    for name, why in refused.items():
        nothing(f"Redis must hold the settings of experiment {name!r}; {why}")
    return _list([each.to_dict() for each in found], arguments)


def _told(found: dict[str, str], arguments: argparse.Namespace) -> int:
    if arguments.json:
        write_json(found)
    for name, what in () if arguments.json else found.items():
        Console().print(f"{name}: {in_words(what)}", highlight=False, markup=False)
    return 0 if found else nothing("the settings must name an experiment; none is")


def in_words(became: str) -> str:
    """What became of an experiment, in words that no ranker is called.

    Examples
    --------
    >>> in_words("new"), in_words("unchanged")
    ('published, for the first time', 'unchanged')
    """
    return "published, for the first time" if became == "new" else became


def _list(rows: list[dict[str, Any]], arguments: argparse.Namespace) -> int:
    if not rows:
        return nothing("there are no experiments")
    if arguments.json:
        write_json(rows)
        return 0
    table = Table(title=counted(len(rows), "experiment"), title_justify="left")
    for heading in ("name", "epoch", "method", "rankers", "share", "clients"):
        table.add_column(heading)
    for row in rows:
        rankers = ", ".join(sorted(row["rankers"]))
        cells = (row["name"], row["epoch"], row["method"], rankers, row["share"])
        table.add_row(*(escape(str(cell)) for cell in cells), row["clients"])
    Console().print(table)
    return 0


def _show(settings: Settings, arguments: argparse.Namespace) -> int:
    name = arguments.experiment
    found = judged(settings, name, arguments.epoch)
    for epoch, why in found.refused.items():
        nothing(f"epoch {epoch} of {name!r} must be readable; {why}")
    verdict = found.verdict
    if verdict is None:
        return nothing(found.why)
    if arguments.refit:
        return _refit(settings, found, arguments)
    method = arguments.method or verdict.method
    if method not in verdict.methods:
        raise ValueError(
            f"--method must be one of {sorted(verdict.methods)}; got {method!r}"
            f"{suggestion(method, verdict.methods)}"
        )
    draw_if_asked(arguments, lambda: _picture(settings, verdict, method))
    if arguments.json:
        sys.stdout.write(encode_verdict(verdict).decode() + "\n")
        return 0
    for table in tables_of(verdict, method):
        print_fitted(wide_console(), table, SPARE)
    return 0


def _picture(settings: Settings, verdict: Verdict, method: str) -> Picture:
    """With the course of its epoch, as far as the topic has it."""
    # The science is loaded only where it is needed.
    from rankstream.operations.plots.verdicts import verdict_picture  # noqa: PLC0415

    return verdict_picture(verdict, method=method, course=course(settings, verdict))


def _refit(settings: Settings, judged: Judged, arguments: argparse.Namespace) -> int:
    # The science is loaded only where it is needed.
    from rankstream.operations.answers.comparisons.refitted import (  # noqa: PLC0415
        curve_of_policies,
        refitted,
    )
    from rankstream.operations.answers.curve import newest_curve  # noqa: PLC0415
    from rankstream.operations.answers.sources import source_of  # noqa: PLC0415
    from rankstream.operations.plots.verdicts import refitted_picture  # noqa: PLC0415

    sums = judged.sums
    if sums is None:
        return nothing(judged.why)
    named, source = curve_of_policies(settings, sums), source_of(settings)
    published = newest_curve(source.versions() if source.versions else (), named)
    if published is None:
        return nothing(
            f"the curve {named!r} must have a version; it has none yet: `rankstream "
            f"intervene {named}` fits one"
        )
    online = source.policies.models
    found = refitted(settings, sums, source.statistics, published, online)
    draw_if_asked(arguments, lambda: refitted_picture(found))
    if arguments.json:
        write_json(found.to_dict())
    else:
        Console().print(found.said(), highlight=False, markup=False)
    return 0


def tables_of(verdict: Verdict, method: str) -> list[Table]:
    """Pairs and health of a verdict, as people read them."""
    of_method = verdict.methods[method]
    name, epoch = escape(verdict.experiment), verdict.epoch
    winner = escape(of_method.winner or "none yet")
    pairs = Table(
        title=f"{name}, epoch {epoch}, {method}: {of_method.impressions:,} "
        f"impressions; winner: {winner}",
        caption=caption_of(verdict, of_method),
        caption_justify="left",
        title_justify="left",
    )
    for heading in (
        "a over b", "preference", "sessions to come", "sessions that came", "e-value",
    ):  # fmt: skip
        is_name = heading == "a over b"
        justify: JustifyMethod = "left" if is_name else "right"
        pairs.add_column(heading, justify=justify, no_wrap=not is_name)
    numbers = [Estimate.of(pair.mean, pair.to_come) for pair in of_method.pairs]
    axis, bars = bars_of(numbers, reference=0.0)
    pairs.add_column(axis)
    for pair, bar in zip(of_method.pairs, bars, strict=True):
        pairs.add_row(
            escape(f"{pair.a} over {pair.b}"),
            f"{pair.mean:+.4f}",
            _range(pair.to_come),
            _range(pair.came),
            f"10^{max(pair.log_e_a, pair.log_e_b) / 2.302585:.1f}",
            bar,
        )
    health = Table(title="health", title_justify="left")
    for heading in ("check", "value", "state", "why"):
        health.add_column(heading)
    for check in verdict.health:
        state = f"[{LIGHTS[check.state]}]{check.state}[/]"
        value = "-" if check.value is None else f"{check.value:.4g}"
        why = "" if check.state == "ok" or not check.detail else str(check.detail)
        health.add_row(check.name, value, state, escape(why))
    return [pairs, health]


def caption_of(verdict: Verdict, of_method: MethodVerdict) -> str:
    """What the intervals answer, and whether sessions are enough for it."""
    told = [
        f"Intervals hold for all pairs at {1 - verdict.alpha:.0%}, at any time "
        f"({verdict.correction}).",
        verdict.questions["to_come"],
        f"{verdict.questions['came']} The e-value is theirs.",
        verdict.questions["winner"],
    ]
    return "\n".join(told + [of_method.sessions.why] * bool(of_method.sessions.why))


def _range(ends: Ends) -> str:
    low, high = ends
    return "-" if low is None or high is None else f"{low:+.4f} .. {high:+.4f}"
