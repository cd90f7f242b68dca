"""The page of commands: what `rankstream COMMAND --help` says, of all of them."""

import argparse
import functools
import re
from collections.abc import Iterator

from docs.reference.markdown import code, escaped, table
from rankstream.operations.cli import COMMANDS, parser_for

INTRODUCTION = """# Commands

Every command with its options, made of the parser that reads them. `rankstream COMMAND
--help` says the same in a terminal. Exit statuses are in `docs/refusals.md`.

Every command takes `--config FILE`, the settings in TOML, and `--namespace NAME`, the
prefix of topics, groups and Redis keys. The tables below do not repeat them.

"""

WIDTH = 88
"""Characters of a line of usage."""

USAGE = "usage: "

EVERY = frozenset({"config", "namespace", "help"})
"""What every command takes."""

_PAGE = re.compile(r"(?<!`)\bdocs/[\w/-]+(?:\.md|/)")

_FORMATTER = functools.partial(argparse.RawDescriptionHelpFormatter, width=WIDTH)


def page() -> str:
    """All commands, in the order of `rankstream --help`."""
    listed = [
        [f"[`{name}`](#{name})", escaped(summary)] for name, summary in COMMANDS.items()
    ]
    parts = [INTRODUCTION + "\n" + table(["command", "does"], listed)]
    for name in COMMANDS:
        verb = _actions_of(parser_for([name]))[name]
        parts.append(f"## {name}\n")
        parts.append("\n".join(_described(verb, level=3)))
    return "\n".join(parts)


def _actions_of(
    parser: argparse.ArgumentParser,
) -> dict[str, argparse.ArgumentParser]:
    """The parsers below one, by name."""
    for action in parser._actions:  # noqa: SLF001  there is no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return dict(action.choices)
    return {}


def _described(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    parser.formatter_class = _FORMATTER
    if parser.description:
        yield f"{_linked(parser.description)}\n"
    usage = parser.format_usage()
    yield code(usage.removeprefix(USAGE).replace("\n" + " " * len(USAGE), "\n"))
    below = _actions_of(parser)
    arguments = [
        _row(action)
        for action in parser._actions  # noqa: SLF001  there is no other way to ask
        if action.help != argparse.SUPPRESS
        and action.dest not in EVERY
        and not isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
    ]
    if arguments:
        yield table(["argument", "is"], arguments)
    if parser.epilog:
        yield code(parser.epilog)
    name = parser.prog.removeprefix("rankstream ")
    for action, each in below.items():
        yield f"{'#' * level} {name} {action}\n"
        yield from _described(each, level + 1)


def _row(action: argparse.Action) -> list[str]:
    formatter = _FORMATTER(prog="")
    said = formatter._expand_help(action) if action.help else ""  # noqa: SLF001
    words = [_linked(said)] if said else []
    if action.choices is not None and action.metavar is None:
        words.append(f"One of {', '.join(f'`{each}`' for each in action.choices)}.")
    return [_named(action), ". ".join(words)]


def _linked(said: str) -> str:
    """Words of a help; pages are in backticks, as all pages name them."""
    return escaped(_PAGE.sub(r"`\g<0>`", said))


def _named(action: argparse.Action) -> str:
    """An argument with what follows it; which values may is said beside."""
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    names = action.metavar or action.dest.upper()
    name = names if isinstance(names, str) else " ".join(names)
    value = "" if action.nargs == 0 else f" {name}"
    if action.nargs in ("*", "+"):
        value += " ..."
    return ", ".join(f"`{option}{value}`" for option in action.option_strings)
