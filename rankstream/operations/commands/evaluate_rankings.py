"""Rankings of a file, for `rankstream evaluate`: a line of JSON for each query."""

from pathlib import Path

import msgspec
import numpy as np

from rankstream.wire.routing import normalised_query
from streams.estimation.targets import QueryRanking

FORM = (
    '{"query_id": "shoes", "items": ["a", "b"]}, and with "scores": [1.5, 0.2] and '
    '"temperature": 1.0 where lists are drawn by Plackett-Luce'
)


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """A query as it is ranked.

    Parameters
    ----------
    query_id
        As events name it.
    items
        Ids; without scores the first one is always first.
    scores
        One for each item.
    temperature
        What scores are divided by; 1 where there are scores and it is not told. At 0
        the first item is always first, whatever its score.
    """

    query_id: str
    items: list[str]
    scores: list[float] | None = None
    temperature: float | None = None

    def ranking(self) -> QueryRanking:
        """What the policy does with it.

        Raises
        ------
        ValueError
        """
        n_items = len(self.items)
        if not n_items or len({*self.items}) < n_items:
            raise ValueError("items must be one or more, each once")
        if self.scores is None:
            if self.temperature is not None:
                raise ValueError("a temperature must have scores beside it")
            return QueryRanking((*self.items,))
        temperature = 1.0 if self.temperature is None else self.temperature
        if not temperature >= 0.0:
            raise ValueError(f"temperature must be 0 or above; got {temperature:g}")
        with np.errstate(over="ignore"):
            scores = np.array(self.scores, np.float64) / (temperature or 1.0)
        if len(scores) != n_items or not np.isfinite(scores).all():
            raise ValueError(f"scores must be {n_items} finite numbers, one of an item")
        return QueryRanking((*self.items,), scores if temperature else None)


_decode = msgspec.json.Decoder(Line).decode


def rankings_of(file: Path) -> dict[str, QueryRanking]:
    """Rankings by query.

    Raises
    ------
    ValueError
        Where a line is no ranking, or a query comes again; it names the line.
    OSError
        Where the file cannot be read.
    """
    found: dict[str, QueryRanking] = {}
    with file.open("rb") as lines:
        for number, text in enumerate(lines, 1):
            if not text.strip():
                continue
            try:
                line = _decode(text)
                ranking = line.ranking()
            except ValueError as error:
                raise ValueError(
                    f"a ranking must be a line such as {FORM}; {error}; in line "
                    f"{number} of {file}"
                ) from error
            query = normalised_query(line.query_id)
            if query in found:
                raise ValueError(
                    f"a query must be ranked once; {query!r:.100} is again in line "
                    f"{number} of {file}"
                )
            found[query] = ranking
    if not found:
        raise ValueError(f"rankings must be of one query or more; {file} has none")
    return found
