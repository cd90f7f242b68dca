"""How pictures look: one style, on a light ground and on a dark one.

Colours are told apart by who sees fewer of them and where they are printed in grey: of
each two of a theme, lightness differs by 6 of 100 and more. Markers differ besides.
What is written is text in an SVG, and never taken for mathematics.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

BASE: Mapping[Any, Any] = MappingProxyType(
    {
        "svg.hashsalt": "rankstream",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 9.0,
        "axes.spines.top": False,
        "axes.spines.left": False,
        "axes.spines.right": False,
    }
)
"""What pictures of all grounds have in common."""

MARKERS = ("o", "D", "s", "^", "v", "P")

Dashes = Literal["-", "--"]

SOLID: Dashes = "-"

DASHED: Dashes = "--"


class Look(NamedTuple):
    """Of a series: its colour and marker, and dashes where it is a line."""

    colour: str
    marker: str
    dashes: Dashes


@dataclass(frozen=True)
class Theme:
    """A ground, and what is seen on it; colours as `#rrggbb`.

    Parameters
    ----------
    ink, faint
        Of words and numbers, and of what must not draw the eye.
    grid
        Of lines behind what is drawn.
    colours
        Of series, the first one first.
    """

    ground: str
    ink: str
    faint: str
    grid: str
    colours: tuple[str, ...]

    def settings(self) -> dict[Any, Any]:
        """What matplotlib takes."""
        return {
            **BASE,
            "text.parse_math": False,
            "text.color": self.ink,
            "axes.labelcolor": self.ink,
            "xtick.color": self.ink,
            "ytick.color": self.ink,
            "axes.edgecolor": self.faint,
            "axes.facecolor": self.ground,
            "figure.facecolor": self.ground,
            "savefig.facecolor": self.ground,
        }

    def look(self, number: int) -> Look:
        """That of a series, no two of 12 the same."""
        turn, place = divmod(number, len(self.colours))
        dashes = DASHED if turn % 2 else SOLID
        return Look(self.colours[place], MARKERS[place % len(MARKERS)], dashes)


LIGHT = Theme(
    ground="#ffffff",
    ink="#24292f",
    faint="#6e7781",
    grid="#e3e6ea",
    colours=("#2b62c4", "#c28700", "#151515", "#a01f3c", "#12876f", "#4b1a70"),
)

DARK = Theme(
    ground="#12161c",
    ink="#e6e9ee",
    faint="#8b949e",
    grid="#2a313b",
    colours=("#5b9bf5", "#f2b134", "#fafafa", "#d9527a", "#93f0d6", "#7d4fb0"),
)
