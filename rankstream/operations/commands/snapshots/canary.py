"""`rankstream snapshots canary`: what is going out of a model, and its end."""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from producers.readiness import Waiting, wait_for_kafka
from rankstream.operations.answers.models.snapshots import moment_of
from rankstream.operations.commands import nothing, write_json
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.words import plain
from rankstream.settings import Settings
from rankstream.wire.models.changes import CANARY, Change
from rankstream.wire.nearest_name import suggestion

if TYPE_CHECKING:
    from models.evaluation.canary_judgement import Difference
    from rankstream.operations.answers.models.canaries import CanaryState
    from rankstream.operations.answers.models.deployment import RecordedChange

HELP = "what is going out to a share of sessions, and how it does; --end takes it back"

DESCRIPTION = """\
Prints the version of a model that a share of sessions is served, how it differs from
what all others are served, and what is waited for. It goes on by itself: the role
`train` raises the share, serves it to all, or takes it back. Exit status 1 if nothing
is going out.
"""


def add_action(add: Callable[..., argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Declare it, as `add` does."""
    action = add("canary", help=HELP, description=DESCRIPTION)
    action.add_argument("model")
    action.add_argument(
        "--end", action="store_true", help="serve it to nobody any more, at once"
    )
    action.add_argument(
        "--why", default="", metavar="TEXT", help="the reason, for the history"
    )
    return action


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Show or end it; 1 if there is none.

    Raises
    ------
    TopicUnreadable, ChangeRefused, WriterFenced
    """
    # Kafka's clients and estimators are loaded only where they are needed.
    from rankstream.operations.answers.models import (  # noqa: PLC0415
        canaries,
        deployment,
    )
    from streams.kafka.deployment.operator_change import Wanted  # noqa: PLC0415

    model = arguments.model
    if model not in settings.deployed:
        raise ValueError(
            "a model must have versions that are trained or promoted to have a canary; "
            f"got {model!r}, and {sorted(settings.deployed)} have"
            f"{suggestion(model, settings.deployed) or ': correct the name'}"
        )
    wait_for_kafka(settings.kafka, Waiting())
    if arguments.end:
        wanted = Wanted(model, None, deployment.operator(), arguments.why)
        made = canaries.end(settings, wanted, canaries.going_out(settings, model))
        said = (
            f"withdrawn; all are served {made.before} again, as soon as the role "
            "`publish` has told Redis"
        )
        return told(model, made, arguments, said)
    found = canaries.state(settings, model)
    if found is None:
        return _none(deployment.history(settings, model), arguments)
    if arguments.json:
        write_json(found.to_dict())
        return 0
    _print(found)
    return 0


def _none(past: Sequence["RecordedChange"], arguments: argparse.Namespace) -> int:
    """Say that nothing goes out, and how the last one ended."""
    model, rows = arguments.model, [*past]
    begun = [row.version for row in rows if row.what == CANARY]
    last = next((x for x in rows[::-1] if begun and x.version == begun[-1]), None)
    if arguments.json:
        write_json({"canary": None, "last": last.to_dict() if last else None})
        return 1
    said = f"nothing of {model!r} is going out"
    if last is not None:
        said += (
            f"; the last one, {model}@{last.version}, ended at "
            f"{moment_of(last.at_ms)}: {last.what}"
            + (f", {last.why}" if last.why else "")
        )
    return nothing(said)


def told(model: str, made: Change, arguments: argparse.Namespace, said: str) -> int:
    """Say what an operator changed."""
    if arguments.json:
        write_json({"model": model, "version": made.version, **made.evidence})
    else:
        sys.stdout.write(f"{model} {made.version}: {said}\n")
    return 0


def _print(found: "CanaryState") -> None:
    judgement = found.judgement
    sys.stdout.write(
        f"{plain(found.canary)} goes out beside {found.before}: stage {found.stage} of "
        f"{found.stages}, {100.0 * found.share:g} % of sessions, since "
        f"{moment_of(found.begun_ms)}\n"
        f"{judgement.canary_lists:,} lists of the canary, {judgement.served_lists:,} "
        f"of what is served; lists that name no session are of neither\n"
    )
    table = Table(title="canary less served, per list")
    for name in ("", "difference", "interval"):
        table.add_column(name, justify="right" if name else "left")
    for each in (judgement.clicks, *judgement.guardrails):
        is_known = math.isfinite(each.low)
        mean = f"{each.mean:+.4f}" if is_known else "none yet"
        table.add_row(plain(each.name), mean, _interval(each))
    print_fitted(wide_console(), table, ())
    sys.stdout.write(f"{judgement.verdict.value}: {judgement.words}\n")


def _interval(each: "Difference") -> str:
    if not math.isfinite(each.low):
        return "none yet"
    return f"{each.low:+.4f} to {each.high:+.4f}"
