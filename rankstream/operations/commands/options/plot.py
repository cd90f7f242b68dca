"""The option of commands that draw what they answer."""

import argparse
from collections.abc import Callable
from pathlib import Path

from rankstream.operations.commands import tell
from rankstream.operations.plots.files import (
    check_drawable,
    check_file,
    write_picture,
)
from rankstream.operations.plots.picture import Picture


def add_plot(parser: argparse.ArgumentParser) -> None:
    """Declare it."""
    parser.add_argument(
        "--plot",
        type=_picture_file,
        metavar="FILE",
        help="draw it too, with intervals, into FILE.svg or FILE.png, which is "
        "replaced (extra `plots`)",
    )


def draw_if_asked(
    arguments: argparse.Namespace, picture: Callable[[], Picture]
) -> None:
    """Draw a picture into the file that was named, if one was.

    Raises
    ------
    OSError
        Where it cannot be written.
    """
    file: Path | None = arguments.plot
    if file is not None:
        write_picture(picture(), file)
        tell(f"drawn: {file}")


def _picture_file(told: str) -> Path:
    file = Path(told)
    try:
        check_file(file)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    # Before anything is read for it.
    check_drawable()
    return file
