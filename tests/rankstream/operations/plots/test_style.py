"""Colours of a theme are seen by all: on its ground, by fewer cones, and in grey."""

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from rankstream.operations.plots.style import DARK, LIGHT, Theme

Floats = npt.NDArray[np.float64]

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])

# Machado, Oliveira & Fernandes (TVCG 2009), table of severity 1.0, in linear light.
SEEN = {
    "all cones": np.eye(3),
    "no long": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                [-0.003882, -0.048116, 1.051998]],
    "no middle": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                  [-0.011820, 0.042940, 0.968881]],
    "no short": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                 [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
TO_XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
)
WHITE = TO_XYZ.sum(axis=1)


def linear(colour: str) -> Floats:
    """Red, green and blue light, in [0, 1], of `#rrggbb`."""
    shown = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    return np.where(shown <= 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4)


def lab(light: Floats) -> Floats:
    """CIELAB of light: lightness of 100, and two axes of colour."""
    x, y, z = np.cbrt(np.clip(TO_XYZ @ np.clip(light, 0.0, 1.0), 1e-4, None) / WHITE)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one: str, other: str) -> float:
    """As WCAG 2 has it, from 1 to 21."""
    low, high = sorted(float(TO_XYZ[1] @ linear(each)) for each in (one, other))
    return (high + 0.05) / (low + 0.05)


@THEMES
def test_what_is_drawn_is_seen_on_its_ground(theme: Theme) -> None:
    """3 for shapes and 4.5 for words, as WCAG 2 asks."""
    assert min(contrast(each, theme.ground) for each in theme.colours) >= 3.0
    assert contrast(theme.ink, theme.ground) >= 4.5
    assert contrast(theme.faint, theme.ground) >= 4.5


@THEMES
@pytest.mark.parametrize("eyes", SEEN)
def test_no_two_colours_look_the_same(theme: Theme, eyes: str) -> None:
    """A difference of 10 is seen at once."""
    seen = [lab(np.array(SEEN[eyes]) @ linear(each)) for each in theme.colours]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 10.0


@THEMES
def test_no_two_colours_are_one_grey(theme: Theme) -> None:
    """And twelve series differ in something that a printer keeps."""
    lightness = [lab(linear(each))[0] for each in theme.colours]
    assert min(abs(a - b) for a, b in combinations(lightness, 2)) > 6.0
    looks = [theme.look(number) for number in range(12)]
    assert len({(look.marker, look.dashes) for look in looks}) == 12
