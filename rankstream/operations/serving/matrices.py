"""Features of a request, and exposures of its answer, as matrices."""

import binascii
import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rankstream.operations.serving.requests import RankItem
from rankstream.ranking.ranked_list import Ranking
from streams.native.placing import placements_of_scores

Floats = npt.NDArray[np.float64] | npt.NDArray[np.float32]


def features_of(items: Sequence[RankItem]) -> Floats:
    """The matrix [n_items, n_features] of all items' features.

    Raises
    ------
    ValueError
        Where items have different numbers of them, or text that is no base64 of
        float32.
    """
    first = items[0].features
    if isinstance(first, str):
        return _of_texts(items)
    n_features = len(first)
    # Packing a row is several times as fast as an array of lists.
    pack_into = struct.Struct(f"={n_features}d").pack_into
    packed = bytearray(8 * n_features * len(items))
    for number, item in enumerate(items):
        row = item.features
        if isinstance(row, str) or len(row) != n_features:
            raise _uneven(number, item, n_features)
        pack_into(packed, 8 * n_features * number, *row)
    return np.frombuffer(packed, np.float64).reshape(len(items), n_features)


def _of_texts(items: Sequence[RankItem]) -> npt.NDArray[np.float32]:
    rows = []
    for number, item in enumerate(items):
        if not isinstance(item.features, str):
            raise _uneven(number, item, 0)
        try:
            rows.append(binascii.a2b_base64(item.features, strict_mode=True))
        except (binascii.Error, ValueError) as error:
            raise ValueError(
                f"features must be numbers or base64; got item {number}: {error}"
            ) from error
    size = len(rows[0])
    for number, row in enumerate(rows):
        if len(row) != size or size % 4:
            raise _uneven(number, items[number], size // 4)
    return np.frombuffer(b"".join(rows), "<f4").reshape(len(rows), size // 4)


def _uneven(number: int, item: RankItem, n_features: int) -> ValueError:
    found = item.features
    got = "base64" if isinstance(found, str) else f"{len(found)}"
    return ValueError(
        f"features must be {n_features} of every item, written alike; got {got} for "
        f"item {number}"
    )


def exposures_of(ranking: Ranking) -> npt.NDArray[np.float64]:
    """P(item at rank) by the policy that drew the list, [n_items, n_ranks].

    Items are in the order of the request.

    Raises
    ------
    ValueError
        For a policy that has no closed form.
    """
    n_ranks, n_items = len(ranking.order), len(ranking.scores)
    if ranking.decided is not None:
        return ranking.decided.exposures(n_ranks).astype(np.float64)
    if ranking.policy == "plackett-luce":
        scores = ranking.scores.astype(np.float64)
        placements: npt.NDArray[np.float64]
        placements = placements_of_scores(scores[None, :], n_ranks)[0]
        return placements
    if ranking.policy not in ("deterministic", "tail-shuffle"):
        raise ValueError(
            "exposures must be asked for with a policy that has a closed form; got "
            f"{ranking.policy!r}"
        )
    placed = np.zeros((n_items, n_ranks))
    by_score = np.argsort(-ranking.scores, kind="stable")
    n_fixed = n_ranks if ranking.policy == "deterministic" else n_ranks - 1
    placed[by_score[:n_fixed], np.arange(n_fixed)] = 1.0
    if n_fixed < n_ranks:
        placed[by_score[n_fixed:], n_fixed] = 1.0 / (n_items - n_fixed)
    return placed
