"""Interventions in the monitor: what is known of each, in the terminal and the page."""

import io
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from producers.topic_reader import Record
from rankstream.operations.answers.models.trainings import Counted, CountedSoFar
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.terminal import view_of
from rankstream.operations.monitoring.trainings import MOST_ROWS
from rankstream.settings import TrainingSettings
from rankstream.wire.models.model_evaluations import (
    InterventionRate,
    ModelRates,
    encode_rates,
)
from rankstream.wire.models.training import (
    SCHEMA,
    Position,
    RunRecord,
    Status,
    encode_record,
    training_key,
)
from tests.rankstream.operations.monitoring.test_monitoring import printed
from tests.rankstream.operations.monitoring.test_page_in_chromium import EVIL, asked
from tests.rankstream.training_topic import RUN
from tests.streams.statistics.statistics_records import COUNTED, counted_record

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
    """Two trainings after the first policy; the last attempt was refused."""
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
    start = msgspec.structs.replace(
        RATE, intervention=model, lists=1_000, clicks=300, mean=0.3,
        to_come=(0.25, 0.35),
    )  # fmt: skip
    gathered.take_verdict(rates_of(model, start, shown, early))
    return gathered


def test_all_that_is_known_of_an_intervention_is_in_its_row() -> None:
    """When, why, what it used, what it earned, what was expected, and what is amiss."""
    screen = printed(told())
    second, first, start = (
        line.split()
        for line in screen.splitlines()
        if line.startswith(("m@0.1200 ", "m@1.2400 ", "m "))
    )
    assert second == [
        "m@1.2400", "2025-06-15", "15:07:40", "count", "90", "3.5", "%", "5", "0.200",
        "-", "-",
    ]  # fmt: skip
    assert first == [
        "m@0.1200", "2025-06-15", "15:06:40", "count", "90", "3.5", "%", "2,000",
        "0.450", "0.400-0.500", "0.470",
    ]  # fmt: skip
    assert start == [
        "m", "first", "policy", "-", "-", "-", "1,000", "0.300", "0.250-0.350", "-",
    ]  # fmt: skip
    for words in (
        "m: refused, no features were logged",
        "not estimated, m@1.2400: the selection groups have no lists",
        "no interval, m@1.2400: Sessions fill 3.0 groups.",
        "sessions to come: interval at 95 %. Whenever one looks.",
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
    assert not row["is_first"]
    assert "first policy" not in printed(gathered)
    gathered.take_training([record_of(RUN, intervention="m@3.9")])
    names = [each["name"] for each in gathered.overview()["interventions"]["rows"]]
    assert names == ["m@3.9", "m@0.1200"]


def test_tombstones_repeats_and_other_records_change_nothing_else() -> None:
    """What was removed leaves; what cannot be read is said, and stops nothing."""
    gathered = told()
    number = gathered.overview()["number"]
    key, value = record_of(RUN, intervention="m@1.2400")
    request = training_key("request", "m"), b"\x93"
    gathered.take_training([request, (b"m/later", b"x"), (b"\xff", None)])
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
            row.format(2) + ".textContent",
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
        f"{EVIL}first policy–––1,0000.3000.250 – 0.350–",
        "0.200", 1, 2, 2, f"{EVIL}: refused, no features were logged", True,
    ]  # fmt: skip


def test_columns_go_where_a_terminal_is_narrow() -> None:
    """Names and figures stay whole; what is left out is said."""
    for width, gone in ((90, ""), (78, "why"), (70, "why, below support")):
        console = Console(width=width, record=True, file=io.StringIO())
        console.print(view_of(told()))
        screen = console.export_text()
        assert "m@0.1200" in screen
        assert "0.400-0.500" in screen
        assert "…" not in screen
        assert ("no room for" in screen) == bool(gone)
        assert f"no room for: {gone}\n" in screen or not gone


@pytest.mark.parametrize(
    ("training", "counted", "said"),
    [
        (TrainingSettings(), Counted(7), "by hand: rankstream intervene m"),
        (TrainingSettings(after=[500]), Counted(), "at 500 interactions"),
        (
            TrainingSettings(after=[500]),
            Counted(1_120),
            "at 500 interactions (1,120 counted so far)",
        ),
        (
            TrainingSettings(at=[1_750_000_060_000]),
            Counted(7, 1_750_000_000_000),
            "at 2025-06-15 15:07:40 of event time (now 2025-06-15 15:06:40)",
        ),
        (
            TrainingSettings(after=[500], at=[10**20]),
            Counted(7),
            "at 500 interactions (7 counted so far), or at 100,000,000,000,000,000,000 "
            "ms of event time",
        ),
    ],
)
def test_the_next_intervention_is_said(
    training: TrainingSettings, counted: Counted, said: str
) -> None:
    """Before any, too: what it waits for, and how far that is."""
    gathered = Gathered({"m": training})
    gathered.set_counted(counted)
    assert f"m: next intervention {said}" in joined(printed(gathered))
    assert "No verdict yet" not in printed(gathered)


def joined(screen: str) -> str:
    """Lines that were broken, in one piece."""
    return " ".join(screen.split())


def test_points_that_are_past_are_not_next() -> None:
    """After the last one, or a rollback, somebody has to ask."""
    gathered = Gathered({"m": TrainingSettings(after=[500, 900])})
    key = training_key("position", "m")
    by_hand = "next intervention by hand: rankstream intervene m"
    for n, said in (
        (499, "next intervention at 500 "),
        (500, "next intervention at 900 "),
        (900, f"{by_hand} (no point of its schedule is left)"),
    ):
        position = Position(SCHEMA, 1, [(0, n - 100), (1, 100)], -1, "m@0.1")
        gathered.take_training([(key, encode_record(position))])
        assert said in joined(printed(gathered))
    gathered.take_training([(key, None)])
    assert "next intervention at 500 " in joined(printed(gathered))
    left = Status(SCHEMA, "left alone", "somebody rolled back", 5)
    gathered.take_training([(training_key("status", "m"), encode_record(left))])
    assert f"{by_hand} (the schedule leaves it alone)" in joined(printed(gathered))


def test_counts_are_added_up_and_read_from_the_statistics() -> None:
    """The newest of each partition; event time is where all are; the rest passes."""
    so_far = CountedSoFar(2)

    def take(partition: int, n: int, watermark_ms: int | None, *, old: int = 0) -> None:
        counted = COUNTED._replace(sources={partition: n}, watermark_ms=watermark_ms)
        key, value = counted_record(counted)
        value = b"\x97\x63" + (value or b"")[2:] if old else value
        records = [Record(partition, 0, 0, key, value, ())]
        records.append(Record(partition, 1, 0, b"else", b"x", ()))
        assert list(so_far.seen(iter(records))) == records

    assert so_far.counted == Counted()
    take(0, 70, 5_000)
    assert so_far.counted == Counted(70, None)
    take(1, 30, 4_000)
    take(0, 90, 6_000)
    assert so_far.counted == Counted(120, 4_000)
    take(1, 30, 4_000, old=1)
    assert so_far.counted == Counted(90, None)


@pytest.mark.parametrize("name", ["nobody", "m@", "m@x.1"])
def test_names_that_are_no_interventions_do_no_harm(name: str) -> None:
    """They are shown as they are."""
    gathered = Gathered()
    rate = msgspec.structs.replace(RATE, intervention=name)
    gathered.take_verdict(rates_of("m", rate))
    assert name in printed(gathered)
