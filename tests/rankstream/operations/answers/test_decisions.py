"""Decisions in words: whose order a query has, and what has yet to be shown."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from models.decisions.over_all_queries import Lack
from rankstream.operations.answers import decisions as module
from rankstream.operations.answers.decisions import (
    AS_PRINTED,
    KEPT,
    LACKS,
    decided_sets,
    lacking_in_words,
    remark_on,
    rules,
)
from rankstream.operations.cli import main
from rankstream.settings import Settings
from rankstream.wire.decision_shards import DecisionError, Slot
from rankstream.wire.decisions import (
    GENERAL,
    LOGGING,
    OWN,
    Evidence,
    decision_key,
    encode_decision,
)
from tests.decision_factory import Records, decision, rewrite


def evidence(policy: str, against: str, estimate: float, lower: float) -> Evidence:
    """Of 100 lists."""
    upper = 2.0 * estimate - lower
    return Evidence(against, 100, 40, 8, estimate, lower, upper, policy)


BEHIND = [evidence(OWN, GENERAL, 0.2, 0.1), evidence(OWN, LOGGING, -0.1, -0.3)]
DECISIONS = {
    "kept": decision(
        policy=LOGGING, evidence=[*BEHIND, evidence(LOGGING, GENERAL, 0.3, 0.15)]
    ),
    "own": decision(
        evidence=[evidence(OWN, GENERAL, 0.2, 0.1), evidence(OWN, LOGGING, 0.4, 0.2)]
    ),
    "waits": decision(
        order=[], evidence=[*BEHIND, evidence(LOGGING, GENERAL, 0.1, -0.1)]
    ),
    "worse": decision(
        order=[], evidence=[*BEHIND, evidence(LOGGING, GENERAL, -0.1, -0.2)]
    ),
}
OVER_ALL = {
    "general": Evidence(LOGGING, 400, 160, 8, 0.1, -0.01, 0.2, GENERAL),
    "paired": [-0.02, 0.22],
    "lacking": [Lack.BOUND, Lack.INTERVAL],
    "n_logging": 1,
    "n_decisions": 2,
}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Records:
    """What the topic has; tests may change it."""
    records = list(rewrite(1, DECISIONS, **OVER_ALL).records)

    class Reader:
        def __init__(self, settings: Settings) -> None: ...
        def __enter__(self) -> "Reader":
            return self

        def __exit__(self, *_: object) -> None: ...
        def partitions(self, _: str) -> list[int]:
            return [0]

        def records(self, _: str) -> Iterator[Any]:
            return (SimpleNamespace(key=key, value=value) for key, value in records)

    monkeypatch.setattr(module, "TopicReader", Reader)
    return records


def remarks() -> dict[str, str]:
    """Of all sets, by query."""
    return {x.query: remark_on(x) for x in decided_sets(Settings(), "rule")}


@pytest.mark.usefixtures("written")
def test_whose_order_a_query_has_is_told() -> None:
    """Decided ones first, by what is sure to be gained for whoever is served."""
    found = [(x.query, x.served) for x in decided_sets(Settings(), "rule")]
    assert found == [
        ("kept", LOGGING),
        ("own", OWN),
        ("waits", "default"),
        ("worse", "default"),
    ]


@pytest.mark.usefixtures("written")
def test_what_would_change_a_decision_is_told() -> None:
    """Of a query, and of the general model, which serves where that says so."""
    said = remarks()
    assert said["own"].startswith("stays while its own order is better for sure")
    assert said["kept"].startswith(KEPT)
    behind = "its own order does not look better than the logging model"
    assert behind in said["kept"]
    lacks = lacking_in_words(OVER_ALL["lacking"])  # type: ignore[arg-type]
    keeps = (
        "about 400 lists would show the logging model better than the general model, "
        "if it stays as it looks; 100 are counted"
    )
    assert said["waits"] == f"{behind}; {keeps}; {lacks}"
    assert said["worse"] == f"{behind}; {lacks}"


def test_a_query_that_the_printed_rule_leaves_to_logging_says_so(
    written: Records,
) -> None:
    """There is nothing that speaks for that model for sure."""
    unsure = decision(
        policy=LOGGING, evidence=[*BEHIND, evidence(LOGGING, GENERAL, 0.1, -0.2)]
    )
    written[:] = rewrite(1, {"kept": unsure}, **OVER_ALL).records
    assert remarks()["kept"].startswith(AS_PRINTED)


def test_what_the_general_model_has_yet_to_show_is_told(written: Records) -> None:
    """Each lack has its words, and there are none where nothing lacks."""
    assert {*LACKS} == {*Lack}
    (rule,), faults = rules(Settings())
    assert (rule.decided, rule.by_logging, rule.undecided) == (2, 1, 2)
    assert not faults
    for lack in OVER_ALL["lacking"]:  # type: ignore[attr-defined]
        assert LACKS[lack] in rule.remark
    written[:] = rewrite(1, DECISIONS, **{**OVER_ALL, "lacking": []}).records
    (rule,), _ = rules(Settings())
    assert rule.remark == ""
    assert "replace" not in remarks()["worse"]


@pytest.mark.usefixtures("written")
def test_commands_show_it(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In tables and in JSON."""
    monkeypatch.setenv("COLUMNS", "250")
    config = tmp_path / "shop.toml"
    config.write_text("")

    def said(*words: str) -> str:
        capsys.readouterr()
        assert main(["decisions", *words, "--config", str(config)]) == 0
        told = capsys.readouterr()
        return told.out + told.err

    (rule,) = json.loads(said("list", "--json"))
    assert (rule["lacking"], rule["paired"]) == (["bound", "interval"], [-0.02, 0.22])
    assert "rule: the general model does not replace" in said("list")
    assert "-0.020 to +0.220" in said("list")
    listed = said("list", "rule")
    for words in ("its own order", "logging", "by default", "+0.300 (+0.150 to"):
        assert words in listed
    assert "that of the logging model" in said("show", "rule", "kept")
    (kept,) = json.loads(said("show", "rule", "kept", "--json"))
    assert kept["served"] == "logging"
    assert kept["evidence"][-1]["policy"] == "logging"


BANDIT = {
    "tries": decision(
        policy="pie", order=[5, 4, 3, 2, 1, 0], blocks=[1, 2, 1, 2], evidence=[],
        slot=Slot(2, 0.5, [2]), lists=120, values=[0.1, 0.1, 0.2, 0.4, 0.4, 0.9],
    ),
    "knows": decision(
        policy="pie", evidence=[], lists=900, values=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    ),
    "seen": decision(
        policy="cascade", evidence=[], lists=30, values=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    ),
    "mixed": decision(
        policy="hotfix", order=[0, 1, 2, 3, 4, 5], blocks=[3, 1, 1, 1], evidence=[],
        lists=60, values=[-4.0, 1.0, 3.0, -5.0, -6.0, -7.0],
    ),
}  # fmt: skip


def test_a_bandit_tells_what_it_tries_and_what_it_learned(
    written: Records,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tied items that were not drawn are tried too; sets of most lists come first."""
    written[:] = rewrite(3, BANDIT, bandit="pie, lists of 2").records
    found = decided_sets(Settings(), "rule")
    assert [x.query for x in found] == ["knows", "tries", "mixed", "seen"]
    knows, tries, mixed, seen = (x.remark for x in found)
    assert knows.startswith("the last rank tries nothing: no other item")
    assert tries.endswith("as good as its own item: item 4, item 3, item 2")
    assert tries.startswith("rank 2 of lists of 2 tries, with a chance of 0.5, what")
    assert mixed.endswith("so far it would put item 2, item 1, item 0 first")
    assert seen.startswith("the largest upper index goes first")
    monkeypatch.setenv("COLUMNS", "250")
    config = tmp_path / "shop.toml"
    config.write_text("")
    for words, said in (
        (("list",), "pie, lists of 2"),
        (("list", "rule"), "hotfix"),
        (("show", "rule", "tries"), "clicks where examined"),
        (("show", "rule", "tries"), "by 120 lists of its own"),
        (("show", "rule", "mixed"), "-4.000, 1.000, 3.000"),
    ):
        assert main(["decisions", *words, "--config", str(config)]) == 0
        assert said in capsys.readouterr().out
    show = ["decisions", "show", "rule", "tries", "--json", "--config", str(config)]
    assert main(show) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["served"], told["remark"]) == ("pie", tries)
    assert told["bandit"]["tried"] == ["item 4", "item 3", "item 2"]
    assert told["bandit"]["values"]["item 5"] == 0.9


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"order": [0, 1, 2, 3, 4, 6]}, "an order must have the numbers from 0 on"),
        ({"blocks": [3, 4]}, "blocks must be of 1 item or more each, and of 6"),
        ({"slot": Slot(2, 0.5, [6])}, "a slot must be at a rank before the last item"),
        ({"values": [0.5]}, "must have a value of each of its items; got 1 of 6"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(
    written: Records, fields: dict[str, Any], said: str
) -> None:
    """In words, as rankers refuse it."""
    own = {"policy": "pie", "values": [0.1] * 6, "evidence": []}
    forged = encode_decision(decision(**(own | fields)))
    written[:] = [(decision_key("rule", "q", b"set"), forged)]
    with pytest.raises(DecisionError, match=said):
        decided_sets(Settings(), "rule")
