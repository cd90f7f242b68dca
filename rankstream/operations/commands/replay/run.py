"""What `rankstream replay` does: read logs, and send or fold them."""

import argparse

from producers.prescan import forecast
from producers.replay import Pace, utc
from producers.stop_signal import Stop
from rankstream.operations.answers.as_builtins import as_builtins
from rankstream.operations.commands import STOPPED, settings_of, tell, write_json
from rankstream.operations.commands.options.log import log_asked
from rankstream.operations.commands.options.recorded_log import recorded_events
from rankstream.operations.commands.replay.to_kafka import send
from rankstream.operations.recorded_log import RecordedLog
from rankstream.operations.terminal.words import counted
from rankstream.settings import Settings


def run(arguments: argparse.Namespace) -> int:
    """Replay; 1 if events were refused, 130 if stopped."""
    _check(arguments)
    settings = settings_of(arguments)
    pace = Pace(arguments.speed)
    with Stop() as stop:
        if arguments.local and not arguments.check:
            # The folds are not loaded where events only go to Kafka.
            from rankstream.operations.commands.replay.local import replay_dump  # noqa: PLC0415
            from rankstream.operations.local_replay import dump_of  # noqa: PLC0415

            dump = dump_of(log_asked(arguments))
            if dump is not None:
                return replay_dump(dump, settings, arguments, stop)
        with recorded_events(arguments, stop) as log:
            if log is None:
                return STOPPED
            if arguments.check or arguments.as_is:
                _report(log, settings, arguments)
            if arguments.check:
                return 0
            if arguments.local:
                from rankstream.operations.commands.replay.local import replay_events  # noqa: PLC0415

                return replay_events(log, arguments, settings, pace, stop)
            return send(log, arguments, settings, pace, stop)


def _check(arguments: argparse.Namespace) -> None:
    if arguments.out is not None and not arguments.local:
        raise ValueError("--out must come with --local; got --out alone")
    if arguments.local and arguments.resume:
        raise ValueError("--resume must go to Kafka; got --local, which starts anew")
    if arguments.pass_bad_lines and arguments.batch > 1:
        # A line that is no JSON would spoil the record that it shares.
        raise ValueError(
            f"--pass-bad-lines must have --batch 1; got --batch {arguments.batch}"
        )


def _report(
    log: RecordedLog, settings: Settings, arguments: argparse.Namespace
) -> None:
    time = settings.time
    found = forecast(
        log.events, disorder_ms=time.disorder_ms, window_ms=time.click_window_ms
    )
    if arguments.check and arguments.json:
        write_json(as_builtins(found))
        return
    if found.first_ms is None or found.last_ms is None:
        tell("there are no events")
        return
    tell(
        f"{counted(found.queries, 'impression')} and "
        f"{counted(found.clicks, 'click')} from "
        f"{utc(found.first_ms)} to {utc(found.last_ms)}"
    )
    tell(
        f"in this order at most {found.late:,} would be late and {found.orphans:,} "
        f"clicks orphans: {found.disordered:,} come after a later event, by up to "
        f"{found.furthest_back_ms / 1_000:,.1f} s; {time.disorder_ms / 1_000:,.0f} s "
        "are allowed"
    )
