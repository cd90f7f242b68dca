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
from rankstream.wire.routing import normalised_query, route_of_query


@functools.lru_cache(maxsize=65_536)
def _route_of(query_id: str) -> int:
    return route_of_query(normalised_query(query_id))


class Decided(NamedTuple):
    """One rewrite as it is served, as one: no list mixes two.

    `shards` [256]. `default` serves queries without a decision; None where that is what
    is served without the rule.
    """

    manifest: Manifest
    shards: Sequence[DecisionShard]
    default: ServedModel | None

    def list_of(self, query_id: str, items: Sequence[str]) -> TiedList | None:
        """What is decided; None for another query, or another set of candidates.

        Parameters
        ----------
        items : [n_documents]
            Ids of the candidates, in any order.
        """
        route = _route_of(query_id)
        shard = self.shards[shard_number(route)]
        row = shard.first_rows.get(route)
        if row is None:
            return None
        places = sorted(range(len(items)), key=items.__getitem__)
        found = shard.order(row, hash_of_items([items[place] for place in places]))
        if found is None or len(found.order) != len(items):
            return None  # of other candidates, whatever their hash
        return TiedList([places[number] for number in found.order], found.ties)
