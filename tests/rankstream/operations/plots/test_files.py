"""Files of pictures: the same bytes each time, whole or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rankstream.operations.plots.files import check_file, write_picture
from rankstream.operations.plots.picture import Estimate, Picture, Rows, Series
from rankstream.operations.plots.style import DARK

PICTURE = Picture(
    "t", [[Rows("r", "u", ["a", "b"], [Series("s", [Estimate(0.5, 0.4, 0.6)] * 2)])]]
)

AGAIN = f"""
from pathlib import Path
from rankstream.operations.plots.files import write_picture
from rankstream.operations.plots.picture import *
write_picture({PICTURE!r}, Path("again.svg"))
write_picture({PICTURE!r}, Path("again.png"))
"""


def test_a_picture_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    """In another process too, which has no display and a style of its user's."""
    (tmp_path / "matplotlibrc").write_text("xtick.labelsize: 30\n")
    hidden = {"DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND"}
    environment = {k: v for k, v in os.environ.items() if k not in hidden}
    paths = os.pathsep.join(filter(None, sys.path))
    subprocess.run(
        [sys.executable, "-c", AGAIN],
        check=True,
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": paths},
    )
    for ending in ("svg", "png"):
        write_picture(PICTURE, tmp_path / f"first.{ending}")
        first = (tmp_path / f"first.{ending}").read_bytes()
        assert (tmp_path / f"again.{ending}").read_bytes() == first
        assert b"date" not in first
    assert not [*tmp_path.glob("*.partial")]


def test_a_dark_ground_is_another_picture(tmp_path: Path) -> None:
    """Whose ground is in the file, so that it is seen on any page."""
    write_picture(PICTURE, tmp_path / "a.svg")
    write_picture(PICTURE, tmp_path / "b.svg", DARK)
    assert DARK.ground not in (tmp_path / "a.svg").read_text()
    assert DARK.ground in (tmp_path / "b.svg").read_text()


@pytest.mark.parametrize("name", ["a.pdf", "a", "svg", ".png", "a.svg.gz"])
def test_a_name_says_the_format(name: str) -> None:
    """Which are those that are written."""
    with pytest.raises(ValueError, match=r"must end in \.svg or \.png; got"):
        check_file(Path(name))
    check_file(Path("a.SVG"))


def test_a_picture_lies_in_a_folder_and_is_none(tmp_path: Path) -> None:
    """Which is said before anything is drawn."""
    (tmp_path / "a.svg").mkdir()
    for name, why in (("a.svg", r"a\.svg is one"), ("b/a.svg", "b is none")):
        with pytest.raises(ValueError, match=rf"must be a file in a folder; .*{why}"):
            write_picture(PICTURE, tmp_path / name)
    assert [each.name for each in tmp_path.iterdir()] == ["a.svg"]


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path) -> None:
    """Nothing is left beside it; and a link leads to the file that is replaced."""
    (tmp_path / "real.svg").write_text("old")
    (tmp_path / "real.svg.partial").mkdir()
    with pytest.raises(OSError, match=r"real\.svg"):
        write_picture(PICTURE, tmp_path / "real.svg")
    assert (tmp_path / "real.svg").read_text() == "old"
    (tmp_path / "real.svg.partial").rmdir()
    (tmp_path / "link.svg").symlink_to("real.svg")
    write_picture(PICTURE, tmp_path / "link.svg")
    assert (tmp_path / "link.svg").is_symlink()
    assert (tmp_path / "real.svg").read_text().startswith("<?xml")
