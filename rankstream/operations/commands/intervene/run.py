"""What `rankstream intervene` does: ask for trainings, follow and list them."""

import argparse
import secrets
import sys
import time
from collections.abc import Sequence

from producers.event_producer import send_records
from producers.patience import check_patience, left_s
from producers.stop_signal import Stop
from producers.topic_reader import TopicReader
from rankstream.operations.answers.as_builtins import as_builtins
from rankstream.operations.answers.models.answered_requests import (
    AnswerAwaited,
    Answered,
)
from rankstream.operations.answers.models.asked import Asked
from rankstream.operations.answers.models.trainings import (
    LOOK_S,
    SILENT_S,
    Trainings,
    at_work,
    counted_now,
    read_trainings,
    standing_of,
)
from rankstream.operations.answers.models.verification import verified
from rankstream.operations.commands import STOPPED, settings_of, tell, write_json
from rankstream.operations.commands.intervene.tables import (
    lines_of,
    print_curve,
    print_curves,
    print_run,
    print_runs,
    print_verification,
)
from rankstream.operations.commands.options.plot import draw_if_asked
from rankstream.operations.plots.interventions import (
    intervention_picture,
    interventions_picture,
)
from rankstream.operations.terminal.words import visible
from rankstream.settings import Settings
from rankstream.snapshots import pointer_from
from rankstream.wire.models.curves import CurveRecord
from rankstream.wire.models.training import (
    SCHEMA,
    Request,
    RunRecord,
    encode_record,
    training_key,
)
from rankstream.wire.nearest_name import suggestion
from rankstream.wire.topics import TRAINING

PATIENCE_S = 10.0
"""After so long without an answer it is said what may be missing."""

NOBODY = (
    "no trainer has answered yet; `rankstream worker` must run, with the role `train`"
)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    settings = settings_of(arguments)
    if (arguments.verify is None) != (arguments.events is None):
        raise ValueError(
            "--verify must be given with --events, and only then; got "
            f"{arguments.verify!r} and {arguments.events}"
        )
    is_shown = arguments.list or arguments.wait or arguments.show is not None
    if arguments.plot is not None and (arguments.verify is not None or not is_shown):
        raise ValueError(
            "--plot must go with --list, --show or --wait, which show trainings; got "
            f"{str(arguments.plot)!r} without them, or with --verify"
        )
    if arguments.verify is not None:
        name = _model_of(settings, arguments.model)
        found = verified(settings, name, arguments.verify, arguments.events)
        return print_verification(found, as_json=arguments.json)
    if arguments.show is not None:
        return _show(settings, _model_of(settings, arguments.model), arguments)
    if arguments.list:
        return _list(settings, arguments)
    return _ask(settings, _model_of(settings, arguments.model), arguments)


def _model_of(settings: Settings, asked: str | None) -> str:
    """The model that is meant.

    Raises
    ------
    ValueError
        Where it is not trained, or which one is not clear.
    """
    trained = [*settings.trained]
    if asked is None and len(trained) == 1:
        return trained[0]
    known = sorted(settings.schedules)
    if asked not in known:
        raise ValueError(
            f"a model must be one that is trained, or a curve, of {known}; got "
            f"{asked!r}{suggestion(asked or '', known)}"
        )
    return asked


def _list(settings: Settings, arguments: argparse.Namespace) -> int:
    with TopicReader(settings) as reader:
        found = read_trainings(reader)
        counted = counted_now(reader, settings.kafka.partitions)
    names = _listed(settings, arguments.model, found)
    runs = [each for each in found.runs.values() if each.model in names]
    standings = [standing_of(settings, each, found, counted) for each in names]
    if runs:
        draw_if_asked(arguments, lambda: interventions_picture(runs))
    if arguments.json:
        write_json(
            {
                "trainings": [as_builtins(each) for each in runs],
                "models": [each.to_dict() for each in standings],
            }
        )
    else:
        _print(runs)
        for line in (line for each in standings for line in lines_of(each)):
            sys.stdout.write(f"{line}\n")
    if not runs:
        tell("nothing was trained yet")
    return 0 if runs else 1


def _listed(settings: Settings, asked: str | None, found: Trainings) -> list[str]:
    """Models that are trained, or were.

    Raises
    ------
    ValueError
        Where the one that was asked for is none of them.
    """
    known = sorted({*settings.schedules, *found.models()})
    if asked is not None and asked not in known:
        raise ValueError(
            f"a model must be one that is trained, of {known}; got {asked!r}"
            f"{suggestion(asked, known)}"
        )
    return known if asked is None else [asked]


def _show(settings: Settings, name: str, arguments: argparse.Namespace) -> int:
    version = pointer_from(arguments.show.removeprefix(f"{name}@").encode())
    with TopicReader(settings) as reader:
        runs = read_trainings(reader).runs
    run = runs.get(f"{name}@{version}")
    if run is None:
        known = [each.intervention for each in runs.values() if each.model == name]
        raise ValueError(
            f"a training must be one of {known}; got {name}@{version}"
            f"{suggestion(f'{name}@{version}', known)}"
        )
    draw_if_asked(arguments, lambda: intervention_picture(run))
    if arguments.json:
        write_json(as_builtins(run))
    elif isinstance(run, CurveRecord):
        print_curve(run)
    else:
        print_run(run)
    return 0


def _ask(settings: Settings, name: str, arguments: argparse.Namespace) -> int:
    waits = (
        "a trainer began it and did not end; waiting for its next word, for "
        f"{SILENT_S:.0f} s at most"
    )
    with Stop() as stop, TopicReader(settings) as reader:
        known = at_work(reader, stop, name, lambda: _say(name, waits))
        if known:
            raise ValueError(
                f"a model must not be in training already; {name!r} is, {known.said}: "
                "wait for it, `rankstream intervene --list` shows what came of it"
            )
        if stop.asked:
            _say(name, "nothing was asked for")
            return STOPPED
        request = Request(SCHEMA, secrets.token_hex(8), time.time_ns() // 1_000_000)
        record = training_key("request", name), encode_record(request)
        send_records(settings, TRAINING, [record])
        if not arguments.wait:
            if arguments.json:
                write_json(Asked(name, request.id, request.at_ms).to_dict())
            else:
                tell(f"{name}: asked for; the role `train` does it")
            return 0
        answer = _followed(reader, stop, name, request.id)
    if answer is None:
        sys.stderr.write(
            "no longer followed; what was asked for is done all the same\n"
        )
        return STOPPED
    if answer.run is None:
        _say(name, f"refused: {answer.said}")
        return 1
    made = answer.run
    draw_if_asked(arguments, lambda: intervention_picture(made))
    if arguments.json:
        write_json([as_builtins(made)])
    else:
        _print([made])
    return 0


def _print(runs: Sequence[RunRecord | CurveRecord]) -> None:
    trained = [each for each in runs if isinstance(each, RunRecord)]
    if trained:
        print_runs(trained)
    curves = [each for each in runs if isinstance(each, CurveRecord)]
    if curves:
        print_curves(curves)


def _followed(
    reader: TopicReader, stop: Stop, name: str, request: str
) -> Answered | None:
    """The answer to a request; None where a stop came first.

    Raises
    ------
    TimedOut
    """
    awaited, asked_s = AnswerAwaited(name, request), time.monotonic()
    said, by = "", request
    while not stop.asked:
        found = read_trainings(reader)
        answer = awaited.take(found)
        status = found.statuses.get(name)
        if status is not None and status.request not in awaited.requests:
            status = None
        now_by = answer.request if answer else status.request if status else by
        if now_by != by:
            by = now_by
            _say(
                name, "somebody asked again before it began; one training answers both"
            )
        if answer is not None:
            return answer
        if status is not None and status.said != said:
            said = status.said
            _say(name, said)
        elif not said and time.monotonic() - asked_s > PATIENCE_S:
            said = NOBODY
            _say(name, said)
        check_patience(
            f"the training of {name!r}",
            visible(said),
            "it goes on without us: `rankstream intervene --list` tells of it",
        )
        stop.wait(min(LOOK_S, left_s()))
    return None


def _say(name: str, words: str) -> None:
    tell(f"{name}: {visible(words)}")
