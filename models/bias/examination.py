"""Examination by rank, from counts of shown and clicked (document, rank) pairs.

Shapes: `n_pairs` rows of (document, rank); ranks are 1-based.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SMALLEST = 1e-9
"""Keeps a probability that was estimated as zero from staying there for ever."""


def estimate_examination(
    documents: Integers,
    ranks: Integers,
    shown: Integers,
    clicked: Integers,
    *,
    n_ranks: int,
    n_iterations: int = 100,
) -> Floats:
    """Examination relative to the first rank, under the position-based model.

        P(click) = examination(rank) * relevance(document)

    by expectation maximisation over the sums, which is what it would be over the
    raw log. Only ratios to the first rank are identified, and only where documents
    were shown at several ranks; a document with one rank for ever says nothing.

    Parameters
    ----------
    documents : [n_pairs]
        Number of the document, from 0.
    ranks : [n_pairs]
        In 1..n_ranks.
    shown, clicked : [n_pairs]
        How often the document was shown, and clicked, at that rank.

    Returns
    -------
    [n_ranks]
        The first is 1; NaN where nothing was shown at that rank.

    References
    ----------
    Wang, Golbandi, Bendersky, Metzler & Najork (WSDM 2018), section 4.
    """
    rows = ranks - 1
    n_documents = int(documents.max(initial=-1)) + 1
    shown_at = np.bincount(rows, shown, n_ranks)
    shown_of = np.bincount(documents, shown, n_documents)
    at_rank = np.bincount(rows, clicked, n_ranks) / np.maximum(shown_at, 1)
    of_document = np.bincount(documents, clicked, n_documents)
    examination = np.clip(at_rank / max(at_rank[0], SMALLEST), SMALLEST, 1.0)
    relevance = np.clip(of_document / np.maximum(shown_of, 1), SMALLEST, 1 - SMALLEST)
    unclicked = shown - clicked
    for _ in range(n_iterations):
        looked, liked = examination[rows], relevance[documents]
        missed = np.maximum(1.0 - looked * liked, SMALLEST)
        looked_in_vain = clicked + unclicked * looked * (1.0 - liked) / missed
        liked_unseen = clicked + unclicked * (1.0 - looked) * liked / missed
        at_rank = np.bincount(rows, looked_in_vain, n_ranks) / np.maximum(shown_at, 1)
        examination = np.clip(at_rank / max(at_rank[0], SMALLEST), SMALLEST, 1.0)
        of_document = np.bincount(documents, liked_unseen, n_documents)
        relevance = np.clip(
            of_document / np.maximum(shown_of, 1), SMALLEST, 1 - SMALLEST
        )
    return np.where(shown_at > 0, examination, np.nan)
