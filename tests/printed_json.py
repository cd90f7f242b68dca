"""Holds what commands print with `--json` to its schema, whoever tests the command."""

import argparse
import io
import json
import sys
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from rankstream.operations import cli


def words_of(arguments: argparse.Namespace, known: list[str]) -> str:
    """The words by which the result of a call is named: the most that are so.

    `--list` stands for an option that is set, `MODEL` for one that is given.
    """
    action = getattr(arguments, "action", None)
    found = [
        words
        for words in known
        if all(_holds(word, action, arguments) for word in words.split())
    ]
    return max(found, key=lambda words: len(words.split()))


def _holds(word: str, action: str | None, arguments: argparse.Namespace) -> bool:
    if word.startswith("--"):
        return bool(getattr(arguments, word[2:], None))
    if word.isupper():
        return getattr(arguments, word.lower(), None) is not None
    return word in (arguments.command, action, getattr(arguments, "what", None))


class _Tee(io.StringIO):
    """Keeps what is written, and hands it on."""

    def __init__(self, target: Any) -> None:
        super().__init__()
        self._target = target

    def write(self, text: str) -> int:
        self._target.write(text)
        return super().write(text)

    def flush(self) -> None:
        self._target.flush()

    def fileno(self) -> int:
        found: int = self._target.fileno()
        return found


def hold_to_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check each line that a command prints from now on with `--json`."""
    run: Callable[[argparse.Namespace], int] = cli._run_patiently

    def checked(arguments: argparse.Namespace) -> int:
        is_json = getattr(arguments, "json", False)
        is_json = is_json or getattr(arguments, "action", "") == "export-curve"
        if not is_json or arguments.command in cli.OF_THE_LAB:
            return run(arguments)
        tee = _Tee(sys.stdout)
        with pytest.MonkeyPatch.context() as context:
            context.setattr(sys, "stdout", tee)
            status = run(arguments)
        for line in tee.getvalue().splitlines():
            check_line(line, arguments)
        return status

    monkeypatch.setattr(cli, "_run_patiently", checked)


def check_line(line: str, arguments: argparse.Namespace) -> None:
    """Refuse a line that is not what the schema of its command says."""
    from rankstream.operations.commands import results  # noqa: PLC0415  loads all

    words = words_of(arguments, [*results.RESULTS])
    jsonschema.validate(json.loads(line), results.result_schema(words))
