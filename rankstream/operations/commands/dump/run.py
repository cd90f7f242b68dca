"""What `rankstream dump` does: copy the log."""

import argparse
from collections.abc import Iterator

from producers.formats.canonical_dump import Header, checked_records, write_dump
from producers.stop_signal import Stop
from producers.topic_reader import TopicReader
from rankstream.operations.answers.copies import Dumped
from rankstream.operations.answers.folders import writing
from rankstream.operations.commands import STOPPED, settings_of, tell, write_json
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import counted


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
    if arguments.json:
        write_json(Dumped(str(arguments.file), topic, n_records).to_dict())
    else:
        tell(f"{arguments.file}: {counted(n_records, 'record')}")
    return 0


def _records(
    reader: TopicReader, topic: str, line: ProgressLine, stop: Stop
) -> Iterator[tuple[int, bytes]]:
    number = 0
    # A file of records that this release cannot read would not be read back by it.
    records = checked_records(reader.records(topic), topic)
    for number, record in enumerate(records, 1):
        yield record
        if number % 64 == 0:
            line.show(number)
    # A reader that was stopped ends early: half a log must not pass for a whole one.
    if stop.asked:
        raise KeyboardInterrupt
    line.show(number)
