"""Decisions as a service looks them up, and the lists that they make."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

from rankstream.ranking.served_model import ServedModel
from rankstream.ranking.tied_list import TiedList
from rankstream.wire.decision_shards import (
    DecisionShard,
    hash_of_items,
    shard_number,
)
from rankstream.wire.decisions import Manifest
from rankstream.wire.routing import hash_of_query

_hash_of = functools.lru_cache(maxsize=65_536)(hash_of_query)


class Decided(NamedTuple):
    """One rewrite as it is served, as one: no list mixes two.

    `shards` [256]. `default` serves queries without a decision; None where that is what
    is served without the rule.
    """

    manifest: Manifest
    shards: Sequence[DecisionShard]
    default: ServedModel | None

    def list_of(self, query: str, items: Sequence[str]) -> TiedList | None:
        """What is decided; None for another query, or another set of candidates.

        Parameters
        ----------
        query
            As statistics are kept by it; see `rankstream.wire.segments`.
        items : [n_documents]
            Ids of the candidates, in any order.
        """
        named = _hash_of(query)
        shard = self.shards[shard_number(named)]
        row = shard.first_rows.get(named)
        if row is None:
            return None
        places = sorted(range(len(items)), key=items.__getitem__)
        found = shard.order(row, hash_of_items([items[place] for place in places]))
        if found is None or len(found.order) != len(items):
            return None  # of other candidates, whatever their hash
        slot = found.slot
        if slot is not None:
            slot = slot._replace(tried=[places[number] for number in slot.tried])
        return TiedList([places[number] for number in found.order], found.ties, slot)
