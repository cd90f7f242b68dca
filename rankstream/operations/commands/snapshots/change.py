"""What is served, changed and told: `rankstream snapshots rollback` and the like."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table

from producers.readiness import Waiting, wait_for_kafka
from producers.stop_signal import Stop
from rankstream.operations.answers.models.snapshots import held_until, moment_of
from rankstream.operations.commands import (
    STOPPED,
    Stopped,
    nothing,
    tell,
    write_json,
)
from rankstream.operations.commands.snapshots import canary
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import counted, plain
from rankstream.settings import Settings
from rankstream.snapshots import Pointer, SnapshotStore, is_pointer, pointer_from
from rankstream.wire.nearest_name import suggestion

if TYPE_CHECKING:
    from rankstream.operations.answers.models.deployment import Changed, RecordedChange
    from rankstream.operations.answers.models.promotion import Candidate, Evidence
    from streams.kafka.deployment.operator_change import Wanted

ACTIONS = ("rollback", "follow", "promote")

PROMOTE_HELP = "serve a version of another model, if it is shown to be better"

PROMOTE_DESCRIPTION = """\
Values the version and what is served on what was counted, on groups that neither was
fitted on, and serves the version if the interval of the difference lies above 0. Each
look is recorded, and the j-th one since the last change may err in .05 / (j (j + 1)) of
all cases, so that looking often does no harm. Exit status 1 if it is not promoted.
"""

HISTORY_HELP = "every change of what is served: when, what, who, why, on what evidence"

HISTORY_DESCRIPTION = """\
Prints the changes of a model from the topic `snapshots`: trainings, promotions,
rollbacks and looks at evidence, numbered from 1 without a gap. What was deployed by
releases that recorded no changes has no number. Versions that are learned online are no
changes.
"""


def add_actions(
    add: Callable[..., argparse.ArgumentParser],
) -> list[argparse.ArgumentParser]:
    """Declare them, as `add` does one."""
    rolling = add(
        "rollback",
        help="serve an old version until `follow`, or of a model that is trained until "
        "`rankstream intervene`",
    )
    rolling.add_argument("model")
    rolling.add_argument("version", type=place_named, metavar="EPOCH.VERSION")
    following = add(
        "follow",
        help="end a rollback of a model that learns online: serve the newest version "
        "again",
    )
    following.add_argument("model")
    promoting = add("promote", help=PROMOTE_HELP, description=PROMOTE_DESCRIPTION)
    promoting.add_argument("model", help="one with versions = 'promoted'")
    promoting.add_argument(
        "--from",
        dest="source",
        required=True,
        type=_version_named,
        metavar="MODEL@EPOCH.VERSION",
        help="what is to be served",
    )
    promoting.add_argument(
        "--force",
        action="store_true",
        help="whatever the evidence; --why is recorded",
    )
    promoting.add_argument(
        "--canary",
        action="store_true",
        help="to a share of sessions first, by models.NAME.canary: their clicks are "
        "the evidence, and `canary` tells of it",
    )
    for action in (rolling, following, promoting):
        add_expected(action)
    past = add("history", help=HISTORY_HELP, description=HISTORY_DESCRIPTION)
    past.add_argument("model")
    return [rolling, following, promoting, past]


def add_expected(action: argparse.ArgumentParser) -> None:
    """Declare what is to be served before a change, and its reason."""
    action.add_argument(
        "--expect",
        type=place_named,
        metavar="EPOCH.VERSION",
        help="refuse where another version is served (default: the one that is "
        "served when the command begins)",
    )
    action.add_argument(
        "--why", default="", metavar="TEXT", help="the reason, for the history"
    )


def run(settings: Settings, store: SnapshotStore, arguments: argparse.Namespace) -> int:
    """Change what is served; 1 if it stays, 130 if stopped.

    Raises
    ------
    ValueError, RuntimeError
        Where it is refused.
    """
    # Kafka's clients are loaded only where they are needed.
    from rankstream.operations.answers.models import deployment  # noqa: PLC0415
    from streams.kafka.deployment.operator_change import Wanted  # noqa: PLC0415

    model = arguments.model
    seen = arguments.expect or store.standing([model]).get(model)
    wanted = Wanted(model, seen, deployment.operator(), arguments.why)
    wait_for_kafka(settings.kafka, Waiting())
    if arguments.action == "promote":
        return _promote(settings, store, wanted, arguments)
    if arguments.action == "follow":
        changed = deployment.follow_again(settings, store, wanted)
        until = "and what is learned after"
    else:
        changed = deployment.roll_back(settings, store, wanted, arguments.version)
        until = held_until(settings, model)
    return shown(changed, until, arguments)


def shown(changed: "Changed", until: str, arguments: argparse.Namespace) -> int:
    """Print what is served now, and until what."""
    if changed.why_not_yet:
        tell(
            "it is served once the role `publish` has told Redis, as now "
            f"{changed.why_not_yet}"
        )
    model, place = arguments.model, str(changed.place)
    if arguments.json:
        write_json({"model": model, "version": place, **changed.change.evidence})
    else:
        told = _reasons_of(changed.change.evidence)
        because = f" ({'; '.join(told)})" if told else ""
        sys.stdout.write(f"{model} {place} is served{because}, {until}\n")
    return 0


def _promote(
    settings: Settings,
    store: SnapshotStore,
    wanted: "Wanted",
    arguments: argparse.Namespace,
) -> int:
    # Nobody else needs estimators.
    from rankstream.operations.answers.models import promotion  # noqa: PLC0415
    from rankstream.operations.answers.values import NothingToValue  # noqa: PLC0415
    from rankstream.wire.models.changes import LOOKED  # noqa: PLC0415

    if arguments.force and not arguments.why:
        raise ValueError(
            "a promotion by force must have a reason, which is recorded; got none: "
            "say --why TEXT"
        )
    named, place = arguments.source
    candidate = promotion.candidate_of(settings, store, wanted.model, named, place)
    if arguments.canary:
        return _begin(settings, store, wanted, candidate, arguments)
    evidence = None
    if not arguments.force:
        try:
            evidence = _evidence(settings, candidate, wanted.model)
        except Stopped:
            tell("stopped: nothing was changed")
            return STOPPED
        except NothingToValue as error:
            return nothing(f"nothing was changed: {error}")
    changed = promotion.promote(settings, store, wanted, candidate, evidence)
    told = changed.change
    if told.what != LOOKED:
        return shown(changed, held_until(settings, wanted.model), arguments)
    if arguments.json:
        write_json({"model": wanted.model, "version": told.version, **told.evidence})
        return 1
    return nothing(
        f"{wanted.model} {told.version} stays: {_why_not(told.evidence)}. `rankstream "
        f"snapshots history {wanted.model}` has each look; --force --why TEXT promotes "
        "it all the same"
    )


def _begin(
    settings: Settings,
    store: SnapshotStore,
    wanted: "Wanted",
    candidate: "Candidate",
    arguments: argparse.Namespace,
) -> int:
    from rankstream.operations.answers.models import canaries  # noqa: PLC0415
    from rankstream.operations.answers.values import NothingToValue  # noqa: PLC0415

    canaries.check_new(store, wanted, candidate)
    if arguments.force:
        raise ValueError(
            "a canary must be its own evidence; got --force with --canary: leave one "
            "of them out"
        )
    fall = None
    try:
        fall = _evidence(settings, candidate, wanted.model).fall
    except Stopped:
        tell("stopped: nothing was changed")
        return STOPPED
    except NothingToValue:
        tell("how far it could fall is not known, as no list tells of both versions")
    made = canaries.begin(settings, wanted, candidate, fall)
    said = (
        f"goes out to {100.0 * made.evidence['share']:g} % of the sessions that "
        f"services name; "
        f"`rankstream snapshots canary {wanted.model}` tells how it does"
    )
    return canary.told(wanted.model, made, arguments, said)


def _evidence(settings: Settings, candidate: "Candidate", model: str) -> "Evidence":
    from rankstream.operations.answers.models.promotion import evidence_of  # noqa: PLC0415
    from rankstream.operations.answers.sources import source_of  # noqa: PLC0415

    with Stop() as stop:
        source = source_of(settings)

        @contextlib.contextmanager
        def line(label: str, unit: str) -> Iterator[Callable[[int], object]]:
            with ProgressLine(label, total=None, unit=unit) as shown:

                def show(n: int) -> None:
                    shown.show(n)
                    if stop.asked:
                        raise Stopped

                yield show

        return evidence_of(
            source,
            candidate,
            model,
            fitting=lambda: line("fitting the curve", "fits"),
            valuing=lambda: line("valuing", "queries"),
        )


def _why_not(evidence: dict[str, Any]) -> str:
    """In words, from the record of a look."""
    told = f"{evidence['from']} differs by {evidence['difference']:+.4f} clicks a list"
    if "low" not in evidence:
        return f"{told}, and there is no interval: {evidence.get('reason', '')}"
    return (
        f"{told}, {evidence['low']:+.4f} to {evidence['high']:+.4f} with "
        f"{evidence['confidence']:.4g} of confidence, look {evidence['look']}: it must "
        "lie above 0"
    )


def show_history(settings: Settings, arguments: argparse.Namespace) -> int:
    """Print every change; 1 if there is none.

    Raises
    ------
    TopicUnreadable, DeploymentRefused
    """
    # Kafka's clients are loaded only where they are needed.
    from rankstream.operations.answers.models.deployment import history  # noqa: PLC0415

    wait_for_kafka(settings.kafka, Waiting())
    found = history(settings, arguments.model)
    if arguments.json:
        write_json([each.to_dict() for each in found])
        return 0 if found else 1
    if not found:
        known = (*settings.models, *settings.curves)
        meant = suggestion(arguments.model, known)
        return nothing(f"nothing was deployed of {arguments.model!r} yet{meant}")
    table = Table(title=f"{counted(len(found), 'change')} of {plain(arguments.model)}")
    for name in ("", "when", "what", "version", "before", "by", "why"):
        table.add_column(name, justify="left" if name else "right", overflow="fold")
    for row in found:
        table.add_row(
            str(row.number or ""),
            moment_of(row.at_ms),
            *(plain(x) for x in (row.what, row.version, row.before, row.by)),
            plain(_reasons(row)),
        )
    print_fitted(wide_console(), table, ("before", "by"))
    return 0


def _reasons(row: "RecordedChange") -> str:
    """What was said, and figures of the evidence."""
    told = [row.why, *_reasons_of(row.evidence), _kinds_of(row.evidence)]
    return "; ".join(filter(None, told))


def _kinds_of(evidence: Mapping[str, Any]) -> str:
    """Which kind was taken, and how far each is behind the best; empty where none."""
    if "behind" not in evidence:
        return ""
    behind = (f"{kind} {by:.4f}" for kind, (by, _) in evidence["behind"].items())
    return f"{evidence['kind']}; held-out DCG behind the best: {', '.join(behind)}"


def _reasons_of(evidence: Mapping[str, Any]) -> list[str]:
    """Figures that it was decided on, in words."""
    told = []
    if "from" in evidence:
        told.append(f"from {evidence['from']}")
    if evidence.get("forced"):
        told.append("by force")
    if "share" in evidence:
        share = 100.0 * evidence["share"]
        told.append(f"stage {evidence['stage']}, {share:g} % of sessions")
    if "withdrew" in evidence:
        told.append(f"{evidence['withdrew']} was withdrawn")
    if "look" in evidence and "low" in evidence:
        told.append(
            f"{evidence['difference']:+.4f} ({evidence['low']:+.4f} to "
            f"{evidence['high']:+.4f}), look {evidence['look']}"
        )
    elif "reason" in evidence:
        told.append(f"no interval: {evidence['reason']}")
    if "largest_loss" in evidence:
        told.append(f"at worst {-evidence['largest_loss']:+.4f}, whatever users like")
    return told


def place_named(text: str) -> Pointer:
    """Either `EPOCH.VERSION`, or a version of epoch 0."""
    value = text if "." in text else f"0.{text}"
    if not is_pointer(value.encode()):
        raise argparse.ArgumentTypeError(f"must be EPOCH.VERSION; got {text!r}")
    return pointer_from(value.encode())


def _version_named(text: str) -> tuple[str, Pointer]:
    model, mark, version = text.rpartition("@")
    if not mark or not model or not is_pointer(version.encode()):
        raise argparse.ArgumentTypeError(f"must be MODEL@EPOCH.VERSION; got {text!r}")
    return model, pointer_from(version.encode())
