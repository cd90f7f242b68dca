"""`rankstream replay` to Kafka: sends a recorded log, and remembers how far it came."""

import argparse
import itertools
from typing import Any

from producers.event_producer import EventProducer
from producers.patience import TimedOut
from producers.replay import (
    Pace,
    ProgressFile,
    Replayed,
    identity_of,
    progress_path,
    refuse_older,
    replay,
    utc,
)
from producers.stop_signal import Stop
from producers.topic_reader import TopicReader, reached_ms
from rankstream.operations.answers.sent import Sent
from rankstream.operations.commands import STOPPED, tell, write_json
from rankstream.operations.commands.options.outcomes import OutcomeReport
from rankstream.operations.recorded_log import RecordedLog
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import counted
from rankstream.settings import Settings

GRACE_S = 10.0
"""How long a stop waits for what is under way."""


def send(
    log: RecordedLog,
    arguments: argparse.Namespace,
    settings: Settings,
    pace: Pace,
    stop: Stop,
) -> int:
    """Send what was not sent yet; 1 if events were refused, 130 if stopped."""
    progress, skip, is_complete = _progress(log, arguments, settings)
    if is_complete:
        tell("everything was sent already; at " + str(progress.path))
        return 0
    _look_at_target(log, arguments, settings, skip, stop)
    report = OutcomeReport(settings, stop, is_strict=arguments.strict)
    producer = EventProducer(
        settings, batch=arguments.batch, is_stopped=lambda: stop.asked
    )
    line = ProgressLine("sending", total=log.n_events, start=skip)
    is_complete = False

    def look(state: Replayed) -> None:
        line.show(state.done)
        if progress.is_due:
            progress.save(skip + producer.settled())

    try:
        with line:
            state = replay(
                log.events, producer, pace=pace, stop=stop, skip=skip, on_look=look
            )
            producer.flush(GRACE_S if stop.asked else None)
            line.show(skip + producer.acknowledged + producer.refused)
        rate, unknown = line.mean_rate(), producer.unanswered()
        is_complete = state.is_complete and not unknown
        if is_complete and not arguments.no_end:
            report.await_begun(producer.sent)
            producer.end()
    except TimedOut as error:
        raise TimedOut(f"{error}; {_left(producer)}") from error
    finally:
        progress.save(skip + producer.settled(), is_complete=is_complete)
        producer.close()
    status = _conclude(state, producer, unknown, rate) or report.conclude(
        producer.sent, state.newest_click_ms
    )
    if arguments.json:
        told = Sent(
            producer.acknowledged, producer.refused, unknown, is_complete,
            report.became_of,
        )  # fmt: skip
        write_json(told.to_dict())
    return status


def _left(producer: EventProducer) -> str:
    """What a replay that waited long enough leaves, in words."""
    return (
        f"{counted(producer.acknowledged, 'event')} acknowledged, and "
        f"{producer.unanswered():,} more that Kafka may have or not: the same command "
        "with --resume goes on from here"
    )


def _progress(
    log: RecordedLog, arguments: argparse.Namespace, settings: Settings
) -> tuple[ProgressFile, int, bool]:
    options: dict[str, Any] = {
        name: getattr(arguments, name)
        for name in (
            "form",
            "epoch_ms",
            "as_is",
            "pass_bad_lines",
            "format_options",
            "columns",
        )
    }
    options |= log.identity
    options["partitions"] = settings.kafka.input_partitions
    target = f"{settings.kafka.bootstrap}/{settings.namespace}"
    identity = identity_of(log.files, options=options, target=target)
    path = arguments.progress_file or progress_path(identity)
    progress = ProgressFile(path, identity)
    if not arguments.resume:
        return progress, 0, False
    return progress, *progress.load()


def _look_at_target(
    log: RecordedLog,
    arguments: argparse.Namespace,
    settings: Settings,
    skip: int,
    stop: Stop,
) -> None:
    if arguments.accept_late:
        return
    with TopicReader(settings, is_stopped=lambda: stop.asked) as reader:
        reached = reached_ms(reader)
    left = itertools.islice(log.events, skip, None)
    following = next((event for event in left if not event.refusal), None)
    at_ms = following.at_ms if following else None
    if not skip:
        refuse_older(at_ms, reached, namespace=settings.namespace)
        return
    tell(f"going on after {skip:,} acknowledged events")
    if at_ms is not None and reached is not None and reached > at_ms:
        # Time passes on an idle target: what stopped for long may be too late.
        tell(
            f"the target has gone on to {utc(reached)}, the next event is of "
            f"{utc(at_ms)}: what is older than a window or the disorder will be late"
        )


def _conclude(
    state: Replayed, producer: EventProducer, unknown: int, rate: float
) -> int:
    tell(
        f"{counted(producer.acknowledged, 'event')} acknowledged, {rate:,.0f} a second"
    )
    if producer.refused:
        tell(f"{counted(producer.refused, 'event')} refused; {state.first_refused}")
    if unknown:
        tell(f"{unknown:,} more have no answer yet: Kafka may have them, or not")
    if not state.is_complete or unknown:
        tell("stopped; the same command with --resume goes on from here")
        return STOPPED
    return 1 if producer.refused else 0
