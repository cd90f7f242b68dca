"""`rankstream validate`: each check finds what it is named after, and nothing else."""

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

from rankstream.operations.cli import main
from rankstream.operations.local_replay import LocalReplay
from rankstream.operations.validation.checks import CHECKS, MOST_EXAMPLES
from rankstream.settings import Settings
from rankstream.wire.input_events import recognised
from streams.local import local_settings

START_MS = 1_600_000_000_000
WINDOW_MS = Settings().time.click_window_ms

Event = dict[str, Any]


def shown(number: int, **fields: Any) -> Event:
    """A list, one each second."""
    event = {"impression_id": f"i{number}", "query_id": f"q{number % 7}"}
    at_ms = START_MS + 1_000 * number
    return event | {"at_ms": at_ms, "shown": ["a", "b", "c"]} | fields


def clicked(number: int, **fields: Any) -> Event:
    """A click on the second place of a list, half a second later."""
    event = shown(number) | {"position": 2}
    del event["shown"]
    return event | {"at_ms": START_MS + 1_000 * number + 500} | fields


def clean(n: int = 200) -> list[Event]:
    """Lists, each with a click."""
    return [each for number in range(n) for each in (shown(number), clicked(number))]


def judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], events: list[Any], *more: str
) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Exit status, the report, and what did not pass, by check."""
    path = tmp_path / "log.jsonl"
    lines = [each if isinstance(each, str) else json.dumps(each) for each in events]
    path.write_text("\n".join(lines) + "\n")
    status = main(["validate", str(path), "--json", *more])
    report = json.loads(capsys.readouterr().out)
    found = {each["name"]: each for each in report["checks"]}
    return status, report, {n: f for n, f in found.items() if f["status"] != "PASS"}


def test_a_clean_log_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every check, with the counts of a replay."""
    status, report, bad = judged(tmp_path, capsys, clean())
    assert (status, report["status"], bad) == (0, "PASS", {})
    assert (report["lists"], report["clicks"]) == (200, 200)
    assert report["outcomes"]["clicks applied"] == 200
    assert [each["name"] for each in report["checks"]] == [c.name for c in CHECKS]


LATE_MS = START_MS + 20_000 + WINDOW_MS + 1


@pytest.mark.parametrize(
    ("event", "check", "said", "level"),
    [
        ("no json", "readable", "must be JSON", "FAIL"),
        (shown(900, schema=9), "fields", "schema must be 1", "FAIL"),
        (shown(900, shown=["a", "a"]), "fields", "differ", "FAIL"),
        (clicked(20, position=0), "ordinals-from-1", "got 0", "FAIL"),
        (clicked(20, position=9), "click-in-its-list", "position 9", "FAIL"),
        (clicked(20, item_id="z"), "click-in-its-list", "'z'", "FAIL"),
        (shown(20, at_ms=START_MS // 1_000), "epoch-unit", "seconds", "FAIL"),
        (shown(20, at_ms=START_MS * 1_000), "epoch-unit", "microseconds", "FAIL"),
        (shown(20, at_ms=5_000), "epoch-unit", "no unit", "FAIL"),
        (shown(20, at_ms=4_000_000_000_000), "time-not-ahead", "ahead of", "FAIL"),
        (clicked(901, at_ms=START_MS + 50), "click-has-list", "did not come", "WARN"),
        (clicked(20, at_ms=LATE_MS), "in-time", "has closed", "WARN"),
        (clicked(20), "no-duplicates", "came before", "WARN"),
        (shown(20), "no-duplicates", "came before", "WARN"),
        (
            clicked(20, position=1, at_ms=START_MS + 19_900),
            "click-after-its-list",
            "later time",
            "WARN",
        ),
    ],
)
def test_each_check_finds_its_own(
    event: Any,
    check: str,
    said: str,
    level: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the line, and the exit status that follows from the level."""
    n = WINDOW_MS // 1_000 + 200
    events = clean(n)
    # Where its time places it, or in the middle: the file stays in order.
    at_ms = event["at_ms"] if isinstance(event, dict) else START_MS
    before = [each["at_ms"] <= at_ms for each in events]
    index = before.index(False) if False in before else n
    events.insert(index, event)
    status, _, bad = judged(tmp_path, capsys, events)
    assert set(bad) - {"time-order"} == {check}, bad
    assert (bad[check]["status"], bad[check]["count"]) == (level, 1)
    (example,) = bad[check]["examples"]
    assert said in example["why"]
    # Of two that are equal either may be the repeat.
    repeated = 1 if check == "no-duplicates" else 0
    assert example["line"] - 1 in range(index - repeated, index + 1)
    assert status == (level == "FAIL")
    strict, _, _ = judged(tmp_path, capsys, events, "--strict")
    assert strict == 1


def test_strict_says_for_which_warnings_it_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Clicks from the last to the first, which `replay` would sort."""
    events = clean()
    path = tmp_path / "log.jsonl"
    for log, status in ((events, 0), (events[::2] + events[::-2], 1)):
        path.write_text("".join(f"{json.dumps(each)}\n" for each in log))
        assert main(["validate", str(path), "--strict"]) == status
        told = "--strict: exit status 1 for warnings, of time-order\n" * status
        assert capsys.readouterr().err.endswith(told)


@pytest.mark.parametrize(
    ("line", "check"), [("no json", "readable"), ('{"a": 1}', "fields")]
)
def test_a_broken_first_line_is_told_as_any_other(
    line: str, check: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has no time, and none is found wrong."""
    status, _, bad = judged(tmp_path, capsys, [line, *clean()])
    assert (status, set(bad) - {"time-order"}) == (1, {check})
    assert [each["line"] for each in bad[check]["examples"]] == [1]


def test_clicks_that_all_name_unknown_lists_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong join key is no untidiness; ten examples are enough."""
    events = [each | {"impression_id": f"x{n}"} if "position" in each else each
              for n, each in enumerate(clean())]  # fmt: skip
    status, _, bad = judged(tmp_path, capsys, events)
    assert status == 1
    assert (bad["click-has-list"]["status"], bad["click-has-list"]["count"]) == (
        "FAIL",
        200,
    )
    assert len(bad["click-has-list"]["examples"]) == MOST_EXAMPLES


def test_order_is_told_and_does_not_matter_to_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A replay sorts. As it is, the earlier half would be late."""
    events = clean(3_000)
    events = events[3_000:] + events[:3_000]
    status, report, bad = judged(tmp_path, capsys, events)
    assert (status, set(bad)) == (0, {"time-order"})
    assert report["outcomes"]["clicks applied"] == 3_000
    status, report, bad = judged(tmp_path, capsys, events, "--as-is")
    assert {"time-order", "in-time", "click-has-list"} <= set(bad)
    assert report["outcomes"]["late"] > 1_000


def test_a_file_that_is_cut_off_is_judged_as_far_as_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the line is told behind which nothing can be read."""
    packed = gzip.compress("\n".join(map(json.dumps, clean(9_000))).encode())
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(packed[: len(packed) // 2])
    assert main(["validate", str(path), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    (readable,) = (each for each in report["checks"] if each["name"] == "readable")
    assert (readable["status"], readable["count"]) == ("FAIL", 1)
    assert readable["examples"][0]["line"] > 10
    assert report["lists"] > 10


def test_a_wrong_call_is_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is not there is no verdict."""
    assert main(["validate", str(tmp_path / "none.jsonl")]) == 2
    assert "must be there" in capsys.readouterr().err


def test_the_table_says_what_is_wrong_without_markup_or_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever a file holds."""
    path = tmp_path / "log.jsonl"
    hostile = clicked(3, item_id="[bold]\x1b[2J")
    path.write_text("\n".join(map(json.dumps, [*clean(20), hostile])))
    assert main(["validate", str(path)]) == 1
    said = capsys.readouterr().out
    assert "\x1b[2J" not in said
    assert "click-in-its-list: compare" in said
    assert f"{path}:41" in said.replace("\n", "")


def test_counts_are_those_of_a_replay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With repeats, orphans, late clicks and letters among the events."""
    n = 1_500
    events: list[Any] = clean(n)
    events += [clicked(k) for k in range(0, n, 11)]
    events += [shown(k) for k in range(0, n, 13)]
    events += [clicked(k, impression_id="none") for k in range(0, n, 17)]
    events += [clicked(k, position=9) for k in range(0, n, 19)]
    events += [clicked(k, position=0) for k in range(0, n, 23)]
    late = [clicked(k, position=3) for k in range(0, n, 29)]
    events += [each | {"at_ms": each["at_ms"] + WINDOW_MS + 1} for each in late]
    events.sort(key=lambda each: int(each["at_ms"]))
    _, report, bad = judged(tmp_path, capsys, events)

    replayed = LocalReplay(local_settings(Settings()))
    replayed.pipeline.start()
    for each in events:
        event = recognised(json.dumps(each).encode())
        replayed.pipeline.send(event.kind, event.value)
    replayed.pipeline.end()
    outcomes = dict(replayed.outcomes())
    assert outcomes.pop("pending") == 0
    assert report["outcomes"] == outcomes
    counts = {name: each["count"] for name, each in bad.items()}
    assert counts["no-duplicates"] == outcomes["duplicate"] > 200
    assert counts["click-has-list"] == outcomes["orphan"] > 80
    assert counts["in-time"] == outcomes["late"] > 40
    letters = counts["click-in-its-list"] + counts["ordinals-from-1"]
    assert letters == outcomes["dead letter"] > 100


@pytest.mark.parametrize(("age_ms", "n_past"), [(0, 0), (WINDOW_MS + 60_000, 2)])
def test_what_is_too_old_by_now_is_told_apart(
    age_ms: int, n_past: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It passes, as in a namespace of its own; elsewhere it would be late."""
    at_ms = int(time.time() * 1_000) - age_ms - 1_000
    events = [shown(1, at_ms=at_ms), clicked(1, at_ms=at_ms + 5)]
    refused = clicked(1, at_ms=at_ms + 6, position=0)
    status, report, bad = judged(tmp_path, capsys, [*events, refused])
    assert (status, [*bad], report["late_by_now"]) == (1, ["ordinals-from-1"], n_past)
    assert report["outcomes"]["late"] == 0
    assert main(["validate", str(tmp_path / "log.jsonl")]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert ("2 of these are too old by now" in said) == bool(n_past)


FOREIGN = {
    "ubi": {"action_name": "click", "query_id": "l", "timestamp": START_MS},
    "metarank": {"event": "interaction", "ranking": "r", "timestamp": str(START_MS)},
    "cloudevents": {"specversion": "1.0", "id": "1", "data": {}},
}


@pytest.mark.parametrize("form", FOREIGN)
def test_documents_of_another_format_are_told_how_to_be_read(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are no events of ours with a wrong time."""
    status, report, bad = judged(tmp_path, capsys, [FOREIGN[form]] * 3)
    assert (status, set(bad)) == (1, {"adapted", "lists-and-clicks"})
    assert bad["adapted"]["count"] == report["outcomes"]["dead letter"] == 3
    assert f"which --format {form} reads" in bad["adapted"]["examples"][0]["why"]


def test_bytes_that_are_no_text_are_not_readable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Though there are only two of them."""
    path = tmp_path / "log"
    path.write_bytes(b"\xff\xfe")
    assert main(["validate", str(path), "--json"]) == 1
    readable, *_ = json.loads(capsys.readouterr().out)["checks"]
    assert (readable["status"], readable["codes"]) == ("FAIL", {"not-json": 1})


def test_a_frequent_reason_hides_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each code has an example, and the most frequent has the most."""
    events = clean() + [shown(n, schema=9) for n in range(50)]
    events += [clicked(7, action=""), shown(8, shown=["a", "a"])]
    _, _, bad = judged(tmp_path, capsys, events)
    found = bad["fields"]
    told = [each["code"] for each in found["examples"]]
    assert set(told) == set(found["codes"])
    assert len(set(told)) == 3
    assert len(told) == MOST_EXAMPLES
    assert found["codes"][told[0]] == 50
    assert told == sorted(told, key=told.index)
    path = tmp_path / "log.jsonl"
    assert main(["validate", str(path)]) == 1
    assert f"  {told[-1]}: " in capsys.readouterr().out


def test_an_unreadable_file_is_no_dead_letter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A replay would refuse it and send nothing; what it lacks is not known."""
    path = tmp_path / "log.csv"
    rows = [f"i{n},x{place},{place},{START_MS},1" for n in range(3) for place in (1, 2)]
    rows.append("i9,x1")
    path.write_text("\n".join(["impression,item,position,at,clicked", *rows]))
    assert main(["validate", str(path), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    found = {each["name"]: each["count"] for each in report["checks"] if each["count"]}
    assert found == {"readable": 1}
    assert not any(report["outcomes"].values())
    # Nothing of it was judged, so that nothing passes.
    told = {each["status"] for each in report["checks"]}
    assert (report["status"], told) == ("FAIL", {"FAIL", "NONE"})
    assert main(["validate", str(path)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "PASS" not in out.replace("each PASS is of the rest", "")
    assert "what could not be read was not judged" in out


def test_a_list_of_a_table_is_told_by_its_first_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not by its number."""
    path = tmp_path / "log.csv"
    rows = [f"i{n},x{place},{place},{START_MS},1" for n in range(3) for place in (1, 2)]
    rows += [f"i9,x,3,{START_MS},0", f"i10,y,1,{START_MS},0"]
    path.write_text("\n".join(["impression,item,position,at,clicked", *rows]))
    assert main(["validate", str(path), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    (ordinals,) = (each for each in report["checks"] if each["status"] == "FAIL")
    assert [each["line"] for each in ordinals["examples"]] == [8]


def test_a_time_without_a_zone_has_its_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Told beside times of another unit."""
    path = tmp_path / "log.csv"
    path.write_text("impression,item,at\ni,x,2024-01-01T00:00:00\n")
    main(["validate", str(path)])
    said = " ".join(capsys.readouterr().out.split())
    assert "must have a zone, such as Z" in said
    assert "epoch-unit: send these" in said
