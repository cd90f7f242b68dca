"""What decodes bytes of others in Python, each with real records to begin from.

A target takes bytes and raises only what it says that it raises; whatever else leaves
it is a finding. It returns what it came to, in words; tabulators part several.
"""

import hashlib
from collections.abc import Callable, Sequence
from itertools import islice
from types import ModuleType
from typing import NamedTuple

import msgspec
import numpy as np

import rankstream.experiment_records
import rankstream.ranker
import rankstream.ranking.tree_scoring
import rankstream.wire.candidates
import rankstream.wire.envelope
import rankstream.wire.events
import rankstream.wire.models.deployments
import rankstream.wire.models.forests
import streams.comparisons.extra
import streams.ingest.elements
import streams.ingest.identifiers
import streams.ingest.ingest
import streams.ingest.validation
import streams.ingest.vectors
import streams.kafka.state.resume_position
import streams.learning.learn
import streams.redis_copies.experiment_copy
import streams.redis_copies.snapshot_copy
import streams.training.model_records
from rankstream.deployment_rules import DeploymentRefused
from rankstream.experiment_records import decode_record as decode_experiment
from rankstream.experiment_records import encode_record as encode_experiment
from rankstream.experiment_records import running
from rankstream.operations.monitoring import overview as overview_module
from rankstream.operations.monitoring.overview import Gathered
from rankstream.ranker import Ranker
from rankstream.settings import ExperimentSettings, ModelSettings, Settings
from rankstream.snapshots import SnapshotStore
from rankstream.wire.candidates import (
    candidates_key,
    candidates_value,
    decode_candidates,
    decode_candidates_key,
)
from rankstream.wire.envelope import FOREST_SCHEMA, HEADER, MAGIC, SCHEMA, TREES
from rankstream.wire.events import (
    ClickMark,
    EventRecord,
    Impression,
    Interaction,
    InteractionRecord,
    decode_event_record,
    decode_interaction_record,
    encode_record,
)
from rankstream.wire.models.deployments import (
    deployment_record,
    fitted_groups,
    interventions_of_era,
)
from rankstream.wire.schemas import SchemaRefused
from rankstream.wire.topics import CLICKS, INTERACTIONS, QUERIES
from rankstream.wire.verdicts import decode_verdict, encode_verdict
from streams.comparisons.extra import decode_extra, experiment_of, extra_of
from streams.comparisons.preference_fold import PreferencesFold
from streams.comparisons.verdicts import verdict_of
from streams.dead_letter import HEADER_PREFIX
from streams.ingest.ingest import Ingest
from streams.kafka.state.resume_position import (
    SourcePartition,
    decode_position,
    encode_position,
    first_position,
)
from streams.learning.learn import Learn
from streams.redis_copies.experiment_copy import ExperimentCopy
from streams.redis_copies.snapshot_copy import SnapshotCopy
from streams.stage import LogRefused, SourceRecord
from streams.training.model_records import ModelRecords
from tests.forest_factory import small_forests
from tests.fuzz.fuzzing import real_records
from tests.hostile import NOW_MS, as_json, hostile_records, strange_but_good
from tests.snapshot_factory import envelope

SMALL = Settings(models={"m": ModelSettings(features=3)})
AWAY = SnapshotStore("redis://127.0.0.1:1/0")
"""Nobody asks it anything here."""

LARGEST_SEED = 4_096

SAID = (f"{HEADER_PREFIX}code", f"{HEADER_PREFIX}exception.message")
"""Headers of a dead letter: what was wrong."""


class Target(NamedTuple):
    """A decoder: what it is given to begin with, and where its lines are."""

    take: Callable[[bytes], str]
    seeds: Callable[[], list[bytes]]
    modules: Sequence[ModuleType]


def _ingested(topic: str) -> Callable[[bytes], str]:
    def take(value: bytes) -> str:
        stage = Ingest(topic, 0, SMALL)
        stage.fold(SourceRecord(topic, 0, 0, NOW_MS, None, value, ()))
        said = set()
        for output in stage.outputs():
            if output.topic == "events":
                # Whatever is let in, the fold reads.
                decode_event_record(output.value or b"")
            else:
                said |= {text.decode() for name, text in output.headers if name in SAID}
        n_passed, n_dead = (
            stage.counters()[name] for name in ("passed", "dead_letter")
        )
        assert n_passed + n_dead > 0
        return "\t".join([str(n_passed > 0), *sorted(said)])

    return take


def _event_record(value: bytes) -> str:
    try:
        found = decode_event_record(value)
    except (LogRefused, msgspec.DecodeError) as error:
        return f"{type(error).__name__} {error}"
    for element in found.elements:
        if isinstance(element, Impression):
            extra_of(element.extra)
            experiment_of(element.extra)
    return "read"


def _interaction_record(value: bytes) -> str:
    try:
        decode_interaction_record(value)
    except (LogRefused, msgspec.DecodeError) as error:
        return f"{type(error).__name__} {error}"
    return "read"


def _unclaimed(value: bytes) -> str:
    stage = Learn(0, Settings())
    try:
        stage.fold(SourceRecord(INTERACTIONS, 0, 0, NOW_MS, None, value, ()))
    except LogRefused as error:
        return f"{type(error).__name__} {error}"
    return "counted"


def _extra(value: bytes) -> str:
    named = experiment_of(value) is not None
    try:
        decode_extra(value)
    except msgspec.DecodeError as error:
        assert extra_of(value) is None
        return f"{named} {error}"
    return f"{named} {extra_of(value) is not None}"


def _loaded(value: bytes) -> str:
    """A snapshot as it is, and as whoever could compute its digest would write it."""
    sizes = len(value), hashlib.sha256(value).digest()
    heads = [HEADER.pack(MAGIC, each, *sizes) for each in (SCHEMA, FOREST_SCHEMA)]
    return " ".join(_served(head + value) for head in (b"", *heads))


def _trees(value: bytes) -> str:
    """The weights of a snapshot that is right in all else."""
    return _served(envelope(1, kind=TREES, n_features=4, weights=value))


def _served(given: bytes) -> str:
    copy = SnapshotCopy(AWAY)
    copy.take(b"m/0.1", given)
    copy.work()
    ranker = Ranker("m", source=lambda: given)
    if not ranker.refresh():
        return ranker.trouble
    features = np.zeros((3, ranker.snapshot.n_features), np.float32)
    ranker.rank(features, cutoff=2, seed=1)
    return "served"


def _experiment(value: bytes) -> str:
    try:
        decode_experiment(value)
        end = "read"
    except ValueError as error:
        end = str(error)
    copy = ExperimentCopy(AWAY)
    copy.show({b"boost": value, b"\xff": value})
    return f"{end} {copy.counters()['experiments_rejected']}"


def _position(value: bytes) -> str:
    try:
        decode_position(value)
    except LogRefused as error:
        return str(error)
    return "read"


def _candidates(value: bytes) -> str:
    """A record's value, and the same as its key."""
    ends = []
    for decode in (decode_candidates, decode_candidates_key):
        try:
            decode(value)
            ends.append("read")
        except (SchemaRefused, msgspec.DecodeError) as error:
            ends.append(f"{type(error).__name__} {error}")
    return " ".join(ends)


def _deployment(value: bytes) -> str:
    key = b"m@1.2/deployed"
    known = fitted_groups([(key, value)])
    try:
        records = ModelRecords(frozenset({"m"}))
        records.take_snapshot(key, value)
        found = records.deployments()
    except DeploymentRefused as error:
        assert not known
        return str(error)
    interventions_of_era(found, ["m"], 3, 1_000)
    return f"{len(found)} {len(known)}"


def _verdict(value: bytes) -> str:
    try:
        decode_verdict(value)
        end = "read"
    except msgspec.DecodeError as error:
        end = str(error)
    gathered = Gathered()
    gathered.take_verdict(value)
    overview = gathered.overview()
    msgspec.json.encode(overview)
    for row in overview["experiments"]:
        msgspec.json.encode(gathered.experiment(row["name"], 0))
    return f"{end} {len(overview['experiments'])}"


def _query_seeds() -> list[bytes]:
    good = list(strange_but_good().values())
    full = as_json(
        "full", model="m", version=3, seed=7, policy="plackett-luce",
        candidates=["a", "b", "c"], scores=[0.5, 1.0, -2.0], intervention="i",
        features=[[0.0, 1.0, 2.0], [1.0, 0.5, 0.25]], user="u", session="s",
        experiment={"id": "boost", "epoch": 1, "method": "team-draft"},
        rankings={"a": ["a", "b"], "b": ["b", "a"]}, assignments=[0, 1],
        attributes={"n": [1, None, {"deep": 1.5}]}, ranks="AQACAAIAAQA=",
    )  # fmt: skip
    batch = b"[" + full + b"," + good[0] + b"]"
    hostile = [value for value in hostile_records().values() if value is not None]
    return [full, batch, *good, *hostile]


def _click_seeds() -> list[bytes]:
    click = (
        b'{"schema":1,"impression_id":"i","at_ms":%d,"query_id":"q","item_id":"a",'
        b'"position":1,"action":"click","event_id":"e"}' % (NOW_MS - 9)
    )
    return [click, b"[" + click + b"," + click + b"]", b'{"at_ms":1}']


def _event_seeds() -> list[bytes]:
    small = (each for each in real_records(60) if len(each) <= LARGEST_SEED)
    return list(islice(small, 40))


def _impressions() -> list[Impression]:
    records = map(decode_event_record, _event_seeds())
    found: list[EventRecord] = list(records)
    return [e for each in found for e in each.elements if isinstance(e, Impression)]


def _interaction_seeds() -> list[bytes]:
    clicks = [ClickMark(1, NOW_MS, "click")]
    return [
        encode_record(InteractionRecord(1, 0, 1, [Interaction(each, clicks)]))
        for each in _impressions()[:10]
    ]


def _snapshot_seeds() -> list[bytes]:
    whole = [
        envelope(1), envelope(1, hidden=[2, 2]), envelope(1, normalisation="min-max"),
        envelope(1, kind="neural-relu", hidden=[3]), envelope(1, model="other"),
        envelope(1, kind=TREES, n_features=4, weights=small_forests()[1]),
    ]  # fmt: skip
    return whole + [each[HEADER.size :] for each in whole]


def _experiment_seeds() -> list[bytes]:
    settings = ExperimentSettings(
        rankers={"a": "m", "b": ""}, also={"sample-scored": {}}, options={"x": [1]}
    )
    return [encode_experiment("boost", running(settings)), b'{"schema":1,"epoch":2}']


def _position_seeds() -> list[bytes]:
    return [
        encode_position(first_position(SourcePartition("s", "id", 4, 0, 9), 1, b"f"))
    ]


def _candidates_seeds() -> list[bytes]:
    items = msgspec.msgpack.encode(["a", "b"])
    return [
        candidates_value(items, bytes(16), 2),
        candidates_key("shoes", bytes(16), bytes(8)),
    ]


def _deployment_seeds() -> list[bytes]:
    known = deployment_record("m@1.2", NOW_MS, [0, 3])
    return [deployment_record("m@1.2", 3_500)[1], known[1]]


def _verdict_seeds() -> list[bytes]:
    settings = ExperimentSettings(rankers={"a": "", "b": "", "c": ""})
    fold = PreferencesFold({"boost": settings}, 0)
    return [encode_verdict(verdict_of(each)) for each in fold.comparisons()]


TARGETS = {
    "queries": Target(
        _ingested(QUERIES),
        _query_seeds,
        (
            streams.ingest.ingest,
            streams.ingest.elements,
            streams.ingest.validation,
            streams.ingest.vectors,
            streams.ingest.identifiers,
        ),
    ),
    "clicks": Target(
        _ingested(CLICKS),
        _click_seeds,
        (
            streams.ingest.ingest,
            streams.ingest.elements,
            streams.ingest.validation,
        ),
    ),
    "events": Target(
        _event_record,
        _event_seeds,
        (rankstream.wire.events, streams.comparisons.extra),
    ),
    "interactions": Target(
        _interaction_record, _interaction_seeds, (rankstream.wire.events,)
    ),
    "unclaimed": Target(_unclaimed, _interaction_seeds, (streams.learning.learn,)),
    "extra": Target(
        _extra,
        lambda: [each.extra for each in _impressions()],
        (streams.comparisons.extra,),
    ),
    "snapshots": Target(
        _loaded,
        _snapshot_seeds,
        (
            rankstream.wire.envelope,
            rankstream.ranker,
            streams.redis_copies.snapshot_copy,
        ),
    ),
    "trees": Target(
        _trees,
        small_forests,
        (rankstream.wire.models.forests, rankstream.ranking.tree_scoring),
    ),
    "experiments": Target(
        _experiment,
        _experiment_seeds,
        (rankstream.experiment_records, streams.redis_copies.experiment_copy),
    ),
    "candidates": Target(_candidates, _candidates_seeds, (rankstream.wire.candidates,)),
    "deployments": Target(
        _deployment,
        _deployment_seeds,
        (rankstream.wire.models.deployments, streams.training.model_records),
    ),
    "positions": Target(
        _position, _position_seeds, (streams.kafka.state.resume_position,)
    ),
    "verdicts": Target(_verdict, _verdict_seeds, (overview_module,)),
}
