"""Lists of which only impression events tell, an item each, put together here.

Whoever adapts documents reads ahead of them and *notes* what impression events say. The
first of a list that nobody knows then makes the list, of all that is noted of it, and
later ones say nothing. So a list is one event, in one transaction with one document,
and there is nothing to store: who begins anew notes again what he reads.

What comes of a list depends on which events are noted, not on their order, and a repeat
changes nothing.
"""

from collections.abc import Iterable
from typing import NamedTuple

from rankstream.adapters.adapter import (
    AdapterOptions,
    NotAdapted,
    Queries,
)
from rankstream.adapters.events import listed, query_of_list
from rankstream.adapters.known_queries import KnownQueries
from rankstream.wire.input_events import Event
from rankstream.wire.topics import QUERIES

MOST_NOTED = 1_000_000
"""Impressions that are noted at once: about 250 MB."""

MOST_OF_LIST = 2_000
"""Of one list, which holds 1,000 items at most."""

MOST_SETTLED = 200_000
"""Lists that were refused, whose other impressions are passed over."""


class Awaited(NotAdapted):
    """The list of a document may be under way; nobody is told of it.

    Parameters
    ----------
    at_ms
        The time of the document.
    """

    def __init__(self, at_ms: int) -> None:
        super().__init__("awaited", "its list may be under way", kind=QUERIES)
        self.at_ms = at_ms


class Impression(NamedTuple):
    """What an event says of an item that was seen; `ordinal` as the document has it."""

    at_ms: int
    ordinal: int
    item: str
    list_id: str
    asked: str = ""
    user: str = ""
    session: str = ""


def shown_items(noted: Iterable[Impression], options: AdapterOptions) -> list[str]:
    """The items of a list in their displayed order.

    Those count that were seen within `impression_ms` of the first. Of two items at one
    place, as after another order was asked for, the one that was seen earlier counts,
    and of two places of an item the earlier. Where a place is missing, the list ends
    before it: at which rank the others stood would be known, but not below what.

    Raises
    ------
    NotAdapted
        Where the first place is missing, or one lies before it.
    """
    every = sorted(noted)
    last_ms = every[0].at_ms + options.impression_ms
    places: dict[int, str] = {}
    taken: set[str] = set()
    for each in every:
        is_free = each.ordinal not in places and each.item not in taken
        if is_free and each.at_ms <= last_ms:
            places[each.ordinal] = each.item
            taken.add(each.item)
    if not options.ordinals:
        return [places[ordinal] for ordinal in sorted(places)]
    base, first = options.ordinal_base, min(places)
    if first != base:
        remedy = (
            "set ordinal_base = 0 where places are counted from 0"
            if first == 0
            else "set ordinals = false where lists begin elsewhere"
        )
        raise NotAdapted(
            "ordinal",
            f"a list of impression events must begin at ordinal {base}, ordinal_base; "
            f"list {every[0].list_id!r:.60} begins at {first}: {remedy}",
            kind=QUERIES,
        )
    shown: list[str] = []
    while base + len(shown) in places:
        shown.append(places[base + len(shown)])
    return shown


class SeenItems:
    """What impression events say of lists that are not made yet; bounded.

    Parameters
    ----------
    most
        Impressions that are noted at once. The lists of those beyond are refused.

    Attributes
    ----------
    made
        Lists that were made since somebody last emptied it, by their ids.
    n_made
        How many were made in all.
    """

    def __init__(self, most: int = MOST_NOTED) -> None:
        self.made: list[str] = []
        self.n_made = 0
        self._most = most
        self._n_noted = 0
        # None: there were too many.
        self._noted: dict[str, dict[tuple[int, str], Impression] | None] = {}
        self._asked: dict[str, str] = {}
        self._settled = KnownQueries(MOST_SETTLED)

    def __contains__(self, list_id: str) -> bool:
        return list_id in self._noted

    def __len__(self) -> int:
        """Lists that something is noted of."""
        return len(self._noted)

    def is_settled(self, list_id: str) -> bool:
        """Whether it was refused."""
        return list_id in self._settled

    def note(self, seen: Impression) -> None:
        """Note an impression; a repeat changes nothing."""
        noted = self._noted.setdefault(seen.list_id, {})
        if noted is None:
            return
        key = seen.ordinal, seen.item
        before = noted.get(key)
        if before is not None:
            noted[key] = min(before, seen)
        elif self._n_noted >= self._most or len(noted) >= MOST_OF_LIST:
            # Half a list would be a wrong one.
            self._n_noted -= len(noted)
            self._noted[seen.list_id] = None
        else:
            noted[key] = seen
            self._n_noted += 1

    def note_query(self, list_id: str, asked: str) -> None:
        """Note what a query asked for whose answer has no list of its own.

        Of several texts the least, whichever comes first.
        """
        before = self._asked.get(list_id)
        if before is not None:
            self._asked[list_id] = min(before, asked or before)
        elif asked and len(self._asked) < self._most:
            self._asked[list_id] = asked

    def make(
        self, seen: Impression, options: AdapterOptions, queries: Queries
    ) -> list[Event]:
        """The list that an impression is of.

        Raises
        ------
        NotAdapted
            Where no list can be made of what is noted.
        """
        list_id = seen.list_id
        query = self.query_of(list_id, options)
        noted = self._noted.get(list_id)
        self.drop(list_id)
        if noted is None:
            self._settled[list_id] = ""
            raise NotAdapted(
                "impressions",
                f"a list of impression events must be one of {MOST_OF_LIST:,} at most, "
                f"and at most {self._most:,} are held at once; list {list_id!r:.60} "
                "has more, or comes behind so many: give fewer files at once",
                kind=QUERIES,
            )
        try:
            shown = shown_items(noted.values(), options)
        except NotAdapted:
            self._settled[list_id] = ""
            raise
        first = min(noted.values())
        self.made.append(list_id)
        self.n_made += 1
        return listed(
            list_id,
            query,
            first.at_ms,
            shown,
            options=options,
            queries=queries,
            user=first.user,
            session=first.session,
        )

    def query_of(self, list_id: str, options: AdapterOptions) -> str:
        """The query of a list that is under way; empty where nothing is noted of it."""
        noted = self._noted.get(list_id)
        if not noted:
            return ""
        by_time = (each.asked for each in sorted(noted.values()) if each.asked)
        asked = next(by_time, self._asked.get(list_id, ""))
        return query_of_list(list_id, asked, options)

    def drop(self, list_id: str) -> None:
        """Forget what is noted of a list."""
        self._n_noted -= len(self._noted.pop(list_id, None) or ())
        self._asked.pop(list_id, None)

    def clear(self) -> None:
        """Forget what is noted, and which lists were refused."""
        self._noted.clear()
        self._asked.clear()
        self._n_noted = 0
        self._settled = KnownQueries(MOST_SETTLED)


class Seen:
    """What an adapter does with impressions, and with queries without a list: notes.

    For documents that are read ahead. Nothing is made of them.
    """

    def __init__(self, items: SeenItems) -> None:
        self._items = items

    def is_known(self, list_id: str, queries: Queries) -> bool:
        """Whether a list is there, so that impressions say nothing new of it."""
        return list_id in queries or self._items.is_settled(list_id)

    def impression(
        self,
        seen: Impression,
        options: AdapterOptions,  # noqa: ARG002
        queries: Queries,  # noqa: ARG002
    ) -> list[Event]:
        """The events that come of one of a list that is not known."""
        self._items.note(seen)
        return []

    def is_listed(self, list_id: str, asked: str, at_ms: int) -> bool:  # noqa: ARG002
        """Whether a query that is not known has a list by impressions; it may."""
        self._items.note_query(list_id, asked)
        return True

    def query_of(self, list_id: str, options: AdapterOptions) -> str:
        """The query of a list that is under way; empty where there is none."""
        return self._items.query_of(list_id, options)


class Awaiting(Seen):
    """Lets documents wait, until all that belongs to their list is noted."""

    def impression(
        self,
        seen: Impression,
        options: AdapterOptions,  # noqa: ARG002
        queries: Queries,  # noqa: ARG002
    ) -> list[Event]:
        """Nothing yet."""
        raise Awaited(seen.at_ms)

    def is_listed(self, list_id: str, asked: str, at_ms: int) -> bool:  # noqa: ARG002
        """Where an item of it was seen."""
        if list_id in self._items:
            return True
        raise Awaited(at_ms)


class Making(Seen):
    """Makes a list of all that is noted of it."""

    def is_known(self, list_id: str, queries: Queries) -> bool:
        """What was noted of a list that came by itself is not needed any more."""
        if super().is_known(list_id, queries):
            self._items.drop(list_id)
            return True
        return False

    def impression(
        self, seen: Impression, options: AdapterOptions, queries: Queries
    ) -> list[Event]:
        """The list, as this is its first impression."""
        return self._items.make(seen, options, queries)

    def is_listed(self, list_id: str, asked: str, at_ms: int) -> bool:  # noqa: ARG002
        """Where an item of it was seen."""
        if list_id in self._items:
            return True
        self._items.drop(list_id)
        return False
