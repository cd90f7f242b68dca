"""Interventions of trained models, in a terminal."""

import time
from typing import Any

from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from rankstream.operations.monitoring.fitted import Fitted
from rankstream.operations.terminal.counts import counted, moment
from rankstream.operations.terminal.plain_text import visible
from rankstream.wire.training import TRAINING as UNDER_WAY

STATES = {"refused": "red", "left alone": "yellow", "training": "cyan", "done": "green"}

HEADINGS = (
    "intervention", "event time", "why", "clicks\nused", "below\nsupport", "lists",
    "clicks\nper list", "sessions\nto come", "expected\nbefore",
)  # fmt: skip

SPARE = "why", "below\nsupport", "clicks\nused", "event time"
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


def interventions_of(found: dict[str, Any]) -> RenderableType:
    """All that is known of interventions; nothing where no model is trained."""
    rows, states = found["rows"], found["states"]
    parts: list[RenderableType] = [_state(each) for each in states]
    for each in found["next"]:
        parts.append(Text(f"{visible(each['model'])}: {visible(each['said'])}"))
    if rows:
        parts += [Fitted(_table(found), SPARE), _told(found)]
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
    table = Table(
        title=counted(len(rows) + found["n_older"], "policy", "policies"),
        title_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
    )
    for number, heading in enumerate(HEADINGS):
        is_text = number < N_TEXTS
        justify: JustifyMethod = "left" if is_text else "right"
        table.add_column(heading, justify=justify, no_wrap=number != 1)
    for each in rows:
        table.add_row(Text(each["name"]), *_of_run(each), *_of_rate(each))
    return table


def _told(found: dict[str, Any]) -> Text:
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


def _of_run(row: dict[str, Any]) -> list[str]:
    run = row["run"]
    if run is None:
        return ["first policy" if row["is_first"] else "-", "-", "-", "-"]
    return [
        moment(run["created_ms"]),
        run["reason"],
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
