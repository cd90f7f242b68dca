"""Queries of a log for simulations: its items, graded by corrected relevance."""

import numpy as np

from producers.formats.letor import LetorData
from rankstream.notebook.answer_tables import UNSURE
from rankstream.notebook.counted import Counted
from rankstream.operations.answers.curve import curve_for
from rankstream.operations.answers.relevance import QueryRelevance, RelevanceByQuery
from rankstream.wire.candidates import (
    CandidateFeatures,
    decode_candidates,
    decode_candidates_key,
)

N_GRADES = 5


def graded_queries(counted: Counted) -> LetorData:
    """All queries whose items have features; the grade is a fifth of relevance.

    Grade 4 is a relevance above four fifths of the largest of the log.

    Raises
    ------
    ValueError
        Where the log has no features, or clicks do not tell the curve.
    """
    features = _widest(counted)
    if not features:
        raise ValueError(
            "a log must have features to be simulated; it has none: read it with "
            "features="
        )
    values = _relevance(counted)
    largest = max((max(of.values(), default=0.0) for of in values.values()), default=0)
    queries = sorted(features.keys() & values.keys())
    labels, tables, sizes = [], [], []
    for query in queries:
        one = features[query]
        own = np.array([values[query].get(item, 0.0) for item in one.items])
        shares = np.clip(own / (largest or 1.0), 0.0, 1.0)
        labels.append(np.minimum((shares * N_GRADES).astype(np.int64), N_GRADES - 1))
        packed = np.frombuffer(one.features, "<f4")
        tables.append(packed.reshape(len(one.items), one.n_features))
        sizes.append(len(one.items))
    return LetorData(
        queries,
        np.concatenate(labels),
        np.concatenate(tables),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
    )


def _widest(counted: Counted) -> dict[str, CandidateFeatures]:
    """Features of each query: of its largest set, of the most common list of them."""
    found: dict[bytes, dict[str, CandidateFeatures]] = {}
    for key, value in sorted(counted.recorded.candidates.items()):
        if not value:
            continue
        place, one = decode_candidates_key(key), decode_candidates(value)
        by_query = found.setdefault(place.features_hash, {})
        known = by_query.get(place.query)
        if known is None or len(one.items) > len(known.items):
            by_query[place.query] = one
    return max(found.values(), key=len, default={})


def _relevance(counted: Counted) -> dict[str, dict[str, float]]:
    """Corrected relevance of the items of each query; without those of no number."""
    source = counted.source
    curve = curve_for(source).curve
    if curve is None:
        raise ValueError(UNSURE)
    n_groups = source.statistics.counted[0].groups
    told = RelevanceByQuery(curve, n_groups, source.policies)
    found: dict[str, QueryRelevance] = {}
    for chunk in source.statistics.columns():
        found.update(told.take(chunk))
    found.update(told.finish())
    return {
        query: {
            each.item: each.relevance
            for each in of_query.items
            if np.isfinite(each.relevance)
        }
        for query, of_query in found.items()
    }
