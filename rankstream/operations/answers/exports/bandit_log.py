"""Closed impressions as rounds of a bandit, and their file.

A round is an item at its rank, with the probability that its policy put it there.
"""

from array import array
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from models.arrays import Floats
from models.counts.fixed_point import LEAST_COMPUTED
from models.counts.placements import (
    DETERMINISTIC,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
    tail_shuffle_matrix,
)
from models.estimators.bandit_arrays import (
    BanditArrays,
    Told,
    bandit_arrays,
    encoded_contexts,
)
from producers.formats.source_file import created
from rankstream.operations.answers.folders import writing
from rankstream.settings import StatisticsSettings
from rankstream.wire.events import (
    LOGGED,
    Impression,
    Interaction,
    decode_interaction_record,
    decode_items,
)
from rankstream.wire.exposures import unpack_exposures
from rankstream.wire.routing import normalised_query
from streams.native.placing import placements_of_scores

KNOWN_PLACEMENTS = 4_096
"""Plackett-Luce lists whose placements are remembered: the same come again."""


_extra_of = msgspec.msgpack.Decoder(dict[str, Any]).decode


class Part(NamedTuple):
    """Which lists are asked for; empty or None where all are.

    Parameters
    ----------
    queries, interventions
        Names; queries in any case.
    since_ms, until_ms
        Event times, the second of which is not in it.
    """

    queries: Collection[str] = ()
    interventions: Collection[str] = ()
    since_ms: int | None = None
    until_ms: int | None = None

    def has(self, impression: Impression) -> bool:
        """Whether a list is asked for."""
        if self.since_ms is not None and impression.at_ms < self.since_ms:
            return False
        if self.until_ms is not None and impression.at_ms >= self.until_ms:
            return False
        if self.interventions and impression.intervention not in self.interventions:
            return False
        return not self.queries or impression.query_id in self.queries


class BanditLog:
    """Rounds of closed impressions, as they come.

    Parameters
    ----------
    part
        Which lists are taken. Excluded ones are in no log of interactions.
    statistics
        Their groups, and of which class of actions a click is.
    """

    def __init__(self, part: Part, statistics: StatisticsSettings) -> None:
        named = {normalised_query(query) for query in part.queries}
        self._part = part._replace(queries=named)
        self._statistics = statistics
        self._items: dict[str, int] = {}
        self._queries: dict[str, int] = {}
        self._interventions: dict[str, int] = {}
        self._placements: dict[tuple[bytes, int], Floats] = {}
        self._lists: list[tuple[int, int, int, int]] = []
        self._contexts: list[tuple[Told, ...] | None] = []
        self._rounds = [array("q"), array("q"), array("q"), array("q")]
        self._probabilities = array("d")

    def take(self, interaction: Interaction) -> None:
        """Add a list with its clicks."""
        impression = interaction.impression
        if not self._part.has(impression):
            return
        extra = _extra_of(impression.extra) if impression.extra else {}
        attributes = extra.get("attributes") or {}
        items = decode_items(impression.candidates)
        numbers = [self._items.setdefault(x, len(self._items)) for x in items]
        shown = np.frombuffer(impression.shown, "<u2").astype(np.int64)
        clicked = {
            mark.position for mark in interaction.clicks if self._counts(mark.action)
        }
        propensities = self._propensities(impression, shown, len(items), attributes)
        first = _first_place(attributes, len(shown))
        for row, item in enumerate(shown.tolist()):
            places = len(self._lists), numbers[item], first + row, row + 1 in clicked
            for column, number in zip(self._rounds, places, strict=True):
                column.append(number)
        self._probabilities.extend(propensities)
        self._lists.append(
            (
                _number(self._queries, impression.query_id),
                _number(self._interventions, impression.intervention),
                impression.unit % self._statistics.groups,
                impression.at_ms,
            )
        )
        self._contexts.append(_context(attributes))

    def arrays(self) -> tuple[BanditArrays, dict[str, npt.NDArray[Any]]]:
        """The rounds, and beside them what obp does not ask for.

        Items are numbered in their order, by number where all of them are numbers.
        Where a list says no context, that of all lists is the number of their query.
        """
        of_round, item, position, reward = (
            np.array(column, np.int64) for column in self._rounds
        )
        names = sorted(self._items, key=_order(self._items))
        numbers = np.empty(len(names), np.int64)
        numbers[[self._items[name] for name in names]] = np.arange(len(names))
        arrays = bandit_arrays(
            numbers[item],
            position,
            reward,
            np.array(self._probabilities, np.float64),
            self._contexts_of_lists()[of_round],
            n_actions=len(names),
        )
        lists = np.array(self._lists, np.int64).reshape(-1, 4)[of_round]
        beside = {
            "items": np.array(names, np.str_),
            "queries": np.array([*self._queries], np.str_),
            "interventions": np.array([*self._interventions], np.str_),
            "list": of_round,
            "query": lists[:, 0],
            "intervention": lists[:, 1],
            "group": lists[:, 2],
            "at_ms": lists[:, 3],
        }
        return arrays, beside

    @property
    def n_lists(self) -> int:
        """Lists that were taken."""
        return len(self._lists)

    def _contexts_of_lists(self) -> Floats:
        told = [each for each in self._contexts if each is not None]
        if told and len(told) == len(self._contexts):
            return encoded_contexts(told)
        return np.array([query for query, *_ in self._lists], np.float64)[:, None]

    def _counts(self, action: str) -> bool:
        classes = self._statistics.classes()
        found = self._statistics.actions.get(action, classes[0])
        return found == self._statistics.reward

    def _propensities(
        self,
        impression: Impression,
        shown: npt.NDArray[np.int64],
        n_items: int,
        attributes: dict[str, Any],
    ) -> list[float]:
        """P(item at its rank) of each shown item; NaN where nobody knows it."""
        told = attributes.get("propensity")
        if isinstance(told, int | float) and len(shown) == 1:
            return [_probability(told)]
        if isinstance(told, list) and len(told) == len(shown):
            return [_probability(each) for each in told]
        if impression.policy == DETERMINISTIC:
            return [1.0] * len(shown)
        placement = self._placement(impression, shown, n_items)
        if placement is None:
            return [np.nan] * len(shown)
        found = placement[shown, np.arange(len(shown))]
        return [_probability(each) for each in found.tolist()]

    def _placement(
        self, impression: Impression, shown: npt.NDArray[np.int64], n_items: int
    ) -> Floats | None:
        if impression.policy == TAIL_SHUFFLE:
            return tail_shuffle_matrix(shown[:-1], n_items)
        if impression.policy == LOGGED:
            matrix = unpack_exposures(impression.exposures, n_items, len(shown))
            return matrix.astype(np.float64)
        if impression.policy != PLACKETT_LUCE:
            return None
        key = impression.scores, len(shown)
        if key not in self._placements:
            if len(self._placements) >= KNOWN_PLACEMENTS:
                self._placements.clear()
            scores = np.frombuffer(impression.scores, "<f4").astype(np.float64)
            placed = placements_of_scores(scores[None, :], len(shown))[0]
            # What was shown had a probability, though no float may hold it.
            self._placements[key] = np.maximum(placed, LEAST_COMPUTED)
        return self._placements[key]


def write_arrays(
    file: Path, log: BanditArrays, beside: dict[str, npt.NDArray[Any]]
) -> None:
    """Write all arrays by their names; the file appears when it is complete.

    Raises
    ------
    RuntimeError
        Where it cannot be written.
    """
    with writing(file), created(file) as content:
        tables: Any = log._asdict() | beside
        np.savez_compressed(content, **tables)


def interactions_of(records: Iterable[bytes]) -> Iterable[Interaction]:
    """The closed impressions of records of `interactions`."""
    for value in records:
        yield from decode_interaction_record(value).interactions


def _number(names: dict[str, int], name: str) -> int:
    return names.setdefault(name, len(names))


def _order(names: Collection[str]) -> Callable[[str], tuple[int, str]]:
    if all(name.isascii() and name.isdecimal() for name in names):
        return lambda name: (int(name), name)
    return lambda name: (0, name)


def _probability(told: Any) -> float:
    """NaN for what is no probability of something that was shown."""
    is_number = isinstance(told, int | float) and not isinstance(told, bool)
    return float(told) if is_number and 0.0 < told <= 1.0 else np.nan


def _first_place(attributes: dict[str, Any], n_shown: int) -> int:
    """Where a list of one item stood, from 0."""
    told = attributes.get("position")
    is_number = isinstance(told, int) and not isinstance(told, bool)
    return max(int(told or 0), 1) - 1 if is_number and n_shown == 1 else 0


def _context(attributes: dict[str, Any]) -> tuple[Told, ...] | None:
    told = attributes.get("context")
    if not isinstance(told, list) or not told:
        return None
    if not all(isinstance(each, str | int | float) for each in told):
        return None
    return tuple(each if isinstance(each, str) else float(each) for each in told)
