"""What the page of events shows of files is what happens."""

import re
import shlex
from pathlib import Path

import pytest

from rankstream.operations.cli import main

TEXT = (Path(__file__).parents[1] / "docs" / "events.md").read_text(encoding="utf-8")

FILE = re.compile(r"`([\w.]+)`:\n\n```csv\n(.*?)```", re.DOTALL)
EXAMPLE = re.compile(
    r"^```sh\n(.*?)```(?:\n\n```\n(.*?)```)?", re.MULTILINE | re.DOTALL
)
SETTINGS = re.compile(r"^```toml\n(.*?)```", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the page."""
    monkeypatch.chdir(tmp_path)
    for name, content in FILE.findall(TEXT):
        Path(name).write_text(content, encoding="utf-8")


@pytest.mark.parametrize(("command", "said"), EXAMPLE.findall(TEXT))
def test_an_example_applies_lists_and_clicks(
    command: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And says what the page shows."""
    program, *words = shlex.split(command)
    assert (program, main(words)) == ("rankstream", 0)
    told = capsys.readouterr()
    assert said in told.err
    assert re.search(r"impressions applied\W+2\b", told.out)
    assert re.search(r"clicks applied\W+[12]\b", told.out)
    assert re.search(r"dead letter\W+0\b", told.out)


def test_the_format_of_the_settings_reads_both_files(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As the options do; also where the files are judged, and a click is lost."""
    (settings,) = SETTINGS.findall(TEXT)
    Path("shop.toml").write_text(settings)
    words = "--config shop.toml --format shop --queries lists.csv --clicks clicks.csv"
    assert main(["validate", *words.split()]) == 0
    assert "2 impressions applied, 2 clicks applied" in " ".join(
        capsys.readouterr().out.split()
    )
    with Path("clicks.csv").open("a") as file:
        file.write("l3,sku-2,2024-12-10T00:01:34Z,s1,Red Shoes\n")
    assert main(["validate", *words.split(), "--strict"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "clicks.csv:4 a click must name a list that is there" in said
