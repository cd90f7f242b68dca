"""What the page of adapters shows is what happens."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from producers.formats import joined
from rankstream.adapters import (
    adapter,
    cloud_events,
    events,
    fields,
    impressions,
    metarank,
    own,
    times,
    ubi,
)
from rankstream.adapters.adapter import AdapterOptions
from rankstream.adapters.file_formats import ROLES
from rankstream.adapters.registry import NAMES, options_of
from rankstream.operations.cli import main
from tests.pages import rows_below

TEXT = (Path(__file__).parents[1] / "docs" / "adapters.md").read_text(encoding="utf-8")

FILE = re.compile(r"^`([\w.]+)`:\n\n```\w+\n(.*?)```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^```sh\n(.*?)```", re.MULTILINE | re.DOTALL)
SETTINGS = re.compile(r"^```toml\n(.*?)```", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"`([^`]+)`")

REFUSAL = re.compile(
    r'NotAdapted\(\s*"([\w-]+)"|"(no-id|type)"|(?:CODE|NO_QUERY) = "([\w-]+)"'
)


def names_in(head: str) -> set[str]:
    """What the first cells below a head name."""
    return {name for row in rows_below(head, TEXT) for name in NAME.findall(row[0])}


@pytest.mark.parametrize("command", COMMAND.findall(TEXT))
def test_an_example_loses_nothing(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each applies a list and a click."""
    monkeypatch.chdir(tmp_path)
    for name, content in FILE.findall(TEXT):
        Path(name).write_text(content, encoding="utf-8")
    program, *words = shlex.split(command)

    assert program == "rankstream"
    assert main(words) == 0

    said = capsys.readouterr().out
    assert re.search(r"impressions applied\W+[12]\b", said)
    assert re.search(r"clicks applied\W+1\b", said)


def test_options_and_roles_are_all_there() -> None:
    """And no others."""
    assert names_in("| option | default | is |") == {*AdapterOptions.__struct_fields__}
    assert names_in("| role | the column holds |") == {*ROLES}
    formats = names_in("| format | a list | a click | says nothing |")
    assert {*NAMES} - {"rankstream"} <= formats


def test_the_settings_can_be_read() -> None:
    """Their options are options."""
    (settings,) = SETTINGS.findall(TEXT)
    (source,) = tomllib.loads(settings)["sources"].values()
    assert options_of(source["options"]).actions == ("click", "purchase")


def test_every_reason_has_a_row() -> None:
    """As the adapters give them."""
    modules = (
        adapter,
        cloud_events,
        events,
        fields,
        impressions,
        joined,
        metarank,
        own,
        times,
        ubi,
    )
    sources = [Path(str(each.__file__)).read_text(encoding="utf-8") for each in modules]
    given = {
        name for text in sources for found in REFUSAL.findall(text) for name in found
    }
    assert given - {""} == names_in("| reason | means | do |")
