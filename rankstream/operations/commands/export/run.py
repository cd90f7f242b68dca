"""What `rankstream export` does: write a part of the log as arrays."""

import argparse
import sys
from collections.abc import Iterator

import numpy as np

from producers.formats.canonical_dump import read_dump, read_header
from producers.stop_signal import Stop
from rankstream.operations.answers.copies import ExportedArrays
from rankstream.operations.answers.exports.bandit_log import (
    BanditLog,
    Part,
    interactions_of,
    write_arrays,
)
from rankstream.operations.commands import STOPPED, settings_of, tell, write_json
from rankstream.operations.commands.options.folded_log import fold_events
from rankstream.operations.commands.options.log import has_files, log_asked
from rankstream.operations.local_replay import LocalReplay, dump_of
from rankstream.operations.terminal.words import counted
from rankstream.settings import Settings
from rankstream.wire.topics import INTERACTIONS
from streams.local import local_settings

SUFFIX = ".npz"


def run(arguments: argparse.Namespace) -> int:
    """Write the file; 1 if no list is asked for, 130 if stopped."""
    file = arguments.arrays
    if file.suffix != SUFFIX:
        raise ValueError(f"--arrays must be a file that ends in {SUFFIX}; got {file}")
    settings = settings_of(arguments)
    part = Part(
        arguments.query, arguments.intervention, arguments.since, arguments.until
    )
    log = BanditLog(part, settings.statistics)
    with Stop() as stop:
        for record in _records(arguments, settings, stop):
            for interaction in interactions_of([record]):
                log.take(interaction)
        if stop.asked:
            tell("stopped; nothing was written")
            return STOPPED
    if not log.n_lists:
        tell("no list is of the part that was asked for")
        return 1
    arrays, beside = log.arrays()
    write_arrays(file, arrays, beside)
    n_unknown = int(np.isnan(arrays.pscore).sum())
    n_clicks = int(arrays.reward.sum())
    if arguments.json:
        sizes = arrays.n_rounds, log.n_lists, arrays.n_actions
        write_json(ExportedArrays(str(file), *sizes, n_clicks, n_unknown).to_dict())
        return 0
    lists, items = counted(log.n_lists, "list"), counted(arrays.n_actions, "item")
    clicks = counted(n_clicks, "click")
    rounds = counted(arrays.n_rounds, "round")
    tell(f"{file}: {rounds} of {lists} and {items}, {clicks}")
    if n_unknown:
        sys.stderr.write(
            f"the propensity of {counted(n_unknown, 'round')} is not known: their "
            "pscore is NaN\n"
        )
    return 0


def _records(
    arguments: argparse.Namespace, settings: Settings, stop: Stop
) -> Iterator[bytes]:
    """Records of `interactions`: of Kafka, of a dump, or folded from files."""
    if not has_files(arguments):
        # Kafka's client is not loaded for files.
        from producers.topic_reader import TopicReader  # noqa: PLC0415

        with TopicReader(settings, is_stopped=lambda: stop.asked) as reader:
            for record in reader.records(INTERACTIONS):
                yield record.value or b""
        return
    dump = dump_of(log_asked(arguments))
    if dump is not None and read_header(dump).topic == INTERACTIONS:
        for _, value in read_dump(dump):
            if stop.asked:
                return
            yield value
        return
    yield from _folded(arguments, settings, stop)


def _folded(
    arguments: argparse.Namespace, settings: Settings, stop: Stop
) -> Iterator[bytes]:
    """What the fold closes of events in files, all windows at the end."""
    local = LocalReplay(local_settings(settings))
    closed: list[bytes] = []
    local.pipeline.show_also(
        lambda output: (
            closed.append(output.value)
            if output.topic == INTERACTIONS and output.value
            else None
        )
    )
    fold_events(arguments, local.pipeline, stop)
    yield from closed
