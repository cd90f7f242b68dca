"""A command line that names the nearest option or choice to one that is misspelt."""

import argparse
import re
from typing import Any, NoReturn

from rankstream.wire.nearest_name import suggestion

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
