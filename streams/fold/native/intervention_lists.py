"""Closed impressions handed to the sums of interventions of the core."""

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streams.fold.closed_impressions import Closed
from streams.fold.native.core_library import core

N_GROUPS = 100
"""Groups of sessions; those of `models.evaluation.sums`."""

_PLACE, _NUMBER = ctypes.c_void_p, ctypes.c_int64

core.intervention_lists_take.restype = _NUMBER
core.intervention_lists_take.argtypes = (
    *(_PLACE, _PLACE, _NUMBER, _PLACE, _PLACE, _NUMBER, _NUMBER),
)


class _Words(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_char_p), ("n", _NUMBER))


class _Action(ctypes.Structure):
    _fields_ = (("name", _Words), ("is_counted", _NUMBER))


class _Sums(ctypes.Structure):
    _fields_ = (("name", _Words), ("groups", _PLACE), ("n_without_session", _PLACE))


class _Rules(ctypes.Structure):
    _fields_ = (
        ("prefixes", _PLACE),
        ("n_prefixes", _NUMBER),
        ("actions", _PLACE),
        ("n_actions", _NUMBER),
        ("counts_others", _NUMBER),
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
    prefixes
        MODEL@ of each model: names of its interventions begin so. Lists of its first
        policy have the name MODEL.
    actions
        Whether each counts as a click.
    counts_others
        Whether all other actions do.
    """

    def __init__(
        self,
        prefixes: Sequence[str],
        actions: Mapping[str, bool],
        *,
        counts_others: bool,
    ) -> None:
        names = [_words(each) for each in prefixes]
        counted = [_Action(_words(name), flag) for name, flag in actions.items()]
        self._prefixes = (_Words * len(names))(*names)
        self._actions = (_Action * len(counted))(*counted)
        self.place = _Rules(
            ctypes.addressof(self._prefixes),
            len(names),
            ctypes.addressof(self._actions),
            len(counted),
            counts_others,
        )


def known_of(sums: Mapping[str, Sums]) -> "ctypes.Array[Any]":
    """What the core adds to; the arrays must live as long as it is used.

    Raises
    ------
    ValueError
        Where an array is of another shape than the core expects.
    """
    for one in sums.values():
        shapes = one.groups.shape, one.without_session.shape
        if shapes != ((N_GROUPS, 2), (1,)) or not one.groups.flags.c_contiguous:
            raise ValueError(
                f"sums must be of shapes {(N_GROUPS, 2)} and (1,) in one piece; got "
                f"{shapes}"
            )
    rows = [
        _Sums(_words(name), one.groups.ctypes.data, one.without_session.ctypes.data)
        for name, one in sums.items()
    ]
    return (_Sums * len(rows))(*rows)


def take_lists(
    rules: Rules, known: "ctypes.Array[Any]", closed: Closed, first: int
) -> int:
    """Count lists of known interventions, from the one numbered `first` on.

    Returns
    -------
    int
        The number of the first that has a prefix and is of none that is known, or that
        the core cannot read; or how many there are.
    """
    return int(
        core.intervention_lists_take(
            ctypes.addressof(rules.place),
            known,
            len(known),
            closed.encoded.ctypes.data,
            closed.ends.ctypes.data,
            first,
            len(closed),
        )
    )


def _words(text: str) -> _Words:
    packed = text.encode()
    return _Words(packed, len(packed))
