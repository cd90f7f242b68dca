"""Answers by functions: of a folder of a replay, as dictionaries and as tables."""

import json
from pathlib import Path
from typing import Any

import pytest

from models.estimators.bias_curve import position_curve
from rankstream.operations.answers.curve import curve_for
from rankstream.operations.answers.policies import files_named, policies_of
from rankstream.operations.answers.relevance import relevance_in
from rankstream.operations.answers.sources import CountedLog, source_of
from rankstream.operations.answers.statistics import counted_scope
from rankstream.operations.answers.values import ValueOptions, values_of
from rankstream.operations.cli import main
from rankstream.settings import Settings

START_MS = 1_750_000_000_000


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> CountedLog:
    """Lists in either order; the first place is clicked in two of three."""
    folder = tmp_path_factory.mktemp("run")
    lines = []
    for number in range(120):
        at_ms = START_MS + 1_000 * number
        shown = ["a", "b"] if number % 2 else ["b", "a"]
        one: dict[str, Any] = {"impression_id": f"i{number}", "query_id": "tea"}
        lines.append({**one, "at_ms": at_ms, "shown": shown, "session": f"s{number}"})
        if number % 3:
            lines.append({**one, "at_ms": at_ms + 9, "position": 1})
    log = folder / "log.jsonl"
    log.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    assert main(["replay", str(log), "--local", "--out", str(folder / "out")]) == 0
    return source_of(Settings(), folder / "out")


def test_answers_are_json_without_numbers_that_are_none(source: CountedLog) -> None:
    """NaN is null, whatever the answer is of."""
    scopes = source.statistics.scopes("tea")
    given = [1.0, 0.5]
    curve = curve_for(source, given=position_curve(given))
    assert curve.curve is not None
    found = relevance_in(source, scopes, curve.curve)
    scope = counted_scope(source.statistics, scopes[0])
    for answer in (curve, found, scope):
        json.dumps(answer.to_dict(), allow_nan=False)
    assert curve.to_dict()["alpha"] == given
    assert {each["item"] for each in found.to_dict()["items"]} == {"a", "b"}
    assert scope.to_dict()["lists"] == 120
    assert sum(each["clicked"] for each in scope.to_dict()["places"]) == 80


def test_values_are_of_policies_that_are_named(
    source: CountedLog, tmp_path: Path
) -> None:
    """Without a command, beside what was logged."""
    file = tmp_path / "best.jsonl"
    file.write_text('{"query_id": "tea", "items": ["b", "a"]}\n')
    words = [str(file)]
    policies = policies_of(words, source, files_named(words))
    told = values_of(
        source, policies, ValueOptions(examination=position_curve([1.0, 0.5]))
    ).to_dict()
    json.dumps(told, allow_nan=False)
    assert [each["name"] for each in told["policies"]] == ["logged", "best"]
