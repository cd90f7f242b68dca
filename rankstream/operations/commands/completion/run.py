"""What `rankstream completion` does: print the script of a shell."""

import argparse
import sys
from pathlib import Path

import shtab


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    parser: argparse.ArgumentParser = arguments.whole_parser()
    _name_files(parser)
    sys.stdout.write(shtab.complete(parser, arguments.shell) + "\n")
    return 0


def _name_files(parser: argparse.ArgumentParser) -> None:
    """Say of each option that takes a path that files complete it, or folders."""
    for action in parser._actions:  # noqa: SLF001  there is no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in action.choices.values():
                _name_files(below)
        elif action.type is Path:
            is_folder = action.metavar == "DIR"
            action.complete = shtab.DIRECTORY if is_folder else shtab.FILE  # type: ignore[attr-defined]
