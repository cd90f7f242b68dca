"""What each answer is in a notebook: a table, typed rows, a frame of any library."""

import contextlib
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa

from rankstream.installation import not_installed
from rankstream.notebook.python_words import in_python
from rankstream.notebook.tables import Shown
from rankstream.operations.answers.as_builtins import Answer, as_builtins
from rankstream.operations.plots.picture import Picture

if typing.TYPE_CHECKING:
    from rankstream.operations.plots.figure import Drawn

Answered = TypeVar("Answered", bound=Answer)

Row = TypeVar("Row")

_ARROW = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
"""The type of a column by that of the field of its rows."""


@dataclass(frozen=True, repr=False)
class Result(Generic[Answered, Row]):
    """An answer, as a table that other libraries take.

    Any library that knows Arrow's PyCapsule interface takes it as it is, such as
    `polars.DataFrame(result)` and `pyarrow.table(result)`.

    Parameters
    ----------
    answer
        All that is known, as commands with `--json` write it.
    title
        What the table is of.
    kind
        The class of the rows, whose fields are the columns.
    rows
        In the order in which they are shown.
    remarks
        What must be known of the figures, the most important first.
    pictured
        What `plot` draws, a picture or what has one; None: the answer.
    """

    answer: Answered
    title: str
    kind: type[Row]
    rows: Sequence[Row]
    remarks: tuple[str, ...] = ()
    pictured: object = None

    def to_dict(self) -> dict[str, Any]:
        """The whole answer by names, as JSON may have it."""
        return self.answer.to_dict()

    def to_arrow(self) -> pa.Table:
        """The rows as a table of pyarrow; null where there is no number."""
        hints = typing.get_type_hints(self.kind)
        schema = pa.schema([(name, _ARROW[hint]) for name, hint in hints.items()])
        return pa.Table.from_pylist(self._cells(), schema=schema)

    def to_pandas(self) -> Any:
        """The rows as a DataFrame of pandas.

        Raises
        ------
        ImportError
            Where pandas is not installed.
        """
        with _needed("pandas", "to_pandas"):
            return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The rows as a DataFrame of polars.

        Raises
        ------
        ImportError
            Where polars is not installed.
        """
        with _needed("polars", "to_polars"):
            import polars  # noqa: PLC0415  who does not use it needs none

        return polars.DataFrame(self)

    def plot(self, *, is_dark: bool = False) -> "Drawn":
        """A picture of it, with its intervals, which a notebook shows.

        Parameters
        ----------
        is_dark
            Whether it is for a dark page.

        Raises
        ------
        ValueError
            Where there is no picture of such an answer.
        NotInstalled
            Where matplotlib is missing; it says what to install.
        """
        try:
            from rankstream.operations.plots.answers import picture_of  # noqa: PLC0415
            from rankstream.operations.plots.figure import figure_of  # noqa: PLC0415
            from rankstream.operations.plots.style import DARK, LIGHT  # noqa: PLC0415
        except ImportError as error:
            raise not_installed(error, asked="plot()") from error
        drawn = self.answer if self.pictured is None else self.pictured
        theme = DARK if is_dark else LIGHT
        if isinstance(drawn, Picture):
            return figure_of(drawn, theme)
        if picture_of.dispatch(type(drawn)) is picture_of.dispatch(object):
            raise ValueError(
                f"a picture must be of figures that it can show; of "
                f"{type(drawn).__name__} there is none: draw what to_pandas() gives"
            )
        return figure_of(picture_of(drawn), theme)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for any library that takes Arrow's streams."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return self._shown().text()

    def _repr_html_(self) -> str:
        return self._shown().html()

    def _shown(self) -> Shown:
        names = [*typing.get_type_hints(self.kind)]
        return Shown(self.title, names, self._cells(), self.remarks)

    def _cells(self) -> list[dict[str, Any]]:
        return [as_builtins(row) for row in self.rows]


def remarks_of(*told: str) -> tuple[str, ...]:
    """Those that say something, in words of Python."""
    return tuple(in_python(each) for each in told if each)


@contextlib.contextmanager
def _needed(package: str, method: str) -> Iterator[None]:
    """Say what to install where a package is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in (None, package):
            raise
        raise ModuleNotFoundError(
            f"{method}() needs {package}, which is not installed: pip install "
            f"{package}, or take to_arrow()",
            name=package,
        ) from error
