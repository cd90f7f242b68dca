"""`rankstream feed`: live events in, line by line."""

import argparse
import sys
from pathlib import Path

from producers.event_producer import EventProducer
from producers.feed import (
    AUTO,
    KINDS,
    Fed,
    feed,
    lines_of_descriptor,
    lines_of_followed,
)
from producers.formats.adapted import LiveAdapter
from producers.stop_signal import Stop
from rankstream.adapters.registry import NAMES
from rankstream.commands.fate_report import FateReport, add_strict, lines_of_adapted
from rankstream.commands.format_options import add_option, options_asked
from rankstream.settings import load_settings, with_namespace
from rankstream.terminal.counts import counted

SUMMARY = "send live events, from standard input or a followed file"

GRACE_S = 10.0
"""How long a stop waits for what is under way."""

EPILOG = """examples:
  tail -F /var/log/shop/events.jsonl | rankstream feed --namespace shop
  rankstream feed --follow /var/log/shop/events.jsonl --batch 100
  rankstream feed --kind click < clicks.jsonl
  rankstream feed --format ubi --option ordinal_base=0 < ubi_events.ndjson

A line is the JSON of one query or click event. A line with 'shown',
'candidates' or 'scores' is a query event. A line that is no event is sent as
well: it becomes a dead letter of its topic.

--format reads documents of other systems (docs/adapters.md). What cannot be
adapted is sent too, and becomes a dead letter with the reason.

A followed file is read from its beginning (--from-end: from its end). When it
is rotated, reading goes on in the new file. A repeated event is counted as a
duplicate, never twice.

Ctrl-C waits until Kafka has acknowledged what was read, and says how much that
is.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "--follow",
        type=Path,
        metavar="FILE",
        help="read this growing file, instead of standard input",
    )
    parser.add_argument(
        "--from-end",
        action="store_true",
        help="with --follow: start at the end of the file",
    )
    parser.add_argument(
        "--kind",
        choices=tuple(KINDS),
        default=AUTO,
        help="what every line is (default: known by its fields)",
    )
    parser.add_argument(
        "--batch",
        type=int,
        default=1,
        metavar="N",
        help="events in one record (default 1)",
    )
    parser.add_argument("--format", choices=NAMES, default=NAMES[0], dest="form")
    add_option(parser)
    add_strict(parser)
    parser.add_argument(
        "--end", action="store_true", help="close every window when the input ends"
    )


def run(arguments: argparse.Namespace) -> int:
    """Feed until the input ends or the user stops; 1 if events were refused."""
    adapt = _adapter(arguments)
    if arguments.from_end and arguments.follow is None:
        raise ValueError("--from-end needs a file that is followed; give --follow FILE")
    if arguments.follow is not None and arguments.follow.is_dir():
        raise ValueError(
            f"--follow must be a file; {arguments.follow} is a folder: name one in it"
        )
    settings = with_namespace(load_settings(arguments.config), arguments.namespace)
    with Stop() as stop:
        report = FateReport(settings, stop, is_strict=arguments.strict)
        producer = EventProducer(
            settings, batch=arguments.batch, is_stopped=lambda: stop.asked
        )
        try:
            if arguments.follow is None:
                lines = lines_of_descriptor(sys.stdin.fileno(), stop)
            else:
                lines = lines_of_followed(
                    arguments.follow, stop, from_end=arguments.from_end
                )
            fed = feed(
                lines,
                producer,
                kind=arguments.kind,
                adapt=adapt,
                on_idle=lambda _: producer.nudge(),
            )
            producer.flush(GRACE_S if stop.asked else None)
            unknown = producer.unanswered()
            if arguments.end and not stop.asked:
                producer.end()
        finally:
            producer.close()
            _report(producer)
        if adapt is not None:
            for line in lines_of_adapted(adapt.adapted, arguments.form):
                sys.stderr.write(f"{line}\n")
        return _conclude(fed, unknown) or report.conclude(
            producer.sent, fed.newest_click_ms
        )


def _adapter(arguments: argparse.Namespace) -> LiveAdapter | None:
    options = options_asked(arguments)
    if arguments.form == NAMES[0]:
        if arguments.format_options:
            raise ValueError("--option must come with --format of another system")
        return None
    if arguments.kind != AUTO:
        raise ValueError(
            f"--kind must be auto with --format {arguments.form}, whose documents say "
            f"what they are; got {arguments.kind!r}"
        )
    return LiveAdapter(arguments.form, options)


def _report(producer: EventProducer) -> None:
    sys.stderr.write(f"{counted(producer.acknowledged, 'event')} acknowledged\n")


def _conclude(fed: Fed, unknown: int) -> int:
    if fed.unrecognised:
        sys.stderr.write(f"no events, but sent: {counted(fed.unrecognised, 'line')}\n")
    for form, number in fed.resembled.most_common(1):
        sys.stderr.write(
            f"{counted(number, 'line')} of these looked like {form}, which "
            f"--format {form} reads\n"
        )
    if fed.refused:
        sys.stderr.write(f"too large, and refused: {counted(fed.refused, 'event')}\n")
    if unknown:
        sys.stderr.write(f"{unknown:,} more have no answer yet: Kafka may have them\n")
    return 1 if fed.refused or unknown else 0
