"""`rankstream snapshots export`: a version of a folder as a file of another system."""

import json
from pathlib import Path

import pytest

from rankstream.operations.cli import main
from rankstream.operations.exported_models import SYSTEMS
from rankstream.operations.exported_models.targets import TARGETS
from rankstream.wire.envelope import encode_snapshot
from tests.rankstream.operations.exported_models.versions import of_layers, of_trees

EXPORT = ["snapshots", "export", "m"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one version, linear."""
    (tmp_path / "m@0.1.snapshot").write_bytes(encode_snapshot(of_layers()))
    return tmp_path


@pytest.mark.parametrize("target", SYSTEMS)
def test_every_target_writes_a_version(folder: Path, target: str) -> None:
    """Of trees, which all can have."""
    assert {*TARGETS} == {*SYSTEMS}
    (folder / "m@0.1.snapshot").write_bytes(encode_snapshot(of_trees()))
    out = folder / "model"
    words = ["--snapshot", str(folder), "--to", target, "--out", str(out)]
    assert main([*EXPORT, *words]) == 0
    assert out.stat().st_size > 1_000


def test_text_goes_to_the_standard_output(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it can be sent on; what is no text needs a file."""
    words = [*EXPORT, "--snapshot", str(folder), "--to"]
    assert main([*words, "solr-ltr"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "m@0.1"
    assert main([*words, "onnx"]) == 2
    assert "--out must name a file for onnx" in capsys.readouterr().err


def test_a_version_that_is_not_there_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another one is not taken for it."""
    words = ["--snapshot", str(folder), "--to", "solr-ltr"]
    assert main([*EXPORT, "0.1", *words]) == 0
    capsys.readouterr()
    assert main([*EXPORT, "0.2", *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "version 0.2 of 'm' must be in" in told.err


def test_what_is_refused_says_so_in_a_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A kind that the system has not; nothing is written."""
    out = folder / "model.json"
    words = ["--snapshot", str(folder), "--to", "xgboost", "--out", str(out)]
    assert main([*EXPORT, *words]) == 2
    assert "export it to ranklib, elasticsearch-ltr" in capsys.readouterr().err
    assert not out.exists()
