"""Tables of what was reproduced, beside what was published."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from rankstream.lab.reproduction.literature import N_RUNS
from rankstream.lab.reproduction.literature import Published as Printed
from rankstream.lab.reproduction.plan import EXACT, PUBLISHED, Cell
from rankstream.lab.reproduction.summary import (
    OFFLINE,
    ONLINE,
    RECENT,
    SLACK_OFFLINE,
    SLACK_ONLINE,
    Curves,
    Difference,
    Figure,
    difference_of,
    paired_difference,
)

DIGITS = {OFFLINE: 4, ONLINE: 1, RECENT: 4}

HOLDS = {True: "[green]yes[/]", False: "[red]no[/]", None: "[yellow]undecided[/]"}

LESS_THAN = 0.03
"""What almost random users may cost PDGD against perfect ones, in chapter 6."""


def comparison_rows(
    cells: Mapping[Cell, Curves], printed: Mapping[tuple[str, str], Printed]
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
                    row |= _columns(form, what, cells[cell].figure(what), entry)
            if entry:
                row["published"], row["published_deviation"] = _of(entry, what)
            rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [{name: row.get(name, "") for name in names} for row in rows]


def _of(entry: Printed, what: str) -> tuple[float, float]:
    if what == OFFLINE:
        return entry.offline, entry.offline_deviation
    return entry.online, entry.online_deviation


def _columns(
    form: str, what: str, figure: Figure, entry: Printed | None
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


def orderings(cells: Mapping[Cell, Curves]) -> list[tuple[str, Difference, bool]]:
    """The orderings of chapter 6: what is claimed, by how much, whether it holds."""
    found = []
    for form in dict.fromkeys(cell.form for cell in cells):
        ends = {
            (cell.learner, cell.users): curves.offline[:, :, -1]
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
                found.append((claim, gap, gap.value - 2.0 * gap.error > 0.0))
        for users in ("almost_random", "almost_random_by_rank"):
            best, noisy = pdgd.get("perfect"), pdgd.get(users)
            if best is not None and noisy is not None:
                gap = paired_difference(best, noisy)
                claim = (
                    f"{form}: PDGD loses less than {LESS_THAN} by "
                    f"{users.replace('_', ' ')} users"
                )
                found.append((claim, gap, gap.value + 2.0 * gap.error < LESS_THAN))
    return found


def orderings_table(
    found: Sequence[tuple[str, Difference, bool | None]], title: str
) -> Table:
    """The orderings as people read them; None where runs do not tell."""
    table = Table(title=title, title_justify="left")
    table.add_column("claim")
    for heading in ("difference", "95 % interval", "p", "holds"):
        table.add_column(heading, justify="right")
    for claim, gap, holds in found:
        low, high = gap.value - 1.96 * gap.error, gap.value + 1.96 * gap.error
        is_told = math.isfinite(gap.error)
        table.add_row(
            claim,
            f"{gap.value:+.4f}",
            f"{low:+.4f} to {high:+.4f}" if is_told else "-",
            f"{gap.p:.2g}" if math.isfinite(gap.p) else "-",
            HOLDS[holds],
        )
    return table
