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


SHOP = """
[models.search]
features = 3
versions = "trained"
[models.shown]
features = 3
versions = "promoted"
[curves.eyes]
estimator = "position"
"""


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("intervene searrch", "did you mean search?"),
        ("intervene other", "of ['eyes', 'search']; got 'other'"),
        ("snapshots canary shownn", "did you mean shown?"),
        ("statistics show q --local run --curve eyse", "did you mean eyes?"),
        ("evaluate searrch --local run", "did you mean search?"),
        ("evaluate x.jsonl --local run --against lgoged", "did you mean logged?"),
        ("statistics show q --local run --estimator afine", "did you mean affine?"),
        ("topics check --timeot 5", "did you mean --timeout?"),
        ("completion zhs", "did you mean zsh?"),
        ("schemas clik-event", "did you mean click-event?"),
        ("dlq lst", "did you mean list?"),
        ("init --events metrank", "did you mean metarank?"),
        ("doctr", "did you mean doctor?"),
    ],
)
def test_names_of_the_settings_and_of_what_was_counted_are_near_too(
    words: str,
    meant: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of models, curves and policies; what is like none is not guessed."""
    monkeypatch.chdir(tmp_path)
    Path("shop.toml").write_text(SHOP)
    monkeypatch.setenv("RANKSTREAM_CONFIG", "shop.toml")
    Path("x.jsonl").write_text('{"query_id": "q", "items": ["a"]}\n')
    Path("log.jsonl").write_text(
        '{"impression_id": "l", "query_id": "q", "shown": ["a", "b"], "at_ms": 1}\n'
        '{"impression_id": "l", "query_id": "q", "position": 1, "at_ms": 2}\n'
    )
    online = "RANKSTREAM_MODELS__SEARCH__VERSIONS"
    with pytest.MonkeyPatch.context() as learned:
        learned.setenv(online, "online")
        assert status_of("replay log.jsonl --local --out run") == 0
    capsys.readouterr()
    assert status_of(words) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert meant in said
    assert ("did you mean" in said) == ("did you mean" in meant)


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
