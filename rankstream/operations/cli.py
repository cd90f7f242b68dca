"""The command line: one verb, one module of commands."""

import argparse
import importlib
import importlib.metadata
import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

from rankstream.installation import NotInstalled, check_rooms, not_installed
from rankstream.wire.nearest_name import suggestion

COMMANDS = {
    "demo": "show the whole pipeline at work, in one process",
    "topics": "create the topics, check them, or split the log",
    "worker": "run the stream processors on Kafka",
    "serve": "events, rankings and combined lists over HTTP",
    "feed": "send live events, from standard input or a followed file",
    "replay": "send historical logs to Kafka, or fold them in this process",
    "validate": "judge files of events offline, as ingestion and the join would",
    "simulate": "closed loop of simulated users, a ranker and its learner",
    "statistics": "what was counted: show one query, list queries, export",
    "train": "train a ranker from a log in files, without Kafka",
    "rank": "score and rank the items of a file by a trained ranker",
    "evaluate": "what policies would be worth, before anybody sees them",
    "experiments": "comparisons of rankers: list, publish, show verdicts",
    "monitor": "experiments, interventions, health and the log; --web in a browser",
    "snapshots": "model versions: list, show, roll back, promote, canary, history",
    "decisions": "what is served for which query: list rules, show the evidence",
    "intervene": "train a model now, list its trainings, verify one from the log",
    "dlq": "dead letters: list, show, count, replay",
    "schemas": "JSON Schemas of events, for programs in any language",
    "dump": "copy the canonical log into a file",
    "export": "lists and clicks as arrays, for other programs",
    "erase": "a person's events: where they are, and a dump without them",
    "recount": "count the canonical log again with independent code, and compare",
    "reproduce": "make tables of the literature from LETOR folders",
    "bench": "measure speed and memory, beside a rival in the same run",
}
"""Verb and one line of each command."""

OF_THE_LAB = frozenset({"demo", "simulate", "reproduce", "bench"})
"""Verbs whose modules are in `rankstream.lab.commands`."""

EPILOG = """examples:
  rankstream demo                              needs nothing but Python
  rankstream topics create --config shop.toml  on Kafka: first the topics,
  rankstream worker --config shop.toml         then the worker
  rankstream COMMAND --help                    says more about a command

Settings come from --config FILE (TOML), else from the file in
RANKSTREAM_CONFIG. A variable sets a single one, for example
RANKSTREAM_KAFKA__BOOTSTRAP=broker:9092.
Passwords come from RANKSTREAM_KAFKA_PASSWORD and RANKSTREAM_REDIS_PASSWORD, or
from files that the settings name.
"""


def main(words: list[str] | None = None) -> int:
    """Run one command; returns the exit status.

    2: the call, its input or the settings are wrong; 78: a worker's settings or topics
    are, so starting it again would not help; 130: Ctrl-C.
    """
    words = sys.argv[1:] if words is None else words
    try:
        status = _run(words)
        # What waits in it is written here, where a full disk can be told of.
        sys.stdout.flush()
    except KeyboardInterrupt:
        _say(words, "interrupted")
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe; the interpreter must not flush into it.
        _give_up_output()
        return 0
    except (ValueError, RuntimeError, OSError) as error:
        reason = str(error)
        if isinstance(error, OSError) and error.filename is None and _is_full():
            reason = f"standard output must be writable; {error.strerror}"
            _give_up_output()
        _say(words, reason)
        is_final = _command_of(words) == "worker" and isinstance(error, NotInstalled)
        return os.EX_CONFIG if is_final else 2
    return status


def _say(words: list[str], reason: str) -> None:
    print(f"rankstream {_command_of(words)}: {reason}", file=sys.stderr)  # noqa: T201


def _is_full() -> bool:
    """Whether nothing more can be written to the standard output.

    A stream forgets what it could not write, and the error names no file. So one more
    byte is tried, where it is no terminal.
    """
    try:
        place = sys.stdout.fileno()
    except ValueError:
        return False
    try:
        os.write(place, b"" if os.isatty(place) else b"\n")
    except OSError:
        return True
    return False


def _give_up_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    try:
        arguments = parser_for(words).parse_args(words)
        return int(arguments.run(arguments))
    except ImportError as error:
        raise not_installed(error, _command_of(words)) from error


def _command_of(words: list[str]) -> str:
    return next((word for word in words if not word.startswith("-")), "")


def module_of(name: str) -> str:
    """Where a command is.

    Examples
    --------
    >>> module_of("bench"), module_of("replay")
    ('rankstream.lab.commands.bench', 'rankstream.operations.commands.replay')
    """
    room = "lab" if name in OF_THE_LAB else "operations"
    return f"rankstream.{room}.commands.{name}"


def parser_for(words: list[str]) -> argparse.ArgumentParser:
    """The parser; only the module of the command at hand is loaded."""
    parser = OptionParser(
        prog="rankstream",
        description="Turn clicks into unbiased statistics and into rankers that learn.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = importlib.metadata.version("rankstream")
    parser.add_argument("--version", action="version", version=version)
    verbs = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    wanted = _command_of(words)
    for name, summary in COMMANDS.items():
        if importlib.util.find_spec(module_of(name)) is None:
            continue
        verb = verbs.add_parser(name, help=summary, description=summary)
        if name == wanted:
            check_rooms()
            module = importlib.import_module(module_of(name))
            verb.set_defaults(run=module.run)
            verb.epilog = getattr(module, "EPILOG", None)
            verb.formatter_class = argparse.RawDescriptionHelpFormatter
            module.add_arguments(verb)
            _add_settings(verb, None)
            say_defaults(verb)
    return parser


def say_defaults(verb: argparse.ArgumentParser) -> None:
    """Add the default to the help of each option that has one and does not say it."""
    for action in verb._actions:  # noqa: SLF001  there is no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in action.choices.values():
                say_defaults(below)
        is_said = action.help == argparse.SUPPRESS or "default" in (action.help or "")
        has_one = action.default not in (None, False, "", argparse.SUPPRESS)
        if has_one and not is_said:
            action.help = f"{action.help or ''} (default: %(default)s)".strip()


def _add_settings(verb: argparse.ArgumentParser, default: str | None) -> None:
    """The options of every command, which may also come last, behind an action."""
    for name, kind, what in (
        ("--config", Path, "the settings: a TOML file"),
        ("--namespace", str, "prefix of topics, groups and Redis keys"),
    ):
        verb.add_argument(name, type=kind, default=default, help=what)
    for action in verb._actions:  # noqa: SLF001  there is no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in action.choices.values():
                _add_settings(below, argparse.SUPPRESS)


_CHOICE = re.compile(r"invalid choice: '?(.+?)'? \(choose from (.+)\)$")


class OptionParser(argparse.ArgumentParser):
    """As argparse has it; errors end with what was meant, where that can be told."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The arguments.

        What no option takes is an error of the command, whose usage is then printed,
        and not that of all commands.
        """
        found, left = self.parse_known_args(args, namespace)
        if left:
            verb = _called(self, found)
            known = [
                name
                for action in verb._actions  # noqa: SLF001  there is no other way to ask
                for name in action.option_strings
                if name.startswith("--")
            ]
            words = " ".join(left)
            near = next(
                (
                    suggestion(name, known)
                    for name in (word.partition("=")[0] for word in left)
                    if name.startswith("--") and suggestion(name, known)
                ),
                "",
            )
            verb.error(f"unrecognized arguments: {words}{near}")
        return found

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and what may have been meant."""
        choice = _CHOICE.search(message)
        if choice:
            names = [name.strip(" '") for name in choice[2].split(",")]
            message += suggestion(choice[1], names)
        super().error(message)


def _called(
    parser: argparse.ArgumentParser, found: argparse.Namespace
) -> argparse.ArgumentParser:
    """The parser of the command, or of its action, that was called."""
    for action in parser._actions:  # noqa: SLF001  there is no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            name = getattr(found, action.dest, None)
            if name in action.choices:
                return _called(action.choices[name], found)
    return parser


if __name__ == "__main__":
    sys.exit(main())
