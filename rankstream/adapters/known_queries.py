"""The queries of the lists that went by, for clicks that do not name theirs."""

from collections.abc import Iterator, MutableMapping

MOST_LISTS = 2_000_000


class KnownQueries(MutableMapping[str, str]):
    """Queries by list; the oldest lists are forgotten first.

    Parameters
    ----------
    most
        Lists that are remembered.
    """

    def __init__(self, most: int = MOST_LISTS) -> None:
        self._most = most
        self._known: dict[str, str] = {}
        # Most lists share their query with others.
        self._texts: dict[str, str] = {}

    def __getitem__(self, list_id: str) -> str:
        return self._known[list_id]

    def __setitem__(self, list_id: str, query: str) -> None:
        self._known[list_id] = self._texts.setdefault(query, query)
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]
            if len(self._texts) > self._most:
                self._texts.clear()

    def __delitem__(self, list_id: str) -> None:
        del self._known[list_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)
