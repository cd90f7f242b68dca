"""What pages show can be copied: fenced blocks run, and commands are understood."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rankstream.operations.cli import COMMANDS, main, parser_for
from rankstream.settings import load_settings
from tests.documented_blocks import TREE, Block, bare, blocks_of, pages

OWN_TESTS = {
    "docs/adapters.md": "tests/test_adapters_page.py",
    "docs/curves.md": "tests/docs/test_curves_page.py",
    "docs/estimators.md": "tests/test_estimators_page.py",
    "docs/evaluate.md": "tests/test_evaluate_page.py",
    "docs/events.md": "tests/test_events_page.py",
    "docs/losses.md": "tests/test_losses_page.py",
    "docs/notebook.md": "tests/rankstream/notebook/test_shown_lines.py",
    "docs/statistics.md": "tests/rankstream/test_statistics_page.py",
    **{
        page: "tests/runbooks/test_runbooks.py"
        for page in pages()
        if page.startswith("docs/runbooks/") and not page.endswith("index.md")
    },
}
"""Pages whose blocks need figures or files of a test of their own, and that test."""

RUNNING = ("python", "sh")
SHOWN = ("", "text", "html", "ts")
"""Languages of blocks that say what is printed, or that no test here can run."""

BLOCKS = [block for page in pages() for block in blocks_of(page)]

SESSIONS = sorted(
    {block.page for block in BLOCKS if block.language in RUNNING and not block.reason}
    - OWN_TESTS.keys()
)
"""Pages whose fenced blocks are run here, one after another, as a reader does."""


@pytest.mark.parametrize("page", SESSIONS)
def test_a_page_can_be_followed(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """From its first block to its last, in an empty folder.

    Each line of a block without a language stands in what the command above it said.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    names: dict[str, Any] = {}
    said = ""
    for block in blocks_of(page):
        if block.reason or not block.is_fenced:
            said = ""
        elif block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(compile(block.text, block.place, "exec"), names)  # noqa: S102  our page
            said = "".join(capfd.readouterr())
        elif block.language == "sh":
            for program, *words in block.commands():
                assert program == "rankstream", block.place
                assert main(words) == 0, block.place
            said = "".join(capfd.readouterr())
        elif block.language == "" and said:
            told = bare(said)
            for line in block.text.splitlines():
                assert bare(line) in told, f"{block.place}: {line}\n{said}"


@pytest.mark.parametrize("page", OWN_TESTS)
def test_a_page_of_its_own_test_is_read_there(page: str) -> None:
    """By its name."""
    test = (TREE / OWN_TESTS[page]).read_text(encoding="utf-8")
    assert f'"{Path(page).name}"' in test


def commands() -> list[tuple[str, list[str]]]:
    """Every command of every block, with its place."""
    found = []
    for block in BLOCKS:
        if block.is_fenced and block.language != "sh":
            continue
        found += [
            (block.place, words[1:])
            for words in commands_in(block)
            if words[:1] == ["rankstream"] and words[1:2] and words[1] in COMMANDS
        ]
    return found


def commands_in(block: Block) -> list[list[str]]:
    """Commands of a block; an indented one may hold other text, which is left."""
    try:
        return block.commands()
    except ValueError:
        return []


@pytest.mark.parametrize(("place", "words"), commands())
def test_a_command_is_understood(place: str, words: list[str]) -> None:
    """With its options, as it stands there, whether it is run or not."""
    del place
    ends = [words.index(word) for word in (">", "|", "&") if word in words]
    own = words[: min(ends, default=None)]
    assert parser_for(own).parse_args(own).command == words[0]


@pytest.mark.parametrize(
    "block", [x for x in BLOCKS if x.language == "python"], ids=lambda x: x.place
)
def test_a_program_compiles_and_its_imports_are_there(block: Block) -> None:
    """Also where it needs a Kafka and is not run."""
    compile(block.text, block.place, "exec")
    lines = re.findall(r"^(?:from \S+ )?import .*$", block.text, re.MULTILINE)
    exec("\n".join(lines), {})  # noqa: S102  our own pages


@pytest.mark.parametrize(
    "block", [x for x in BLOCKS if x.language == "toml"], ids=lambda x: x.place
)
def test_settings_are_taken(block: Block, tmp_path: Path) -> None:
    """As they stand there, by themselves; else the block says why not."""
    tomllib.loads(block.text)
    if not block.reason:
        file = tmp_path / "settings.toml"
        file.write_text(block.text, encoding="utf-8")
        load_settings(file, {})


@pytest.mark.parametrize(
    "block", [x for x in BLOCKS if x.language == "json"], ids=lambda x: x.place
)
def test_documents_are_json(block: Block) -> None:
    """One, or one a line."""
    try:
        json.loads(block.text)
    except json.JSONDecodeError:
        for line in block.text.splitlines():
            json.loads(line)


def test_every_language_is_known() -> None:
    """What is fenced is run, checked, or is what was printed."""
    known = {*RUNNING, *SHOWN, "toml", "json", "csv"}
    assert {block.language for block in BLOCKS} <= known


def test_a_block_that_is_not_run_is_found_with_its_reason() -> None:
    """And a file by its name, and an indented block as what it is."""
    text = (
        "Write `a.toml`:\n\n```toml\nx = 1\n```\n\n    rankstream demo\n\nSo:\n\n"
        "<!-- not run: needs Kafka -->\n```sh\nrankstream worker\n```\n"
    )
    file, shown, left = blocks_of("page", text)
    assert (file.file, file.text, file.line) == ("a.toml", "x = 1\n", 3)
    assert (shown.is_fenced, shown.commands()) == (False, [["rankstream", "demo"]])
    assert (left.reason, left.file, left.line) == ("needs Kafka", "", 12)
