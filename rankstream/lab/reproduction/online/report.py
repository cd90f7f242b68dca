"""The tables of online learning to rank: runs, what is printed and written."""

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from rankstream.lab.closed_loops.performance import Conventions
from rankstream.lab.reproduction.engine import Finished, Output, Setup, Study
from rankstream.lab.reproduction.figures import (
    Claim,
    Curves,
    Difference,
    Figure,
    claims_table,
    curves_of,
    figure_of,
    paired_difference,
    two_sided,
    write_csv,
)
from rankstream.lab.reproduction.literature import N_RUNS, Published, published_of
from rankstream.lab.reproduction.online.plan import (
    BEHIND,
    EXACT,
    IMPRESSIONS,
    LAG_TABLE,
    LAGS,
    LEARNERS_TABLE,
    LONG_RUN,
    PUBLISHED,
    Cell,
    cells_of,
    live_once,
    n_grades_of,
)
from rankstream.lab.reproduction.picture import Point, picture_of

OFFLINE, ONLINE, RECENT = "offline", "online", "recent"

DIGITS = {OFFLINE: 4, ONLINE: 1, RECENT: 4}

SLACK_OFFLINE, SLACK_ONLINE = 0.005, 0.01
"""What counts as the same beside two standard errors: NDCG, and a share."""

LESS_THAN = 0.03
"""What almost random users may cost PDGD against perfect ones, in chapter 6."""

LABELS = {
    "pdgd-linear": "PDGD",
    "pdgd-neural": "PDGD, neural",
    "dbgd-linear": "P-DBGD",
    "dbgd-neural": "P-DBGD, neural",
    "dbgd-long": "P-DBGD",
    "dbgd-oracle": "DBGD, oracle",
    "mgd-linear": "P-MGD",
    "pairwise-linear": "pairwise",
    "coltr-linear": "COLTR",
    "pl-rank-linear": "PL-Rank",
    **{f"{BEHIND}{lag}": f"{lag:,} behind" for lag in LAGS},
}

Cells = Mapping[Cell, Curves]


class OnlineStudy(Study[Cell]):
    """Learners that live with their users."""

    file = "runs.txt"
    live_once = staticmethod(live_once)

    def setup(self, place: Path, largest_label: int) -> Setup:
        """What all runs share."""
        asked = self.arguments
        n_grades = n_grades_of(largest_label)
        conventions = _conventions(asked)
        return Setup(place, asked.normalisation, n_grades, asked.seed, conventions)

    def cells(self, setup: Setup, n_folds: int) -> list[Cell]:
        """Learners and users, of both forms where that is asked for."""
        del setup, n_folds
        asked = self.arguments
        forms = (PUBLISHED, EXACT) if asked.published else (EXACT,)
        n_impressions = asked.impressions or IMPRESSIONS[asked.table]
        cells = [
            cell
            for form in forms
            for cell in cells_of(asked.table, form, n_impressions)
            if asked.learners is None or cell.learner in asked.learners
            if asked.users is None or cell.users in asked.users
        ]
        if not cells:
            raise ValueError(
                f"table {asked.table} must have some of the learners and users asked "
                f"for; got {asked.learners} and {asked.users}"
            )
        return cells

    def report(self, cells: list[Cell], found: Finished, output: Output) -> None:
        """Tables beside what was printed, curves, and orderings of the long run."""
        names = (OFFLINE, ONLINE, RECENT)
        curves = {
            cell: curves_of(cell, cell.n_impressions, found, names) for cell in cells
        }
        n_impressions, table = cells[0].n_impressions, self.arguments.table
        is_printed = is_as_printed(self.arguments, n_impressions)
        rows = comparison_rows(curves, published_of(output.name) if is_printed else {})
        suffix = f"{table}-{n_impressions}"
        write_csv(output.out / f"{suffix}-table.csv", rows)
        write_csv(output.out / f"{suffix}-curves.csv", curve_rows(curves))
        metric = f"NDCG@{self.arguments.cutoff}"
        for form in dict.fromkeys(cell.form for cell in cells):
            title = f"{output.name}: {metric} on held-out queries by impressions"
            shown = {cell: each for cell, each in curves.items() if cell.form == form}
            output.draw(f"{suffix}-{form}", learning_curves(title, shown))
        after = f"after {n_impressions:,} impressions"
        titles = {
            OFFLINE: f"{output.name}: {metric} of the ranker, {after}",
            ONLINE: f"{output.name}: discounted {metric} of lists shown, {after}",
            RECENT: f"{output.name}: {metric} of the last lists shown, {after}",
        }
        for what, title in titles.items():
            if what != RECENT or table == LAG_TABLE:
                output.console.print(comparison_table(rows, what, title))
        if table == LONG_RUN:
            title = f"{output.name}: orderings, {after}"
            output.console.print(claims_table(orderings(curves), title))


def _conventions(arguments: argparse.Namespace) -> Conventions:
    return Conventions(arguments.cutoff, arguments.gain, purge=not arguments.keep_empty)


def is_as_printed(arguments: argparse.Namespace, n_impressions: int) -> bool:
    """Whether figures mean what those of the printed tables do."""
    return (
        arguments.table == LEARNERS_TABLE
        and n_impressions == IMPRESSIONS[LEARNERS_TABLE]
        and arguments.normalisation == "min-max"
        and _conventions(arguments) == Conventions()
    )


def learning_curves(title: str, cells: Cells) -> str:
    """A picture of offline figures, with a panel for each kind of users."""
    panels: dict[str, dict[str, Sequence[Point]]] = {}
    for cell, curves in sorted(cells.items(), key=lambda item: item[0].learner):
        panel = panels.setdefault(f"users: {cell.users.replace('_', ' ')}", {})
        panel[LABELS.get(cell.learner, cell.learner)] = curves.points(OFFLINE)
    return picture_of(
        title, panels, below="impressions", is_log=True, is_one_scale=True
    )


def curve_rows(cells: Cells) -> list[dict[str, Any]]:
    """Every checkpoint of every cell."""
    rows = []
    for cell, curves in cells.items():
        for at, impressions in enumerate(curves.impressions):
            offline, online = (
                figure_of(curves.of[what][:, :, at]) for what in (OFFLINE, ONLINE)
            )
            rows.append(
                {
                    "form": cell.form,
                    "learner": cell.learner,
                    "users": cell.users,
                    "impressions": impressions,
                    "runs": offline.n_runs,
                    **offline.columns(prefix=OFFLINE),
                    **online.columns(4, prefix=ONLINE),
                }
            )
    return rows


def comparison_rows(
    cells: Cells, printed: Mapping[tuple[str, str], Published]
) -> list[dict[str, Any]]:
    """One row for every learner, users and figure."""
    rows = []
    pairs = dict.fromkeys((cell.learner, cell.users) for cell in cells)
    by_name = {(cell.form, cell.learner, cell.users): cell for cell in cells}
    for what in (OFFLINE, ONLINE, RECENT):
        for learner, users in pairs:
            row: dict[str, Any] = {"figure": what, "learner": learner, "users": users}
            entry = printed.get((learner, users)) if what != RECENT else None
            for form in (PUBLISHED, EXACT):
                cell = by_name.get((form, learner, users))
                if cell is not None:
                    row |= _columns(form, what, figure_of(cells[cell].end(what)), entry)
            if entry:
                row["published"], row["published_deviation"] = _of(entry, what)
            rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [{name: row.get(name, "") for name in names} for row in rows]


def _of(entry: Published, what: str) -> tuple[float, float]:
    if what == OFFLINE:
        return entry.offline, entry.offline_deviation
    return entry.online, entry.online_deviation


def _columns(
    form: str, what: str, figure: Figure, entry: Published | None
) -> dict[str, Any]:
    digits = DIGITS[what] + 2
    found: dict[str, Any] = {
        f"{form}_form": round(figure.mean, digits),
        f"{form}_form_deviation": round(figure.deviation, digits),
        f"{form}_form_error": round(figure.error, digits),
        "runs": figure.n_runs,
    }
    if entry is None or not figure.n_runs:
        return found
    mean, deviation = _of(entry, what)
    slack = SLACK_OFFLINE if what == OFFLINE else SLACK_ONLINE * mean
    gap = difference_of(figure, mean, deviation, N_RUNS, slack=slack)
    return found | {
        f"{form}_form_difference": round(gap.value, digits),
        f"{form}_form_p": float(f"{gap.p:.3g}"),
        f"{form}_form_same": gap.is_same,
    }


def comparison_table(rows: list[dict[str, Any]], what: str, title: str) -> Table:
    """The rows of one figure as people read them."""
    table = Table(title=title, title_justify="left")
    for name in ("learner", "users"):
        table.add_column(name)
    forms = [form for form in (PUBLISHED, EXACT) if f"{form}_form" in rows[0]]
    is_printed = any(row.get("published", "") != "" for row in rows)
    headings = ["printed"] if is_printed else []
    if is_printed:
        table.caption = "p: conservative, the spread of folds counted on both sides"
    for form in forms:
        headings.append(f"{form} form")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        if row["figure"] == what:
            table.add_row(*_cells(row, what, forms, has_printed=is_printed))
    return table


def _cells(
    row: dict[str, Any], what: str, forms: list[str], *, has_printed: bool
) -> list[str]:
    digits = DIGITS[what]
    cells = [row["learner"], row["users"].replace("_", " ")]
    is_printed = row.get("published", "") != ""
    if is_printed:
        decimals = 3 if what == OFFLINE else 1
        mean, deviation = row["published"], row["published_deviation"]
        cells.append(f"{mean:.{decimals}f} ({deviation:g})")
    elif has_printed:
        cells.append("-")
    for form in forms:
        mean, error = row[f"{form}_form"], row[f"{form}_form_error"]
        text = "-" if mean == "" else f"{mean:.{digits}f}"
        # One run says nothing of its error.
        text += f" ± {error:.{digits}f}" if mean != "" and not math.isnan(error) else ""
        if is_printed and f"{form}_form_difference" in row:
            colour = "green" if row[f"{form}_form_same"] else "yellow"
            gap, p = row[f"{form}_form_difference"], row[f"{form}_form_p"]
            text += f" [{colour}]{gap:+.{digits}f}[/] (p {p:.2g})"
        cells.append(text)
    return cells


def difference_of(
    figure: Figure, mean: float, deviation: float, n_runs: int, *, slack: float
) -> Difference:
    """How a figure compares with a published mean over its own runs.

    P is of Welch's test in its normal limit over all runs. Against a printed mean it is
    conservative: of that only the total deviation is known, so the spread of the folds
    counts on both sides, though they are the same folds.
    """
    published_error = deviation / math.sqrt(n_runs)
    own_error = figure.deviation / math.sqrt(max(figure.n_runs, 1))
    error = math.hypot(published_error, own_error)
    value = figure.mean - mean
    p = two_sided(value, error)
    return Difference(value, error, p, abs(value) <= 2.0 * published_error + slack)


def orderings(cells: Cells) -> list[Claim]:
    """The orderings of chapter 6."""
    found = []
    for form in dict.fromkeys(cell.form for cell in cells):
        ends = {
            (cell.learner, cell.users): curves.end(OFFLINE)
            for cell, curves in cells.items()
            if cell.form == form
        }
        pdgd = {users: ends.get(("pdgd-linear", users)) for _, users in ends}
        for other, users, named in (
            ("dbgd-oracle", "perfect", "DBGD with an oracle"),
            ("dbgd-long", "perfect", "P-DBGD"),
            ("dbgd-long", "almost_random", "P-DBGD"),
            ("dbgd-long", "almost_random_by_rank", "P-DBGD"),
        ):
            one, against = pdgd.get(users), ends.get((other, users))
            if one is not None and against is not None:
                gap = paired_difference(one, against)
                claim = f"{form}: PDGD above {named}, {users.replace('_', ' ')} users"
                found.append(Claim(claim, gap, gap.value - 2.0 * gap.error > 0.0))
        for users in ("almost_random", "almost_random_by_rank"):
            best, noisy = pdgd.get("perfect"), pdgd.get(users)
            if best is not None and noisy is not None:
                gap = paired_difference(best, noisy)
                claim = (
                    f"{form}: PDGD loses less than {LESS_THAN} by "
                    f"{users.replace('_', ' ')} users"
                )
                found.append(Claim(claim, gap, gap.value + 2.0 * gap.error < LESS_THAN))
    return found
