"""The queries of the lists that went by, for clicks that do not name theirs."""

import itertools
from collections.abc import Iterator, MutableMapping

from rankstream.wire.bounds import MAX_ID_CHARACTERS, MAX_QUERY_CHARACTERS

MOST_LISTS = 2_000_000

MOST_CHARACTERS = 128 << 20
"""Of ids and queries together: 67 of each list."""


class KnownQueries(MutableMapping[str, str]):
    """Queries by list; the older half is forgotten where there are too many.

    Lists that ingestion refuses, as their names are too long, are not remembered.

    Parameters
    ----------
    most
        Lists that are remembered.
    most_characters
        Of their ids and queries.
    """

    def __init__(
        self, most: int = MOST_LISTS, most_characters: int = MOST_CHARACTERS
    ) -> None:
        self._most, self._most_characters = most // 2, most_characters // 2
        self._older: dict[str, str] = {}
        self._begin()

    def __getitem__(self, list_id: str) -> str:
        found = self._newer.get(list_id)
        return self._older[list_id] if found is None else found

    def __setitem__(self, list_id: str, query: str) -> None:
        if len(list_id) > MAX_ID_CHARACTERS or len(query) > MAX_QUERY_CHARACTERS:
            return
        self._older.pop(list_id, None)
        size = len(list_id) + len(query)
        if (
            len(self._newer) >= self._most
            or self._n_characters + size > self._most_characters
        ):
            self._older = self._newer
            self._begin()
        self._newer[list_id] = self._texts.setdefault(query, query)
        self._n_characters += size

    def __delitem__(self, list_id: str) -> None:
        if self._newer.pop(list_id, None) is None:
            del self._older[list_id]

    def __iter__(self) -> Iterator[str]:
        return itertools.chain(self._older, self._newer)

    def __len__(self) -> int:
        return len(self._older) + len(self._newer)

    def _begin(self) -> None:
        self._newer: dict[str, str] = {}
        # Most lists share their query with others.
        self._texts: dict[str, str] = {}
        self._n_characters = 0
