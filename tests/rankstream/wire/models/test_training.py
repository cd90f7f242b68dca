"""Records of the topic `training`: what is written comes back, and nothing else."""

import msgspec
import pytest

from rankstream.wire.models.snapshot_names import Parent
from rankstream.wire.models.training import (
    ASKED,
    DONE,
    SCHEMA,
    CurveUsed,
    FeaturesUsed,
    Position,
    Record,
    Refusal,
    Request,
    RunRecord,
    Sizes,
    Status,
    decode_record,
    decode_training_key,
    encode_record,
    training_key,
)
from rankstream.wire.schemas import SchemaRefused

RUN = RunRecord(
    SCHEMA, "a/b", "a/b@1.30", 1, 30, 1_700, ASKED, [(0, 10), (1, 20)],
    [(0, 1_700), (1, None)], [FeaturesUsed(1, 2, b"d" * 16)], {"features": 3},
    [0.6, 0.2],
    7, Parent(0, 0, b"p" * 32), CurveUsed([1.0, 0.5], [0.0, 0.0], True, "x", [2], b"v"),
    [0, 1], Sizes(4, 1, 20, 3, 0.25, 1, 0, 9), [(0, 0.5, 0.1), (1, 0.25, 0.2)], 1, 2.0,
    1.0, 0.2, None, "too few", b"s" * 32, "r1",
)  # fmt: skip
POSITION = Position(SCHEMA, 2, [(0, 10), (1, 20)], 1_700, "a/b@1.30", "r1")
RECORDS: dict[str, Record] = {
    "position": POSITION,
    "run": RUN,
    "request": Request(SCHEMA, "r1", 5),
    "status": Status(SCHEMA, DONE, "published", 6, "r1"),
    "refusal": Refusal(SCHEMA, "too few", 6, ASKED, "r1", "a/b@0.10"),
}


@pytest.mark.parametrize("kind", RECORDS)
def test_records_come_back_by_the_kind_of_their_key(kind):
    """Whatever characters the model's name has."""
    record = RECORDS[kind]
    assert decode_record(kind, encode_record(record)) == record
    assert decode_training_key(training_key(kind, "a/b")) == (kind, "a/b")


def test_a_position_counts_all_partitions():
    """It is what the schedule goes by."""
    assert POSITION.n_counted == 30


def test_a_run_of_the_release_before_is_read():
    """It ended before how far the version can fall; nothing is known of that."""
    fields = msgspec.msgpack.decode(encode_record(RUN))
    names = RunRecord.__struct_fields__
    before = fields[: names.index("largest_loss")]
    assert names[len(before) :] == (
        "largest_loss", "least_ratio", "step", "n_beside", "n_lists", "ends", "lightgbm"
    )  # fmt: skip
    found = decode_record("run", msgspec.msgpack.encode(before))
    assert found == RUN
    assert (found.largest_loss, found.least_ratio, found.step) == (None, None, 1.0)


def test_other_releases_are_told_apart():
    """A later schema is refused, a later kind passed over, and rubbish is none."""
    later = msgspec.msgpack.encode([SCHEMA + 1, "r1", 5])
    with pytest.raises(SchemaRefused, match=r"training must have schema 1; got 2"):
        decode_record("request", later)
    with pytest.raises(msgspec.DecodeError):
        decode_record("request", encode_record(RUN)[:40])
    assert decode_training_key(b"a/later") is None
    with pytest.raises(ValueError, match="kind must be one of"):
        training_key("later", "a")
