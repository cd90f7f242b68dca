"""Generated queries with planted relevance, in the shape of a LETOR file."""

import numpy as np

from producers.formats.letor import LetorData


def generated_queries(
    *,
    n_queries: int,
    n_documents: int,
    n_features: int,
    rng: np.random.Generator,
    n_grades: int = 5,
) -> LetorData:
    """Queries whose grades follow a hidden linear mixture of their features.

    Half of the features carry relevance, with weights of either sign; the grade of
    a document is the band of its noisy mixture among the documents of its query.

    Returns
    -------
    LetorData
        Labels in 0..n_grades - 1; few documents have the highest grade.
    """
    features = rng.random((n_queries, n_documents, n_features))
    weights = np.zeros(n_features)
    n_useful = max(1, n_features // 2)
    weights[:n_useful] = rng.normal(size=n_useful)
    mixture = features @ weights
    mixture += rng.normal(scale=0.25 * mixture.std(), size=mixture.shape)
    place = mixture.argsort(axis=1).argsort(axis=1) / n_documents
    bands = 1.0 - 0.5 ** np.arange(1, n_grades)
    labels = np.searchsorted(bands, place.ravel(), side="right")
    offsets = np.arange(n_queries + 1, dtype=np.int64) * n_documents
    return LetorData(
        query_ids=[f"query {number:04d}" for number in range(n_queries)],
        labels=labels.astype(np.int64),
        features=features.reshape(-1, n_features).astype(np.float32),
        offsets=offsets,
    )
