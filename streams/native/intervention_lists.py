"""Closed impressions handed to the sums of interventions of the core."""

import ctypes
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from streams.native.closed_impressions import Closed
from streams.native.core_library import core

N_GROUPS = 100
"""Groups of sessions; those of `models.evaluation.sums`."""

Row = TypeVar("Row", bound=np.generic)

_PLACE, _NUMBER = ctypes.c_void_p, ctypes.c_int64

core.intervention_lists_take.restype = _NUMBER
core.intervention_lists_take.argtypes = (
    *(_PLACE, _PLACE, _PLACE, _PLACE, _NUMBER, _NUMBER),
)
core.intervention_lists_row.restype = _NUMBER
core.intervention_lists_row.argtypes = (_PLACE, _PLACE, ctypes.c_char_p, _NUMBER)

LEFT_OUT, NO_ROW = -2, -3
"""Instead of a row: there is no room for it, or first more rows are needed."""

N_POINTER_BYTES = 32
"""The longest @EPOCH.VERSION."""

_N_LISTS, _BEGUN, _N_NAME = 2, 3, 4
"""Columns of heads."""


class _Words(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_char_p), ("n", _NUMBER))


class _Action(ctypes.Structure):
    _fields_ = (("name", _Words), ("is_counted", _NUMBER))


class _Rules(ctypes.Structure):
    _fields_ = (
        ("models", _PLACE),
        ("n_models", _NUMBER),
        ("most", _NUMBER),
        ("actions", _PLACE),
        ("n_actions", _NUMBER),
        ("counts_others", _NUMBER),
    )


class _Table(ctypes.Structure):
    _fields_ = (
        ("heads", _PLACE),
        ("names", _PLACE),
        ("groups", _PLACE),
        ("n_without_session", _PLACE),
        ("n", _NUMBER),
        ("capacity", _NUMBER),
        ("name_width", _NUMBER),
        ("n_uncounted", _NUMBER),
    )


class Sums(NamedTuple):
    """Where lists of an intervention are counted.

    `groups` [100, 2] holds lists and clicks by group of sessions, `without_session` [1]
    the number of lists that name neither session nor user; both int64 in one piece.
    """

    groups: NDArray[np.int64]
    without_session: NDArray[np.int64]


class Rules:
    """What is looked for, as the core reads it.

    Parameters
    ----------
    models
        Names of the models. Their interventions have names MODEL@EPOCH.VERSION, and
        MODEL that of the first policy.
    most
        Interventions kept of each.
    actions
        Whether each counts as a click.
    counts_others
        Whether all other actions do.
    """

    def __init__(
        self,
        models: Sequence[str],
        most: int,
        actions: Mapping[str, bool],
        *,
        counts_others: bool,
    ) -> None:
        self.actions, self.counts_others = actions, counts_others
        names = [_words(each) for each in models]
        counted = [_Action(_words(name), flag) for name, flag in actions.items()]
        self._models = (_Words * len(names))(*names)
        self._actions = (_Action * len(counted))(*counted)
        self.name_width = N_POINTER_BYTES + max((each.n for each in names), default=0)
        self.most_rows = most * len(names)
        self.place = _Rules(
            ctypes.addressof(self._models),
            len(names),
            most,
            ctypes.addressof(self._actions),
            len(counted),
            counts_others,
        )


class Table:
    """Sums of interventions; which are kept is said in `intervention_lists.h`."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._heads = np.zeros((0, 5), np.int64)
        self._names = np.zeros((0, rules.name_width), np.uint8)
        self._groups = np.zeros((0, N_GROUPS, 2), np.int64)
        self._without = np.zeros(0, np.int64)
        self._table = _Table(name_width=rules.name_width)
        self._grow()

    def __len__(self) -> int:
        return int(self._table.n)

    @property
    def n_uncounted(self) -> int:
        """Lists of interventions that left, or never came in."""
        return int(self._table.n_uncounted)

    @n_uncounted.setter
    def n_uncounted(self, n: int) -> None:
        self._table.n_uncounted = n

    def take(self, closed: Closed, first: int) -> int:
        """Count lists from the one numbered `first` on.

        Returns
        -------
        int
            The number of the first that the core cannot read; or how many there are.
        """
        while True:
            first = int(
                core.intervention_lists_take(
                    ctypes.addressof(self._rules.place),
                    ctypes.addressof(self._table),
                    closed.encoded.ctypes.data,
                    closed.ends.ctypes.data,
                    first,
                    len(closed),
                )
            )
            if first == len(closed) or not self._lacks_rows():
                return first
            self._grow()

    def add(self, name: str, group: int, clicks: int, *, without_session: bool) -> None:
        """Count one list."""
        row = self.row_of(name)
        if row >= 0:
            self._groups[row, group] += (1, clicks)
            self._heads[row, _N_LISTS] += 1
            self._without[row] += without_session
        elif row == LEFT_OUT:
            self.n_uncounted += 1

    def row_of(self, name: str) -> int:
        """Where an intervention is counted, from now on; negative where it is not."""
        packed = name.encode()
        while True:
            row = core.intervention_lists_row(
                ctypes.addressof(self._rules.place),
                ctypes.addressof(self._table),
                packed,
                len(packed),
            )
            if row != NO_ROW:
                return int(row)
            self._grow()

    def rows(self) -> dict[str, int]:
        """All interventions that are counted, by name."""
        lengths = self._heads[: len(self), _N_NAME].tolist()
        names = {
            self._names[row, :n].tobytes().decode(errors="replace"): row
            for row, n in enumerate(lengths)
        }
        return dict(sorted(names.items()))

    def sums(self, row: int) -> Sums:
        """Of a row, as long as nothing is counted."""
        return Sums(self._groups[row], self._without[row : row + 1])

    def begun(self, row: int) -> int:
        """The place of its beginning among those of the model."""
        return int(self._heads[row, _BEGUN])

    def put(self, name: str, sums: Sums, begun: int) -> bool:
        """Take back the sums of an intervention, whatever room there is.

        Returns
        -------
        bool
            Whether it is of one of the models.

        Raises
        ------
        ValueError
            Where an array is of another shape than the core expects.
        """
        shapes = sums.groups.shape, sums.without_session.shape
        if shapes != ((N_GROUPS, 2), (1,)):
            raise ValueError(
                f"sums must be of shapes {(N_GROUPS, 2)} and (1,); got {shapes}"
            )
        most: int = self._rules.place.most
        self._rules.place.most = len(self) + 1
        row = self.row_of(name)
        self._rules.place.most = most
        if row >= 0:
            self._groups[row], self._without[row] = sums.groups, sums.without_session[0]
            self._heads[row, _N_LISTS] = sums.groups[:, 0].sum()
            self._heads[row, _BEGUN] = begun
        return row >= 0

    def _lacks_rows(self) -> bool:
        """Whether there may be more interventions than rows."""
        return len(self) == len(self._heads) < self._rules.most_rows

    def _grow(self) -> None:
        n = max(2, len(self._heads))
        self._heads = _with_more(self._heads, n)
        self._names = _with_more(self._names, n)
        self._groups = _with_more(self._groups, n)
        self._without = _with_more(self._without, n)
        table = self._table
        table.heads, table.names = self._heads.ctypes.data, self._names.ctypes.data
        table.groups = self._groups.ctypes.data
        table.n_without_session = self._without.ctypes.data
        table.capacity = len(self._heads)


def _with_more(rows: NDArray[Row], n: int) -> NDArray[Row]:
    return np.concatenate((rows, np.zeros((n, *rows.shape[1:]), rows.dtype)))


def _words(text: str) -> _Words:
    packed = text.encode()
    return _Words(packed, len(packed))
