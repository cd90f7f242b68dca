"""Trainings and fits of curves of bias as tables, and how it stands with models."""

import math
import sys
import textwrap
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from models.estimators.choice import OF_KNOWN, Choice, asked_for, choice_of_sums
from rankstream.operations.answers.models.trainings import ModelStanding
from rankstream.operations.answers.models.verification import Verification
from rankstream.operations.commands import write_json
from rankstream.operations.plots.picture import Estimate
from rankstream.operations.terminal.bars import bars_of
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.words import (
    counted,
    loss_line,
    moment,
    plain,
    visible,
)
from rankstream.wire.envelope import Pointer
from rankstream.wire.models.curves import CurveOfRank, CurveRecord, published
from rankstream.wire.models.training import LEFT_ALONE, CurveUsed, RunRecord

SPARE = ("why", "parent")
"""Columns that may go where there is no room."""

CAPTION = (
    "DCG: estimated of held-out queries; the parent's, then that of the new version.",
    "estimated: clicks per list, from selection groups; a point without interval.",
    "curve: examination by rank, relative to rank 1, that clicks were corrected by.",
    "`--show VERSION` has the rest.",
)

N_RANKS_SHOWN = 5


SPARE_OF_CURVES = ("why", "event time")
"""Columns that may go where there is no room."""

UNITS = "in units of rank 1, which is what clicks tell"

WIDTH = 100


def print_runs(runs: Sequence[RunRecord]) -> None:
    """Print a table, the first one first."""
    rows = [_row(each) for each in runs]
    lines = [line for each in CAPTION for line in wrapped(each)]
    for text in [*_curves_of(runs), *_reasons_of(runs)]:
        lines += wrapped(text)
    caption = "\n".join(map(plain, lines))
    table = Table(title=counted(len(rows), "training"), caption=caption)
    table.caption_justify = "left"
    for name in rows[0]:
        is_text = name in ("intervention", "why", "event time")
        table.add_column(name, justify="left" if is_text else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row.values())
    print_fitted(wide_console(), table, SPARE)


def print_run(run: RunRecord) -> None:
    """Print all that is known of one."""
    table = Table(show_header=False, title=plain(run.intervention))
    for name, value in _details(run).items():
        table.add_row(name, plain(value))
    console = wide_console()
    print_fitted(console if console.width < WIDTH else Console(width=WIDTH), table)


def print_curves(records: Sequence[CurveRecord]) -> None:
    """Print a table of fits, the first one first."""
    table = Table(title=counted(len(records), "curve"))
    for name in ("curve", "why", "event time", "estimator", "alpha by rank"):
        table.add_column(name, no_wrap=True)
    for each in records:
        alpha = [_hundredths(rank.alpha) for rank in published(each).ranks]
        more = " ..." if len(alpha) > N_RANKS_SHOWN else ""
        table.add_row(
            plain(each.intervention),
            each.reason,
            moment(each.created_ms),
            plain(each.estimator),
            " ".join(alpha[:N_RANKS_SHOWN]) + more,
        )
    lines = [line for each in _warnings_of(records) for line in wrapped(each)]
    lines.append("`--show VERSION` has intervals, beta and reasons.")
    table.caption, table.caption_justify = "\n".join(map(plain, lines)), "left"
    print_fitted(wide_console(), table, SPARE_OF_CURVES)


def print_curve(record: CurveRecord) -> None:
    """Print all that is known of one: what it is from, then rank by rank."""
    console = wide_console()
    console = console if console.width < WIDTH else Console(width=WIDTH)
    table = Table(show_header=False, title=plain(record.intervention))
    for name, value in _curve_details(record).items():
        table.add_row(name, plain(value))
    print_fitted(console, table)
    confidence = record.options["confidence"]
    ranks = Table(title=f"by rank, with intervals of {confidence:.0%}, each by itself")
    for name in ("rank", "alpha", "beta", "not known, or without interval"):
        ranks.add_column(name, justify="left" if "not" in name else "right")
    known = published(record).ranks
    numbers = [Estimate.of(rank.alpha, rank.alpha_interval) for rank in known]
    axis, bars = bars_of(numbers, is_from_zero=True)
    ranks.add_column(axis)
    for rank, bar in zip(known, bars, strict=True):
        ranks.add_row(str(rank.rank), *_with_intervals(rank), plain(rank.why), bar)
    print_fitted(console, ranks)


def print_verification(found: Verification, *, as_json: bool) -> int:
    """Print whether a version is what was published; the exit status."""
    if as_json:
        write_json(found.to_dict())
    else:
        sys.stdout.write(f"{found.told()}\n")
    return 0 if found.is_equal else 1


def lines_of(standing: ModelStanding) -> list[str]:
    """It in words, no line wider than `WIDTH`."""
    name, doing, refusal = standing.model, standing.doing, standing.refusal
    said = []
    is_left = doing is not None and doing.state == LEFT_ALONE
    if doing is not None and not is_left:
        said.append(f"now: {doing.said}")
    if standing.is_asked:
        said.append("somebody asked for a training, which is not done yet")
    if refusal is not None:
        after = f", after {refusal.after}" if refusal.after else ""
        at = f"{moment(refusal.at_ms)} UTC"
        said.append(f"last refused {at} (by {refusal.reason}){after}: {refusal.said}")
    if doing is not None and is_left:
        said.append(f"left alone: {doing.said}")
    elif standing.due:
        said.append(standing.due)
    return [line for each in said for line in wrapped(f"{name}: {each}")]


def wrapped(text: str) -> Sequence[str]:
    """Lines of a text of no more than `WIDTH`, unless a word is longer."""
    return textwrap.wrap(
        visible(text),
        WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _row(run: RunRecord) -> dict[str, str]:
    return {
        "intervention": plain(run.intervention),
        "parent": _parent(run),
        "why": run.reason,
        "event time": moment(run.created_ms),
        "DCG": _dcg(run),
        "estimated\nclicks/list": _reward(run),
    }


def _choice(run: RunRecord) -> Choice:
    asked = run.settings.get("training", {}).get("estimator")
    if asked:
        return asked_for(asked, "training.estimator")
    return choice_of_sums(
        has_known=run.estimator == OF_KNOWN,
        has_beside=bool(run.n_beside),
    )


def _details(run: RunRecord) -> dict[str, str]:
    sizes, curve = run.sizes, run.curve
    n_epochs = max(number for number, *_ in run.epochs)
    counts = ", ".join(f"{n:,} of partition {at}" for at, n in run.counts)
    asked = f", request {run.request}" if run.request else ""
    return {
        "parent": _parent(run),
        "sha256 of the parent": run.parent.sha256.hex(),
        "why": run.reason + asked,
        "event time": f"{moment(run.created_ms)} UTC",
        "interactions": f"{run.version:,}: {counts}",
        "queries": f"{sizes.n_queries:,} to learn from, {sizes.n_held_out:,} held out, "
        f"{sizes.n_without_features:,} left out without features",
        "lists left out": f"{sizes.n_left_out:,}, of policies that are unknown",
        "items": f"{sizes.n_items:,}, {sizes.n_below:,} of them below least_support "
        f"with {sizes.share_below:.2%} of the clicks",
        "values": _choice(run).said(run.n_lists or 0, run.n_beside or 0),
        "clicks": f"{sizes.n_clicks:,}, counted in the training groups",
        "epoch": f"{run.best_epoch} of {n_epochs}, loss {_best(run)[0]:.5g}",
        "loss": loss_line(run),
        "DCG": f"{_dcg(run)}, estimated, of held-out queries: parent, this one",
        "estimated clicks per list": run.reward_reason
        if run.reward is None
        else f"{_reward(run)}, from selection groups; a point without interval",
        "examination by rank": ", ".join(_by_rank(run)),
        "intervals": _intervals(run),
        "from": curve.source,
        "known well": curve.warning or ("yes" if curve.groups else "-"),
        "scale, temperature": f"{run.scale:.5g}, {run.temperature:g}",
        "least exposure": f"{run.least_exposure:.3g}",
        "largest loss": _fall(run),
        "groups": f"training {_ranges(run.groups)}; curve {_ranges(curve.groups)}",
        "seed": str(run.seed),
        "feature records": ", ".join(
            f"{each.n_records:,} of partition {each.partition}, digest "
            f"{each.digest.hex()}"
            for each in run.features
        ),
        "sha256": run.sha256.hex(),
    }


def _by_rank(run: RunRecord) -> list[str]:
    """Examination with its interval, where there is one."""
    alpha, ends = run.curve.alpha, run.ends
    if ends is None:
        return [*map(_short, alpha)]
    return [
        _short(each)
        if math.isnan(low) or low == high
        else f"{_short(each)} [{low:.2g} to {high:.2g}]"
        for each, low, high in zip(alpha, ends.low, ends.high, strict=True)
    ]


def _intervals(run: RunRecord) -> str:
    """Of what confidence they are, or why there is none."""
    ends = run.ends
    if ends is not None:
        if not any("[" in each for each in _by_rank(run)):
            return "none, as lists showed each item too seldom"
        of = "" if ends.confidence is None else f"of {100.0 * ends.confidence:g} %, "
        return f"{of}each by itself; rank 1 is the unit"
    if run.n_lists is None:
        return "- (a release that did not keep them)"
    if not run.curve.groups:
        return "none, as the curve was given: nobody says how well it is known"
    return "none, as policies were chosen from the same clicks"


def _curves_of(runs: Sequence[RunRecord]) -> list[str]:
    """Each curve once, after the names of the trainings that used it."""
    named: dict[str, list[str]] = {}
    for run in runs:
        named.setdefault(_told(run.curve), []).append(run.intervention)
    return [f"curve of {', '.join(names)}: {told}" for told, names in named.items()]


def _told(curve: CurveUsed) -> str:
    """A curve in a line, with what is wrong with it."""
    ranks = [_short(each) for each in curve.alpha]
    shown = " ".join(ranks[:N_RANKS_SHOWN])
    if len(ranks) > N_RANKS_SHOWN:
        shown += f" ... {ranks[-1]} at rank {len(ranks)}"
    warning = f"; {curve.warning}" if curve.warning else ""
    return f"{shown}, {curve.source}{warning}"


def _reasons_of(runs: Sequence[RunRecord]) -> list[str]:
    """Why there is no estimate, after the names of the trainings."""
    named: dict[str, list[str]] = {}
    for run in runs:
        if run.reward is None:
            named.setdefault(run.reward_reason, []).append(run.intervention)
    return [f"not estimated, {', '.join(names)}: {why}" for why, names in named.items()]


def _short(share: float) -> str:
    return f"{share:.2g}"


def _ranges(groups: Sequence[int]) -> str:
    return f"{groups[0]} to {groups[-1]}, {len(groups):,} of them" if groups else "none"


def _parent(run: RunRecord) -> str:
    return str(Pointer(run.parent.epoch, run.parent.version))


def _best(run: RunRecord) -> tuple[float, float]:
    """Loss and DCG of the epoch that was taken."""
    return {number: (loss, dcg) for number, loss, dcg in run.epochs}[run.best_epoch]


def _dcg(run: RunRecord) -> str:
    # The epochs begin with the parent's.
    of_parent = {number: dcg for number, _, dcg in run.epochs}.get(0, math.nan)
    best = _best(run)[1]
    return "-" if math.isnan(best) else f"{of_parent:.4f} to {best:.4f}"


def _reward(run: RunRecord) -> str:
    return "-" if run.reward is None else f"{run.reward:.4f}"


def _fall(run: RunRecord) -> str:
    """How far it can fall behind its parent, and what held it back."""
    if run.largest_loss is None:
        return "- (a release that did not compute it)"
    told = f"{run.largest_loss:.4g} per list at most, whatever users like"
    if run.least_ratio is not None:
        told += f"; an item keeps {run.least_ratio:.3g} of its exposure or more"
    bound = run.settings.get("training", {}).get("largest_loss")
    if bound is None:
        return told
    went = "all the way" if run.step == 1.0 else f"{run.step:.4g} of the way"
    return f"{told}; bound {bound:g}, weights went {went} from the parent"


def _curve_details(record: CurveRecord) -> dict[str, str]:
    parent, version = record.parent, sum(n for _, n in record.counts)
    asked = f", request {record.request}" if record.request else ""
    counts = ", ".join(f"{n:,} of partition {at}" for at, n in record.counts)
    options = ", ".join(
        f"{name} {value}" for name, value in record.options.items() if value is not None
    )
    turns = f", {counted(record.n_turns, 'turn')}" if record.n_turns else ""
    return {
        "version before": f"{parent.epoch}.{parent.version}" if parent else "none",
        "why": record.reason + asked,
        "event time": f"{moment(record.created_ms)} UTC",
        "interactions": f"{version:,}: {counts}",
        "options": options,
        "clicks": record.source,
        "rests on": f"{counted(record.n_rows, 'row')} of document and rank, "
        f"{record.n_shown:,} times shown, {counted(record.n_clicked, 'click')}",
        "log likelihood": "-"
        if record.log_likelihood is None
        else f"{record.log_likelihood:.6g}{turns}",
        "trust bias": record.bias or "-",
        "alpha and beta": UNITS if record.is_ratio_only else "as the anchor has it",
        "sha256": record.sha256.hex(),
    }


def _warnings_of(records: Sequence[CurveRecord]) -> list[str]:
    return [
        f"{each.intervention}: {each.warning()}" for each in records if each.warning()
    ]


def _with_intervals(rank: CurveOfRank) -> tuple[str, str]:
    return (
        _with_ends(rank.alpha, rank.alpha_interval),
        _with_ends(rank.beta, rank.beta_interval),
    )


def _with_ends(value: float | None, ends: tuple[float, float] | None) -> str:
    if value is None:
        return "-"
    shown = f"{value:.3f}"
    return shown if ends is None else f"{shown} [{ends[0]:.3f}, {ends[1]:.3f}]"


def _hundredths(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
