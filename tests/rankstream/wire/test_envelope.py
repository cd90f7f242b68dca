import hashlib
import struct

import msgspec
import numpy as np
import pytest

from rankstream.wire.envelope import (
    HEADER,
    LARGEST_NUMBER,
    Pointer,
    SnapshotError,
    decode_at,
    decode_snapshot,
    deployed,
    encode_snapshot,
    features_hash,
    is_pointer,
    n_weights,
    parent_pointer,
    pointer_from,
    pointer_of,
    rolled_back,
)
from rankstream.wire.feature_names import fault_of_names
from rankstream.wire.models.snapshot_names import decode_record
from tests.snapshot_factory import envelope, snapshot


def reason_of(damaged: bytes) -> str:
    """Why an envelope is refused."""
    with pytest.raises(SnapshotError) as caught:
        decode_snapshot(damaged)
    return caught.value.reason


def sealed(payload: bytes, schema: int = 1) -> bytes:
    """An envelope with a right checksum around any payload, by the layout's text."""
    digest = hashlib.sha256(payload).digest()
    return b"RSNP" + struct.pack(">HI", schema, len(payload)) + digest + payload


def fields_of(version: int = 1) -> list[object]:
    """The fields of a snapshot in their order on the wire."""
    return [
        "m", 0, version, 0, 5, "linear", [], "none", 3, features_hash(3), [[2, 7]], 4,
        np.full(3, version, "<f4").tobytes(),
    ]  # fmt: skip


def test_layout_is_pinned() -> None:
    """The bytes of schema 1 are header, digest and a MessagePack array in order."""
    made = snapshot(1, parent=0, created_ms=5, sources=[(2, 7)], updates=4)
    assert encode_snapshot(made) == sealed(msgspec.msgpack.encode(fields_of()))


NAMES = ["bm25", "age, days", "ctr"]


def declared_fields() -> list[object]:
    """What may follow the fields that every snapshot has, in order."""
    shift, scale = (np.array(x, "<f4").tobytes() for x in ([1, 2, 3], [4, 5, 6]))
    return ["m@1.1", NAMES, shift, scale, [0, 3], True, 4]


def test_what_is_declared_follows_and_defaults_take_no_bytes() -> None:
    """The layout of each length up to the last field that says something."""
    fields = [*fields_of(), *declared_fields()]
    fields[9] = features_hash(NAMES)
    for length in range(13, 21):
        made = decode_snapshot(sealed(msgspec.msgpack.encode(fields[:length])))
        assert encode_snapshot(made) == sealed(msgspec.msgpack.encode(fields[:length]))
    assert (made.intervention, made.feature_names) == ("m@1.1", NAMES)
    assert (made.groups, made.log_candidates) == ([0, 3], True)
    assert (made.parent_epoch, parent_pointer(made)) == (4, Pointer(4, 0))
    assert np.frombuffer(made.shift, "<f4").tolist() == [1, 2, 3]
    assert np.frombuffer(made.scale, "<f4").tolist() == [4, 5, 6]


def test_decoding_gives_back_what_was_encoded() -> None:
    """Encoding and decoding are inverse, and the bytes are the same each time."""
    for made in (snapshot(7), snapshot(8, hidden=[4, 2], n_features=5, epoch=3)):
        assert decode_snapshot(encode_snapshot(made)) == made
        assert encode_snapshot(made) == encode_snapshot(msgspec.structs.replace(made))


def test_every_flipped_bit_is_refused() -> None:
    """Whatever single bit of a small snapshot is flipped, it is not taken."""
    good = envelope(12, n_features=46)
    for bit in range(8 * len(good)):
        damaged = bytearray(good)
        damaged[bit // 8] ^= 1 << bit % 8
        assert reason_of(bytes(damaged))


def test_flipped_bits_of_a_large_snapshot_are_refused() -> None:
    """A megabyte is guarded as well as a few bytes are."""
    good = bytearray(envelope(12, n_features=250_000))
    rng = np.random.default_rng(1)
    for bit in rng.integers(8 * len(good), size=200).tolist():
        good[bit // 8] ^= 1 << bit % 8
        assert reason_of(bytes(good))
        good[bit // 8] ^= 1 << bit % 8


def test_every_truncation_and_extension_is_refused() -> None:
    """A part of an envelope is none, nor is one with more behind it."""
    good = envelope(3, n_features=20)
    for length in range(len(good)):
        assert reason_of(good[:length]) in {"truncated", "length"}
    assert reason_of(good + b"\0") == "length"


def test_zero_filled_bytes_are_refused() -> None:
    """Pages that were never written do not pass."""
    good = envelope(3, n_features=20)
    for start in range(len(good)):
        damaged = good[:start] + bytes(len(good) - start)
        if damaged != good:
            assert reason_of(damaged)


def test_swapped_payloads_are_refused() -> None:
    """The header of one version does not pass with the payload of another."""
    one, two = envelope(1), envelope(2)
    assert len(one) == len(two)
    assert reason_of(one[: HEADER.size] + two[HEADER.size :]) == "checksum"


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (5, "tree", "shape"),
        (5, "neural", "shape"),
        (6, [2], "shape"),
        (6, [0], "shape"),
        (7, "ranks", "shape"),
        (8, 0, "shape"),
        (8, 4, "weights"),
        (1, -1, "shape"),
        (1, LARGEST_NUMBER + 1, "pointer"),
        (2, LARGEST_NUMBER + 1, "pointer"),
        (2, 2**64 - 1, "pointer"),
        (3, LARGEST_NUMBER + 1, "pointer"),
        (2, "one", "payload"),
        (12, b"", "weights"),
    ],
)
def test_well_sealed_nonsense_is_refused(
    place: int, value: object, reason: str
) -> None:
    """A right checksum does not make a wrong snapshot right."""
    fields = fields_of()
    fields[place] = value
    assert reason_of(sealed(msgspec.msgpack.encode(fields))) == reason


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (13, "m" * 257, "shape"),
        (14, ["a", "b"], "shape"),
        (14, ["a", "b", "b"], "shape"),
        (14, ["a", "", "c"], "shape"),
        (14, ["a", "b\x1fc", "d"], "shape"),
        (14, ["age, days", "bm25", "ctr"], "shape"),
        (15, b"1234", "weights"),
        (16, b"1234" * 4, "weights"),
        (17, [-1], "shape"),
        (18, 1, "payload"),
        (19, -1, "shape"),
        (19, LARGEST_NUMBER + 1, "pointer"),
    ],
)
def test_nonsense_among_what_is_declared_is_refused(
    place: int, value: object, reason: str
) -> None:
    """Names that are not those of the hash, numbers that are too few, no groups."""
    fields = [*fields_of(), *declared_fields()]
    fields[9] = features_hash(NAMES)
    fields[place] = value
    assert reason_of(sealed(msgspec.msgpack.encode(fields))) == reason


@pytest.mark.parametrize("number", [0, 10**14, 10**15 - 1, 10**15, 2**53, 2**63])
def test_what_is_decoded_has_a_pointer_that_can_be_read(number: int) -> None:
    """And the other way round: neither takes a version that the other refuses."""
    for made in (snapshot(number), snapshot(1, epoch=number)):
        is_named = is_pointer(str(pointer_of(made)).encode()) is not None
        try:
            is_taken = decode_snapshot(encode_snapshot(made)) == made
        except SnapshotError:
            is_taken = False
        assert is_taken == is_named == (number <= LARGEST_NUMBER)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["", "b", "c"], "got '' for feature 1"),
        (["a", "b", "c\n"], "for feature 3"),
        (["a", "b", "b"], "got 'b' again for feature 3"),
        (["a", "a", "c"], "got 'a' again for feature 2"),
    ],
)
def test_a_name_that_cannot_be_is_told_with_its_place(
    names: list[str], told: str
) -> None:
    """Counted from 1, as they are where they were given."""
    assert fault_of_names(names, 3).endswith(told)
    assert not fault_of_names(["a", "b", "c"], 3)


def test_keys_of_the_topic_are_those_of_their_snapshot() -> None:
    """Of a version, of what was deployed, or of what is followed again."""
    for key in (b"m/2.1", b"m", b"m/follow"):
        assert decode_record(key, envelope(1, epoch=2)) == snapshot(1, epoch=2)
    for key in (b"", b"m/1.2", b"n", b"n/2.1", b"m/", b"m/deployed"):
        with pytest.raises(SnapshotError, match=r"the key must be b'm/2\.1'; got"):
            decode_record(key, envelope(1, epoch=2))


def test_what_is_deployed_has_a_name_of_its_own() -> None:
    """Of model, epoch and version; one that events could not bear is refused."""
    new = deployed(snapshot(5, model="shop@2", intervention="shop@2@1.5", epoch=1), 4)
    assert (new.intervention, pointer_of(new)) == ("shop@2@4.5", Pointer(4, 5))
    assert rolled_back(snapshot(5), 1).intervention == ""
    assert len(deployed(snapshot(5, model="m" * 252), 1).intervention) == 256
    with pytest.raises(SnapshotError, match=r"at most 256 characters, .* has 257"):
        deployed(snapshot(5, model="m" * 253), 1)


def test_other_major_is_refused_and_later_minor_is_read() -> None:
    """Fields that a later minor layout adds at the end are skipped."""
    known = [*fields_of(), "m@1.1", [], b"", b"", [], False, 0]
    payload = msgspec.msgpack.encode([*known, "new", {"more": 1}])
    assert decode_snapshot(sealed(payload)).sources == [(2, 7)]
    assert reason_of(sealed(payload, schema=3)) == "schema"
    assert reason_of(sealed(payload, schema=0)) == "schema"
    assert reason_of(sealed(b"\xc1")) == "payload"
    assert reason_of(sealed(b"\x91" * 100_000)) == "payload"


def test_a_good_snapshot_in_a_wrong_place_is_refused() -> None:
    """Whole envelopes that changed places are found out, and so are absent ones."""
    for bytes_there, model, place, reason in (
        (envelope(1), "m", Pointer(0, 2), "misplaced"),
        (envelope(1), "m", Pointer(1, 1), "misplaced"),
        (envelope(1), "n", Pointer(0, 1), "model"),
        (b"", "m", Pointer(0, 1), "missing"),
    ):
        with pytest.raises(SnapshotError) as caught:
            decode_at(bytes_there, model, place)
        assert caught.value.reason == reason
    assert decode_at(envelope(1), "m", Pointer(0, 1)) == snapshot(1)


def test_number_of_weights_is_that_of_the_layers() -> None:
    """Each hidden layer has weights and biases, the score has weights only."""
    assert n_weights(5, []) == 5
    assert n_weights(5, [3]) == 5 * 3 + 3 + 3
    assert n_weights(5, [3, 2]) == 5 * 3 + 3 + 3 * 2 + 2 + 2


def test_a_rollback_is_the_same_model_in_a_later_epoch() -> None:
    """Whatever is learned in an earlier epoch stays behind it."""
    old = snapshot(5)
    new = rolled_back(old, 1)
    assert new.weights == old.weights
    assert pointer_of(new) > pointer_of(snapshot(1_000_000))
    with pytest.raises(ValueError, match="epoch must be above 1"):
        rolled_back(new, 1)
    last = rolled_back(new, LARGEST_NUMBER)
    with pytest.raises(ValueError, match="and at most 999,999,999,999,999; got 10"):
        rolled_back(last, LARGEST_NUMBER + 1)


def test_pointers_are_read_strictly() -> None:
    """Only two numbers with a dot between are a pointer."""
    assert pointer_from(b"3.12") == Pointer(3, 12)
    assert str(Pointer(3, 12)) == "3.12"
    assert pointer_from(b"0.0") == Pointer(0, 0)
    wrongs = (b"", b"3", b"3.", b".1", b"3.1.2", b"-1.2", b"a.b", "٣.١".encode())
    for wrong in (*wrongs, b"0.09", b"03.9", b"00.1", b"3.00", b"1.2\n"):
        with pytest.raises(SnapshotError):
            pointer_from(wrong)


def test_a_bad_pointer_is_shown_as_text() -> None:
    """Whatever bytes it has; at most 40 of them."""
    for wrong, shown in (
        (b"latest", "'latest'"),
        (b"\xff\n[red]", r"'\ufffd\n[red]'".replace(r"\ufffd", "\ufffd")),
        (b"x" * 99, "'" + "x" * 40 + "'"),
    ):
        with pytest.raises(SnapshotError) as caught:
            pointer_from(wrong)
        assert str(caught.value).endswith(
            f"must be EPOCH.VERSION without leading zeros; got {shown}"
        )
