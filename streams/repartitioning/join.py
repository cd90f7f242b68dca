"""Open impressions and clicks of a partition, divided among its children.

Impressions go where their query goes, and take their clicks along, also those that
named another query. A click that waits goes where it would be sent to. Identities of
what has closed go to all children, as they do not tell their query: a repeat is still
one, wherever it comes. Of the counts since the beginning of the log, events whose
outcome is open are taken along; all others stay with the partition that counted them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from rankstream.settings import Settings
from rankstream.wire.events import SCHEMA, Click, ClickEvent
from rankstream.wire.routing import partition_of_route, route_of_click
from rankstream.wire.schemas import check_schema
from streams.fold.canonical_fold import CanonicalFold
from streams.fold.join import OUTCOMES
from streams.fold.segments import (
    KNOWN,
    OPEN,
    STATE_KEY,
    STATE_TOPIC,
    Log,
    Segment,
    array_head,
    blocks_of,
    by_checkpoint,
    elements_of,
    joined,
    segment_key,
)
from streams.native.elements import (
    IMPRESSION,
    Elements,
    decode_click,
    decode_impression,
)
from streams.repartitioning.records import heir_of
from streams.stage import Change
from streams.state_pieces import Parts

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_decode_event = msgspec.json.Decoder(ClickEvent).decode

Values = Mapping[bytes, bytes]


def divided_join(
    values: Values,
    log: Log,
    children: Sequence[int],
    n_partitions: int,
    settings: Settings,
) -> dict[int, list[Change]]:
    """The share of each child; the partition itself is the first of them.

    Parameters
    ----------
    values
        Of the fold's own state topic, by key.
    log
        Records of the partition by offset, from the first that the values refer to.
        What is written of them refers to nothing, as children have other logs.
    n_partitions
        Of the log from here on.

    Raises
    ------
    SchemaRefused
        Where another release wrote the state.
    ValueError
        Where it is not whole.
    """
    found: dict[int, list[Change]] = {child: [] for child in children}
    if STATE_KEY not in values:
        return found
    packed = Parts().value(STATE_KEY, values)
    check_schema(packed, SCHEMA, "the state of a fold", STATE_TOPIC)
    _, (watermark, counts), sequences, expected, segments, next_segment = _decode(
        packed
    )
    segments = [Segment(*each) for each in segments]
    blocks = _Blocks(values, log, segments, children, n_partitions)
    pending = 0
    # The first is last: what the others take along is no longer its own.
    for child in reversed(children):
        is_new = child != children[0]
        kept = blocks.of(child, found[child])
        state = [
            SCHEMA,
            [watermark, dict.fromkeys(OUTCOMES, 0) if is_new else counts],
            [0] * len(sequences) if is_new else sequences,
            [] if is_new else expected,
            kept,
            next_segment,
        ]
        if is_new:
            n_open = _pending(child, [*found[child], _of(state)], settings)
            state[1][1]["consumed"] = n_open
            pending += n_open
        else:
            counts["consumed"] -= pending
        for key, value in Parts().split(STATE_KEY, _encode(state)):
            found[child].append(Change(STATE_TOPIC, key, value))
    return found


def _of(state: list[Any]) -> Change:
    return Change(STATE_TOPIC, STATE_KEY, _encode(state))


def _pending(child: int, changes: list[Change], settings: Settings) -> int:
    """Events whose outcome is open, as the fold counts them once it is restored."""
    fold = CanonicalFold(
        child, settings.time, settings.limits, settings.kafka.learner_partitions
    )
    fold.restore(changes)
    return fold.join.pending


class _Blocks:
    """Blocks of segments, by child; what tells no route stays with the first."""

    def __init__(
        self,
        values: Values,
        log: Log,
        segments: list[Segment],
        children: Sequence[int],
        n_partitions: int,
    ) -> None:
        self._values = values
        self._log = log
        self._by_checkpoint = by_checkpoint(segments)
        self._n_partitions = n_partitions
        self._own = children[0]
        self._heir_of = {
            impression.identity: heir_of(impression.query_id, children, n_partitions)
            for written in self._by_checkpoint.values()
            for elements in elements_of(written, values, log)
            for i in range(len(elements))
            if elements.tags[i] == IMPRESSION
            for impression in [decode_impression(elements.raw(i))]
        }

    def of(self, child: int, changes: list[Change]) -> list[Segment]:
        """The segments of a child; their blocks are added to its changes."""
        kept = []
        for number, written in self._by_checkpoint.items():
            known = [each for each in written if each.kind == KNOWN]
            lists = [each for each in written if each.kind != KNOWN]
            for kind, own, blocks in (
                (OPEN, lists, [*self._open(lists, child)]),
                (KNOWN, known, [*self._known(known)]),
            ):
                for nth, block in enumerate(blocks):
                    key = segment_key(kind, number, nth)
                    changes.append(Change(STATE_TOPIC, key, block))
                if blocks:
                    last_ms = max(each.last_ms for each in own)
                    kept.append(Segment(kind, number, last_ms, len(blocks)))
        return kept

    def _known(self, segments: Iterable[Segment]) -> Iterator[bytes]:
        for segment in segments:
            yield from blocks_of(segment, self._values)

    def _open(self, segments: Iterable[Segment], child: int) -> Iterator[bytes]:
        raw = (
            (1, elements.raw(i))
            for elements in elements_of(segments, self._values, self._log)
            for i in range(len(elements))
            if self._heir(elements, i) == child
        )
        for n_elements, packed in joined(raw):
            yield array_head(n_elements) + packed

    def _heir(self, elements: Elements, i: int) -> int:
        raw = elements.raw(i)
        if elements.tags[i] == IMPRESSION:
            return self._heir_of[decode_impression(raw).identity]
        click = decode_click(raw)
        child = self._heir_of.get(click.impression)
        return self._heir_of_click(click) if child is None else child

    def _heir_of_click(self, click: Click) -> int:
        try:
            event = _decode_event(click.raw)
        except (ValueError, RecursionError):  # no ingestion of ours wrote it
            return self._own
        route = route_of_click(event.query_id, event.impression_id)
        if route is None:
            return self._own
        return partition_of_route(route, self._n_partitions)
