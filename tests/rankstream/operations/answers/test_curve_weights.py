"""Curves of bias for other programs, and the newest one for ours."""

import argparse
import json

import msgspec
import numpy as np
import pytest

from rankstream.operations.answers.as_builtins import as_builtins
from rankstream.operations.answers.curve import newest_curve
from rankstream.operations.answers.exports.exported_curve import rows_in
from rankstream.operations.commands.intervene.tables import print_curve, print_curves
from rankstream.operations.commands.snapshots import (
    add_export_arguments,
    export_curve,
)
from rankstream.wire.envelope import SnapshotError, encode_snapshot
from rankstream.wire.models.curves import curve_weights
from tests.curve_factory import UNKNOWN, curve_record, curve_snapshot
from tests.snapshot_factory import snapshot as ranker

SNAPSHOT = curve_snapshot([1.0, 0.5, 0.25, UNKNOWN])


def exported(snapshot, *words):
    """The exit status of the command's part."""
    parser = argparse.ArgumentParser()
    add_export_arguments(parser)
    return export_curve(snapshot, parser.parse_args(words))


def test_weights_are_one_over_examination(capsys: pytest.CaptureFixture[str]) -> None:
    """To the last rank that is known; XGBoost begins at the curve itself."""
    assert exported(SNAPSHOT, "--positions", "5") == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "curve": "eyes@0.100",
        "weights": [1.0, 2.0, 4.0],
        "xgboost": {"ti+": [1.0, 0.5, 0.25, 0.25, 0.25], "tj-": [1.0] * 5},
        "files": [],
    }
    exported(SNAPSHOT, "--most", "3")
    told = json.loads(capsys.readouterr().out)
    assert told["weights"] == [1.0, 2.0, 3.0]
    assert len(told["xgboost"]["ti+"]) == 3


def test_it_is_said_where_weights_end_and_are_not_sure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Beside the JSON; of a curve that is known there is nothing to say."""
    exported(SNAPSHOT)
    assert "weights end at rank 3, as examination of rank 4" in capsys.readouterr().err
    rows = np.vstack([[1.0, 0.5], [1.0, UNKNOWN], [1.0, UNKNOWN], np.zeros((3, 2))])
    unsure = msgspec.structs.replace(
        curve_snapshot([1.0, 0.5]), weights=curve_weights(list(rows))
    )
    exported(unsure)
    assert "no interval at rank 2: " in capsys.readouterr().err
    exported(curve_snapshot([1.0, 0.5]))
    assert capsys.readouterr().err == ""


def test_files_beside_rows_are_those_of_lightgbm(
    tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A weight for each row, its place from 0, and rows of each query."""
    rows = tmp_path / "train.csv"
    rows.write_text("rank,query,clicked\n1,a,0\n2,a,1\n3,b,1\n")
    exported(SNAPSHOT, "--rows", str(rows))
    assert len(json.loads(capsys.readouterr().out)["files"]) == 3
    assert (tmp_path / "train.csv.weight").read_text() == "1.0\n2.0\n4.0\n"
    assert (tmp_path / "train.csv.position").read_text() == "0\n1\n2\n"
    assert (tmp_path / "train.csv.query").read_text() == "2\n1\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("query,rank\na,1\n", "lacks clicked"),
        ("", "lacks query, rank, clicked"),
        ("query,rank,clicked\na,1.5,0\n", "got '1.5' and '0' in line 2"),
        ("query,rank,clicked\na,1,2\n", "got '1' and '2' in line 2"),
        ("query,rank,clicked\na,1\n", "got '1' and '' in line 2"),
    ],
)
def test_rows_that_are_none_are_refused(tmp_path, text: str, said: str) -> None:
    """With the line."""
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        rows_in(path)


def test_what_no_weight_corrects_is_refused() -> None:
    """Trust bias, one rank, and rankers."""
    trusting = curve_snapshot([1.0, 0.5], [0.0, -0.1])
    with pytest.raises(ValueError, match="got a curve with trust bias"):
        exported(trusting)
    with pytest.raises(ValueError, match="at two ranks or more; got 1"):
        exported(curve_snapshot([1.0, UNKNOWN]))
    with pytest.raises(SnapshotError, match="must be of the kind 'curve'"):
        exported(ranker())


def test_the_newest_curve_is_that_of_the_largest_place() -> None:
    """Rankers, damage and records of others pass by."""
    old, new = curve_snapshot([1.0, 0.9], version=50), SNAPSHOT
    records = [
        (b"eyes", encode_snapshot(new)),
        (b"eyes", encode_snapshot(old)),
        (b"eyes", encode_snapshot(ranker())),
        (b"eyes", b"x"),
        (b"eyes", None),
        (b"other", encode_snapshot(curve_snapshot([1.0, 0.1], version=900))),
    ]
    assert newest_curve(records, "eyes") == new
    assert newest_curve(records, "nobody") is None
    again = curve_snapshot([1.0, 0.7, 0.25, UNKNOWN])
    records.append((b"eyes", encode_snapshot(again)))
    assert newest_curve(records, "eyes") == again, "of one place the last one counts"


def test_tables_and_json_have_what_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON has null where nothing is."""
    record = curve_record(SNAPSHOT)
    print_curves([record])
    print_curve(record)
    text = " ".join(capsys.readouterr().out.split())
    for word in ("1 curve", "eyes@0.100", "1.00 0.50 0.25 -", "[0.400, 0.600]"):
        assert word in text
    assert "rank 4: not shown" in text
    named = as_builtins(record)
    assert json.loads(json.dumps(named, allow_nan=False))["alpha"][3] is None
    np.testing.assert_array_equal(named["alpha"][:3], [1.0, 0.5, 0.25])
