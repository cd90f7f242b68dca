"""Pictures in files: whole ones, or none."""

from pathlib import Path

from rankstream.operations.plots.picture import Picture
from rankstream.operations.plots.style import LIGHT, Theme

ENDINGS = ("svg", "png")


def check_file(file: Path) -> None:
    """Refuse a name that says no format that is written, or where no file can be.

    Raises
    ------
    ValueError
    """
    if _ending_of(file) not in ENDINGS:
        known = " or ".join(f".{each}" for each in ENDINGS)
        raise ValueError(
            f"the name of a picture must end in {known}; got {str(file)!r}"
        )
    if file.is_dir() or not file.parent.is_dir():
        which = f"{file} is one" if file.is_dir() else f"{file.parent} is none"
        raise ValueError(f"a picture must be a file in a folder; {which}")


def check_drawable() -> None:
    """Refuse where nothing can be drawn, before anything is read for it.

    Raises
    ------
    ModuleNotFoundError
        Which the command answers with what to install.
    """
    import matplotlib  # noqa: F401, PLC0415  of the extra `plots`


def write_picture(picture: Picture, file: Path, theme: Theme = LIGHT) -> None:
    """Draw a picture into a file, which is replaced once the new one is whole.

    Raises
    ------
    ValueError
        As of `check_file`.
    OSError
        Where it cannot be written; a file of the name is then as it was.
    """
    # It is of the extra `plots`, and loaded where something is drawn.
    from rankstream.operations.plots.figure import figure_bytes, figure_of  # noqa: PLC0415

    check_file(file)
    drawn = figure_bytes(figure_of(picture, theme), _ending_of(file))
    # Of a link what it leads to is written, which may lie elsewhere.
    target = file.resolve()
    partial = target.with_name(f"{target.name}.partial")
    try:
        partial.write_bytes(drawn)
        partial.replace(target)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def _ending_of(file: Path) -> str:
    return file.suffix.removeprefix(".").lower()
