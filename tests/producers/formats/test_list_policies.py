"""How lists of a table were drawn: policies, scores and exposures in columns."""

import json
from pathlib import Path
from typing import Any

import pytest

from producers.formats.registry import read_events

AT_MS = 1_733_788_889_378


def events(path: Path, head: str, *rows: str) -> list[Any]:
    """Events of a table; of what is refused its reason."""
    path.write_text("\n".join([f"impression,item,at,{head}", *rows]) + "\n")
    found = [*read_events([path])]
    return [each.refusal or json.loads(each.value) for each in found]


def test_scores_are_of_all_candidates(tmp_path: Path) -> None:
    """What was not shown has no position; places are those of what was."""
    listed, clicked = events(
        tmp_path / "log.csv",
        "position,policy,scores,clicked",
        f"i,c,{AT_MS},,plackett-luce,0.5,0",
        f"i,b,{AT_MS},2,plackett-luce,1.5,1",
        f"i,a,{AT_MS},1,plackett-luce,-2,0",
    )
    assert listed["shown"] == ["a", "b"]
    assert listed["candidates"] == ["a", "b", "c"]
    assert listed["scores"] == [-2.0, 1.5, 0.5]
    assert listed["policy"] == "plackett-luce"
    assert (clicked["item_id"], clicked["position"]) == ("b", 2)


def test_exposures_are_a_row_for_each_candidate(tmp_path: Path) -> None:
    """Of as many ranks as were shown."""
    (listed,) = events(
        tmp_path / "log.csv",
        "position,policy,exposures",
        f'i,a,{AT_MS},1,logged,"[0.75, 0.0]"',
        f'i,b,{AT_MS},2,logged,"[0.25, 0.5]"',
        f'i,c,{AT_MS},,logged,"[0.0, 0.5]"',
    )
    assert listed["exposures"] == [0.75, 0.0, 0.25, 0.5, 0.0, 0.5]
    assert listed["candidates"] == ["a", "b", "c"]


def test_without_a_policy_each_row_was_shown(tmp_path: Path) -> None:
    """A row without a position is refused, and nothing is said of policies."""
    (refused,) = events(tmp_path / "a.csv", "position", f"i,a,{AT_MS},")
    assert refused.startswith("type: position must be a whole number")
    (listed,) = events(tmp_path / "b.csv", "position", f"i,a,{AT_MS},1")
    assert not {"policy", "candidates", "scores"} & listed.keys()
    (sorted_,) = events(tmp_path / "c.csv", "policy", f"i,a,{AT_MS},deterministic")
    assert sorted_["policy"] == "deterministic"
    assert "candidates" not in sorted_


@pytest.mark.parametrize(
    ("head", "row", "said"),
    [
        ("policy", "random", "policy must be one of unknown, plackett-luce,"),
        ("policy,scores", "plackett-luce,high", "scores must be a number in each row"),
        ("policy,exposures", "logged,0.5", "exposures must be an array of numbers in"),
        ("policy,exposures", 'logged,"[0.5, 0.5]"', "a number for each shown rank, 1"),
        ("position,policy", ",deterministic", "a list must show an item; each row of"),
    ],
)
def test_what_says_no_policy_is_refused(
    tmp_path: Path, head: str, row: str, said: str
) -> None:
    """As a document that cannot be adapted, with the reason."""
    (refused,) = events(tmp_path / "log.csv", head, f"i,a,{AT_MS},{row}")
    assert said in refused
