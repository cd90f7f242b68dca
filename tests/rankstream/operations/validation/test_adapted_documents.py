"""Documents of other systems, judged as a replay would count them."""

import json
import re
from pathlib import Path

import pytest

from rankstream.operations.cli import main

NOW_MS = 1_733_788_889_378
QUERY = {
    "query_id": "l1",
    "user_query": "red",
    "timestamp": NOW_MS,
    "query_response_hit_ids": ["a", "b"],
}
CLICK = {
    "action_name": "click",
    "query_id": "l1",
    "timestamp": NOW_MS + 9,
    "event_attributes": {"object": {"object_id": "a"}, "position": {"ordinal": 1}},
}
PLACE_0 = {"object": {"object_id": "a"}, "position": {"ordinal": 0}}

DOCUMENTS = (
    QUERY,
    CLICK,
    CLICK,
    CLICK | {"event_attributes": PLACE_0},
    CLICK | {"query_id": None},
    CLICK | {"query_id": "l2"},
    CLICK | {"timestamp": NOW_MS // 1_000},
    {"action_name": "search", "timestamp": NOW_MS},
    {"query_id": "l3", "user_query": "blue", "timestamp": NOW_MS},
)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Clicks in a file before that of their lists, and one line that is no JSON."""
    events, queries = tmp_path / "events.ndjson", tmp_path / "queries.ndjson"
    for path, has_action in ((events, True), (queries, False)):
        chosen = [each for each in DOCUMENTS if ("action_name" in each) == has_action]
        path.write_text("\n".join(map(json.dumps, chosen)) + "\n{broken\n")
    return [events, queries]


def test_each_reason_has_its_check_and_its_line(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Times and places have checks of their own."""
    words = ["validate", *map(str, files), "--format", "ubi", "--json"]
    assert main(words) == 1
    told = json.loads(capsys.readouterr().out)
    found = {each["name"]: each for each in told["checks"]}

    assert {name: each["count"] for name, each in found.items() if each["count"]} == {
        "readable": 2,
        "adapted": 3,
        "epoch-unit": 1,
        "ordinals-from-1": 1,
        "no-duplicates": 1,
    }
    assert found["adapted"]["codes"] == {"no-id": 1, "no-query": 1, "no-list": 1}
    lines = {
        (Path(each["file"]).name, each["line"]) for each in found["adapted"]["examples"]
    }
    assert lines == {("events.ndjson", 4), ("events.ndjson", 5), ("queries.ndjson", 2)}


@pytest.mark.parametrize("options", [[], ["--option", "query=id"]])
def test_it_counts_what_a_replay_counts(
    files: list[Path], capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """Outcome by outcome."""
    words = [*map(str, files), "--format", "ubi", *options]
    main(["validate", *words, "--json"])
    judged = json.loads(capsys.readouterr().out)["outcomes"]
    assert main(["replay", *words, "--local"]) == 0
    table = capsys.readouterr().out

    for name, count in judged.items():
        assert re.search(rf"{name}\W+{count}\b", table), (name, count, table)


def test_a_file_that_is_no_json_is_told_by_its_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one of ours would be."""
    path = tmp_path / "log"
    path.write_text("nonsense")
    assert main(["validate", str(path), "--format", "ubi"]) == 1
    assert "correct --format" in " ".join(capsys.readouterr().out.split())


def test_it_says_how_many_lists_impressions_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside those of queries with their hits."""
    impressions = [
        CLICK | {
            "action_name": "impression", "query_id": f"l{n}", "user_query": "red",
            "event_attributes": {
                "object": {"object_id": f"i{place}"}, "position": {"ordinal": place},
            },
        }
        for n in (1, 7, 8)
        for place in (2, 1, 2)
    ]  # fmt: skip
    path = tmp_path / "log.ndjson"
    path.write_text("\n".join(map(json.dumps, [*impressions, QUERY, CLICK])))
    words = ["validate", str(path), "--format", "ubi", "--strict"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "2 lists made of impression events, 1 of queries with their hits" in said
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["lists"], told["lists_of_impressions"]) == (3, 2)
    assert told["outcomes"]["impressions applied"] == 3


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("ubi", "\n".join(json.dumps(QUERY | {"query_id": f"l{n}"}) for n in range(9))),
        (
            "csv",
            "impression,item,clicked,at\n"
            + "".join(f"l{n},a,0,2024-12-10T00:01:29Z\n" for n in range(9)),
        ),
    ],
)
def test_strict_fails_a_log_without_a_click_and_says_where_to_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, text: str
) -> None:
    """Nothing can be told from it."""
    path = tmp_path / "log"
    path.write_text(text)
    assert main(["validate", str(path), "--format", form, "--strict"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "there is no click, and 9 lists" in said
    assert "which column, action or field says that an item was clicked" in said
