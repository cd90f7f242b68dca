"""`rankstream export --arrays`: what stands in the file, read back."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from producers.formats.canonical_dump import Header, write_dump
from rankstream.operations.answers.exports.bandit_log import BanditLog, Part
from rankstream.operations.cli import main
from rankstream.settings import Settings
from rankstream.wire.events import SCHEMA, ClickMark, Interaction, encode_record
from tests import event_factory

START_MS = 1_750_000_000_000
SCORES = [0.5, -0.25, 1.0]
MATRIX = [0.5, 0.25, 0.5, 0.25, 0.0, 0.5]
CONFIG = """
namespace = "test"
[exclude]
users = ["robot"]
[statistics]
groups = 8
actions = { buy = "purchase" }
"""

LISTS: dict[str, dict[str, Any]] = {
    "fixed": {"policy": "deterministic", "shown": ["b", "a"]},
    "drawn": {"policy": "plackett-luce", "shown": ["c", "a"], "scores": SCORES},
    "tail": {"policy": "tail-shuffle", "shown": ["a", "c"]},
    "told": {"policy": "logged", "shown": ["a", "c"], "exposures": MATRIX},
    "dark": {"policy": "unknown", "shown": ["c", "b"], "query_id": "Red  Shoes"},
    "bandit": {
        "shown": ["b"],
        "attributes": {"propensity": 0.125, "position": 3},
        "intervention": "v2",
    },
    "pair": {"shown": ["b", "a"], "attributes": {"propensity": [0.25, "x"]}},
    "robot": {"policy": "deterministic", "shown": ["a"], "user": "robot"},
}
CLICKS = [("fixed", 2), ("fixed", 2), ("drawn", 1), ("dark", 1), ("bandit", 1)]


def lines() -> list[dict[str, Any]]:
    """Events of all lists, a minute apart, and their clicks."""
    found: list[dict[str, Any]] = []
    for minute, (name, fields) in enumerate(LISTS.items()):
        common = {"impression_id": name, "query_id": "q", "candidates": ["a", "b", "c"]}
        at_ms = START_MS + 60_000 * minute
        found.append(common | {"at_ms": at_ms} | fields)
    for second, (name, place) in enumerate([*CLICKS, ("tail", 1)]):
        shown = next(each for each in found if each["impression_id"] == name)
        click = {"impression_id": name, "query_id": shown["query_id"]}
        found.append(
            click
            | {"at_ms": shown["at_ms"] + 1_000 * (second + 1), "position": place}
            | ({"action": "buy"} if name == "tail" else {})
        )
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log and settings."""
    text = "\n".join(json.dumps(each) for each in lines())
    (tmp_path / "log.jsonl").write_text(text + "\n")
    (tmp_path / "shop.toml").write_text(CONFIG)
    return tmp_path


def exported(folder: Path, *words: str) -> dict[str, Any]:
    """The arrays of the log."""
    file = folder / "log.npz"
    common = ["--arrays", str(file), "--config", str(folder / "shop.toml")]
    assert main(["export", str(folder / "log.jsonl"), *common, *words]) == 0
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def rounds_of(found: dict[str, Any]) -> dict[str, list[tuple[Any, ...]]]:
    """Item, place, reward and propensity of each round, by list."""
    names = {START_MS + 60_000 * n: name for n, name in enumerate(LISTS)}
    rows: dict[str, list[tuple[Any, ...]]] = {}
    columns = (found[name].tolist() for name in ("position", "reward", "pscore"))
    for at_ms, item, *rest in zip(
        found["at_ms"].tolist(), found["items"][found["action"]], *columns, strict=True
    ):
        rows.setdefault(names[at_ms], []).append((str(item), *rest))
    return rows


def drawn_probability(item: int, rank: int) -> float:
    """P(item at rank) under Plackett-Luce, by adding up all rankings."""
    rates = np.exp(SCORES)
    total = 0.0
    for ranking in itertools.permutations(range(3)):
        if ranking[rank - 1] == item:
            left = [rates[list(ranking[n:])].sum() for n in range(3)]
            total += float(np.prod(rates[list(ranking)] / left))
    return total


def test_each_policy_gives_its_propensities(folder: Path) -> None:
    """Of an item at its rank, over all lists that it could have drawn."""
    rows = rounds_of(exported(folder))
    unknown = pytest.approx(np.nan, nan_ok=True)
    second = pytest.approx(drawn_probability(0, 2), abs=1e-7)

    assert rows.pop("drawn") == [
        ("c", 0, 1, pytest.approx(drawn_probability(2, 1), abs=1e-7)),
        ("a", 1, 0, second),
    ]
    assert rows == {
        "fixed": [("b", 0, 0, 1.0), ("a", 1, 1, 1.0)],
        "tail": [("a", 0, 0, 1.0), ("c", 1, 0, 0.5)],
        "told": [("a", 0, 0, 0.5), ("c", 1, 0, 0.5)],
        "dark": [("c", 0, 1, unknown), ("b", 1, 0, unknown)],
        "bandit": [("b", 2, 1, 0.125)],
        "pair": [("b", 0, 0, 0.25), ("a", 1, 0, unknown)],
    }


def test_what_stands_beside_the_rounds(folder: Path) -> None:
    """Names of items, queries and interventions; lists and groups of rounds."""
    found = exported(folder)

    assert found["items"].tolist() == ["a", "b", "c"]
    assert sorted(found["queries"].tolist()) == ["q", "red shoes"]
    assert sorted(found["interventions"].tolist()) == ["", "v2"]
    assert (int(found["n_rounds"]), int(found["n_actions"])) == (13, 3)
    assert np.bincount(found["list"]).tolist() == [2, 2, 2, 2, 2, 1, 2]
    assert found["group"].max() < 8
    # No list says a context, so that it is the query's number.
    np.testing.assert_array_equal(found["context"][:, 0], found["query"])
    np.testing.assert_array_equal(found["action_context"], np.eye(3))
    sizes = {len(found[x]) for x in ("action", "reward", "pscore", "context", "at_ms")}
    assert sizes == {13}


def test_another_class_of_actions_may_be_the_reward(folder: Path) -> None:
    """As in the statistics: `tail` was bought from."""
    config = folder / "shop.toml"
    config.write_text(CONFIG + 'reward = "purchase"\n')
    rows = rounds_of(exported(folder))

    assert [reward for _, _, reward, _ in rows["tail"]] == [1, 0]
    assert sum(reward for row in rows.values() for _, _, reward, _ in row) == 1


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--query", "RED shoes"], {"dark"}),
        (["--intervention", "v2"], {"bandit"}),
        (["--intervention", "", "--query", "red shoes"], {"dark"}),
        (["--until", "2025-06-15T15:07:40Z"], {"fixed"}),
        (["--since", "2025-06-15T15:12:40+00:00"], {"pair"}),
        (["--since", "2025-06-15", "--until", "2025-06-16"], {*LISTS} - {"robot"}),
    ],
)
def test_a_part_of_the_log(folder: Path, words: list[str], names: set[str]) -> None:
    """By query, intervention and time, the last of which is not in it."""
    assert rounds_of(exported(folder, *words)).keys() == names


def test_lists_that_say_their_context_have_it(folder: Path) -> None:
    """Where all that are asked for say one."""
    event = lines()[0] | {"attributes": {"context": ["de", 3]}}
    other = event | {"impression_id": "other", "attributes": {"context": ["at", 1]}}
    (folder / "log.jsonl").write_text(f"{json.dumps(event)}\n{json.dumps(other)}\n")
    found = exported(folder)

    assert sorted(map(tuple, found["context"].tolist())) == [
        (0.0, 1.0),
        (0.0, 1.0),
        (1.0, 3.0),
        (1.0, 3.0),
    ]


def test_a_dump_of_interactions_gives_its_lists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As they were closed."""
    shown = event_factory.impression("i1", items=["10", "9"], shown=["9", "10"])
    interaction = Interaction(shown, [ClickMark(2, shown.at_ms + 1, "click")])
    record = encode_record([SCHEMA, 0, 1, [interaction]])
    dump, file = tmp_path / "interactions.dump", tmp_path / "out.npz"
    write_dump(dump, Header("interactions", 1), [(0, record)])

    assert main(["export", "--arrays", str(file), str(dump)]) == 0
    assert "2 rounds of 1 list and 2 items, 1 click" in capsys.readouterr().err
    with np.load(file) as found:
        # Names that are numbers are in the order of numbers.
        assert found["items"].tolist() == ["9", "10"]
        assert found["action"].tolist() == [0, 1]
        assert found["reward"].tolist() == [0, 1]


def test_what_cannot_be_exported_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written then."""
    log = str(folder / "log.jsonl")
    nothing = folder / "none.npz"
    words = ["export", log, "--arrays", str(nothing), "--query", "hats"]
    assert main(words) == 1
    assert "no list is of the part" in capsys.readouterr().err
    assert main(["export", log, "--arrays", str(folder / "log.csv")]) == 2
    assert "must be a file that ends in .npz" in capsys.readouterr().err
    assert main(["export", log, "--arrays", str(folder / "no" / "log.npz")]) == 2
    assert "must be writable" in capsys.readouterr().err
    for time in ("soon", "2025-06-15T15:00"):
        with pytest.raises(SystemExit):
            main(["export", log, "--arrays", str(nothing), "--since", time])
    assert not nothing.exists()


def test_what_attributes_say_may_be_anything() -> None:
    """What is no propensity, place or context is none, and stops nothing."""
    for told in (0.0, 1.5, -1, True, "x", None, [], [0.5, 0.5], {"p": 1}):
        extra = {"attributes": {"propensity": told, "position": told, "context": told}}
        shown = event_factory.impression(
            items=["a", "b"], shown=["a"], policy=0, extra=encode_record(extra)
        )
        log = BanditLog(Part(), Settings().statistics)
        log.take(Interaction(shown, []))
        arrays, _ = log.arrays()
        assert np.isnan(arrays.pscore).all(), told
        assert arrays.position.tolist() == [0]


def test_a_logged_zero_of_what_was_shown_is_unknown() -> None:
    """Nothing can be divided by it."""
    packed = np.array([0.0, 1.0], "<f4").tobytes()
    shown = event_factory.impression(
        items=["a", "b"], shown=["a"], policy=4, exposures=packed
    )
    log = BanditLog(Part(), Settings().statistics)
    log.take(Interaction(shown, []))
    assert np.isnan(log.arrays()[0].pscore).all()
