"""What the pages on interventions show can be copied: settings load, commands parse."""

import re
from pathlib import Path

import pytest

from rankstream.operations.cli import parser_for
from rankstream.settings import load_settings
from rankstream.wire.envelope import KINDS

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [
    DOCS / "interventions.md",
    DOCS / "interventions-table.md",
    DOCS / "training.md",
]
BLOCK = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^    rankstream (.*)$", re.MULTILINE)


def all_of(pattern: re.Pattern[str]) -> list[str]:
    """What all pages have, in their order."""
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    return [each for text in texts for each in pattern.findall(text)]


@pytest.mark.parametrize("block", all_of(BLOCK))
def test_settings_are_taken(block: str, tmp_path: Path) -> None:
    """As they stand there, of a model that is trained by itself."""
    file = tmp_path / "settings.toml"
    file.write_text(block, encoding="utf-8")
    (model,) = load_settings(file).models.values()
    assert model.versions == "trained"
    assert model.training.has_points


@pytest.mark.parametrize("command", all_of(COMMAND))
def test_commands_are_understood(command: str) -> None:
    """With their options, as they stand there."""
    words = command.partition("#")[0].split()
    assert parser_for(words).parse_args(words).command == words[0]


def test_the_comparison_names_every_kind_of_ranker() -> None:
    """Neither page nor reader is left with those that there were before."""
    text = (DOCS / "explanation/comparison.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"^\* Its own rankers are (.*?)(?=^\*)", text, re.M | re.S)
    (ours,) = re.findall(r"\bours are ([^.]*)\.", " ".join(text.split()))
    for kind in KINDS:
        word = "network" if kind.startswith("neural") else kind
        assert word in told
        assert word in ours
