"""The command line: help, versions, and one clear line for what is wrong."""

import importlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from rankstream.operations import cli
from rankstream.operations.cli import COMMANDS, main, module_of, parser_for

WRITTEN = [name for name in COMMANDS if importlib.util.find_spec(module_of(name))]


def test_help_lists_commands_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """And shows examples."""
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    said = capsys.readouterr().out
    listed = {line.split()[0] for line in said.splitlines() if line.startswith("    ")}
    assert set(WRITTEN) <= listed
    assert not listed & (set(COMMANDS) - set(WRITTEN))
    assert "examples:" in said


def test_the_version_is_that_of_the_distribution(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is installed, not what somebody wrote twice."""
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    said = capsys.readouterr().out.strip()
    assert said == importlib.metadata.version("rankstream")


@pytest.mark.parametrize("name", WRITTEN)
def test_each_command_explains_itself(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --config and --namespace."""
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    said = capsys.readouterr().out
    assert "--config CONFIG" in said
    assert "--namespace NAMESPACE" in said


@pytest.mark.parametrize(
    ("words", "default"),
    [
        (["demo"], "12000"),
        (["monitor"], "8087"),
        (["simulate"], "perfect"),
        (["reproduce"], "learners"),
        (["statistics", "list"], "50"),
        (["dump"], "events"),
        (["dlq"], "50"),
    ],
)
def test_help_says_defaults(
    words: list[str], default: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of every option that has one, once."""
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert f"default: {default}" in said or f"default {default}" in said
    assert "(default: None)" not in said


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["topics", "check", "--config", "/nowhere.toml"], "must be readable"),
        (["topics", "check", "--namespace", "a b"], "namespace must hold letters"),
    ],
)
def test_wrong_settings_are_one_line(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2, the command's name, the reason, no traceback."""
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("rankstream topics: ")
    assert reason in said
    assert said.count("\n") == 1


def test_variables_for_tests_are_not_settings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They stand beside the settings, so a test on a named broker can load them."""
    for name in ("TEST_KAFKA", "TEST_REDIS", "CACHE"):
        monkeypatch.setenv(f"RANKSTREAM_{name}", "x")
    assert main(["topics", "check", "--config", "/nowhere.toml"]) == 2
    assert "/nowhere.toml" in capsys.readouterr().err


def test_an_interrupt_is_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As shells expect it."""

    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    topics = importlib.import_module("rankstream.operations.commands.topics.run")
    monkeypatch.setattr(topics, "run", interrupted)
    assert main(["topics", "check"]) == 130
    assert capsys.readouterr().err == "rankstream topics: interrupted\n"


HEAVY = (
    "aiokafka", "faust", "kafka", "llvmlite", "matplotlib", "mode", "numba", "pandas",
    "scipy", "starlette", "uvicorn",
)  # fmt: skip
"""What takes a command from a tenth of a second to one, and no argument needs."""

MOST_MODULES = 565
"""Of Python's, of others' and ours, that help may load: about a quarter of a second."""


@pytest.mark.parametrize("name", WRITTEN)
def test_help_is_quick(name: str) -> None:
    """It loads what arguments need, and nothing that runs the command."""
    program = (
        "import sys; from rankstream.operations.cli import parser_for;"
        f"parser_for([{name!r}]).format_help();"
        f"print([n for n in {HEAVY} if n in sys.modules], len(sys.modules))"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=True, cwd=Path(cli.__file__).parents[2],
    ).stdout  # fmt: skip
    heavy, _, n_modules = said.strip().rpartition(" ")
    assert heavy == "[]"
    assert int(n_modules) <= MOST_MODULES


def test_bare_help_reads_no_settings() -> None:
    """Nor what settings are checked by: it is there at once."""
    program = (
        "import sys; from rankstream.operations.cli import parser_for; parser_for([]);"
        "print([n for n in ('numpy', 'msgspec', 'redis') if n in sys.modules])"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, check=True, cwd=Path(cli.__file__).parents[3],
    ).stdout  # fmt: skip
    assert said.strip() == "[]"


def test_a_word_that_is_no_command_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the commands that there are."""
    with pytest.raises(SystemExit, match="2"):
        parser_for(["tropics"]).parse_args(["tropics"])
    assert "invalid choice: 'tropics'" in capsys.readouterr().err
