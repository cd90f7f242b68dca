"""Interventions in the monitor: what is known of each, in the terminal and the page."""

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rankstream.monitoring.interventions import MOST_ROWS
from rankstream.monitoring.overview import Gathered
from rankstream.wire.intervention_rates import (
    InterventionRate,
    ModelRates,
    encode_rates,
)
from rankstream.wire.training import (
    SCHEMA,
    RunRecord,
    Status,
    encode_record,
    training_key,
)
from tests.rankstream.monitoring.test_monitoring import printed
from tests.rankstream.monitoring.test_page_in_chromium import EVIL, asked
from tests.rankstream.test_intervene_command import RUN

RATE = InterventionRate(
    intervention="m@0.1200",
    lists=2_000,
    clicks=900,
    mean=0.45,
    to_come=(0.4, 0.5),
    effective_groups=90.0,
    needed=35.0,
    why="",
)


def record_of(run: RunRecord, **changes: Any) -> tuple[bytes, bytes]:
    """Key and value, as the trainer writes them."""
    changed = msgspec.structs.replace(run, **changes)
    return training_key("run", changed.intervention), encode_record(changed)


def rates_of(model: str, *rates: InterventionRate) -> bytes:
    """As the evaluator writes them."""
    return encode_rates(
        ModelRates(
            model=model,
            alpha=0.05,
            planned=10_000,
            question="Whenever one looks.",
            interventions=list(rates),
        )
    )


def told(model: str = "m") -> Gathered:
    """Two trainings, one of them shown and estimated; the last attempt was refused."""
    gathered = Gathered()
    second = f"{model}@1.2400"
    refused = Status(SCHEMA, "refused", "no features were logged", 5)
    gathered.take_training([
        record_of(RUN, intervention=f"{model}@0.1200", reward=0.47, reward_reason=""),
        record_of(RUN, intervention=second, created_ms=RUN.created_ms + 60_000),
        (training_key("status", model), encode_record(refused)),
    ])  # fmt: skip
    shown = msgspec.structs.replace(RATE, intervention=f"{model}@0.1200")
    early = msgspec.structs.replace(
        RATE, intervention=second, lists=5, clicks=1, mean=0.2, to_come=(None, None),
        why="Sessions fill 3.0 groups.",
    )  # fmt: skip
    gathered.take_verdict(rates_of(model, shown, early))
    return gathered


def test_all_that_is_known_of_an_intervention_is_in_its_row() -> None:
    """When, why, what it used, what it earned, what was expected, and what is amiss."""
    screen = printed(told())
    first, second = (
        line
        for line in screen.splitlines()
        if line.startswith(("m@0.1200 ", "m@1.2400 "))
    )
    assert first.split() == [
        "m@1.2400", "2025-06-15", "15:07:40", "count", "90", "7/200", "5", "0.200",
        "-", "-",
    ]  # fmt: skip
    assert second.split() == [
        "m@0.1200", "2025-06-15", "15:06:40", "count", "90", "7/200", "2,000", "0.450",
        "0.400-0.500", "0.470",
    ]  # fmt: skip
    for words in (
        "m: refused, no features were logged",
        "not estimated, m@1.2400: the selection groups have no lists",
        "no interval, m@1.2400: Sessions fill 3.0 groups.",
        "Whenever one looks.",
    ):
        assert words in screen, words
    assert "No verdict yet" not in screen


def test_an_intervention_without_a_run_or_without_lists_is_shown_too() -> None:
    """As one that was rolled back to, and one that nobody has seen."""
    gathered = Gathered()
    gathered.take_verdict(rates_of("m", RATE))
    assert "-" in printed(gathered)
    (row,) = gathered.overview()["interventions"]["rows"]
    assert (row["run"], row["rate"]["lists"]) == (None, 2_000)
    gathered.take_training([record_of(RUN, intervention="m@3.9")])
    names = [each["name"] for each in gathered.overview()["interventions"]["rows"]]
    assert names == ["m@3.9", "m@0.1200"]


def test_tombstones_repeats_and_other_records_change_nothing_else() -> None:
    """What was removed leaves; what cannot be read is said, and stops nothing."""
    gathered = told()
    number = gathered.overview()["number"]
    key, value = record_of(RUN, intervention="m@1.2400")
    position = training_key("position", "m"), b"\x93"
    gathered.take_training([position, (b"m/later", b"x"), (b"\xff", None)])
    assert gathered.overview()["number"] == number
    gathered.take_training([(key, None)])
    rows = {x["name"]: x for x in gathered.overview()["interventions"]["rows"]}
    assert rows["m@1.2400"]["run"] is None
    gathered.take_training([(key, b"\x91\x09")])
    assert "schema" in gathered.overview()["trouble"]
    gathered.take_training([(key, value)])
    gathered.take_training([(key, value)])
    assert gathered.overview()["interventions"]["rows"][0]["run"] is not None


def test_a_trainer_that_fell_silent_is_told_from_one_at_work() -> None:
    """Killed in the middle it leaves a state behind that nobody corrects."""
    gathered, key = Gathered(), training_key("status", "m")
    for at_ms, is_silent in ((time.time_ns() // 1_000_000, False), (5, True)):
        under_way = Status(SCHEMA, "training", "epoch 3 of 50", at_ms)
        gathered.take_training([(key, encode_record(under_way))])
        screen = printed(gathered)
        assert "m: training, epoch 3 of 50" in screen
        assert ("not heard of for" in screen) == is_silent


def test_the_newest_are_shown() -> None:
    """Of all models; how many are not is said."""
    gathered = Gathered()
    gathered.take_training(
        record_of(RUN, intervention=f"m@{n}.7", created_ms=RUN.created_ms + n)
        for n in range(MOST_ROWS + 5)
    )
    found = gathered.overview()["interventions"]
    assert len(found["rows"]) == MOST_ROWS
    assert found["rows"][0]["name"] == f"m@{MOST_ROWS + 4}.7"
    assert "5 older ones are not shown" in printed(gathered)


def test_the_page_draws_them_and_writes_names_as_text(tmp_path: Path) -> None:
    """A row each, an interval and a ring; reasons below; no markup from a name."""
    row = "document.querySelectorAll('#interventions tbody tr')[{}]"
    found = asked(
        told(EVIL),
        [
            "!document.getElementById('trained').hidden",
            "document.getElementById('empty').hidden",
            row.format(1) + ".textContent",
            row.format(0) + ".cells[6].textContent",
            row.format(1) + ".querySelectorAll('circle').length",
            "document.querySelectorAll('#interventions .range').length",
            "document.querySelectorAll('#lacks li').length",
            "document.getElementById('states').textContent",
            "document.querySelectorAll('img').length === 0",
        ],
        tmp_path,
    )

    assert found == [
        True, True,
        f"{EVIL}@0.12002025-06-15 15:06:40count907 of 2002,0000.4500.400 – 0.5000.470",
        "0.200", 1, 1, 2, f"{EVIL}: refused, no features were logged", True,
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["nobody", "m@", "m@x.1"])
def test_names_that_are_no_interventions_do_no_harm(name: str) -> None:
    """They are shown as they are, last."""
    gathered = Gathered()
    rate = msgspec.structs.replace(RATE, intervention=name)
    gathered.take_verdict(rates_of("m", rate))
    assert name in printed(gathered)
