"""How trainings are shown."""

import json
from collections.abc import Callable

import msgspec
import pytest

from rankstream.operations.answers.as_builtins import as_builtins
from rankstream.operations.answers.models.verification import Verification
from rankstream.operations.commands.intervene.tables import (
    print_run,
    print_runs,
)
from rankstream.operations.terminal.words import loss_line
from rankstream.wire.models.snapshot_names import Parent
from rankstream.wire.models.training import (
    CurveUsed,
    EndsUsed,
    LossTried,
    decode_record,
    encode_record,
)
from tests.rankstream.training_topic import RUN

LONG = CurveUsed(
    [1.0, 0.712, 0.5, 0.333, 0.25, 0.2, 0.18], [0.0] * 7, True,
    "estimated from clicks of the validation groups, 65 to 79", [65, 79], b"\x06",
    "examination is not well known at ranks 6 to 7: documents were shown too seldom",
)  # fmt: skip
RUNS = [
    RUN,
    msgspec.structs.replace(
        RUN, intervention="m@1.12000", epoch=1, version=12_000, curve=LONG,
        parent=Parent(0, 1_200, b"\x05" * 32), reward=0.4321, reward_reason="",
    ),
    msgspec.structs.replace(RUN, intervention="m@1.120000", curve=LONG),
    msgspec.structs.replace(
        RUN, intervention="search@0.120000", parent=Parent(0, 112_000, b""),
    ),
]  # fmt: skip


def said_of(print_it: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> str:
    """All that is printed, with single spaces."""
    print_it()
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("columns", ["", "100", "80", "60"])
def test_runs_are_rows_of_a_narrow_table(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also in a file, which has no width; what is an estimate says so."""
    monkeypatch.setenv("COLUMNS", columns)
    print_runs(RUNS)
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 100
    if columns in ("", "100"):
        for words in (
            "4 trainings", "m@1.12000", "0.1200 ", "2025-06-15 15:06:40", "0.4321",
            "1.2000 to 1.3000", "count", "clicks per list, from selection groups",
        ):  # fmt: skip
            assert words in said, words
        assert "no room for" not in said
    assert "clicks/list" in said
    assert "estimated" in said


def test_each_curve_and_each_reason_is_said_once_below_the_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By the names of the trainings, with a warning where it is not well known."""
    said = said_of(lambda: print_runs(RUNS), capsys)
    for words in (
        "curve of m@0.1200, search@0.120000: 1, given",
        "curve of m@1.12000, m@1.120000: 1 0.71 0.5 0.33 0.25 ... 0.18 at rank 7, "
        f"{LONG.source}; {LONG.warning}",
        "not estimated, m@0.1200, m@1.120000, search@0.120000: "
        "the selection groups have no lists",
    ):
        assert words in said, words
    assert "not well known" not in said_of(lambda: print_runs([RUN]), capsys)


def test_all_that_is_known_of_a_run_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its parent with the epoch, the whole curve, and where each figure is from."""
    print_run(RUNS[1])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    said = " ".join(out.replace("│", " ").split())
    for words in (
        "m@1.12000", "0.1200", "05", "700 of partition 0, 500 of partition 1",
        "1, 0.71, 0.5, 0.33, 0.25, 0.2, 0.18", LONG.source, LONG.warning, "1 of 1",
        "0.4321, from selection groups; a point without interval", "temperature",
        "7 of them below least_support",
    ):  # fmt: skip
        assert words in said, words
    assert "the selection groups have no lists" in said_of(
        lambda: print_run(RUN), capsys
    )
    assert "- (a release that did not compute it)" in said_of(
        lambda: print_run(RUN), capsys
    )
    asked = {"training": {"estimator": "rerank"}}
    run = msgspec.structs.replace(RUN, settings=asked, estimator="rerank")
    said = " ".join(said_of(lambda: print_run(run), capsys).split())
    assert "by rerank: as training.estimator asks" in said
    best = LossTried("truncated-lambda", 1, 1.3, 0.1, 0.0, 0.0)
    other = LossTried("arp-linear", 1, 1.25, 0.1, 0.05, 0.0123)
    chosen = msgspec.structs.replace(RUN, losses=[other, best])
    cells = said_of(lambda: print_run(chosen), capsys).replace(" │ │ │ ", " ")
    assert loss_line(chosen) in cells
    assert as_builtins(chosen)["losses"][0]["behind_error"] == 0.0123
    row = as_builtins(RUN)
    assert row == json.loads(json.dumps(row))
    assert row["parent"] == {"epoch": 0, "version": 0, "sha256": "03"}
    assert row["sizes"]["n_below"] == 7


NOTHING = float("nan")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (
            {"ends": EndsUsed([1.0, 0.6, NOTHING], [1.0, 0.8, NOTHING], 0.95)},
            ("1, 0.71 [0.6 to 0.8], 0.5", "of 95 %, each by itself"),
        ),
        (
            {"ends": EndsUsed([1.0, NOTHING, NOTHING], [1.0, NOTHING, NOTHING])},
            ("1, 0.71, 0.5", "none, as lists showed each item too seldom"),
        ),
        ({"n_lists": 0}, ("none, as policies were chosen from the same clicks",)),
        ({}, ("- (a release that did not keep them)",)),
    ],
)
def test_a_curve_is_shown_with_its_intervals(
    changed: dict[str, object],
    told: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Or why there are none."""
    curve = msgspec.structs.replace(LONG, alpha=LONG.alpha[:3], beta=[0.0] * 3)
    run = msgspec.structs.replace(RUN, curve=curve, **changed)
    assert decode_record("run", encode_record(run)).curve == curve
    said = " ".join(said_of(lambda: print_run(run), capsys).replace("│", " ").split())
    for words in told:
        assert words in said, words
    given = msgspec.structs.replace(RUN, n_lists=0)
    assert "none, as the curve was given" in said_of(lambda: print_run(given), capsys)


def test_a_verdict_says_what_differs() -> None:
    """Or that nothing does."""
    equal = Verification("m@0.3", b"a" * 32, b"a" * 32, [])
    other = Verification(
        "m@0.3", b"a" * 32, b"b" * 32, ["weights differ by 0.1 at most"]
    )
    assert equal.told().startswith("m@0.3: equal bytes, sha256 6161")
    assert other.told() == ("m@0.3: NOT equal\n  weights differ by 0.1 at most")
    assert other.to_dict()["is_equal"] is False


@pytest.mark.parametrize(
    ("bound", "step", "told"),
    [
        (None, 1.0, "an item keeps 0.0625 of its exposure or more"),
        (0.5, 1.0, "bound 0.5, weights went all the way from the parent"),
        (0.3, 0.375, "bound 0.3, weights went 0.375 of the way from the parent"),
    ],
)
def test_how_far_a_version_can_fall_is_shown(
    bound: float | None, step: float, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what held it back; JSON has the numbers."""
    plan = {} if bound is None else {"largest_loss": bound}
    run = msgspec.structs.replace(
        RUN,
        largest_loss=0.28125,
        least_ratio=0.0625,
        step=step,
        settings={"training": plan},
    )
    print_run(run)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    said = " ".join(out.replace("│", " ").split())
    assert "0.2812 per list at most, whatever users like" in said
    assert told in said
    assert ("bound" in said) is (bound is not None)
    row = as_builtins(run)
    assert (row["largest_loss"], row["least_ratio"], row["step"]) == (
        0.28125, 0.0625, step,
    )  # fmt: skip
