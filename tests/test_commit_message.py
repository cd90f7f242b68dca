"""Messages of commits: what the hook lets through, and what it names."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[1] / ".ci/commit_message.py"

spec = importlib.util.spec_from_file_location("commit_message", HOOK)
assert spec is not None
assert spec.loader is not None
hook = importlib.util.module_from_spec(spec)
spec.loader.exec_module(hook)


@pytest.mark.parametrize(
    "message",
    [
        "Say why a start is refused",
        "Pass each record once\n\nA body of one line.\n",
        "S" + "o" * 71,
        "Feed what waits\n\nhttps://example.org/" + "x" * 100,
        "fixup! Say why a start is refused",
        "# a comment\nRelease 1.2.3\n# a comment that is as long as it likes"
        + "." * 90,
        "Show it\n\n" + hook.SCISSORS + "\n+" + " x" * 60,
    ],
)
def test_what_is_as_it_should_be_goes_through(message: str) -> None:
    """Comments and the change that is shown below are no part of it."""
    assert hook.faults(message) == []


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("", "must begin with a capital; got ''"),
        ("S" + "o" * 72, "must have 72 characters; got 73"),
        ("say why", "must begin with a capital; got 'say'"),
        ("Says why", "must begin with an imperative; got 'Says'"),
        ("Adding a test", "must begin with an imperative; got 'Adding'"),
        ("Fixed: a test", "must begin with an imperative; got 'Fixed:'"),
        ("The test holds", "must begin with an imperative; got 'The'"),
        ("Say why.", "no point at its end"),
        ("Say why\nas it must be said", "an empty line must follow"),
        ("Say why\n\n" + "a " * 50 + "b", "must have 100 characters; got 101"),
    ],
)
def test_what_is_not_is_named(message: str, told: str) -> None:
    """By the rule and what came."""
    assert any(told in fault for fault in hook.faults(message))


def test_a_message_that_is_refused_ends_with_its_faults(tmp_path: Path) -> None:
    """And with a status that stops the commit."""
    file = tmp_path / "message"
    for message, status in (("Say why\n", 0), ("says why.\n", 1)):
        file.write_text(message)
        ended = subprocess.run(
            [sys.executable, HOOK, file], check=False, capture_output=True, text=True
        )
        assert (ended.returncode, bool(ended.stderr)) == (status, bool(status))
