"""What `rankstream train` does: fold, train, print and keep it."""

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
from rankstream.operations.answers.counted_features import (
    counted_in,
    recorded_beside,
)
from rankstream.operations.answers.folders import MODEL_SETTINGS_FILE, snapshot_in
from rankstream.operations.answers.models.training_folder import (
    check_is_free,
    read_training,
    verified_training,
    write_training,
)
from rankstream.operations.answers.models.training_settings import (
    BY_THE_LOG,
    check_model,
    resolved,
)
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
from rankstream.operations.commands.options.folded_log import folded_log
from rankstream.operations.commands.options.log import has_files, table_asked
from rankstream.operations.folded_log import FoldedLog
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import plain, visible
from rankstream.settings import Settings
from rankstream.wire.envelope import Snapshot, names_of
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
            or arguments.kind
            or arguments.statistics
        ):
            raise ValueError(
                "--verify must be given alone or with --log, as the folder says what "
                "was trained; got --model, --parent, --examination, --kind, "
                "--statistics or --out beside it: leave them out"
            )
        return
    for option, value, remedy in (
        (
            "--log",
            bool(arguments.statistics) or has_files(arguments),
            "the files of the log, such as --log clicks.csv",
        ),
        ("--model", arguments.model, "a name for the ranker, such as --model search"),
        ("--out", arguments.out, "a folder for what comes of it, such as --out run/"),
    ):
        if not value:
            raise ValueError(f"{option} must be given; it is missing: name {remedy}")
    check_model(settings, arguments.model, arguments.kind)
    if arguments.model in settings.models:
        # Columns go by these names, whatever their order is.
        arguments.feature_names = settings.models[arguments.model].feature_names
    if arguments.statistics and (has_files(arguments) or not arguments.features):
        raise ValueError(
            "--statistics must be given with --features, and without a log, as it has "
            "what was counted of one; got "
            f"{'a log beside it' if has_files(arguments) else 'no features'}: correct "
            "it"
        )
    check_is_free(arguments.out)


def _train(arguments: argparse.Namespace, settings: Settings, stop: Stop) -> int:
    name: str = arguments.model
    parent = None
    if arguments.parent is not None:
        parent = snapshot_in(arguments.parent, name)
    recorded, n_partitions, names = _read(arguments, settings, stop)
    whole, said = resolved(
        settings.with_kafka(partitions=n_partitions),
        name,
        recorded,
        names,
        kind=arguments.kind or BY_THE_LOG[0],
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


def _read(
    arguments: argparse.Namespace, settings: Settings, stop: Stop
) -> tuple[Recorded, int, dict[bytes, list[str]]]:
    """What is trained from, of how many partitions, and names of lists of features."""
    if not arguments.statistics:
        log = _folded(arguments, settings, stop)
        return log.recorded(), log.settings.kafka.partitions, log.names
    table = table_asked(arguments)
    recorded = recorded_beside(counted_in(arguments.statistics), table)
    known = {x for one in recorded.sums().counted for x in one.sources}
    return recorded, max(known) + 1, {table.list_hash: table.rows.names}


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


def _verify(arguments: argparse.Namespace, settings: Settings, stop: Stop) -> int:
    kept = read_training(arguments.verify)
    recorded = kept.recorded
    if has_files(arguments):
        own = settings.with_kafka(partitions=kept.run.n_partitions)
        recorded = _folded(arguments, own, stop).recorded()
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
    names = names_of(snapshot.feature_names or len(weights))
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
