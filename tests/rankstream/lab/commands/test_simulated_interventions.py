"""`rankstream simulate --interventions`: what policies showed, and what is refused."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rankstream.lab.simulation.interventions import schedule_over
from rankstream.operations.cli import main
from rankstream.operations.terminal import progress_line
from rankstream.settings import TrainingSettings
from streams.training.schedule import count_points

TRAINED = """
[models.search]
features = 16
versions = "trained"
[models.search.training]
learning_rate = 0.1
batch = 4
least_support = 1.0
temperature = 0.5
"""

LOCAL = "--local", "--model", "search"


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """Settings of a model that is trained, without a schedule."""
    file = tmp_path / "shop.toml"
    file.write_text(TRAINED)
    return file


def simulated(
    file: Path, *words: str, capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    """What the command prints as JSON."""
    own = ["simulate", "--local", "--json", "--config", str(file), "--model", "search"]
    assert main([*own, *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_each_policy_has_a_row(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the lists that it showed; together they are all lists and clicks."""
    found = simulated(
        trained, "--interventions", "3", "--impressions", "2000", capsys=capsys
    )
    rows = found["interventions"]
    assert found["refused"] == ""
    assert [row["intervention"].partition("@")[0] for row in rows] == ["search"] * 4
    assert len({row["intervention"] for row in rows}) == 4
    assert [row["first"] for row in rows[1:]] == [
        sum(row["n_shown"] for row in rows[:i]) for i in (1, 2, 3)
    ]
    assert sum(row["n_shown"] for row in rows) == found["impressions"] == 2_000
    assert sum(row["n_clicks"] for row in rows) == found["clicks"]
    assert rows[-1]["ndcg_shown"] > rows[0]["ndcg_shown"] + 0.1
    assert rows[-1]["ndcg_test"] == found["ndcg_learned"] > rows[0]["ndcg_test"] + 0.1
    due = count_points(TrainingSettings(**schedule_over(2_000, 3)._asdict()))
    for point, row in zip(due, rows[1:], strict=True):
        assert row["reason"] == "count"
        # Looked at now and then; windows close a while after lists are shown.
        assert point <= row["counted"] < point + 100 < row["first"] + 100
    assert "counted" not in rows[0]


@pytest.mark.parametrize("kind", ["trees", "selected"])
def test_trees_learn_from_simulated_users(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without settings, at three interventions."""
    words = ["simulate", "--local", "--kind", kind, "--json"]
    assert main([*words, "--impressions", "2000", "--users", "perfect"]) == 0
    rows = json.loads(capsys.readouterr().out)["interventions"]

    assert len(rows) == 4
    assert rows[-1]["ndcg_test"] > rows[0]["ndcg_test"] + 0.1
    assert ("the best of 2" in rows[-1]["loss_chosen"]) == (kind == "selected")
    (tmp_path / "shop.toml").write_text(TRAINED)
    named = ["--config", str(tmp_path / "shop.toml"), "--model", "search"]
    assert main([*words, *named]) == 2
    assert "--kind must go with --local and a model that no" in capsys.readouterr().err


def test_a_command_of_the_page_shows_estimated_clicks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Near those that the lists then got, on queries that come with the project."""
    page = Path(__file__).parents[4] / "docs" / "interventions.md"
    example = re.compile(
        r"^    rankstream (simulate --local --interventions .*)$", re.M
    )
    (command,) = example.findall(page.read_text(encoding="utf-8"))
    assert main([*command.split(), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["interventions"]
    last = rows[-1]
    assert last["reward"] == pytest.approx(last["clicks_per_list"], rel=0.1)
    assert last["curve_warning"].endswith("documents were shown too seldom")


def test_a_network_tells_which_loss_it_was_trained_by(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of several, below the table, with how far the other one is behind."""
    words = trained.read_text().replace("16\n", "16\nkind = 'neural'\nhidden = [4]\n")
    losses = ["arp-linear", "truncated-lambda"]
    trained.write_text(f"{words}epochs = 3\nloss = 'selected'\nlosses = {losses}\n")
    own = ["simulate", *LOCAL, "--config", str(trained), "--impressions", "600"]
    assert main([*own, "--interventions", "1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    told = re.search(r"search@0\.\d+: (\S+), the best of 2 by unclipped", said)
    assert told is not None
    (other,) = {*losses} - {told[1]}
    assert re.search(rf"behind: {other} 0\.\d+ ± 0\.\d+; ± one standard error", said)


def test_it_is_shown_how_far_a_training_is(
    trained: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the line of progress, while no list is shown."""
    monkeypatch.setattr(progress_line, "LINE_EVERY_S", 0.0)
    own = ["simulate", *LOCAL, "--config", str(trained), "--impressions", "400"]
    assert main([*own, "--interventions", "1"]) == 0
    lines = capsys.readouterr().err.splitlines()
    during = [x for x in lines if "training search: " in x]
    for words in (
        "reading", "estimating where users look", "epoch 0 of at most 50, loss ",
        "epoch 1 of at most 50, loss ", "estimating its clicks per list",
    ):  # fmt: skip
        assert any(f"training search: {words}" in x for x in during), words
    (ended,) = (i for i, x in enumerate(lines) if x.startswith("search: lists 1 to"))
    assert lines.index(during[-1]) < ended


def test_a_refusal_is_said_when_it_comes(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once, however often it is tried again, and at the end."""
    words = trained.read_text().replace("least_support = 1.0", "least_support = 1e6")
    trained.write_text(words)
    own = ["simulate", *LOCAL, "--config", str(trained), "--impressions", "500"]
    assert main([*own, "--interventions", "1"]) == 0
    told = capsys.readouterr().err.splitlines()
    why = "'search' must have items of least_support, 1e+06 expected looks"
    said = [x for x in told if x.startswith(f"training of search refused: {why}")]
    assert len(said) == 1
    assert told[-1].startswith(f"the last training was refused: {why}")


def test_settings_say_when(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And the option may only repeat how often that is."""
    with trained.open("a") as file:
        file.write("after = [300, 600]\n")
    words = ["--impressions", "800"]
    rows = simulated(trained, *words, capsys=capsys)["interventions"]
    assert [row.get("counted", 0) // 100 for row in rows] == [0, 3, 6]
    common = ["simulate", "--local", "--config", str(trained), "--model", "search"]
    assert main([*common, *words, "--interventions", "3"]) == 2
    assert "must be 2 or left out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--interventions", "0", *LOCAL], "1 or more; got 0"),
        (
            ["--interventions", "3", "--impressions", "29", *LOCAL],
            "must be 30 or more for 3 interventions; got 29",
        ),
        (["--interventions", "3", "--model", "search"], "interventions = 3, first = "),
        (["--interventions", "3", "--model", "other"], "'other' is none of"),
        (
            ["--interventions", "3", "--model", "online", "--local"],
            "are 'online': leave it out",
        ),
        (["--model", "wide", "--local"], "as models.wide, 20; they have 16: set"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_shown(
    words: list[str], reason: str, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In words, whoever learns."""
    with trained.open("a") as file:
        file.write("[models.online]\nfeatures = 16\n")
        file.write("[models.wide]\nfeatures = 20\n")
    assert main(["simulate", "--config", str(trained), *words]) == 2
    assert reason in capsys.readouterr().err


def test_ctrl_c_prints_what_there_is(trained: Path) -> None:
    """With exit status 130."""
    process = subprocess.Popen(
        [
            *(
                sys.executable,
                "-m",
                "rankstream",
                "simulate",
                "--json",
                *LOCAL,
            ),
            *("--config", str(trained), "--interventions", "2"),
            *("--impressions", "200000"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        next(line for line in process.stderr if "shown:" in line)
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=300)
    finally:
        process.kill()
    found = json.loads(told)
    assert process.returncode == 130
    assert 0 < found["impressions"] < 200_000
    assert found["interventions"][0]["n_shown"] <= found["impressions"]


def test_a_schedule_ends_as_long_before_the_end_as_its_points_lie_apart() -> None:
    """On a log scale; the last policy shows lists too."""
    for n_lists in (30, 1_000, 123_456):
        for n in (1, 2, 3):
            plan = TrainingSettings(**schedule_over(n_lists, n)._asdict())
            points = [*count_points(plan), n_lists]
            assert len(points) == n + 1
            assert points[0] == n_lists // 10
            for earlier, later in itertools.pairwise(points):
                assert later / earlier == pytest.approx(10 ** (1 / n), rel=0.1)


CURVE = """
[curves.eyes]
estimator = "position"
ranks = 3
[curves.eyes.schedule]
after = [20, 400]
[models.search]
features = 16
versions = "trained"
[models.search.training]
after = [500]
"""


def test_curves_that_are_fitted_meanwhile_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Why the first was refused, that there is one now, and what it is."""
    file = tmp_path / "shop.toml"
    file.write_text(CURVE)
    own = ["simulate", *LOCAL, "--config", str(file), "--impressions", "900"]
    assert main([*own, "--users", "position_based"]) == 0
    found = capsys.readouterr()
    assert found.err.count("training of eyes refused: ") == 1
    told = re.findall(r"curve (eyes@0\.\d+): 3 of 3 ranks known", found.err)
    assert f"{told[-1]}\n" in found.out
    assert "by rank, with intervals of 95%, each by itself" in found.out
    table = simulated(
        file, "--impressions", "900", "--users", "position_based", capsys=capsys
    )
    curve = table["curves"][-1]
    assert curve["model"] == "eyes"
    assert [each["rank"] for each in curve["ranks"]] == [1, 2, 3]
