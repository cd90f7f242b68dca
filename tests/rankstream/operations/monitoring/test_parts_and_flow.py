"""What is away since when, and how much flows through each role."""

import io
import json
from collections.abc import Callable

import jsonschema
import pytest
from rich.console import Console

from rankstream.operations.commands.monitor.run import look_once
from rankstream.operations.commands.results import result_schema
from rankstream.operations.monitoring.courses import Course
from rankstream.operations.monitoring.flow import SAMPLES, Flow
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.parts import Parts, away_of
from rankstream.operations.monitoring.terminal import view_of
from tests import monitored
from tests.rankstream.operations.monitoring.test_monitoring import printed


def test_a_part_is_away_since_it_first_did_not_answer() -> None:
    """And was heard of last when it did; news is a change, not each look."""
    parts = Parts()
    assert parts.heard("Kafka", 1_000)
    assert not parts.heard("Kafka", 2_000)
    assert parts.missed("Kafka", "refused", 3_000)
    assert not parts.missed("Kafka", "refused", 9_000)
    assert parts.missed("Kafka", "no answer", 10_000)
    (away,) = away_of(parts.all())
    assert (away.since_ms, away.heard_ms) == (3_000, 2_000)
    assert away.words == "Kafka is away since 1970-01-01 00:00:03 UTC: no answer"
    assert parts.trouble == "Kafka: no answer"
    assert parts.heard("Kafka", 11_000)
    assert (away_of(parts.all()), parts.trouble) == ([], "")


def test_roles_that_went_together_are_told_together() -> None:
    """A worker was stopped; one that goes later, or never came, is told alone."""
    parts = Parts()
    for role in ("ingest", "fold", "learn"):
        parts.heard(f"role {role}", 0)
    parts.missed("Redis", "gone", 50_000)
    parts.missed("role ingest", "silent", 60_000)
    parts.missed("role fold", "silent", 61_000)
    parts.missed("role learn", "silent", 90_000)
    parts.missed("role train", "silent", 90_000)
    words = [each.words.partition(" since")[0] for each in away_of(parts.all())]
    assert sorted(words) == [
        "Redis is away", "role learn is away", "role train is away",
        "roles ingest, fold are away",
    ]  # fmt: skip


def test_what_was_known_last_stays_with_its_age() -> None:
    """In the terminal as on the page."""
    gathered = monitored.full(2_000)
    gathered.heard("Redis", 5_000)
    before = gathered.overview()
    gathered.missed("Redis", "gone", 9_000)
    after = gathered.overview()
    assert after["snapshots"] == before["snapshots"]
    assert after["number"] == before["number"] + 1
    assert after["away"][0]["heard_ms"] == 5_000
    said = " ".join(printed(gathered).split())
    assert (
        "Redis is away since 1970-01-01 00:00:09 UTC: gone; what is shown of it "
        in said
    )
    assert "search" in said


def test_rates_are_differences_of_counts_over_time() -> None:
    """In a bounded number; what waits takes as long as the pace says."""
    flow = Flow()
    for k in range(SAMPLES + 50):
        flow.take("fold", {"consumed": 300 * k, "lag_records": 450}, 2.0 * k)
    (found,) = flow.all()
    assert found.per_s == [150.0] * SAMPLES
    assert found.behind == 450
    assert found.behind_s == pytest.approx(3.0)


def test_the_pace_is_that_of_the_last_looks() -> None:
    """A role that became slow is as far behind as it is slow now."""
    flow = Flow()
    n = 0
    for k in range(30):
        n += 1_000 if k < 20 else 10
        flow.take("fold", {"consumed": n, "lag_records": 100}, float(k))
    assert flow.all()[0].behind_s == pytest.approx(10.0)


def test_a_role_that_stands_still_has_no_end_of_its_lag() -> None:
    """With nothing before it, it is up to date; without counts it has no pace."""
    flow = Flow()
    for k in range(3):
        flow.take("fold", {"consumed": 7, "lag_records": 5}, float(k))
        flow.take("publish", {"source_lag_records": 0}, float(k))
    fold, publish = flow.all()
    assert (fold.per_s, fold.behind_s) == ([0.0, 0.0], None)
    assert (publish.per_s, publish.behind, publish.behind_s) == ([], 0, 0.0)


def test_a_role_that_began_again_flows_from_there_on() -> None:
    """Counts that fall back are no negative pace; a page that is away has none."""
    flow = Flow()
    for k, n in enumerate((100, 200, 50, 80)):
        flow.take("fold", {"consumed": n}, float(k))
    assert flow.all()[0].per_s == [30.0]
    flow.forget("fold")
    assert flow.all() == []


def test_flow_is_said_to_be_unknown_where_no_role_answers() -> None:
    """What was counted last is still there."""
    gathered = monitored.full(2_000)
    unknown = "not known, as no role answers"
    assert unknown not in " ".join(printed(gathered).split())
    gathered.take_flow(dict.fromkeys(("ingest", "fold", "learn", "publish")), 90.0)
    said = " ".join(printed(gathered).split())
    assert unknown in said
    assert "412,345" in said


def test_the_pace_of_an_experiment_is_that_of_its_last_day() -> None:
    """Not that of the time before; none from a single verdict."""
    course = Course()
    for n, hours in ((1_000, 0), (1_100, 72), (2_100, 84), (3_100, 96)):
        verdict = monitored.verdict_at(n, last_ms=hours * monitored.HOUR_MS)
        course.add(verdict)
        if n == 1_000:
            assert course.pace() is None
    assert course.pace() == pytest.approx(2_000.0)


def test_steps_tick_off_in_the_terminal_too() -> None:
    """What is open says what to do, and the panel goes with the first verdict."""
    gathered = Gathered()
    gathered.set_steps([True, True, False, False, False])
    screen = printed(gathered)
    assert "✓ topics are there" in screen
    assert "· the first click came" in screen
    assert "rankstream topics create" not in screen
    gathered.take_verdict(monitored.record_at(500))
    assert "the first click came" not in printed(gathered)


def test_terminal_and_page_say_the_same_words() -> None:
    """Each experiment's sentence, and what warns of the one in detail."""
    gathered = monitored.full(2_000)
    said = " ".join(printed(gathered, "synonyms").split())
    detail = gathered.experiment("synonyms")
    assert detail is not None
    assert detail["standing"]["words"] in said.replace("│", "").replace("  ", " ")
    for each in detail["attention"]:
        assert each["words"][:60] in said


@pytest.mark.parametrize("width", [72, 80, 120, 200])
def test_bars_take_the_room_that_there_is(width: int) -> None:
    """Whole in each terminal: zero in the middle, a mean beside it, nothing cut."""
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(view_of(monitored.full(2_000), "search-box"))
    lines = console.export_text().splitlines()
    (line,) = [each for each in lines if "new over old" in each]
    assert line.count("●") == 2
    for bar in line.split("new over old")[1].split("│")[1:3]:
        assert "─" in bar
    assert "…" not in line


@pytest.mark.parametrize("made", [monitored.empty, monitored.full, Gathered])
def test_all_that_is_printed_as_json_fits_its_schema(
    made: Callable[[], Gathered], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing, something of everything, and an experiment in detail."""
    gathered = made()
    assert look_once(gathered, None, is_json=True) == 0
    found = json.loads(capsys.readouterr().out)
    jsonschema.validate(found, result_schema("monitor"))
    assert (found["experiment"] is None) == (not found["experiments"])
