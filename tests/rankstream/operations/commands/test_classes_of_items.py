"""`--classes`, on result pages whose items have no ids but grades and types."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankstream.operations.cli import main

LOOKED = np.array([1.0, 0.6, 0.35])
LIKED = {"VITAL": 0.8, "USEFUL": 0.5, "STUPID": 0.2}
N_PAGES = 1_500
CONFIG = "[statistics]\ngroups = 10\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages, each of a query of its own; those with better items turned round."""
    folder = tmp_path_factory.mktemp("pages")
    rng, pages, rankings = np.random.default_rng(4), [], []
    liked = np.array([*LIKED.values()])
    for number in range(N_PAGES):
        # Better items stand lower, by luck and by half.
        order = np.argsort(liked + rng.normal(0.0, 0.5, 3))
        grades = [[*LIKED][i] for i in order]
        clicked = np.flatnonzero(rng.random(3) < liked[order] * LOOKED).tolist()
        page = {"s": number, "u": number, "q": number, "t": number, "rel": grades}
        pages.append(page | {"type": ["WEB"] * 3, "clicks": clicked})
        items = [f"{grade}/WEB#{rank}" for rank, grade in enumerate(grades, 1)]
        items.sort(key=lambda item: [*LIKED].index(item.partition("/")[0]))
        rankings.append({"query_id": str(number), "items": items})
    for name, lines in (("pages", pages), ("best", rankings)):
        told = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(told)
    (folder / "shop.toml").write_text(CONFIG)
    return folder


def words_of(folder: Path) -> list[str]:
    """Where the log is, and what it is."""
    config = ["--config", str(folder / "shop.toml"), "--namespace", "test"]
    form = ["--format", "yandex-sessions", "--option", "items=graded"]
    return [*config, *form]


def evaluated(folder: Path, *words: str) -> int:
    """Run it on the pages."""
    log = ["--log", str(folder / "pages.jsonl"), *words_of(folder)]
    return main(["evaluate", str(folder / "best.jsonl"), *log, *words])


def test_policies_are_valued_by_classes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The truth lies in the interval; without classes clicks tell no curve."""
    assert evaluated(folder) == 1
    assert "give --examination" in capsys.readouterr().err

    assert evaluated(folder, "--classes", "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    logged, best = found["policies"]
    truth = float(np.dot([*LIKED.values()], LOOKED))

    assert found["estimator"] == "affine-shown"
    assert found["coverage"]["n_classes"] == len(LIKED)
    assert found["curve"]["alpha"] == pytest.approx(LOOKED, abs=0.12)
    assert best["low"] < truth < best["high"]
    assert best["verdict"] == "better"
    assert logged["reward"] == pytest.approx(found["logged_clicks"]["value"], rel=0.1)
    told = "items whose ids are equal before # count as one: 3 classes"
    assert told in found["remarks"]


def test_one_query_is_shown_by_class(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the curve of all of them."""
    monkeypatch.setenv("COLUMNS", "160")
    run = str(folder / "run")
    log = [str(folder / "pages.jsonl"), *words_of(folder)]
    assert main(["replay", *log, "--local", "--out", run]) == 0
    asked = ["statistics", "show", "7", "--local", run]
    config = ["--config", str(folder / "shop.toml"), "--namespace", "test"]
    capsys.readouterr()

    # No item stood at two ranks, so that they tell no curve.
    assert main([*asked, *config]) == 1
    assert "relevance is not corrected" in capsys.readouterr().err
    assert main([*asked, *config, "--classes"]) == 0
    told = capsys.readouterr().out
    _, by_class = told.split("relevance, corrected for position")
    assert "VITAL/WEB " in by_class
    assert "#" not in by_class.partition("examination by rank")[0]
