"""The command line: one verb, one module of commands."""

import argparse
import importlib
import importlib.metadata
import importlib.util
import math
import os
import re
import sys
from collections.abc import Collection
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from rankstream.installation import NotInstalled, check_rooms, not_installed
from rankstream.wire.nearest_name import suggestion

COMMANDS = {
    "demo": "show the whole pipeline at work, in one process",
    "init": "write a first settings file, by three questions or by options",
    "plan": "processes, cores, memory and disk of a load, before anything runs",
    "doctor": "what is wrong here, with Kafka, topics, Redis and clocks",
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
    "backup": "copy all that a namespace can be made again from into a folder",
    "restore": "make a namespace again from a backup, here or on another cluster",
    "export": "lists and clicks as arrays, for other programs",
    "erase": "a person's events: where they are, and a dump without them",
    "recount": "count the canonical log again with independent code, and compare",
    "completion": "what a shell completes commands and options by",
    "reproduce": "make tables of the literature from LETOR folders",
    "bench": "measure speed and memory, beside a rival in the same run",
}
"""Verb and one line of each command."""

OF_THE_LAB = frozenset({"demo", "simulate", "reproduce", "bench"})
"""Verbs whose modules are in `rankstream.lab.commands`."""

WAITING = frozenset(
    {
        "backup", "decisions", "dlq", "dump", "erase", "evaluate", "experiments",
        "export", "feed", "intervene", "recount", "replay", "restore", "simulate",
        "snapshots", "statistics", "topics",
    }
)  # fmt: skip
"""Verbs that wait for Kafka, Redis or workers, and end by themselves."""

EPILOG = """examples:
  rankstream demo                              needs nothing but Python
  rankstream init shop.toml                    writes settings, by three questions
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
    are, so starting it again would not help; 124: --timeout; 130: Ctrl-C.
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
        return _run_patiently(arguments)
    except ImportError as error:
        raise not_installed(error, _command_of(words)) from error


def _run_patiently(arguments: argparse.Namespace) -> int:
    """Run the command, and wait no longer than it was told."""
    # Not before our packages are known to be ours.
    from producers.patience import TimedOut, patience  # noqa: PLC0415

    try:
        with patience(getattr(arguments, "timeout", None)):
            return int(arguments.run(arguments))
    except TimedOut as error:
        _say([arguments.command], str(error))
        return 124


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
    return _parser([_command_of(words)])


def whole_parser() -> argparse.ArgumentParser:
    """The parser with the arguments of all commands, for what describes them."""
    return _parser(COMMANDS)


def _parser(wanted: Collection[str]) -> argparse.ArgumentParser:
    """The parser of all commands, with the arguments of some."""
    parser = OptionParser(
        prog="rankstream",
        description="Turn clicks into unbiased statistics and into rankers that learn.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = importlib.metadata.version("rankstream")
    parser.add_argument("--version", action="version", version=version)
    verbs = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        if importlib.util.find_spec(module_of(name)) is None:
            continue
        verb = verbs.add_parser(name, help=summary, description=summary)
        if name in wanted:
            _add_command(verb, name)
    return parser


def _add_command(verb: argparse.ArgumentParser, name: str) -> None:
    """Declare the arguments of a command, and what runs it."""
    check_rooms()
    module = importlib.import_module(module_of(name))
    verb.set_defaults(run=partial(run_command, module), whole_parser=whole_parser)
    verb.epilog = getattr(module, "EPILOG", None)
    verb.formatter_class = argparse.RawDescriptionHelpFormatter
    module.add_arguments(verb)
    _add_general(verb, None, waits=name in WAITING)
    say_defaults(verb)


def run_command(module: ModuleType, arguments: argparse.Namespace) -> int:
    """Run a command: by `run` of its module, else of the module `run` below it.

    What running needs, and its arguments do not, is loaded only now: `--help` and
    completion do without.
    """
    run = getattr(module, "run", None)
    if not callable(run):
        run = importlib.import_module(f"{module.__name__}.run").run
    return int(run(arguments))


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


def _add_general(
    verb: argparse.ArgumentParser, default: str | None, *, waits: bool
) -> None:
    """The options of every command, which may also come last, behind an action."""
    verb.add_argument(
        "--config", type=Path, default=default, help="the settings: a TOML file"
    )
    verb.add_argument(
        "--namespace", default=default, help="prefix of topics, groups and Redis keys"
    )
    if waits:
        verb.add_argument(
            "--timeout",
            type=_seconds,
            default=default,
            metavar="SECONDS",
            help="end with status 124 where Kafka, Redis or workers are waited for for "
            "longer, from the start on (default: wait for them)",
        )
    for action in verb._actions:  # noqa: SLF001  there is no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in action.choices.values():
                _add_general(below, argparse.SUPPRESS, waits=waits)


def _seconds(told: str) -> float:
    try:
        found = float(told)
    except ValueError:
        found = math.nan
    if not 0.0 <= found < math.inf:
        raise argparse.ArgumentTypeError(f"must be seconds, 0 or more; got {told}")
    return found


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
