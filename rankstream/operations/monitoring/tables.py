"""Tables of the monitor in a terminal: interventions, worth by the log, and curves."""

import textwrap
import time
from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import (
    Console,
    ConsoleOptions,
    Group,
    JustifyMethod,
    RenderableType,
    RenderResult,
)
from rich.table import Column, Table
from rich.text import Text

from rankstream.operations.terminal.words import counted, moment, visible
from rankstream.wire.models.training import TRAINING as UNDER_WAY

STATES = {"refused": "red", "left alone": "yellow", "training": "cyan", "done": "green"}

INTERVENTION_HEADINGS = (
    "intervention", "event time", "why", "clicks\nused", "below\nsupport", "lists",
    "clicks\nper list", "sessions\nto come", "expected\nbefore",
)  # fmt: skip

SPARE_OF_INTERVENTIONS = "why", "below\nsupport", "clicks\nused", "event time"
"""Columns that go where there is no room, the first one first."""

ALIVE_S = 60.0
"""A trainer that has said nothing for so long is not at work."""

N_TEXTS = 3
"""The first columns, which are no numbers."""

BELOW = "below support: share of items that were seen too little, and are in no pair."

EXPECTED = (
    "expected before: clicks per list as estimated before it was shown, from users "
    "whose clicks it was not trained on; a point without interval."
)

VALUE_HEADINGS = (
    "policy", "clicks\nper list", "less\nlogged", "95 %", "unseen",
    "largest\nclick", "effective\nclicks", "age",
)  # fmt: skip

SPARE_OF_VALUES = "largest\nclick", "effective\nclicks", "unseen", "age"
"""Columns that go where there is no room, the first one first."""

CLICKS_PER_LIST = (
    "clicks per list: as estimated from all that was logged, whoever showed it. "
    "unseen: share of what the policy would show that no clicks tell of; it counts as "
    "not relevant."
)

BAR_OF_ALPHA = 10

WIDTH = 78
"""Of what is said below a table."""


def borderless(title: str, headings: Sequence[str], n_texts: int) -> Table:
    """A table without lines: texts stand left in its first columns, figures right."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    for number, heading in enumerate(headings):
        justify: JustifyMethod = "left" if number < n_texts else "right"
        table.add_column(heading, justify=justify, no_wrap=True)
    return table


def interventions_of(found: dict[str, Any]) -> RenderableType:
    """All that is known of interventions; nothing where no model is trained."""
    rows, states = found["rows"], found["states"]
    parts: list[RenderableType] = [_state(each) for each in states]
    for each in found["next"]:
        parts.append(Text(f"{visible(each['model'])}: {visible(each['said'])}"))
    if rows:
        parts += [
            Fitted(_intervention_table(found), SPARE_OF_INTERVENTIONS),
            _told_of_interventions(found),
        ]
    return Group(*parts)


def _state(state: dict[str, Any]) -> Text:
    line = Text(f"{visible(state['model'])}: ")
    line.append(visible(state["state"]), style=STATES.get(state["state"], "white"))
    if state["said"]:
        line.append(f", {visible(state['said'])}")
    silent_s = time.time() - state["at_ms"] / 1_000.0
    if state["state"] == UNDER_WAY and silent_s > ALIVE_S:
        line.append(f"; not heard of for {silent_s / 60.0:,.0f} min", style="yellow")
    return line


def _intervention_table(found: dict[str, Any]) -> Table:
    rows = found["rows"]
    title = counted(len(rows) + found["n_older"], "policy", "policies")
    table = borderless(title, INTERVENTION_HEADINGS, N_TEXTS)
    table.columns[1].no_wrap = False
    for each in rows:
        table.add_row(Text(visible(each["name"])), *_of_run(each), *_of_rate(each))
    return table


def _told_of_interventions(found: dict[str, Any]) -> Text:
    """What the columns are, and why some are empty."""
    rows, n_more, alpha = found["rows"], found["n_older"], found["alpha"]
    missing = {
        f"{each['name']}: {why}"
        for each in rows
        if (run := each["run"]) and (why := run["reward_reason"])
    }
    unsaid = {
        f"{each['name']}: {why}"
        for each in rows
        if (rate := each["rate"]) and (why := rate["why"])
    }
    lines = [BELOW]
    if alpha is not None:
        level = f"{100.0 * (1.0 - alpha):g} %"
        lines.append(f"sessions to come: interval at {level}. {found['question']}")
    lines.append(EXPECTED)
    lines += [f"not estimated, {each}" for each in sorted(missing)]
    lines += [f"no interval, {each}" for each in sorted(unsaid)]
    lines += [f"{n_more:,} older ones are not shown"] if n_more else []
    return Text("\n".join(visible(line) for line in lines), style="dim italic")


def _of_run(row: dict[str, Any]) -> list[str | Text]:
    run = row["run"]
    if run is None:
        return ["first policy" if row["is_first"] else "-", "-", "-", "-"]
    return [
        moment(run["created_ms"]),
        Text(visible(run["reason"])),
        f"{run['clicks']:,}",
        f"{100.0 * run['below'] / max(1, run['items']):.1f} %",
    ]


def _of_rate(row: dict[str, Any]) -> list[str]:
    rate, run = row["rate"], row["run"]
    reward = run and run["reward"]
    estimated = "-" if reward is None else f"{reward:.3f}"
    if rate is None or rate["mean"] is None:
        return ["0", "-", "-", estimated]
    low, high = rate["to_come"]
    ends = "-" if low is None else f"{low:.3f}-{high:.3f}"
    return [f"{rate['lists']:,}", f"{rate['mean']:.3f}", ends, estimated]


def values_of(models: list[dict[str, Any]]) -> list[RenderableType]:
    """A table of all policies and what must be known of them; nothing of none."""
    if not models:
        return []
    lines = [
        CLICKS_PER_LIST,
        *(line for each in models for line in _told_of_values(each)),
    ]
    text = Text("\n".join(visible(line) for line in lines), style="dim italic")
    return [Fitted(_value_table(models), SPARE_OF_VALUES), text]


def _told_of_values(model: dict[str, Any]) -> Iterator[str]:
    """What figures of a model rest on, and why some are empty."""
    name, n_lists, n_all = model["model"], model["lists"], model["lists_all"]
    if not n_all:
        yield (
            f"{name}: as of {moment(model['at_ms'])} UTC, before anything was counted; "
            f"the next look comes by itself, or ask `rankstream evaluate {name}`"
        )
        return
    curve = f", curve {model['curve']}" if model["curve"] else ""
    lists = (
        counted(n_all, "list")
        if n_lists == n_all
        else f"{n_lists:,} of {n_all:,} lists"
    )
    clicks, groups = counted(model["clicks"], "click"), len(model["groups"])
    yield (
        f"{name}: {model['estimator']}{curve}; {lists} and {clicks} of "
        f"{counted(groups, 'group')}"
    )
    yield from (f"{name}: {each}" for each in model["remarks"])
    for each in model["policies"]:
        if each["why"]:
            what = "not known" if each["value"] is None else "no interval"
            yield f"{each['policy']}: {what}, {each['why']}"


def _value_table(models: list[dict[str, Any]]) -> Table:
    table = borderless("worth by the log", VALUE_HEADINGS, 1)
    now_ms = time.time() * 1_000.0
    for model in models:
        age = short_age(model["at_ms"], now_ms)
        for number, each in enumerate(model["policies"]):
            # Each model has a row of what was logged of its candidates.
            name = (
                f"{model['model']}, {each['policy']}" if not number else each["policy"]
            )
            table.add_row(Text(visible(name)), *_figures(each), age)
    return table


def _figures(policy: dict[str, Any]) -> Iterator[RenderableType]:
    yield _formatted(policy["value"], ".4f")
    yield _formatted(policy["difference"], "+.4f")
    low, high = policy["difference_interval"]
    if low is None:
        yield "-"
    else:
        style = "green" if low > 0.0 else "red" if high < 0.0 else ""
        yield Text(f"{low:+.4f} to {high:+.4f}", style=style)
    yield _formatted(policy["unseen"], ".1%")
    yield _formatted(policy["largest_share"], ".1%")
    yield _formatted(policy["effective_clicks"], ",.0f")


def _formatted(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def curves_of(curves: list[dict[str, Any]]) -> RenderableType:
    """A table of each curve, and whose clicks it is of."""
    return Group(*(part for each in curves for part in _curve(each)))


def _told_of_curve(curve: dict[str, Any], now_ms: float) -> str:
    """What a curve is from, and how old it is."""
    unit = "relative to rank 1" if curve["is_ratio_only"] else "as its anchor has it"
    lists, clicks = counted(curve["shown"], "view"), counted(curve["clicked"], "click")
    return (
        f"{unit}; {lists} and {clicks}, {curve['source']}; "
        f"{age_in_words(curve['at_ms'], now_ms)}"
    )


def _curve(curve: dict[str, Any]) -> list[RenderableType]:
    of = f"{curve['model']} {curve['version']}, {curve['estimator']}"
    title = Text(f"curve {visible(of)}", style="table.title")
    table = Table(box=None, title=title, title_justify="left")
    has_beta = any(each["beta"] for each in curve["ranks"])
    level = f"{curve['confidence']:.0%}"
    for heading in ("", "alpha", level, *(("beta", level) if has_beta else ("",))):
        table.add_column(Text(heading, style="dim"), no_wrap=True)
    for each in curve["ranks"]:
        table.add_row(*_rank_row(each, has_beta=has_beta))
    told = _told_of_curve(curve, time.time() * 1_000.0)
    why = [f"rank {x['rank']}: {x['why']}" for x in curve["ranks"] if x["why"]]
    lines = [y for x in (told, *why) for y in textwrap.wrap(visible(x), WIDTH)]
    return [table, Text("\n".join(lines), style="dim")]


def _rank_row(each: dict[str, Any], *, has_beta: bool) -> list[str]:
    alpha = each["alpha"]
    cells = [str(each["rank"]), _thousandths(alpha), _ends_of(each, "alpha_interval")]
    if has_beta:
        return [*cells, _thousandths(each["beta"]), _ends_of(each, "beta_interval")]
    return [*cells, "█" * round(BAR_OF_ALPHA * min(1.0, max(0.0, alpha or 0.0)))]


def _thousandths(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _ends_of(each: dict[str, Any], name: str) -> str:
    ends = each[name]
    # The first rank is the unit of all others.
    if ends is None or each["rank"] == 1:
        return ""
    return f"{ends[0]:.2f} to {ends[1]:.2f}"


def age_in_words(created_ms: int, now_ms: float) -> str:
    """How old a snapshot is in event time, which may be ahead of this clock.

    Examples
    --------
    >>> [age_in_words(at_ms, 90_000.0) for at_ms in (0, 1_000, 95_000)]
    ['from the start', '89 s old in event time', 'its event time 5 s ahead']
    """
    if not created_ms:
        return "from the start"
    age_s = round((now_ms - created_ms) / 1_000.0)
    said = _duration(abs(age_s))
    return f"its event time {said} ahead" if age_s < 0 else f"{said} old in event time"


def short_age(created_ms: int, now_ms: float) -> str:
    """The same for a column.

    Examples
    --------
    >>> [short_age(at_ms, 90_000.0) for at_ms in (0, 1_000, 95_000)]
    ['-', '89 s', '-5 s']
    """
    if not created_ms:
        return "-"
    age_s = round((now_ms - created_ms) / 1_000.0)
    return f"{'-' if age_s < 0 else ''}{_duration(abs(age_s))}"


def _duration(seconds: int) -> str:
    """In the largest unit of which there are two."""
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7_200 else f"{seconds // 3_600:,} h"


class Fitted:
    """A table, and which of its columns may go, the first one first."""

    def __init__(self, table: Table, spare: Sequence[str]) -> None:
        self._table = table
        self._spare = spare

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """The table, and which columns are left out."""
        table, gone = self._table, []
        for heading in self._spare:
            if _least_width(table) <= options.max_width:
                break
            table.columns = [each for each in table.columns if each.header != heading]
            gone.append(heading.replace("\n", " "))
        yield table
        if gone:
            yield Text(f"no room for: {', '.join(gone)}", style="dim")


def _least_width(table: Table) -> int:
    """Each column has a space beside it; only those that may be broken give way."""
    return sum(1 + max(_widths(column)) for column in table.columns)


def _widths(column: Column) -> Iterator[int]:
    for cell in (column.header, *column.cells):
        lines = str(cell).split("\n" if column.no_wrap else None)
        yield from map(cell_len, lines)
