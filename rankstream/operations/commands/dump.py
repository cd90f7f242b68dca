"""`rankstream dump`: the canonical log into a file."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from producers.formats.canonical_dump import Header, write_dump
from producers.stop_signal import Stop
from producers.topic_reader import TopicReader
from rankstream.operations.answers.folders import writing
from rankstream.operations.commands import STOPPED, settings_of, tell
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import counted
from rankstream.wire.events import SCHEMA
from rankstream.wire.schemas import check_schema
from rankstream.wire.topics import EVENTS, INTERACTIONS

EPILOG = """examples:
  rankstream dump events.dump.zst --namespace shop
  rankstream dump interactions.dump --topic interactions
  rankstream replay events.dump.zst --namespace again    sends the events again

The file holds the committed records up to the present end of the log, partition
by partition. Each is byte for byte as in the log, with a checksum. A name that
ends in .gz or .zst makes a packed file. The file appears when it is complete.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--topic",
        choices=(EVENTS, INTERACTIONS),
        default=EVENTS,
        help="which log (default: events)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the file; 130 if stopped, and then there is none."""
    settings = settings_of(arguments)
    topic = arguments.topic
    with Stop() as stop, TopicReader(settings, is_stopped=lambda: stop.asked) as reader:
        n_offsets = sum(last - first for first, last in reader.bounds(topic).values())
        header = Header(topic, len(reader.partitions(topic)))
        with ProgressLine("dumping", total=n_offsets) as line:
            try:
                with writing(arguments.file):
                    records = _records(reader, topic, line, stop)
                    n_records = write_dump(arguments.file, header, records)
            except KeyboardInterrupt:
                tell("stopped; nothing was written")
                return STOPPED
    tell(f"{arguments.file}: {counted(n_records, 'record')}")
    return 0


def _records(
    reader: TopicReader, topic: str, line: ProgressLine, stop: Stop
) -> Iterator[tuple[int, bytes]]:
    number = 0
    for number, record in enumerate(reader.records(topic), 1):
        # A file of records that this release cannot read would not be read back by it.
        where = f"{topic}[{record.partition}]@{record.offset}"
        check_schema(record.value or b"", SCHEMA, f"a record of {topic}", where)
        yield record.partition, record.value or b""
        if number % 64 == 0:
            line.show(number)
    # A reader that was stopped ends early: half a log must not pass for a whole one.
    if stop.asked:
        raise KeyboardInterrupt
    line.show(number)
