"""Whether spoilt records become anything but errors of the right type."""

import logging
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import rankstream.wire.candidates
import rankstream.wire.events
import rankstream.wire.models.deployments
import rankstream.wire.schemas
import streams.ingest.validation
from tests.fuzz.decoders import TARGETS
from tests.fuzz.decoding import explore_one
from tests.fuzz.guided import CORPUS, explore, stored_corpus

N_RECORDS = 5_000
"""For all of them together; `make long` tries a hundred thousand."""


@pytest.fixture(autouse=True)
def _no_log() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", TARGETS)
def test_no_record_leads_to_an_error_without_a_type(name: str) -> None:
    """And most of what is known to be reached is reached again."""
    found = explore_one(name, N_RECORDS, seed=2)
    assert not found.faults
    assert found.n_tried > N_RECORDS // len(TARGETS)
    # Each of the stored inputs was kept for something that no other reached.
    assert len(found.kept) >= 0.9 * len(stored_corpus()[name])


def test_the_corpus_is_small_and_of_these_targets() -> None:
    """It is read by every run, and lies in the repository."""
    assert set(stored_corpus()) == set(TARGETS)
    assert all(stored_corpus().values())
    assert CORPUS.stat().st_size < 64_000


def test_a_kind_of_error_that_nobody_foresees_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Text that is not UTF-8, without the one place that gives it a type."""
    for module in (
        rankstream.wire.candidates,
        rankstream.wire.models.deployments,
        rankstream.wire.events,
    ):
        monkeypatch.setattr(module, "decoded", lambda decode, packed: decode(packed))
    for name in ("candidates", "deployments", "events", "interactions"):
        target = TARGETS[name]
        found = explore(target, target.seeds(), 500, seed=2)
        assert any("UnicodeDecodeError" in fault for fault in found.faults), name


def test_mutation_finds_its_way_behind_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault that only an event shows that is right in all else."""

    def planted(attributes: Any) -> None:
        if attributes and attributes["n"] != [1, None, {"deep": 1.5}]:
            raise ZeroDivisionError

    monkeypatch.setattr(streams.ingest.validation, "check_attributes", planted)
    target = TARGETS["queries"]
    found = explore(target, target.seeds()[:1], 1_000, seed=2)
    assert list(found.faults) == ["ZeroDivisionError in test_decoding.py, planted"]


@pytest.mark.parametrize(
    "packed", [b"\x94\x01\x00\x01\xa1\xff", b"\x94\x01\x00\x01" + b"\x91" * 5_000]
)
def test_decoding_has_one_error(packed: bytes) -> None:
    """For text that is not UTF-8, and for what is nested too deep."""
    decode = msgspec.msgpack.Decoder().decode
    with pytest.raises(msgspec.DecodeError):
        rankstream.wire.schemas.decoded(decode, packed)
