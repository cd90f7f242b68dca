"""What was counted, in a file of its records, and features from a table beside it.

A training reads both, so that a model is trained again, or on other features, without
the log: of each query that was counted whole the table has to have all candidates.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from producers.formats.joined_features import FeatureTable
from rankstream.wire.candidates import candidates_key, candidates_value
from rankstream.wire.routing import SEGMENT_MARK
from streams.local import read_changes
from streams.statistics.reader import Statistics
from streams.training.recorded_inputs import Recorded

_encode = msgspec.msgpack.Encoder().encode


def counted_in(file: Path) -> dict[bytes, bytes | None]:
    """Records of `statistics` that `statistics export FILE.bin` wrote, by their keys.

    Raises
    ------
    ValueError
        Where it is not there, or no such file.
    """
    if not file.is_file():
        raise ValueError(
            f"--statistics must be a file that `rankstream statistics export FILE.bin` "
            f"or `rankstream replay --local --out DIR` wrote; {file} is not there"
        )
    return dict(read_changes(file))


def recorded_beside(
    statistics: Mapping[bytes, bytes | None], table: FeatureTable
) -> Recorded:
    """The same with features of each candidate set that the table has whole.

    Raises
    ------
    ValueError
        Where no set has features.
    """
    sums = Statistics(statistics.items())
    candidates: dict[bytes, bytes | None] = {}
    n_sets, lacking = 0, ("", "")
    for query, candidate_set, era in _whole_sets(sums):
        n_sets += 1
        items = sorted(sums.items(query, candidate_set, era))
        # A segment stands behind its query.
        own = query.partition(SEGMENT_MARK)[0]
        places = [table.number(own, item) for item in items]
        rows = [place for place in places if place is not None]
        if len(rows) < len(places):
            lacking = lacking if any(lacking) else (query, items[places.index(None)])
            continue
        features = table.rows.features[np.array(rows, np.int64)].astype("<f4")
        key = candidates_key(query, candidate_set, table.list_hash)
        width = features.shape[1]
        candidates[key] = candidates_value(_encode(items), features.tobytes(), width)
    if not candidates:
        query, item = lacking
        told = (
            f"; item {item!r:.60} of query {query!r:.60} has no row" if n_sets else ""
        )
        raise ValueError(
            "features must be of the items that were counted, of whole sets of "
            f"candidates; none of {n_sets:,} sets has all{told}: name items and "
            "queries alike in both, and count lists with their candidates, or with "
            "--features"
        )
    return Recorded(statistics, candidates)


def _whole_sets(sums: Statistics) -> list[tuple[str, bytes, int]]:
    """Queries with their sets of candidates and an era of each, but growing ones."""
    found = {
        (scope.query, scope.candidate_set): scope.era
        for scope in sums.scopes()
        if not scope.is_growing
    }
    return [(*place, era) for place, era in found.items()]
