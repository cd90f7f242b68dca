from dataclasses import replace

import msgspec
import pytest

from streams.kafka.state.resume_position import (
    SCHEMA,
    Loss,
    ResumePosition,
    SourcePartition,
    StateRefused,
    check_missing,
    check_position,
    check_settings,
    decode_position,
    encode_position,
    start_of,
)
from streams.topology import STAGES, StageKind

SOURCE = SourcePartition("events[1]", "id", 4, first=3, end=20)
POSITION = ResumePosition(SCHEMA, 9, 9, b"f", b"f", "id", 7, 12, 4, 1)


def changed(**fields: object) -> ResumePosition:
    """The resume position, but for some fields."""
    position: ResumePosition = msgspec.structs.replace(POSITION, **fields)
    return position


def test_a_resume_position_comes_back_as_it_was() -> None:
    """What was written is what is read."""
    assert decode_position(encode_position(POSITION)) == POSITION


@pytest.mark.parametrize(
    "packed",
    [b"", b"\xc1", msgspec.msgpack.encode([SCHEMA + 1, 9, 9, b"", b"", "", 1])],
)
def test_a_resume_position_of_another_version_is_refused(packed: bytes) -> None:
    """Neither is it guessed at, nor does it end in an error that is tried again."""
    with pytest.raises(StateRefused, match="a resume position must"):
        decode_position(packed)


def test_another_layout_of_a_later_version_has_its_remedy() -> None:
    """The number is compared before anything else is decoded."""
    packed = msgspec.msgpack.encode([99, 1, 2])
    with pytest.raises(StateRefused, match="got 99: run the version that wrote it"):
        decode_position(packed)


def kind_of(version: int, since: int = 1, conversion: str = "") -> StageKind:
    """A stage of which only the versions matter."""
    stage = next(kind for kind in STAGES if kind.name == "fold")
    return replace(stage, version=version, since=since, conversion=conversion)


def test_versions_whose_states_are_gone_on_from() -> None:
    """From the first to the last; one before and one after are refused."""
    position = changed(stage_version=3)
    check_position(position, SOURCE, kind_of(3, 3))
    check_position(position, SOURCE, kind_of(5, 3))
    with pytest.raises(StateRefused, match="of version 1 to 2; it is of 3: run the v"):
        check_position(position, SOURCE, kind_of(2, 1))
    with pytest.raises(StateRefused, match="of version 4 to 5; it is of 3: run `it`"):
        check_position(position, SOURCE, kind_of(5, 4, "run `it`"))


def test_the_state_of_this_log_is_taken() -> None:
    """Nothing is refused that belongs together."""
    check_position(POSITION, SOURCE, kind_of(1))
    check_position(POSITION, SOURCE._replace(first=12, end=10), kind_of(1))
    check_missing(SOURCE, "fold-state", committed=None, n_keys=0)
    check_missing(SOURCE, "fold-state", committed=0, n_keys=0)


@pytest.mark.parametrize(
    ("source", "version", "reason"),
    [
        (SOURCE._replace(topic_id="other"), 1, "created anew"),
        (SOURCE._replace(n_partitions=8), 1, "keep its 4 partitions"),
        (SOURCE, 2, "of version 2"),
        (SOURCE._replace(end=9), 1, "truncated"),
    ],
)
def test_the_state_of_another_log_is_refused(
    source: SourcePartition, version: int, reason: str
) -> None:
    """Each refusal says what is wrong, and where."""
    with pytest.raises(StateRefused, match=reason) as refusal:
        check_position(POSITION, source, kind_of(version, version))
    assert "events[1]" in str(refusal.value)
    assert "--namespace" in str(refusal.value)


def test_a_position_of_before_settings_and_losses_comes_back() -> None:
    """What it does not say is empty; a later one is read by an earlier release."""
    earlier = msgspec.msgpack.encode([SCHEMA, 9, 9, b"f", b"f", "id", 7, 12, 4, 1])
    assert decode_position(earlier) == POSITION
    assert (POSITION.settings, POSITION.losses) == ({}, ())
    later = changed(settings={"time.keep_ms": 1}, losses=(Loss(1, 2),))
    known = msgspec.msgpack.decode(encode_position(later))[:10]
    assert known == msgspec.msgpack.decode(earlier)
    assert decode_position(encode_position(later)) == later


def test_a_log_that_ends_before_an_accepted_loss_was_truncated() -> None:
    """Its offsets would be given to other records."""
    lossy = changed(losses=(Loss(12, 30),), next_offset=31)
    check_position(lossy, SOURCE._replace(first=31, end=31), kind_of(1))
    with pytest.raises(StateRefused, match=r"after offset 30; .* truncated"):
        check_position(lossy, SOURCE._replace(first=31, end=30), kind_of(1))


def test_settings_that_differ_are_refused_by_name() -> None:
    """All of them at once, each with what it was and what it is."""
    made_under = {"time.keep_ms": 5, "limits.lists": 64, "limits.clicks": 9}
    position = changed(settings=made_under)
    check_settings(position, "events[1]", made_under)
    with pytest.raises(StateRefused) as refusal:
        check_settings(
            position, "events[1]", made_under | {"time.keep_ms": 6, "limits.lists": 1}
        )
    assert str(refusal.value) == (
        "settings must be those that the state of events[1] was made under; "
        "limits.lists was 64, is 1, time.keep_ms was 5, is 6: set it back, or fold the "
        "log in a new --namespace"
    )


def test_settings_that_only_one_side_names_are_taken() -> None:
    """A release may record one more, or one fewer."""
    check_settings(POSITION, "events[1]", {"time.keep_ms": 6})
    check_settings(changed(settings={"time.gone_ms": 1}), "events[1]", {})


@pytest.mark.parametrize(("version", "is_named"), [(2, True), (3, False)])
def test_a_state_that_can_be_converted_is_refused_with_the_command(
    version: int, is_named: bool
) -> None:
    """Only the version before is converted."""
    kind = kind_of(version, version, "run `it`")
    with pytest.raises(StateRefused, match=f"of version {version}; it is of 1") as told:
        check_position(POSITION, SOURCE, kind)
    assert ("run `it`, or fold the log" in str(told.value)) is is_named
    assert ("run the version that wrote it, or" in str(told.value)) is not is_named


@pytest.mark.parametrize(("committed", "n_keys"), [(5, 0), (None, 1), (5, 1)])
def test_a_missing_resume_position_beside_what_was_counted_is_refused(
    committed: int | None, n_keys: int
) -> None:
    """Counting anew beside old counts would count twice."""
    with pytest.raises(StateRefused, match="must have a resume position"):
        check_missing(SOURCE, "fold-state", committed=committed, n_keys=n_keys)


def test_reading_starts_behind_the_checkpoint_and_behind_what_transactions_left() -> (
    None
):
    """After a checkpoint, offsets that hold no record may be gone already."""
    assert start_of(POSITION) == 12
    assert start_of(changed(next_offset=0)) == 10
    assert start_of(changed(checkpoint_offset=4)) == 5
