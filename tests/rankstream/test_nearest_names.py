"""What is misspelt names the nearest name, wherever it is typed."""

import contextlib
from pathlib import Path

import pytest

from rankstream.operations.cli import main


def status_of(words: str) -> int | str | None:
    """Of a call, whether argparse ends it or the command."""
    with contextlib.suppress(SystemExit):
        return main(words.split())
    return 2


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("replya x", "did you mean replay?"),
        ("replay x --colums a=b", "did you mean --columns?"),
        ("topics crate", "did you mean create?"),
        ("intervene list --jsn", "did you mean --json?"),
        ("validate x.jsonl --format jsnol", "did you mean jsonl?"),
        ("validate x.jsonl --format mine", "formats.NAME"),
        ("validate x.jsonl --columns imprssion=a", "did you mean impression?"),
        ("validate x.jsonl --option time_unti=s", "did you mean time_unit?"),
        ("validate --queries x.jsonl", "must come with --clicks"),
        ("validate x.jsonl --option clicks.time_unit=s", "come with --queries and"),
        ("validate", "got none"),
        ("feed --format ubbi", "did you mean ubi?"),
        ("feed --columns item=a", "must come with files"),
    ],
)
def test_what_is_misspelt_names_what_may_be_meant(
    words: str,
    meant: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On one line, with the status of a wrong call."""
    monkeypatch.chdir(tmp_path)
    Path("x.jsonl").write_text("")
    assert status_of(words) == 2
    assert meant in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("toml", "meant"),
    [
        ('[formats.shop]\nfromat = "csv"', "did you mean format?"),
        ('[formats.shop]\nformat = "cvs"', "did you mean csv?"),
        ('[formats.csv]\nformat = "csv"', "must have a name of its own"),
        ('[formats.a.columns]\nitm = "x"', "did you mean item?"),
        ('[formats.a.queries.columns]\nevent = "x"', "must be by the roles"),
        ("[formats.a.options]\nordinal_bse = 0", "did you mean ordinal_base?"),
        ("[time]\ndisorder-ms = 5", "did you mean disorder_ms?"),
    ],
)
def test_settings_name_what_may_be_meant(
    toml: str, meant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of formats, and of the sections that there were."""
    settings = tmp_path / "shop.toml"
    settings.write_text(toml)
    path = tmp_path / "x.jsonl"
    path.write_text("")
    assert main(["validate", str(path), "--config", str(settings)]) == 2
    assert meant in capsys.readouterr().err
