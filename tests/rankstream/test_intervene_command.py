"""`rankstream intervene` without a broker: what is meant, and how a run is shown."""

import json
from pathlib import Path

import pytest

from rankstream.cli import main
from rankstream.commands.intervene_tables import as_builtins, print_runs
from rankstream.commands.intervene_verify import Verdict, told_of
from rankstream.wire.training import (
    SCHEMA,
    CurveUsed,
    FeaturesUsed,
    Parent,
    RunRecord,
    Sizes,
)

RUN = RunRecord(
    schema=SCHEMA, model="m", intervention="m@0.1200", epoch=0, version=1_200,
    created_ms=1_750_000_000_000, reason="count", counts=[(0, 700), (1, 500)],
    watermarks=[(0, 1_750_000_000_000), (1, None)],
    features=FeaturesUsed(40, b"\x01\x02"), settings={"features": 3},
    split_shares=[0.65, 0.15, 0.2], seed=0, parent=Parent(0, 0, b"\x03"),
    curve=CurveUsed([1.0], [0.0], False, "given", [], b"\x04"), groups=[0, 1],
    sizes=Sizes(30, 10, 200, 7, 0.01, 2, 0, 90), epochs=[(0, 0.9, 1.2), (1, 0.8, 1.3)],
    best_epoch=1, scale=0.5, temperature=2.0, least_exposure=0.125, reward=None,
    reward_reason="the selection groups have no lists", sha256=b"\x05",
)  # fmt: skip


def test_a_run_is_a_row_and_json_with_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its reason for having no reward is below the table."""
    print_runs([RUN], as_json=False)
    said = capsys.readouterr().out
    for words in (
        "1 training", "m@0.1200", "1,200", "2025-06-15T15:06:40+00:00", "7 of 200",
        "1 of 1", "1.2000 to 1.3000", "m@0.1200: the selection groups have no lists",
    ):  # fmt: skip
        assert words in said, words
    print_runs([RUN], as_json=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert row == json.loads(json.dumps(as_builtins(RUN)))
    assert row["parent"] == {"epoch": 0, "version": 0, "sha256": "03"}
    assert row["sizes"]["n_below"] == 7


def test_a_verdict_says_what_differs() -> None:
    """Or that nothing does."""
    equal = Verdict("m@0.3", b"a" * 32, b"a" * 32, [])
    other = Verdict("m@0.3", b"a" * 32, b"b" * 32, ["weights differ by 0.1 at most"])
    assert told_of(equal, as_json=False).startswith("m@0.3: equal bytes, sha256 6161")
    assert told_of(other, as_json=False) == (
        "m@0.3: NOT equal\n  weights differ by 0.1 at most"
    )
    assert json.loads(told_of(other, as_json=True))["is_equal"] is False


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["other"], "a model must be one whose learner is 'trained', of ['m', 'n']"),
        ([], "a model must be one whose learner is 'trained', of ['m', 'n']; got None"),
        (["m", "--verify", "0.3"], "--verify must be given with --events"),
        (["m", "--events", "x"], "--verify must be given with --events"),
    ],
)
def test_what_is_not_clear_is_refused(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anybody is asked."""
    config = tmp_path / "shop.toml"
    config.write_text(
        "".join(
            f"[models.{name}]\nfeatures = 3\nlearner = 'trained'\n" for name in "mn"
        )
        + "[models.other]\nfeatures = 3\n"
    )
    assert main(["intervene", *words, "--config", str(config)]) == 2
    assert said in capsys.readouterr().err
