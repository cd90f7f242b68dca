"""What pictures of trainings, and of fits of curves of bias, hold."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from models.estimators.bias_curve import BiasCurve
from rankstream.operations.plots.bias import bias_panel, fitted_picture
from rankstream.operations.plots.picture import Estimate, Line, Lines, Panel, Picture
from rankstream.operations.terminal.words import counted
from rankstream.wire.models.curves import CurveRecord, published
from rankstream.wire.models.training import RunRecord
from streams.training.curves.curve_estimator import CurveEnds

N_RANKS_SHOWN = 6
"""Ranks of a curve whose alpha is followed, the unit among them."""

MOST_CURVES = 4

EVENT_TIME, EPOCH = "event time", "epoch"

POINT = "a point without interval"


def interventions_picture(runs: Sequence[RunRecord | CurveRecord]) -> Picture:
    """Interventions by event time: value, DCG, and alpha of curves; oldest first."""
    trained = [each for each in runs if isinstance(each, RunRecord)]
    panels: list[list[Panel]] = [[_values(trained)], [_dcg(trained)]] if trained else []
    fitted: dict[str, list[CurveRecord]] = {}
    for each in runs:
        if isinstance(each, CurveRecord):
            fitted.setdefault(each.model, []).append(each)
    panels += [[_alpha(name, fitted[name])] for name in [*fitted][:MOST_CURVES]]
    why = Counter(run.reward_reason for run in trained if run.reward is None)
    notes = [
        f"not estimated, of {counted(n, 'training')}: {reason}"
        for reason, n in why.items()
    ]
    left = len(fitted) - MOST_CURVES
    notes += [f"{counted(left, 'more curve')}: name one"] if left > 0 else []
    return Picture(counted(len(runs), "intervention"), panels, notes)


def intervention_picture(run: RunRecord | CurveRecord) -> Picture:
    """One of them: loss and DCG by epoch with the curve it used, or a curve by rank."""
    if isinstance(run, CurveRecord):
        return fitted_picture(run)
    epochs = [epoch for epoch, *_ in run.epochs]
    loss = _by_epoch(f"loss, {run.loss}", run, epochs, [x for _, x, _ in run.epochs])
    title = "estimated DCG of held-out queries"
    dcg = _by_epoch(title, run, epochs, [x for *_, x in run.epochs])
    used, ends = run.curve, run.ends
    curve = BiasCurve(
        np.array(used.alpha), np.array(used.beta), is_ratio_only=used.is_ratio_only
    )
    known = None
    if ends is not None:
        low, high = np.array(ends.low), np.array(ends.high)
        known = CurveEnds(low, high, ends.confidence)
    notes = (used.source, used.warning)
    return Picture(run.intervention, [[loss, dcg], [bias_panel(curve, known)]], notes)


def _by_epoch(
    title: str, run: RunRecord, epochs: Sequence[int], numbers: Sequence[float]
) -> Lines:
    line = Line(title, [*map(Estimate.of, numbers)], is_estimated=False, xs=epochs)
    return Lines(title, "", EPOCH, [line], mark=(float(run.best_epoch), "taken"))


def _values(runs: Sequence[RunRecord]) -> Lines:
    lines = [
        _line(model, own, [run.reward for run in own])
        for model, own in _by_model(runs).items()
    ]
    title = f"estimated value from selection groups, {POINT}"
    return Lines(title, "clicks per list", EVENT_TIME, lines, is_time=True)


def _dcg(runs: Sequence[RunRecord]) -> Lines:
    """That of new versions, and of their parents, which are epoch 0 of a training."""
    lines = []
    for model, own in _by_model(runs).items():
        taken = [_dcg_at(run, run.best_epoch) for run in own]
        parents = [_dcg_at(run, 0) for run in own]
        lines += [_line(model, own, taken), _line(f"{model}, parent", own, parents)]
    title = f"estimated DCG of held-out queries, {POINT}"
    return Lines(title, "DCG", EVENT_TIME, lines, is_time=True)


def _by_model(runs: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    found: dict[str, list[RunRecord]] = {}
    for run in runs:
        found.setdefault(run.model, []).append(run)
    return found


def _line(name: str, runs: Sequence[RunRecord], numbers: list[float | None]) -> Line:
    xs = [run.created_ms for run in runs]
    return Line(name, [*map(Estimate.of, numbers)], is_estimated=False, xs=xs)


def _dcg_at(run: RunRecord, epoch: int) -> float | None:
    """None where the record does not have it."""
    return next((dcg for number, _, dcg in run.epochs if number == epoch), None)


def _alpha(name: str, records: Sequence[CurveRecord]) -> Lines:
    """A line for each rank but the first, which is the unit."""
    n_ranks = min(N_RANKS_SHOWN, max(each.n_ranks for each in records))
    lines = []
    for rank in range(2, n_ranks + 1):
        points = [
            (each.created_ms, published(each).ranks[rank - 1])
            for each in records
            if each.n_ranks >= rank
        ]
        lines.append(
            Line(
                f"rank {rank}",
                [Estimate.of(x.alpha, x.alpha_interval) for _, x in points],
                xs=[at_ms for at_ms, _ in points],
            )
        )
    title = f"alpha by rank of {name}, in units of rank 1"
    return Lines(title, "alpha", EVENT_TIME, lines, is_from_zero=True, is_time=True)
