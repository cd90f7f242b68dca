"""`rankstream train`: from a log in files to a trained ranker, in this process."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from models.kernels.compilation import telling_of_compilation
from producers.stop_signal import Stop
from rankstream.operations.commands.folded_log import FoldedLog, folded_log
from rankstream.operations.commands.format_options import add_folded_format
from rankstream.operations.commands.intervene_tables import as_builtins, write_json
from rankstream.operations.commands.log_asked import has_files
from rankstream.operations.commands.snapshot_files import snapshot_in
from rankstream.operations.commands.train_folder import (
    Kept,
    check_is_free,
    read_training,
    write_training,
)
from rankstream.operations.commands.train_settings import check_model, resolved
from rankstream.operations.commands.train_tables import print_trained
from rankstream.operations.commands.verdicts import (
    Verdict,
    differences_of_envelopes,
    differences_of_runs,
    told_of,
)
from rankstream.operations.terminal.plain_text import visible
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.settings import Settings, load_settings, with_namespace
from rankstream.wire.curves import CurveRecord
from rankstream.wire.envelope import Snapshot, encode_snapshot
from rankstream.wire.snapshot_names import sha256_of
from rankstream.wire.training import RunRecord
from streams.training.inputs import TrainingRefused
from streams.training.progress import Progress
from streams.training.recorded_inputs import (
    Recorded,
    first_version,
    train_once,
    trained_again,
)

SUMMARY = "train a ranker from a log in files, without Kafka"

STOPPED = 130

EPILOG = """examples:
  rankstream train --log clicks.csv --features products.csv --model search --out run/
                                               a table of shown items, and features
                                               of each item in another
  rankstream train --log clicks.csv --columns impression=list,item=sku,at=shown_at,\\
query=words,position=rank,clicked=bought,features=f_* --model search --out run/
                                               features in columns f_... of the log
  rankstream train --log events.dump.zst --config shop.toml --model search --out run/
                                               as the role `train` does from this log
  rankstream train --verify run/               make it again from what lies there
  rankstream rank --model run/ --features products.csv --out ranked.csv

It corrects clicks for where users look, trains a ranker on what is left, and says what
the ranker is worth on queries and users that it has not learned from. The folder has
the snapshot, MODEL@EPOCH.VERSION.snapshot, which is what the role `train` of a worker
would have published, to the byte; and all that it was made from. Settings are optional:
without [models.NAME] in --config they are chosen by the log, and said. docs/training.md
has the whole way, "Without Kafka".

exit status: 0 if it is done, 1 if nothing can be trained, or a snapshot differs
"""


class Stopped(Exception):
    """Somebody asked to stop."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "--log",
        nargs="+",
        type=Path,
        metavar="FILE",
        dest="paths",
        help="lists and clicks: events, tables or documents of other systems in files, "
        "folders of them, or a dump of `rankstream dump`",
    )
    parser.add_argument(
        "--local",
        action="store_true",
        help="in this process, which is what it does at any rate; `rankstream "
        "intervene` has it done on Kafka",
    )
    parser.add_argument(
        "--model", metavar="NAME", help="which one; [models.NAME] of --config, or new"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for the snapshot and all that it was made from",
    )
    parser.add_argument(
        "--parent",
        type=Path,
        metavar="PATH",
        help="go on from this snapshot: its file, or the folder of its training "
        "(default: from version 0)",
    )
    parser.add_argument(
        "--verify",
        type=Path,
        metavar="DIR",
        help="train again from what the folder of a training has, or from --log, and "
        "compare the bytes",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_folded_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Train, or verify; 1 if nothing can be trained or bytes differ, 130 if stopped."""
    settings = with_namespace(load_settings(arguments.config), arguments.namespace)
    _check(arguments, settings)
    try:
        with Stop() as stop:
            if arguments.verify is not None:
                return _verify(arguments, settings, stop)
            return _train(arguments, settings, stop)
    except Stopped:
        sys.stderr.write("stopped; nothing was written\n")
        return STOPPED
    except TrainingRefused as error:
        sys.stderr.write(f"nothing was trained: {visible(str(error))}\n")
        return 1


def _check(arguments: argparse.Namespace, settings: Settings) -> None:
    """Refuse what cannot be, before a whole log is read.

    Raises
    ------
    ValueError
    """
    if arguments.verify is not None:
        if arguments.out or arguments.model or arguments.parent:
            raise ValueError(
                "--verify must be given alone or with --log, as the folder says what "
                "was trained; got --model, --parent or --out beside it: leave them out"
            )
        return
    for option, value, remedy in (
        (
            "--log",
            has_files(arguments),
            "the files of the log, such as --log clicks.csv",
        ),
        ("--model", arguments.model, "a name for the ranker, such as --model search"),
        ("--out", arguments.out, "a folder for what comes of it, such as --out run/"),
    ):
        if not value:
            raise ValueError(f"{option} must be given; it is missing: name {remedy}")
    check_model(settings, arguments.model)
    if arguments.model in settings.models:
        # Columns go by these names, whatever their order is.
        arguments.feature_names = settings.models[arguments.model].feature_names
    check_is_free(arguments.out)


def _train(arguments: argparse.Namespace, settings: Settings, stop: Stop) -> int:
    name: str = arguments.model
    parent = None
    if arguments.parent is not None:
        parent = snapshot_in(arguments.parent, name)
    log = _folded(arguments, settings, stop)
    recorded = _recorded(log)
    whole, said = resolved(
        _under(settings, log.settings.kafka.partitions), name, recorded, log.names
    )
    for each in said:
        sys.stderr.write(f"{visible(each)}\n")
    model = whole.models[name]
    if parent is None:
        parent = first_version(name, model)
    with _telling(name, stop) as tell:
        found = train_once(name, whole, recorded, parent, on_progress=tell)
    file = write_training(arguments.out, found, recorded, parent)
    if arguments.json:
        fit = found.fitted
        write_json(
            {
                "run": as_builtins(found.outcome.run),
                "curve": None if fit is None else as_builtins(fit.run),
                "feature_names": found.outcome.snapshot.feature_names,
                "snapshot": str(file),
            }
        )
    else:
        print_trained(found, arguments.out, file)
    return 0


def _folded(arguments: argparse.Namespace, settings: Settings, stop: Stop) -> FoldedLog:
    """The log, without models: none of them has a part in what is counted."""
    alone = msgspec.structs.replace(settings, models={}, experiments={})
    log = folded_log(arguments, alone, stop)
    if log is None:
        raise Stopped
    if lost := log.replay.told_of_lost():
        sys.stderr.write(f"{lost}\n")
    return log


def _under(settings: Settings, n_partitions: int) -> Settings:
    """Of a log of so many partitions of `events`."""
    kafka = msgspec.structs.replace(settings.kafka, partitions=n_partitions)
    return msgspec.structs.replace(settings, kafka=kafka)


@contextlib.contextmanager
def _telling(name: str, stop: Stop) -> Iterator[Callable[[Progress], object]]:
    """Shows how far a training is, and ends it where somebody asks to stop."""
    with ProgressLine("training", total=None) as line:

        def tell(progress: Progress) -> None:
            if stop.asked:
                raise Stopped
            line.note(f"{visible(name)}: {progress.told()}")

        compiling = telling_of_compilation(
            lambda n: line.note(f"compiling, once for each release: kernel {n}")
        )
        with compiling:
            yield tell


def _recorded(log: FoldedLog) -> Recorded:
    statistics = {change.key: change.value for change in log.changes()}
    return Recorded(statistics, log.candidates)


def _verify(arguments: argparse.Namespace, settings: Settings, stop: Stop) -> int:
    kept = read_training(arguments.verify)
    recorded = kept.recorded
    if has_files(arguments):
        own = _under(settings, kept.run.n_partitions)
        recorded = _recorded(_folded(arguments, own, stop))
    with _telling(kept.run.model, stop) as tell:
        again = trained_again(
            kept.run, kept.fit, recorded, kept.parent, on_progress=tell
        )
    verdicts = [
        _verdict(kept, kept.run, again.outcome.run, again.outcome.snapshot),
    ]
    if kept.fit is not None and again.fitted is not None:
        fitted = again.fitted
        verdicts.insert(0, _verdict(kept, kept.fit, fitted.run, fitted.snapshot))
    for each in verdicts:
        sys.stdout.write(told_of(each, as_json=arguments.json) + "\n")
    return 0 if all(each.is_equal for each in verdicts) else 1


def _verdict(
    kept: Kept,
    written: RunRecord | CurveRecord,
    made: RunRecord | CurveRecord,
    snapshot: Snapshot,
) -> Verdict:
    envelope, again = kept.envelopes.get(written.model, b""), encode_snapshot(snapshot)
    told = differences_of_envelopes(envelope, again)
    if not told and written.sha256 != sha256_of(again):
        told = ["the run has another digest than the snapshot, which is equal"]
    told += differences_of_runs(written, made)
    return Verdict(written.intervention, sha256_of(envelope), sha256_of(again), told)
