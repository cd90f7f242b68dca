"""`rankstream bench`: what is measured on one core has a process for itself."""

import json

import pytest

from rankstream.cli import main
from rankstream.commands.bench import ON_ONE_CORE, THREAD_COUNTS


def test_figures_come_back_from_a_process_with_one_thread(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are printed as JSON, whatever thread counts the caller has."""
    for name in THREAD_COUNTS:
        monkeypatch.setenv(name, "2")
    assert "placement" in ON_ONE_CORE
    code = main(["bench", "placement", "--quick", "--json"])
    result = json.loads(capsys.readouterr().out)

    below = any(f["ratio"] < (f["floor"] or 0.0) for f in result["figures"])
    assert code == int(below)
    assert result["figures"]
    assert all(figure["value"] > 0.0 for figure in result["figures"])
