"""What people type, one verb each: arguments, and what is printed of an answer."""

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankstream.settings import Settings

STOPPED = 130
"""The exit status where somebody asked to stop."""


class Stopped(Exception):
    """Somebody asked to stop."""


def settings_of(arguments: argparse.Namespace) -> "Settings":
    """The settings of a call, under its namespace.

    Raises
    ------
    SettingsError
    """
    # `rankstream --help` finds the commands in here, and reads no settings.
    from rankstream.settings import load_settings, with_namespace  # noqa: PLC0415

    return with_namespace(load_settings(arguments.config), arguments.namespace)


def tell(line: str) -> None:
    """Say something beside what is printed for programs."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def nothing(reason: str) -> int:
    """Say why there is no answer; the exit status."""
    tell(reason)
    return 1


def write_json(value: Any) -> None:
    """Write it on one line."""
    sys.stdout.write(json.dumps(value) + "\n")
