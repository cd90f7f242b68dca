"""Ingestion in process, against decoding the same events and nothing else.

Events are one a record, as services send them, and a commit holds some thousands. The
rival is the decoder that ingestion has too, so that the ratio says how many times its
work the whole takes: validation, normalisation, routes, records of `events`.
"""

from collections.abc import Callable, Sequence
from itertools import islice

import msgspec

from rankstream.lab.benchmarks.harness import (
    Figure,
    in_turns,
    new_figure,
    rate,
    repeats_of,
)
from rankstream.lab.benchmarks.workload import INPUT_SHOWN, START_MS, input_events
from rankstream.settings import Settings
from rankstream.wire.events import ClickEvent, QueryEvent
from rankstream.wire.topics import CLICKS, QUERIES
from streams.ingest.ingest import Ingest
from streams.stage import SourceRecord

N_EVENTS = 40_000
N_FEATURES = 4
N_REPEATS = 9
COMMIT_RECORDS = 4_096

GOAL, FLOOR = 6.0, 10.0
"""Times decoding alone, at most."""


def measure(*, quick: bool = False) -> list[Figure]:
    """Query events, clicks, and Plackett-Luce lists with scores and features."""
    n = 400 if quick else N_EVENTS
    shown = f"lists of {INPUT_SHOWN}"
    drawn = f"Plackett-Luce {shown} with scores and {N_FEATURES} features an item"
    return [
        _figure(shown, QUERIES, n, quick=quick),
        _figure("clicks", CLICKS, n, quick=quick),
        _figure(drawn, QUERIES, n, n_features=N_FEATURES, quick=quick),
    ]


def records_of(topic: str, n: int, n_features: int = 0) -> list[SourceRecord]:
    """So many records of one topic, each with an event, as a broker has appended them.

    Parameters
    ----------
    n_features
        Of each item, in lists that are drawn by Plackett-Luce; 0 for other lists.
    """
    # Of two lists nearly one is clicked.
    events = input_events(4 * n, n_features)
    values = islice((value for kind, value in events if kind == topic), n)
    return [
        SourceRecord(topic, 0, offset, START_MS + 3 * offset, None, value, ())
        for offset, value in enumerate(values)
    ]


def ingested(records: Sequence[SourceRecord]) -> int:
    """Bytes of `events` that ingestion makes of records, in several commits."""
    stage, n_bytes = Ingest(records[0].topic, 0, Settings()), 0
    for first in range(0, len(records), COMMIT_RECORDS):
        for record in records[first : first + COMMIT_RECORDS]:
            stage.fold(record)
        stage.settle()
        n_bytes += sum(len(output.value or b"") for output in stage.outputs())
    counts = stage.counters()
    if counts["passed"] != len(records):
        raise ValueError(f"all {len(records)} events must be accepted; got {counts}")
    return n_bytes


def decoder_of(topic: str) -> Callable[[bytes], object]:
    """What decodes an event of a topic, strictly."""
    return msgspec.json.Decoder(QueryEvent if topic == QUERIES else ClickEvent).decode


def _figure(
    name: str, topic: str, n: int, *, n_features: int = 0, quick: bool
) -> Figure:
    records = records_of(topic, n, n_features)
    values = [record.value or b"" for record in records]
    decode = decoder_of(topic)

    def decode_all() -> None:
        for value in values:
            decode(value)

    ingested(records)
    decode_all()
    pairs = in_turns(
        lambda: len(records) * rate(lambda: ingested(records)),
        lambda: len(records) * rate(decode_all),
        1 if quick else N_REPEATS,
    )
    ours, rivals = zip(*pairs, strict=True)
    times = [rival / own for own, rival in pairs]
    middle = (sorted(each)[len(each) // 2] for each in (ours, rivals, times))
    value, rival, ratio = middle
    size = sum(map(len, values)) / len(values)
    return new_figure(
        f"ingestion, {name} ({size:.0f}-byte events), and times decoding alone",
        value,
        "events/s",
        rival,
        ratio,
        (GOAL, FLOOR),
        less_is_better=True,
        bounds_are_ratios=True,
        faults=[],
    ) | repeats_of({"value": ours, "rival": rivals, "ratio": times})
