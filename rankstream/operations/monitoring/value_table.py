"""What policies are worth by the log, in a terminal."""

import time
from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rankstream.operations.monitoring.ages import short_age
from rankstream.operations.monitoring.fitted import Fitted
from rankstream.operations.terminal.counts import counted
from rankstream.operations.terminal.plain_text import visible

HEADINGS = (
    "policy", "clicks\nper list", "less\nlogged", "95 %", "unseen",
    "largest\nclick", "effective\nclicks", "age",
)  # fmt: skip

SPARE = "largest\nclick", "effective\nclicks", "unseen", "age"
"""Columns that go where there is no room, the first one first."""

TOLD = (
    "clicks per list: as estimated from all that was logged, whoever showed it. "
    "unseen: share of what the policy would show that no clicks tell of; it counts as "
    "not relevant."
)


def values_of(models: list[dict[str, Any]]) -> list[RenderableType]:
    """A table of all policies and what must be known of them; nothing of none."""
    if not models:
        return []
    lines = [TOLD, *(line for each in models for line in told_of(each))]
    text = Text("\n".join(visible(line) for line in lines), style="dim italic")
    return [Fitted(_table(models), SPARE), text]


def told_of(model: dict[str, Any]) -> Iterator[str]:
    """What figures of a model rest on, and why some are empty."""
    name, n_lists, n_all = model["model"], model["lists"], model["lists_all"]
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


def _table(models: list[dict[str, Any]]) -> Table:
    table = Table(
        title="worth by the log", title_justify="left", box=None, padding=(0, 1, 0, 0)
    )
    for number, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
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
    yield _number(policy["value"], ".4f")
    yield _number(policy["difference"], "+.4f")
    low, high = policy["difference_interval"]
    if low is None:
        yield "-"
    else:
        style = "green" if low > 0.0 else "red" if high < 0.0 else ""
        yield Text(f"{low:+.4f} to {high:+.4f}", style=style)
    yield _number(policy["unseen"], ".1%")
    yield _number(policy["largest_share"], ".1%")
    yield _number(policy["effective_clicks"], ",.0f")


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
