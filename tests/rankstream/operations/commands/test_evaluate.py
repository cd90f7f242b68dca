"""`rankstream evaluate` on files and folders: figures, remarks, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.estimators.bias_curve import position_curve
from models.estimators.choice import asked_for
from producers.formats.canonical_dump import Header, write_dump
from rankstream.operations.answers.policies import rankings_of
from rankstream.operations.answers.support import support_of
from rankstream.operations.answers.values import WEIGHTS
from rankstream.operations.cli import main
from rankstream.wire.topics import EVENTS, INTERACTIONS
from streams.estimation.curve_replicates import CurveReplicates
from streams.estimation.policy_rows import PolicyRow
from streams.estimation.question import Question
from tests.streams.training.shop import EXAMINATION, Shop, model_of, settings_of

START_MS = 1_750_000_000_000
ITEMS = [*"abcd"]
LOOKED = [1.0, 0.6, 0.4]
RELEVANCE = {"red shoes": [0.1, 0.3, 0.5, 0.2], "green tea": [0.4, 0.15, 0.3, 0.05]}
CONFIG = "[statistics]\ngroups = 10\n"


def events(n_lists: int, intervention: str = "v1") -> list[dict[str, Any]]:
    """Lists that have the good items low, and clicks."""
    rng, found = np.random.default_rng(7), []
    for number in range(n_lists):
        query = [*RELEVANCE][int(rng.integers(2))]
        scores = np.array(RELEVANCE[query], "f4") * -3
        order = np.argsort(-(scores + rng.gumbel(size=4)))[:3].tolist()
        one: dict[str, Any] = {
            "impression_id": f"i{number}",
            "query_id": query.title(),
            "at_ms": START_MS + 1_000 * number,
        }
        listed = {
            "candidates": ITEMS,
            "shown": [ITEMS[item] for item in order],
            "policy": "plackett-luce",
            "scores": [float(each) for each in scores],
            "user": f"u{int(rng.integers(500))}",
            "intervention": intervention,
        }
        found.append(one | listed)
        for rank, item in enumerate(order):
            if rng.random() < LOOKED[rank] * RELEVANCE[query][item]:
                at_ms = one["at_ms"] + 100
                found.append(one | {"at_ms": at_ms, "position": rank + 1})
    return found


def written(path: Path, lines: list[dict[str, Any]]) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log, settings, two files of rankings, and what a replay of the log leaves."""
    folder = tmp_path_factory.mktemp("log")
    written(folder / "log.jsonl", events(2_000))
    (folder / "shop.toml").write_text(CONFIG)
    best = [
        {"query_id": query, "items": [ITEMS[i] for i in np.argsort(liked)[::-1]]}
        for query, liked in RELEVANCE.items()
    ]
    written(folder / "best.jsonl", best)
    drawn = [
        {"query_id": query, "items": ITEMS, "scores": liked, "temperature": 0.1}
        for query, liked in RELEVANCE.items()
    ]
    written(folder / "drawn.jsonl", drawn)
    log, out = str(folder / "log.jsonl"), str(folder / "run")
    words = ["replay", log, "--local", "--out", out, *configured(folder)]
    assert main(words) == 0
    return folder


def configured(folder: Path) -> list[str]:
    """Under settings of its own."""
    return ["--config", str(folder / "shop.toml"), "--namespace", "test"]


def evaluated(folder: Path, *words: str, local: bool = True) -> int:
    """Run it, on the folder of the replay or on the log itself."""
    log = ["--log", str(folder / "log.jsonl")]
    source = ["--local", str(folder / "run")] if local else log
    named = [x.replace("best.jsonl", str(folder / "best.jsonl")) for x in words]
    named = [x.replace("drawn.jsonl", str(folder / "drawn.jsonl")) for x in named]
    return main(["evaluate", *named, *source, *configured(folder)])


def answer_of(capsys: pytest.CaptureFixture[str]) -> Any:
    """The JSON that was printed."""
    return json.loads(capsys.readouterr().out)


def test_policies_of_files_are_valued(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Intervals have the truth, and the table says who is better."""
    assert evaluated(folder, "best.jsonl", "drawn.jsonl", "--json") == 0
    found = answer_of(capsys)
    assert found["estimator"] == "intervention-aware"
    assert found["curve"]["source"].startswith("estimated from clicks of the validat")
    logged, best, drawn = found["policies"]
    ranked = [sorted(each, reverse=True) for each in RELEVANCE.values()]
    truth = float(np.mean([np.dot(each[:3], LOOKED) for each in ranked]))
    assert best["low"] < truth < best["high"]
    assert best["verdict"] == "better"
    assert logged["reward"] == pytest.approx(found["logged_clicks"]["value"], rel=1e-6)
    assert logged["difference"] == 0.0
    assert logged["reward"] < drawn["reward"] < best["reward"]
    assert best["unseen"] == 0.0
    assert 0.0 < best["largest_share"] < 0.05
    assert 300 < best["effective_clicks"] < 1_000
    assert found["coverage"]["n_lists"] == 2_000
    assert found["coverage"]["lacking"] == {}
    assert len(found["groups"]) == 10


def test_the_log_itself_and_its_replay_say_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Folded here, or before."""
    words = ["best.jsonl", "--json", "--examination", "1,0.6,0.4"]
    assert evaluated(folder, *words) == 0
    one = answer_of(capsys)
    assert evaluated(folder, *words, local=False) == 0
    assert answer_of(capsys) == one
    assert one["curve"]["alpha"] == LOOKED


def test_the_table_is_read_at_a_glance(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A row for each policy, by its name, and below it what must be known."""
    monkeypatch.setenv("COLUMNS", "200")
    words = ["new=best.jsonl", "drawn.jsonl", "--weights", "dcg"]
    assert evaluated(folder, *words, "--against", "drawn") == 0
    told = capsys.readouterr().out
    assert "dcg per list, by intervention-aware" in told
    assert "less drawn" in told
    rows = {line.split()[1]: line for line in told.splitlines() if line[:1] == "│"}
    assert {*rows} == {"logged", "new", "drawn"}
    assert "worse" in rows["logged"]
    assert "better" in rows["new"]
    assert "2 queries, 2,000 lists" in told
    assert "counted, and not estimated: " in told
    assert "examination by rank, estimated from clicks" in told


def test_narrow_terminals_lose_columns_that_can_be_spared(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And it is said which."""
    monkeypatch.setenv("COLUMNS", "80")
    assert evaluated(folder, "best.jsonl") == 0
    told = capsys.readouterr().out
    assert "no room for: effective clicks, largest click, unseen" in told
    assert "better" in told


def test_policies_that_were_chosen_from_clicks_have_no_intervals(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The estimator is the one that choosing does not bias, and it is said."""
    log = written(tmp_path / "log.jsonl", events(400, "search@1.3"))
    words = ["--log", str(log), "--examination", "1,0.6,0.4", *configured(folder)]
    assert main(["evaluate", str(folder / "best.jsonl"), *words, "--json"]) == 0
    found = answer_of(capsys)
    assert found["estimator"] == "intervention-oblivious"
    assert "'search@1.3' was chosen from clicks" in found["remarks"][0]
    assert all(row["low"] is None for row in found["policies"])
    assert not any(row["verdict"] for row in found["policies"])
    assert main(["evaluate", str(folder / "best.jsonl"), *words]) == 0
    assert "was chosen from clicks" in capsys.readouterr().out


def test_what_rankings_leave_out_is_said(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one query alone, and items that nobody saw."""
    one = written(
        tmp_path / "one.jsonl", [{"query_id": "RED shoes", "items": ["x", "a"]}]
    )
    local = ["--local", str(folder / "run"), *configured(folder)]
    assert main(["evaluate", str(one), "--json", *local]) == 0
    found = answer_of(capsys)
    assert found["coverage"]["n_queries"] == 1
    assert any("one says nothing of the candidates" in x for x in found["remarks"])
    other = written(tmp_path / "other.jsonl", [{"query_id": "blue", "items": ["a"]}])
    assert main(["evaluate", str(other), *local]) == 1
    assert "none of 2,000 lists has candidates" in capsys.readouterr().err


def test_a_model_is_valued_by_logged_features(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a dump: its first version is what was logged, so it is worth the same."""
    examination = EXAMINATION.tolist()
    shop = Shop(settings_of({"m": model_of(examination=examination, first=10**9)}))
    shop.show(600, np.random.default_rng(2))
    shop.pipeline.end()
    dump = tmp_path / "events.dump"
    write_dump(dump, Header(EVENTS, 1), shop.log)
    (tmp_path / "shop.toml").write_text(
        '[models.m]\nfeatures = 6\nversions = "trained"\n'
        f"[models.m.training]\nexamination = {examination}\n"
        "[statistics]\ngroups = 10\n"
        "[time]\ndisorder_ms = 100\nclick_window_ms = 500\nremember_ms = 500\n"
    )
    words = ["--log", str(dump), *configured(tmp_path), "--json"]
    assert main(["evaluate", "m", *words]) == 0
    found = answer_of(capsys)
    logged, first = found["policies"]
    assert first["name"] == "m@0.0"
    assert found["curve"]["source"] == "given by models.m.training"
    assert first["reward"] == pytest.approx(logged["reward"], rel=1e-6)
    assert logged["reward"] == pytest.approx(found["logged_clicks"]["value"], rel=1e-6)
    for wrong, told in (("m@1.7", "one version of 'm', 0.0"), ("n", "replay has, m;")):
        assert main(["evaluate", wrong, *words]) == 2
        assert told in capsys.readouterr().err
    write_dump(dump, Header(INTERACTIONS, 1), [])
    assert main(["evaluate", "m", *words]) == 2
    assert "must be one of `events`" in capsys.readouterr().err


def test_a_folder_of_a_replay_has_no_features(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says what to do instead, and which models there are."""
    assert evaluated(folder, "search") == 2
    assert "replay has, none; got 'search'" in capsys.readouterr().err
    (tmp_path / "shop.toml").write_text(CONFIG + "[models.search]\nfeatures = 2\n")
    log, out = str(folder / "log.jsonl"), str(tmp_path / "run")
    replayed = ["replay", log, "--local", "--out", out, *configured(tmp_path)]
    assert main(replayed) == 0
    assert main(["evaluate", "search", "--local", out, *configured(tmp_path)]) == 2
    assert "has none: give the events themselves" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["best.jsonl", "best.jsonl"], "must have a name of its own"),
        (["logged=best.jsonl"], "other than 'logged'; got 'logged'"),
        (["best.jsonl", "--against", "x"], "--against must be one of logged, best"),
        (["lost.jsonl"], "correct the path; at"),
        (["best.jsonl", "--estimator", "x"], "invalid choice: 'x'"),
        (["best.jsonl", "--examination", "2,1"], "examination must lie in (0, 1]"),
        (["best.jsonl", "--ranks", "0"], "whole number, 1 or more; got 0"),
        (["best.jsonl", "--temperature", "-1"], "number, 0 or more; got -1"),
        ([], "the following arguments are required: POLICY"),
    ],
)
def test_bad_words_are_refused(
    folder: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what they must be."""
    try:
        status = evaluated(folder, *words)
    except SystemExit as ended:
        status = int(ended.code or 0)
    assert status == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"query_id": "q"}', "missing required field `items`"),
        ('{"query_id": "q", "items": []}', "one or more, each once"),
        ('{"query_id": "q", "items": ["a", "a"]}', "one or more, each once"),
        ('{"query_id": 1, "items": ["a"]}', "Expected `str`"),
        ('{"query_id": "q", "items": ["a"], "score": [1]}', "unknown field `score`"),
        ('{"query_id": "q", "items": ["a"], "scores": []}', "1 finite numbers"),
        ('{"query_id": "q", "items": ["a"], "temperature": 1}', "scores beside it"),
        (
            '{"query_id": "q", "items": ["a"], "scores": [1], "temperature": -1}',
            "0 or above; got -1",
        ),
        (
            '{"query_id": "q", "items": ["a"], "scores": [1e300], "temperature": 1e-9}',
            "finite numbers",
        ),
        ("[1]", "Expected `object`"),
        ("no", "truncated"),
        ('{"query_id": "Q ", "items": ["a"]}', "must be ranked once; 'q' is again"),
    ],
)
def test_spoilt_rankings_are_refused_by_line(
    tmp_path: Path, line: str, told: str
) -> None:
    """The first line is good, the second is empty."""
    file = tmp_path / "rankings.jsonl"
    file.write_text('{"query_id": "q", "items": ["a"]}\n\n' + line + "\n")
    with pytest.raises(ValueError, match="in line 3 of") as caught:
        rankings_of(file)
    assert told in str(caught.value)
    file.write_text("\n")
    with pytest.raises(ValueError, match="one query or more"):
        rankings_of(file)


def test_without_clicks_that_tell_the_curve_it_asks_for_one(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And without lists there is nothing."""
    lists = [line for line in events(60) if "shown" in line]
    log = written(tmp_path / "log.jsonl", lists)
    words = ["--log", str(log), *configured(folder)]
    assert main(["evaluate", str(folder / "best.jsonl"), *words]) == 1
    assert "give --examination" in capsys.readouterr().err
    given = [*words, "--examination", "1,0.6,0.4"]
    assert main(["evaluate", str(folder / "best.jsonl"), *given]) == 0
    assert "best is as precise as 0 clicks" in capsys.readouterr().out


def test_few_clicks_say_of_how_many_groups_they_are() -> None:
    """Of all groups there is nothing to add."""
    row = PolicyRow("new", 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.0, 0.1, 4.6, "", "")
    curve = CurveReplicates(position_curve([1.0, 0.5]), "given")
    choice, weights = asked_for("doubly-robust"), WEIGHTS["clicks"]
    of_three = Question(choice, curve, weights, 20, (1, 2, 3))
    for question, told in (
        (of_three, ", of 3 of 20 groups"),
        (of_three._replace(groups=tuple(range(20))), ""),
    ):
        said = [*support_of(row, question)]
        assert said == [f"new is as precise as 5 clicks of equal weight{told}"]
