"""The lists that were shown lately, read from `queries` where a worker takes over."""

import logging
from collections.abc import MutableMapping

import msgspec

from rankstream.wire.topics import QUERIES
from streams.kafka.clients import Cluster
from streams.kafka.whole_batches import FETCH_BYTES, POLL_MS

RECORDS = 20_000
"""Of each partition, its last ones; each has one list or more."""


class _Named(msgspec.Struct, gc=False):
    impression_id: str
    query_id: str


_decode = msgspec.json.Decoder(_Named | list[_Named]).decode

log = logging.getLogger("rankstream.adapter")


async def learn_lists(
    cluster: Cluster, n_partitions: int, queries: MutableMapping[str, str]
) -> None:
    """Note the query of each list that was sent lately, by whomever."""
    places = [cluster.place(QUERIES, n) for n in range(n_partitions)]
    consumer = cluster.clients.consumer(
        **cluster.client,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_partition_fetch_bytes=FETCH_BYTES,
    )
    try:
        await consumer.start()
        ends = await consumer.end_offsets(places)
        firsts = await consumer.beginning_offsets(places)
        consumer.assign(places)
        for place in places:
            consumer.seek(place, max(firsts[place], ends[place] - RECORDS))
        left = {place for place in places if ends[place] > firsts[place]}
        while left:
            fetched = await consumer.getmany(*left, timeout_ms=POLL_MS)
            for records in fetched.values():
                for record in records:
                    _learn(record.value, queries)
            left = {at for at in left if await consumer.position(at) < ends[at]}
    finally:
        await consumer.stop()
    log.info("event=lists-known count=%d", len(queries))


def _learn(value: bytes | None, queries: MutableMapping[str, str]) -> None:
    try:
        found = _decode(value or b"")
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return
    for each in found if isinstance(found, list) else [found]:
        queries[each.impression_id] = each.query_id
