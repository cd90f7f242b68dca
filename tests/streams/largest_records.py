"""The largest record of each topic that events can make a stage write."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from rankstream.configuration.experiments import MAX_RANKERS
from rankstream.experiment_records import encode_record as encode_experiment
from rankstream.experiment_records import running
from rankstream.settings import (
    ExperimentSettings,
    KafkaSettings,
    LimitSettings,
    ModelSettings,
    Settings,
)
from rankstream.wire.bounds import LARGEST, MAX_CLICK_BYTES, MAX_CLICKS_BYTES
from rankstream.wire.decisions import manifest_key
from rankstream.wire.models.snapshot_names import Parent
from rankstream.wire.models.training import (
    SCHEMA,
    CurveUsed,
    RunRecord,
    Sizes,
    encode_record,
    training_key,
)
from rankstream.wire.routing import (
    normalised_query,
    route_of_query,
    routed_impression_id,
)
from rankstream.wire.topics import (
    CLICKS,
    DECISIONS,
    EVALUATIONS,
    EXPERIMENTS,
    MAX_EVENT_BYTES,
    MIB,
    PREFERENCES,
    QUERIES,
    TRAINING,
)
from rankstream.wire.verdicts import encode_verdict
from streams.comparisons.verdicts import refused_verdict
from streams.fold.segments import Segment
from streams.ingest.ingest import Ingest
from streams.ingest.validation import EventValidator, size_of
from streams.learning.learn import Learn
from streams.local import local_settings
from streams.partition_fold import partition_fold, preferences_among
from streams.roles.evaluator import encoded_verdict
from streams.stage import Output, SourceRecord, Stage
from tests.decision_factory import rewrite

NOW_MS = 1_700_000_000_000
ONE = local_settings(
    Settings(limits=LimitSettings(clicks=10**6, click_bytes=MAX_CLICKS_BYTES))
)
LONG = "\U0001d160"
"""Of twelve bytes, once normalised."""

WIDE = "\U0001f600"
"""Of four bytes, as the longest characters are."""


def framed(output: Output) -> int:
    """Bytes of a record that is alone in its batch, as a broker counts them."""
    builder = DefaultRecordBatchBuilder(
        2, 0, is_transactional=1, producer_id=1, producer_epoch=1, base_sequence=1,
        batch_size=1 << 30,
    )  # fmt: skip
    headers: Any = list(output.headers)
    builder.append(0, NOW_MS, output.key, output.value, headers)
    return len(builder.build())


def as_json(event: dict[str, Any]) -> bytes:
    """An event as services send it."""
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()


def large_query(name: str, at_ms: int = NOW_MS) -> bytes:
    """A list that takes all that a canonical event may, to the byte."""
    event = {
        "impression_id": name,
        "query_id": LONG * 4_096,
        "at_ms": at_ms,
        "model": "m" * 256,
        "intervention": WIDE * 256,
        "candidates": [f"{i:05}" + "c" * 251 for i in range(10_000)],
        "shown": [f"{i:05}" + "c" * 251 for i in range(1_000)],
        "scores": [0] * 10_000,
        "features": [[0] * 1_300] * 1_000,
        "attributes": {"note": ""},
    }
    validator = EventValidator(max_documents=10_000, ahead_ms=0)
    room = MAX_EVENT_BYTES - size_of(validator.query(as_json(event), at_ms).event)
    # The length of the note takes four bytes more.
    event["attributes"] = {"note": "y" * (room - 4)}
    found = validator.query(as_json(event), at_ms).event
    assert size_of(found) == MAX_EVENT_BYTES
    return as_json(event)


ROUTED = routed_impression_id("i0", route_of_query(normalised_query(LONG * 4_096)))
"""An id that routes clicks to those queries, so that a click needs to name none."""


def large_click(name: str, number: int = 0, **fields: Any) -> bytes:
    """A click whose action is as long as it may be."""
    event = {
        "impression_id": name,
        "at_ms": NOW_MS + number,
        "position": 1_000,
        "action": WIDE * 256,
    }
    return as_json(event | fields)


class Stages:
    """Ingest and fold, and all that they write."""

    def __init__(self, settings: Settings = ONE) -> None:
        topics = QUERIES, CLICKS
        self.ingests = {topic: Ingest(topic, 0, settings) for topic in topics}
        self.fold = partition_fold(0, settings)
        self.written: list[Output] = []
        self._offset = 0

    def send(
        self,
        topic: str,
        value: bytes,
        key: bytes | None = None,
        headers: tuple[tuple[str, bytes], ...] = (),
    ) -> None:
        """An input record, and what comes of it."""
        ingest = self.ingests[topic]
        self._offset += 1
        ingest.fold(SourceRecord(topic, 0, self._offset, NOW_MS, key, value, headers))
        self.pass_on()

    def end(self) -> None:
        """Say on both topics that nothing comes any more."""
        for topic in self.ingests:
            self.send(topic, b"", None, (("rankstream", b"end"),))

    def pass_on(self) -> None:
        """What ingest wrote, to the fold."""
        for ingest in self.ingests.values():
            for output in ingest.outputs():
                self.written.append(output)
                if output.topic == "events":
                    self.fold.fold(
                        SourceRecord("events", 0, 0, 0, None, output.value, ())
                    )
        self.written += self.fold.outputs()

    def checkpoint(self) -> None:
        """The state of all three."""
        stages: list[Stage] = [*self.ingests.values(), self.fold]
        for stage in stages:
            self.written += state_of(stage)


def state_of(stage: Stage) -> Iterator[Output]:
    """What a stage writes at a checkpoint."""
    stage.settle()
    for topic, key, value in stage.changes():
        yield Output(topic, 0, key, value)


def of_events() -> list[Output]:
    """What the largest lists and clicks make ingest and fold write."""
    stages = Stages()
    stages.send(QUERIES, large_query(ROUTED))
    for number in range(MAX_CLICKS_BYTES // len(large_click(ROUTED))):
        stages.send(CLICKS, large_click(ROUTED, number))
    stages.checkpoint()
    stages.end()
    # Everything is over by now.
    stages.send(QUERIES, large_query("late", NOW_MS - 1_000_000))
    late = large_click(ROUTED, 9_999)
    stages.send(CLICKS, late + b" " * (MAX_CLICK_BYTES - len(late)))
    stages.checkpoint()
    return stages.written


def of_long_windows() -> list[Output]:
    """State of lists that the log may not hold for as long as they are open."""
    long = msgspec.structs.replace(ONE.time, click_window_ms=2 * 86_400_000)
    stages = Stages(msgspec.structs.replace(ONE, time=long))
    stages.send(QUERIES, large_query(ROUTED))
    stages.checkpoint()
    return stages.written


def of_candidates() -> list[Output]:
    """Features of as many candidates with as long ids as one event holds."""
    stages = Stages()
    items = [f"{i:05}" + WIDE * 195 for i in range(10_000)]
    event = {
        "impression_id": "i",
        "query_id": LONG * 4_096,
        "at_ms": NOW_MS,
        "candidates": items,
        "shown": items[:1],
        "candidate_features": [[0]] * 10_000,
        "features_hash": "0123456789abcdef",
    }
    stages.send(QUERIES, as_json(event))
    stages.end()
    stages.checkpoint()
    return stages.written


def of_hostile_records() -> list[Output]:
    """What records do that are no events, as large as a broker takes them."""
    stages = Stages()
    for topic in (QUERIES, CLICKS):
        for n_key, n_headers in ((0, 0), (4 * MIB, 1), (0, 100_000)):
            key = b"k" * n_key or None
            headers = (("name", b"content"),) * n_headers
            room = MAX_EVENT_BYTES - framed(Output(topic, 0, key, b"", headers)) - 8
            stages.send(topic, b"[" + b"1," * (room // 2 - 1) + b"1]", key, headers)
            stages.send(topic, b'{"' + b"x" * (room - 2), key, headers)
            few = b"[" + b",".join([b"1"] * 32) + b"]"
            stages.send(topic, few, key and key[: MIB // 4], headers[:10])
    return stages.written


def of_many_partitions() -> list[Output]:
    """State that grows with the cluster, and with the time that a window is open."""
    settings = msgspec.structs.replace(
        ONE, kafka=KafkaSettings(partitions=100_000, input_partitions=1)
    )
    written = [out for topic in (QUERIES, CLICKS)
               for out in state_of(Ingest(topic, 0, settings))]  # fmt: skip
    fold = partition_fold(0, ONE)
    fold._segments.living = [
        Segment("logged", n, NOW_MS + n, 1, 2**37 + n) for n in range(200_000)
    ]
    fold._expected = dict.fromkeys(range(100_000), 2**40)
    learn = Learn(0, ONE)
    learn._sequences = dict.fromkeys(range(100_000), 2**40)
    return [*written, *state_of(fold), *state_of(learn)]


def of_experiments() -> list[Output]:
    """The sums of as many rankers as settings allow, and the verdict on them."""
    rankers = {f"ranker-{n:03}": "" for n in range(MAX_RANKERS)}
    place = ("all", 1)
    empty = len(encode_verdict(refused_verdict(*place, "")))
    most = LARGEST[EVALUATIONS] - len(b"all") - empty
    verdicts = [
        (b"all", encoded_verdict(place, refused_verdict(*place, "x" * n)))
        for n in (most, most + 1)
    ]
    settings = msgspec.structs.replace(
        ONE, experiments={"all": ExperimentSettings(rankers=rankers, method="ab")}
    )
    fold = partition_fold(0, settings)
    (comparison,) = preferences_among(fold.consumers).comparisons()
    comparison.is_changed = True
    room = LARGEST[EXPERIMENTS] - len(b"all")
    room -= len(encode_experiment("", running(ExperimentSettings(rankers={"a": ""}))))
    wide = ExperimentSettings(rankers={"a": "m" * room})
    return [
        Output(EXPERIMENTS, 0, b"all", encode_experiment("all", running(wide))),
        *(each for each in state_of(fold) if each.topic == PREFERENCES),
        *(Output(EVALUATIONS, 0, name, value) for name, value in verdicts),
    ]


def of_models() -> list[Output]:
    """A snapshot and the state of a model that nearly fills a record."""
    model = ModelSettings(features=136, kind="neural", hidden=[1_500, 2_300])
    learn = Learn(0, msgspec.structs.replace(ONE, models={"m": model}))
    return [*learn.outputs(), *state_of(learn)]


def of_training() -> list[Output]:
    """The record of a run that settings make as large as is taken."""
    key = training_key("run", "m@0.1")
    empty = encode_record(run_that_says(""))
    most = LARGEST[TRAINING] - len(key) - len(empty) - 4
    return [Output(TRAINING, 0, key, encode_record(run_that_says("x" * most)))]


def of_decisions() -> list[Output]:
    """A rewrite whose default snapshot is as large as is taken."""
    key = manifest_key("rule")
    beside = len(rewrite(default="m@0.2", envelope=bytes(1 << 16)).value) - (1 << 16)
    most = LARGEST[DECISIONS] - len(key) - beside
    written = rewrite(default="m@0.2", envelope=bytes(most))
    return [Output(DECISIONS, 0, key, written.value)]


def run_that_says(words: str) -> RunRecord:
    """A run of no list, with a reason of any length."""
    return RunRecord(
        SCHEMA, "m", "m@0.1", 0, 1, 0, "count", [], [], [], {}, [],
        0, Parent(0, 0, b""), CurveUsed([], [], False, "", [], b""), [],
        Sizes(*[0] * len(Sizes.__struct_fields__)), [], 0, 0.0, 1.0, 0.0, None, words,
        b"",
    )  # fmt: skip


def largest_records() -> dict[str, Output]:
    """By topic; of each that we write there is one."""
    largest: dict[str, Output] = {}
    sizes = dict.fromkeys(LARGEST, 0)
    for made in (
        of_events, of_long_windows, of_candidates, of_hostile_records,
        of_many_partitions, of_experiments, of_models, of_training, of_decisions,
    ):  # fmt: skip
        for output in made():
            size = framed(output)
            if size > sizes[output.topic]:
                sizes[output.topic], largest[output.topic] = size, output
    assert largest.keys() == LARGEST.keys()
    return largest
