"""What policies are worth, in the monitor: in the terminal and on the page."""

import io
from pathlib import Path

import msgspec
from rich.console import Console

from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.terminal import view_of
from rankstream.wire.models.model_evaluations import (
    UNKNOWN,
    ModelValues,
    PolicyValue,
    encode_values,
)
from tests.rankstream.operations.monitoring.test_interventions import RATE, rates_of
from tests.rankstream.operations.monitoring.test_page_in_chromium import EVIL, asked

LOGGED = PolicyValue(
    policy="logged",
    value=1.25,
    interval=(1.2, 1.3),
    difference_interval=UNKNOWN,
    unseen=0.0,
    largest_share=0.01,
    effective_clicks=900.4,
)
BETTER = PolicyValue(
    policy="m@0.1200",
    value=1.5,
    interval=(1.4, 1.6),
    difference=0.25,
    difference_interval=(0.125, 0.375),
    unseen=0.0625,
    largest_share=0.125,
    effective_clicks=450.0,
)
GONE = PolicyValue(
    policy="m@0.0",
    interval=UNKNOWN,
    difference_interval=UNKNOWN,
    why="Redis must answer at here",
)
VALUES = ModelValues(
    model="m",
    at_ms=1_750_000_000_000,
    estimator="intervention-aware",
    curve="bias@0.700",
    groups=[16, 17, 18, 19],
    queries=40,
    lists=900,
    clicks=1_100,
    lists_all=1_000,
    policies=[LOGGED, BETTER, GONE],
    remarks=["of 100 lists no features are there; they are left out"],
)


def told(model: str = "m") -> Gathered:
    """Values of a model, and what else comes on the same topic."""
    gathered = Gathered()
    gathered.take_verdict(rates_of(model, RATE))
    gathered.take_verdict(encode_values(msgspec.structs.replace(VALUES, model=model)))
    return gathered


def screen(gathered: Gathered, width: int) -> str:
    """What a terminal shows."""
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(view_of(gathered))
    return console.export_text()


def test_a_row_has_the_value_the_difference_and_what_both_rest_on() -> None:
    """And below the table stands why something is not known."""
    found = screen(told(), 120)
    rows = {line.split("  ")[0]: line.split() for line in found.splitlines()}
    assert rows["m, logged"][2:-2] == ["1.2500", "-", "-", "0.0%", "1.0%", "900"]
    assert rows["m@0.1200"][1:-2] == [
        "1.5000", "+0.2500", "+0.1250", "to", "+0.3750", "6.2%", "12.5%", "450",
    ]  # fmt: skip
    assert rows["m@0.0"][1:-2] == ["-"] * 6
    joined = " ".join(found.split())
    for words in (
        "m: intervention-aware, curve bias@0.700; 900 of 1,000 lists and 1,100 clicks "
        "of 4 groups",
        "m: of 100 lists no features are there; they are left out",
        "m@0.0: not known, Redis must answer at here",
    ):
        assert words in joined, words
    assert "No verdict yet" not in found


def test_a_look_before_anything_was_counted_says_so() -> None:
    """What it missed is no finding about the log."""
    first = msgspec.structs.replace(VALUES, lists=0, clicks=0, lists_all=0)
    gathered = Gathered()
    gathered.take_verdict(encode_values(first))
    found = " ".join(screen(gathered, 120).split())
    assert (
        "m: as of 2025-06-15 15:06:40 UTC, before anything was counted; the next look "
        "comes by itself, or ask `rankstream evaluate m`"
    ) in found
    assert "must answer" not in found


def test_columns_go_where_a_terminal_is_narrow() -> None:
    """Names and figures stay whole; what is left out is said."""
    for width, gone in ((120, ""), (80, ""), (64, "largest click, effective clicks")):
        found = screen(told(), width)
        assert "+0.1250 to +0.3750" in found
        assert "…" not in found
        assert ("no room for" in found) == bool(gone)
        assert f"no room for: {gone}" in found or not gone


def test_the_last_record_of_a_model_holds() -> None:
    """The same once more changes nothing; neither does what cannot be read."""
    gathered = told()
    number = gathered.overview()["number"]
    gathered.take_verdict(encode_values(VALUES))
    gathered.take_verdict(encode_values(VALUES)[:-1])
    assert gathered.overview()["number"] == number
    later = msgspec.structs.replace(VALUES, lists=950, policies=[LOGGED])
    gathered.take_verdict(encode_values(later))
    gathered.take_verdict(encode_values(msgspec.structs.replace(VALUES, model="a")))
    first, second = gathered.overview()["values"]
    assert (first["model"], second["lists"]) == ("a", 950)
    assert gathered.overview()["trouble"] == ""


def test_the_page_draws_them_and_writes_names_as_text(tmp_path: Path) -> None:
    """A row each, a bar where a difference is known, and reasons below."""
    row = "document.querySelectorAll('#values tbody tr')[{}].textContent"
    found = asked(
        told(EVIL),
        [
            "!document.getElementById('valued').hidden",
            "document.getElementById('empty').hidden",
            *(row.format(number) for number in range(3)),
            "document.querySelectorAll('#values .range.decided').length",
            "document.querySelectorAll('#worth li').length",
            "document.getElementById('worth').textContent.includes('not known, Redis')",
            "document.querySelectorAll('img').length === 0",
        ],
        tmp_path,
    )

    at = "2025-06-15 15:06:40"
    assert found == [
        True, True,
        f"{EVIL}, logged1.25001.2000 – 1.3000––0 %1 %900{at}",
        f"m@0.12001.50001.4000 – 1.6000+0.2500+0.1250 – +0.37506.3 %12.5 %450{at}",
        f"m@0.0–––––––{at}",
        1, 3, True, True,
    ]  # fmt: skip


def test_without_values_nothing_is_shown(tmp_path: Path) -> None:
    """Of other releases, or where `train.value_every_s` is 0."""
    gathered = Gathered()
    gathered.take_verdict(rates_of("m", RATE))
    assert "worth by the log" not in screen(gathered, 120)
    hidden = "document.getElementById('valued').hidden"
    assert asked(gathered, [hidden], tmp_path) == [True]
