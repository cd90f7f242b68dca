"""What `rankstream restore` does: make a namespace again."""

import argparse

from producers.readiness import Waiting, wait_for_kafka
from rankstream.operations.commands import settings_of, tell, write_json
from rankstream.operations.commands.backup.run import in_words
from rankstream.operations.conversion.restore import restore, restore_topics
from rankstream.operations.terminal.progress_line import ProgressLine


def run(arguments: argparse.Namespace) -> int:
    """Write what the folder has."""
    settings = settings_of(arguments)
    wait_for_kafka(settings.kafka, Waiting())
    if arguments.topic:
        found = restore_topics(settings, arguments.folder, arguments.topic)
    else:
        with ProgressLine("writing", total=None) as line:
            found = restore(settings, arguments.folder, line.show)
    if arguments.json:
        write_json(found.to_dict())
    else:
        tell(in_words(found))
    return 0
