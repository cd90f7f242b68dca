"""What `rankstream backup` does: copy what a namespace can be made again from."""

import argparse

from producers.stop_signal import Stop
from producers.topic_reader import TopicReader
from rankstream.operations.answers.copies import BackedUp
from rankstream.operations.answers.folders import writing
from rankstream.operations.commands import STOPPED, settings_of, tell, write_json
from rankstream.operations.conversion.backup import back_up
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import counted
from rankstream.wire.topics import EVENTS


def run(arguments: argparse.Namespace) -> int:
    """Write the folder; 130 if stopped, and then it is no backup."""
    settings = settings_of(arguments)
    with Stop() as stop, TopicReader(settings, is_stopped=lambda: stop.asked) as reader:
        n_offsets = sum(last - first for first, last in reader.bounds(EVENTS).values())
        with ProgressLine("copying", total=n_offsets) as line:

            def heard(number: int) -> None:
                line.show(number)
                if stop.asked:
                    raise KeyboardInterrupt

            try:
                with writing(arguments.folder):
                    found = back_up(reader, settings, arguments.folder, heard)
            except KeyboardInterrupt:
                tell("stopped; the folder is no backup")
                return STOPPED
    if arguments.json:
        write_json(found.to_dict())
    else:
        tell(in_words(found))
    return 0


def in_words(found: BackedUp) -> str:
    """How much of what."""
    kept = ", ".join(f"{n:,} of {topic}" for topic, n in found.kept.items())
    return f"{found.folder}: {counted(found.events, 'record')} of events, {kept}"
