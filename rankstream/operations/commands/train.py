"""`rankstream train`: from a log in files to a trained ranker, in this process."""

import argparse
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from models.kernels.compilation import telling_of_compilation
from producers.stop_signal import Stop
from rankstream.operations.answers.as_builtins import as_builtins
from rankstream.operations.answers.folders import MODEL_SETTINGS_FILE, snapshot_in
from rankstream.operations.answers.training_folder import (
    check_is_free,
    read_training,
    verified_training,
    write_training,
)
from rankstream.operations.answers.training_settings import check_model, resolved
from rankstream.operations.commands import (
    STOPPED,
    Stopped,
    settings_of,
    tell,
    write_json,
)
from rankstream.operations.commands.intervene.tables import (
    print_curve,
    print_run,
    print_verification,
)
from rankstream.operations.commands.options.curves import examination_told
from rankstream.operations.commands.options.files import add_folded_format
from rankstream.operations.commands.options.folded_log import FoldedLog, folded_log
from rankstream.operations.commands.options.log import has_files
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import plain, visible
from rankstream.settings import Settings
from rankstream.wire.envelope import Snapshot
from streams.training.inputs import TrainingRefused
from streams.training.progress import TrainingProgress
from streams.training.recorded_inputs import (
    Recorded,
    TrainedOnce,
    first_version,
    train_once,
)

MOST_SHOWN = 20
"""Features whose weights are printed."""

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
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
        "--examination",
        metavar="CURVE",
        type=examination_told,
        help="what clicks are corrected by: probabilities of looking at ranks 1, 2, "
        "..., such as 1,0.6,0.4, or a JSON file with them (default: that of "
        "models.NAME.training, else what clicks tell)",
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
    settings = settings_of(arguments)
    _check(arguments, settings)
    try:
        with Stop() as stop:
            if arguments.verify is not None:
                return _verify(arguments, settings, stop)
            return _train(arguments, settings, stop)
    except Stopped:
        tell("stopped; nothing was written")
        return STOPPED
    except TrainingRefused as error:
        tell(f"nothing was trained: {visible(str(error))}")
        return 1


def _check(arguments: argparse.Namespace, settings: Settings) -> None:
    """Refuse what cannot be, before a whole log is read.

    Raises
    ------
    ValueError
    """
    if arguments.verify is not None:
        if (
            arguments.out
            or arguments.model
            or arguments.parent
            or arguments.examination
        ):
            raise ValueError(
                "--verify must be given alone or with --log, as the folder says what "
                "was trained; got --model, --parent, --examination or --out beside it: "
                "leave them out"
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
        settings.with_kafka(partitions=log.settings.kafka.partitions),
        name,
        recorded,
        log.names,
    )
    for each in said:
        tell(visible(each))
    if arguments.examination:
        whole = _with_examination(whole, name, arguments.examination)
    model = whole.models[name]
    if parent is None:
        parent = first_version(name, model)
    with _telling(name, stop) as show:
        found = train_once(name, whole, recorded, parent, on_progress=show)
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
        _print(found, arguments.out, file)
    return 0


def _with_examination(
    settings: Settings, name: str, examination: list[float]
) -> Settings:
    """Settings in which a model is trained by this curve."""
    model = settings.models[name]
    plan = msgspec.structs.replace(model.training, examination=examination)
    told = msgspec.structs.replace(model, training=plan)
    return msgspec.structs.replace(settings, models=settings.models | {name: told})


def _folded(arguments: argparse.Namespace, settings: Settings, stop: Stop) -> FoldedLog:
    """The log, without models: none of them has a part in what is counted."""
    alone = msgspec.structs.replace(settings, models={}, experiments={})
    log = folded_log(arguments, alone, stop)
    if log is None:
        raise Stopped
    if lost := log.replay.told_of_lost():
        tell(lost)
    return log


@contextlib.contextmanager
def _telling(name: str, stop: Stop) -> Iterator[Callable[[TrainingProgress], object]]:
    """Shows how far a training is, and ends it where somebody asks to stop."""
    with ProgressLine("training", total=None) as line:

        def show(progress: TrainingProgress) -> None:
            if stop.asked:
                raise Stopped
            line.note(f"{visible(name)}: {progress.told()}")

        compiling = telling_of_compilation(
            lambda n: line.note(f"compiling, once for each release: kernel {n}")
        )
        with compiling:
            yield show


def _recorded(log: FoldedLog) -> Recorded:
    statistics = {change.key: change.value for change in log.changes()}
    return Recorded(statistics, log.candidates)


def _verify(arguments: argparse.Namespace, settings: Settings, stop: Stop) -> int:
    kept = read_training(arguments.verify)
    recorded = kept.recorded
    if has_files(arguments):
        own = settings.with_kafka(partitions=kept.run.n_partitions)
        recorded = _recorded(_folded(arguments, own, stop))
    with _telling(kept.run.model, stop) as show:
        found = verified_training(kept, recorded, on_progress=show)
    return max(print_verification(each, as_json=arguments.json) for each in found)


def _print(found: TrainedOnce, folder: Path, file: Path) -> None:
    """Print the curve, the run and the weights, and what to do with them."""
    if found.fitted is not None:
        print_curve(found.fitted.run)
    print_run(found.outcome.run)
    snapshot = found.outcome.snapshot
    if snapshot.kind == "linear":
        print_fitted(wide_console(), _weights_of(snapshot))
    console = Console(soft_wrap=True)
    for line in (
        f"{file}: the snapshot, for `rankstream rank` and rankers",
        f"{folder / MODEL_SETTINGS_FILE}: its settings, for the role `train`",
        f"rankstream rank --model {folder} --features FILE ranks by it, "
        f"rankstream train --verify {folder} makes it again",
    ):
        console.print(line, highlight=False, markup=False)


def _weights_of(snapshot: Snapshot) -> Table:
    """Weights of a linear model by feature, the largest first."""
    weights = np.frombuffer(snapshot.weights, "<f4")
    names = snapshot.feature_names or [f"f{n + 1}" for n in range(len(weights))]
    order = np.argsort(-np.abs(weights), kind="stable")
    table = Table(title="weights of features, normalised in each query")
    if snapshot.normalisation == "none":
        table.title = "weights of features"
    table.add_column("feature", no_wrap=True)
    table.add_column("weight", justify="right", no_wrap=True)
    for place in order[:MOST_SHOWN].tolist():
        table.add_row(plain(names[place]), f"{weights[place]:.4g}")
    if len(order) > MOST_SHOWN:
        table.caption = f"the largest {MOST_SHOWN} of {len(order):,}"
    return table
