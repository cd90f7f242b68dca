"""A ranker trained from what a log counted, and how that went."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from rankstream.configuration.models import TRAINED
from rankstream.notebook.counted import Counted
from rankstream.notebook.progress import NotedLines
from rankstream.notebook.python_words import in_python
from rankstream.notebook.results import Result, remarks_of
from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.answers.models.training_settings import resolved
from rankstream.operations.terminal.words import loss_line
from rankstream.settings import ModelSettings, Settings
from rankstream.settings import contradiction as contradiction_of
from rankstream.wire.models.curves import CurveRecord
from rankstream.wire.models.training import RunRecord
from rankstream.wire.nearest_name import suggestion
from streams.training.inputs import TrainingRefused
from streams.training.progress import TrainingProgress
from streams.training.recorded_inputs import TrainedOnce, first_version, train_once

OF_FORM = ("kind", "hidden", "seed")
"""Parameters that are settings of the model; others are of its training."""

KINDS = ("linear", "neural", "neural-tanh", "neural-relu")
"""Those that are trained here; trees are trained elsewhere, and imported."""

_PLACE = re.compile(r" - at `\$\.(?:training\.)?([\w.\[\]]+)`")

HIDDEN = (10,)
"""Layers of a neural ranker of which nobody says any."""


class Epoch(NamedTuple):
    """What an epoch gave; the first row is what training went on from.

    Parameters
    ----------
    loss
        Of training queries.
    held_out_dcg
        Estimated, of held-out queries.
    """

    epoch: int
    loss: float
    held_out_dcg: float


@dataclass(frozen=True)
class Training(Answer):
    """How a ranker came to be.

    Parameters
    ----------
    curve
        The fit that it was corrected by; None where none was made for it alone.
    """

    run: RunRecord
    curve: CurveRecord | None


TrainingResult = Result[Training, Epoch]


class Fitted(NamedTuple):
    """A ranker, and what was decided for it."""

    trained: TrainedOnce
    said: tuple[str, ...]


def fitted_on(counted: Counted, params: Mapping[str, Any], *, is_shown: bool) -> Fitted:
    """Train a ranker on a log.

    Parameters
    ----------
    params
        Those of `ClickRanker`; None leaves the choice to the log.
    is_shown
        Whether it says how far it is.

    Raises
    ------
    ValueError
        Where one cannot be so, or the log does not tell enough.
    """
    name = params["name"]
    try:
        whole, said = resolved(
            msgspec.structs.replace(counted.settings, models={}, experiments={}),
            name,
            counted.recorded,
            counted.names,
        )
        settings = _with(whole, name, params)
        parent = first_version(name, settings.models[name])
        with NotedLines(is_shown=is_shown).compiling("training") as line:

            def show(progress: TrainingProgress) -> None:
                line.note(progress.told())

            trained = train_once(
                name, settings, counted.recorded, parent, on_progress=show
            )
    except TrainingRefused as error:
        raise ValueError(f"nothing was trained: {in_python(str(error))}") from None
    return Fitted(trained, said)


def training_result(found: Fitted) -> TrainingResult:
    """How it went, epoch by epoch."""
    run, fit = found.trained.outcome.run, found.trained.fitted
    rows = [Epoch(*each) for each in run.epochs]
    sizes = run.sizes
    reward = (
        f"{run.reward:.4f}" if run.reward is not None else f"- ({run.reward_reason})"
    )
    title = (
        f"{run.intervention}: {sizes.n_queries:,} queries, {sizes.n_held_out:,} held "
        f"out, {sizes.n_items:,} items; best epoch {run.best_epoch}"
    )
    told = remarks_of(
        f"loss {loss_line(run)}; values by {run.estimator}",
        f"clicks per list, estimated from groups that it has not seen: {reward}",
        f"corrected by a curve {run.curve.source}",
        run.curve.warning,
        *map(in_python, found.said),
    )
    answer = Training(run, None if fit is None else fit.run)
    return Result(answer, title, Epoch, rows, told, pictured=run)


def _with(settings: Settings, name: str, params: Mapping[str, Any]) -> Settings:
    """Settings whose model has the parameters that somebody set.

    Raises
    ------
    ValueError
        Where one cannot be so.
    """
    given = {key: value for key, value in params.items() if value is not None}
    form = {key: given.pop(key) for key in OF_FORM if key in given}
    if form["kind"] not in KINDS:
        raise ValueError(
            f"kind must be one of {', '.join(KINDS)}; got {form['kind']!r:.60}"
            f"{suggestion(str(form['kind']), KINDS)}"
        )
    if form["kind"] != "linear":
        form.setdefault("hidden", HIDDEN)
    given.pop("name")
    tree = msgspec.to_builtins(settings.models[name])
    tree |= {**form, "hidden": [*form.get("hidden", ())], "versions": TRAINED}
    tree["training"] |= {**given, "seed": form["seed"]}
    if "examination" in given:
        tree["training"]["examination"] = [*map(float, given["examination"])]
    try:
        model = msgspec.convert(tree, ModelSettings)
    except msgspec.ValidationError as error:
        words = _PLACE.sub(r": \1", str(error))
        raise ValueError(f"parameters of a ranker must be sound; {words}") from None
    told: Settings = msgspec.structs.replace(settings, models={name: model})
    if fault := contradiction_of(told):
        own = re.compile(rf"models\.{re.escape(name)}\.(?:training\.)?")
        raise ValueError(own.sub("", fault[1]))
    return told
