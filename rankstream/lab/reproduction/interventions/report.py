"""What is printed and written of learning with interventions."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from rankstream.lab.closed_loops.policy_log import ESTIMATORS
from rankstream.lab.closed_loops.policy_training import POLICY_GRADIENT
from rankstream.lab.reproduction.interventions.claims import Claim, claims_of
from rankstream.lab.reproduction.interventions.figures import Curves, Found, matched
from rankstream.lab.reproduction.interventions.plan import (
    CUTOFF,
    DECAY,
    LONG,
    ONLINE,
    SHARP,
    SOFT,
    TABLE,
    Cell,
)
from rankstream.lab.reproduction.interventions.runs import (
    LOGGING,
    ON_TRAINING,
    ORDER,
    TRAINED,
)
from rankstream.lab.reproduction.line_picture import Lines, Point, line_picture
from rankstream.lab.reproduction.summary import figure_of, write_csv
from rankstream.lab.reproduction.tables import orderings_table

SHOWN = {
    TRAINED: "learned policy",
    ORDER: "its order",
    LOGGING: "policy that logs",
    ON_TRAINING: "on training queries",
}


def report(name: str, found: Found, out: Path, console: Console, *, seed: int) -> None:
    """Print tables and claims, and write both and the curves."""
    rows = [row for cell, curves in found.items() for row in _rows(cell, curves)]
    write_csv(out / f"{TABLE}-curves.csv", rows)
    for title, panels in _pictures(found):
        text = line_picture(f"{name}: {title}", panels, below="lists", is_log=True)
        path = out / f"{TABLE}-{title.replace(' ', '-')}.svg"
        path.write_text(text, encoding="utf-8")
    for part in dict.fromkeys(cell.part for cell in found):
        shown = {cell: found[cell] for cell in found if cell.part == part}
        console.print(_table(name, part, shown))
    claims = claims_of(found)
    if claims:
        write_csv(out / f"{TABLE}-claims.csv", [_claim_row(claim) for claim in claims])
        console.print(orderings_table(claims, "claims"))
    ratio = matched(found, rng=np.random.default_rng(seed))
    if ratio is not None:
        console.print(
            f"5 interventions reach {ratio.level:.4f} in {ratio.impressions:,} lists, "
            f"50 {_reached(ratio.earlier)}: {_times(ratio.ratio)} times as many "
            f"(95 %: {_times(ratio.low)} to {_times(ratio.high)})",
            highlight=False,
        )


def _reached(earlier: float) -> str:
    return f"in {earlier:,.0f}" if math.isfinite(earlier) else "never"


def _times(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio > 0.0 else "less than 1.0"


def _claim_row(claim: Claim) -> dict[str, Any]:
    gap = claim.gap
    return {
        "claim": claim.text,
        "difference": f"{gap.value:.5f}",
        "error": f"{gap.error:.5f}",
        "p": f"{gap.p:.3g}",
        "holds": "undecided" if claim.holds is None else claim.holds,
    }


def _rows(cell: Cell, curves: Curves) -> list[dict[str, Any]]:
    rows = []
    for at, impressions in enumerate(curves.impressions):
        row: dict[str, Any] = {
            "part": cell.part,
            "method": cell.method,
            "loss": cell.loss,
            "interventions": cell.n_interventions,
            "impressions": impressions,
            "runs": figure_of(curves.of[TRAINED][:, :, at]).n_runs,
            "production": f"{figure_of(curves.production).mean:.6f}",
        }
        for what in SHOWN:
            figure = figure_of(curves.of[what][:, :, at])
            row[what] = f"{figure.mean:.6f}"
            row[f"{what}_deviation"] = f"{_spread(figure):.6f}"
            row[f"{what}_error"] = f"{figure.error:.6f}"
        rows.append(row)
    return rows


def _spread(figure: Any) -> float:
    """Deviation of runs within folds."""
    return float(figure.error * math.sqrt(max(figure.n_runs, 1)))


def _table(name: str, part: str, shown: Found) -> Table:
    n_impressions = next(iter(shown)).n_impressions
    production = figure_of(next(iter(shown.values())).production).mean
    table = Table(
        title=f"{name}, {part}: NDCG@{CUTOFF} after {n_impressions:,} lists, from "
        f"{production:.4f} of the production ranker",
        title_justify="left",
        caption="±: standard error; sd: of runs within folds",
    )
    table.add_column("method")
    for heading in (*SHOWN.values(), "sd", "runs"):
        table.add_column(heading, justify="right", no_wrap=True)
    for cell, curves in shown.items():
        figures = {what: figure_of(curves.end(what)) for what in SHOWN}
        learned = figures[TRAINED]
        cells = [
            f"{figure.mean:.4f}"
            + ("" if math.isnan(figure.error) else f" ± {figure.error:.4f}")
            for figure in figures.values()
        ]
        spread = _spread(learned)
        cells.append("-" if math.isnan(spread) else f"{spread:.4f}")
        table.add_row(cell.label, *cells, str(learned.n_runs))
    return table


def _pictures(found: Found) -> list[tuple[str, dict[str, Lines]]]:
    """Titles, and their panels; those without cells are left out."""

    def lines(is_shown: Callable[[Cell], bool], what: str = TRAINED) -> Lines:
        cells = [cell for cell in found if is_shown(cell)]
        return {cell.label: _points(found[cell], what) for cell in cells}

    def estimates(cell: Cell) -> bool:
        return cell.part == SHARP and cell.loss == POLICY_GRADIENT

    def aware(cell: Cell) -> bool:
        return estimates(cell) and cell.method == ESTIMATORS[0]

    def online(cell: Cell) -> bool:
        is_many = aware(cell) and cell.n_interventions in (0, 100)
        return is_many or (cell.part == SHARP and cell.method in ONLINE)

    every = {
        "estimators": {
            f"{count} interventions": lines(
                lambda cell, count=count: (  # type: ignore[misc]
                    estimates(cell) and cell.n_interventions == count
                )
            )
            for count in (0, 50)
        },
        "interventions": {
            "learned policy": lines(aware),
            "policy that logs": lines(aware, LOGGING),
        },
        "online learners": {
            "learned policy": lines(online),
            "policy that logs": lines(online, LOGGING),
        },
        "other production rankers": {
            "a soft one": lines(lambda cell: cell.part == SOFT),
            "a sharp one, for longer": lines(lambda cell: cell.part == LONG),
        },
        "decay": {
            "held-out queries": lines(lambda cell: cell.part == DECAY),
            "training queries": lines(lambda cell: cell.part == DECAY, ON_TRAINING),
        },
    }
    kept = {
        title: {above: shown for above, shown in panels.items() if shown}
        for title, panels in every.items()
    }
    return [(title, panels) for title, panels in kept.items() if panels]


def _points(curves: Curves, what: str) -> list[Point]:
    points = []
    for at, impressions in enumerate(curves.impressions):
        figure = figure_of(curves.of[what][:, :, at])
        spread = _spread(figure)
        shown = spread if math.isfinite(spread) else 0.0
        points.append(Point(float(impressions), figure.mean, shown))
    return points
