"""The snapshots of a log of interactions on Kafka, learned again in process."""

from producers.topic_reader import read_records
from rankstream.settings import Settings
from rankstream.wire.topics import INTERACTIONS, SNAPSHOTS
from streams.local import LocalPipeline
from streams.stage import Output


def learned_anew(settings: Settings) -> tuple[dict[bytes, bytes], LocalPipeline]:
    """Every snapshot that the interactions give, by key; and what learned them."""
    given: dict[bytes, bytes] = {}

    def keep(output: Output) -> None:
        if output.topic == SNAPSHOTS and output.key and output.value:
            given[output.key] = output.value

    pipeline = LocalPipeline(settings, now=lambda: 0, on_output=keep)
    pipeline.start()
    for record in read_records(settings, INTERACTIONS):
        pipeline.fold_log(INTERACTIONS, record.partition, record.value or b"")
    return given, pipeline
