"""Interventions of trained models, in a terminal."""

import datetime
import time
from typing import Any

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from rankstream.terminal.counts import counted
from rankstream.terminal.plain_text import plain, visible
from rankstream.wire.training import TRAINING as UNDER_WAY

STATES = {"refused": "red", "left alone": "yellow", "training": "cyan", "done": "green"}

HEADINGS = (
    "intervention", "event time", "why", "clicks\nused", "below", "lists", "per\nlist",
    "to come", "estimate",
)  # fmt: skip

ALIVE_S = 60.0
"""A trainer that has said nothing for so long is not at work."""

N_TEXTS = 3
"""The first columns, which are no numbers."""

BELOW = "below: Items with too little support, hence in no pair, of all items."

ESTIMATED = (
    "estimate: Clicks per list before it was shown, from users whose clicks it was "
    "not trained on; a point without interval."
)


def interventions_of(found: dict[str, Any]) -> RenderableType:
    """All that is known of interventions; nothing where no model is trained."""
    rows, states = found["rows"], found["states"]
    parts: list[RenderableType] = [_state(each) for each in states]
    if rows:
        parts.append(_table(found))
    return Group(*parts)


def _state(state: dict[str, Any]) -> Text:
    line = Text(f"{visible(state['model'])}: ")
    line.append(state["state"], style=STATES.get(state["state"], "white"))
    if state["said"]:
        line.append(f", {visible(state['said'])}")
    silent_s = time.time() - state["at_ms"] / 1_000.0
    if state["state"] == UNDER_WAY and silent_s > ALIVE_S:
        line.append(f"; not heard of for {silent_s / 60.0:,.0f} min", style="yellow")
    return line


def _table(found: dict[str, Any]) -> Table:
    rows = found["rows"]
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
    n_more = found["n_older"]
    lines = [
        BELOW,
        found["question"] and f"per list, to come: {found['question']}",
        ESTIMATED,
    ]
    lines += [f"not estimated, {each}" for each in sorted(missing)]
    lines += [f"no interval, {each}" for each in sorted(unsaid)]
    lines += [f"{n_more:,} older ones are not shown"] if n_more else []
    table = Table(
        title=counted(len(rows) + n_more, "intervention"),
        title_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
        caption="\n".join(plain(line) for line in lines if line),
        caption_justify="left",
    )
    for number, heading in enumerate(HEADINGS):
        is_text = number < N_TEXTS
        justify: JustifyMethod = "left" if is_text else "right"
        table.add_column(heading, justify=justify, no_wrap=number != 1)
    for each in rows:
        table.add_row(Text(each["name"]), *_of_run(each["run"]), *_of_rate(each))
    return table


def _of_run(run: dict[str, Any] | None) -> list[str]:
    if run is None:
        return ["-"] * 4
    at = datetime.datetime.fromtimestamp(run["created_ms"] / 1_000.0, datetime.UTC)
    return [
        at.strftime("%Y-%m-%d %H:%M:%S"),
        run["reason"],
        f"{run['clicks']:,}",
        f"{run['below']:,}/{run['items']:,}",
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
