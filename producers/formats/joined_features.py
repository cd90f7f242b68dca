"""Features of a table beside the lists of a log, whatever format the log has."""

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from producers.formats.feature_rows import FeatureRows
from rankstream.ranking.logged_sets import LoggedSets
from rankstream.wire.envelope import features_hash
from rankstream.wire.input_events import Event
from rankstream.wire.routing import normalised_query
from rankstream.wire.topics import MAX_EVENT_BYTES, QUERIES

ROOM_BYTES = MAX_EVENT_BYTES - (1 << 17)
"""An event of this size is accepted."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

Place = tuple[str, str]
"""A query, empty where rows are of items alone, and an item."""


@dataclass
class Joined:
    """What became of lists.

    Parameters
    ----------
    lists
        Those that had no features of their own.
    with_features
        Those whose candidates all have rows.
    lacking
        A query and an item without a row, of the first list that was left as it was.
    too_large
        Lists whose features fit no event.
    """

    lists: int = 0
    with_features: int = 0
    too_large: int = 0
    lacking: Place | None = None


@dataclass
class FeatureTable:
    """Rows by query and item, or by item alone.

    Parameters
    ----------
    rows
        Of one or more files.

    Attributes
    ----------
    n_different
        Rows of a place that was there before, with other numbers: the first stands.
    n_again
        Those with the same numbers.
    """

    rows: FeatureRows
    joined: Joined = field(default_factory=Joined)
    n_different: int = 0
    n_again: int = 0

    def __post_init__(self) -> None:
        self.list_hash = features_hash(self.rows.names)
        self._place: dict[Place, int] = {}
        self._of_query: dict[str, dict[str, None]] = {}
        self._shown: dict[str, dict[str, None]] = {}
        self._logged = LoggedSets()
        queries, features = self.rows.queries, self.rows.features
        for number, item in enumerate(self.rows.items):
            query = normalised_query(queries[number]) if queries is not None else ""
            first = self._place.setdefault((query, item), number)
            if first != number:
                is_other = bool((features[first] != features[number]).any())
                self.n_different += is_other
                self.n_again += not is_other
            elif queries is not None:
                self._of_query.setdefault(query, {})[item] = None

    @property
    def is_of_items(self) -> bool:
        """Whether rows are of items, whatever the query."""
        return self.rows.queries is None

    def note_shown(self, events: Iterable[Event]) -> None:
        """Learn which items each query showed: its candidates, where lists name none.

        Not needed where rows are of query and item, which say it themselves.
        """
        for event in events:
            found = _query_event(event)
            if found is not None and found.get("candidates") is None:
                query = normalised_query(str(found.get("query_id", "")))
                items = self._shown.setdefault(query, {})
                items.update(dict.fromkeys(map(str, found["shown"])))

    def beside(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events; lists without features get those of their candidates.

        Candidates that a list does not name are all items that its query has rows of,
        or showed. As rankers do, features are sent with the first list of a query and
        its candidates, and hourly again.
        """
        for event in events:
            found = _query_event(event)
            if found is None or found.get("candidate_features") is not None:
                yield event
                continue
            self.joined.lists += 1
            yield self._with_features(event, found)

    def _with_features(self, event: Event, found: dict[str, Any]) -> Event:
        query = normalised_query(str(found.get("query_id", "")))
        given = found.get("candidates")
        names = [str(each) for each in (given or self._candidates(query))]
        known = {*names}
        lacking = next(
            (x for x in map(str, found["shown"]) if x not in known), None
        ) or next((x for x in names if self.number(query, x) is None), None)
        if lacking is not None:
            self.joined.lacking = self.joined.lacking or (query, lacking)
            return event
        self.joined.with_features += 1
        if given is None:
            found["candidates"] = names
        if self._logged.is_due(query, names, self.list_hash, event.at_ms):
            numbers = [self.number(query, each) for each in names]
            table = self.rows.features[np.array(numbers, np.int64)]
            packed = table.astype("<f4").tobytes()
            if len(packed) * 4 // 3 + len(event.value) > ROOM_BYTES:
                self.joined.too_large += 1
            else:
                found["candidate_features"] = base64.b64encode(packed).decode()
                found["features_hash"] = self.list_hash.hex()
        return event._replace(value=_encode(found))

    def _candidates(self, query: str) -> list[str]:
        if not self.is_of_items:
            return [*self._of_query.get(query, ())]
        shown = self._shown.get(query, ())
        return [each for each in shown if ("", each) in self._place]

    def number(self, query: str, item: str) -> int | None:
        """Of the row of an item; None where there is none. The query is normalised."""
        return self._place.get(("" if self.is_of_items else query, item))

    def told(self) -> list[str]:
        """What became of it, in words.

        Raises
        ------
        ValueError
            Where no list has features of the table.
        """
        found, rows = self.joined, self.rows
        if found.lists and not found.with_features and found.lacking:
            query, item = found.lacking
            has = ", ".join(rows.items[:3])
            raise ValueError(
                f"features must be of the items of the log; none of {found.lists:,} "
                f"lists has all; item {item!r:.60} of query {query!r:.60} is none of "
                f"the table, which begins with {has!r:.100}: name items and queries "
                "alike in both"
            )
        of = "items" if self.is_of_items else "queries and items"
        said = [
            f"{len(rows.names)} features of {len(self._place):,} {of} beside "
            f"{found.with_features:,} of {found.lists:,} lists"
        ]
        said += _left_out(rows)
        if found.lacking and found.with_features < found.lists:
            query, item = found.lacking
            n = found.lists - found.with_features
            said.append(
                f"{n:,} lists stay without features, as an item has none: {item!r:.60} "
                f"of query {query!r:.60} first"
            )
        if self.n_different:
            said.append(
                f"{self.n_different:,} rows differ from the first of their item; the "
                "first counts"
            )
        if self.n_again:
            said.append(f"{self.n_again:,} rows repeat the first of their item")
        if found.too_large:
            said.append(f"features of {found.too_large:,} lists fit no event")
        return said


def _query_event(event: Event) -> dict[str, Any] | None:
    """The fields of a list; None of anything else."""
    if event.kind != QUERIES or event.refusal:
        return None
    try:
        found = _decode(event.value)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("shown"), list):
        return None
    return found


def _left_out(rows: FeatureRows) -> Iterator[str]:
    """Which columns are no features, and why."""
    n_rows = len(rows.items)
    without = [name for name, n in rows.left_out.items() if n == n_rows]
    if without:
        yield f"no numbers, and no features: {', '.join(without)}"
    for name, n in rows.left_out.items():
        if n < n_rows:
            yield (
                f"{name}: {n:,} of {n_rows:,} rows hold no number, so it is no "
                "feature: fill or drop them"
            )
