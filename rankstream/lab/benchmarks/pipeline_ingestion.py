"""JSON events through ingestion, one a record."""

from collections.abc import Iterator

from rankstream.lab.benchmarks.input_events import input_events
from rankstream.lab.benchmarks.pipeline_bed import Bed, say
from rankstream.lab.benchmarks.pipeline_cpu import Meter
from rankstream.lab.benchmarks.pipeline_end import await_end
from rankstream.lab.benchmarks.pipeline_logs import (
    part_of,
    preload,
    progress_of,
    read_all,
)
from rankstream.lab.benchmarks.pipeline_repeats import Run
from rankstream.settings import Settings
from rankstream.wire.events import Click, Impression, decode_event_record
from rankstream.wire.topics import CLICKS, EVENTS, QUERIES, full_name
from streams.worker_roles import kinds_of

STATES = tuple(kind.state_topics[0] for kind in kinds_of("ingest"))


def ingestion_run(bed: Bed, settings: Settings, n_impressions: int) -> Run:
    """One run of the ingest role over a log of its own."""
    width = settings.kafka.input_partitions
    sent: list[int] = []

    def records() -> Iterator[tuple[str, int, bytes]]:
        for n, (topic, value) in enumerate(input_events(n_impressions)):
            sent.append(len(value))
            yield full_name(settings.namespace, topic), n % width, value

    # An end, else the sources fall idle while others are still read, and tell the time
    # for minutes.
    names = [full_name(settings.namespace, topic) for topic in (QUERIES, CLICKS)]
    ended = [(name, partition) for name in names for partition in range(width)]
    preload(settings.kafka.bootstrap, records(), ended=ended)
    say(f"ingestion: {len(sent):,} events written")
    with bed.worker(settings, "ingest") as worker:
        meter = Meter(bed.broker_pid, lambda: worker.child("ingest"))
        await_end(settings, "ingest", meter.sampling(worker.check))
        meter.sample()
    marks = [
        mark._replace(partition=mark.partition + width * nth)
        for nth, state in enumerate(STATES)
        for mark in progress_of(settings, state, width)
    ]
    # The end records among them are eight of many thousand.
    part = part_of(sorted(marks), lambda _, offset: offset + 1)
    wrong = _disagreements(settings, n_impressions, len(sent))
    run = meter.measured(part, sum(sent) / len(sent), wrong)
    say(f"ingestion: {run.rate:,.0f} events/s; {run.told}")
    say(f"ingestion: recount: {wrong or 'agrees'}")
    return run


def _disagreements(settings: Settings, n_impressions: int, n_events: int) -> list[str]:
    kinds = {Impression: 0, Click: 0}
    sequences: dict[tuple[int, int], int] = {}
    found: list[str] = []
    for entry in read_all(settings, EVENTS, settings.kafka.partitions):
        batch = decode_event_record(entry.value or b"")
        place = (batch.source, entry.partition)
        if batch.sequence != sequences.get(place, 0) + 1:
            found.append(f"events {place} jump to {batch.sequence}")
        sequences[place] = batch.sequence
        for element in batch.elements:
            if type(element) in kinds:
                kinds[type(element)] += 1
    got = (kinds[Impression], kinds[Click])
    if got != (n_impressions, n_events - n_impressions):
        found.append(f"{got} came out; sent {n_events}, {n_impressions} of them lists")
    return found
