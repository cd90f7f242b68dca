"""Whether fuzzing the core finds what it must, and nothing else."""

import os
from pathlib import Path

import pytest

from tests.fuzz.fuzzing import (
    Sanitizer,
    driver,
    fuzz,
    real_records,
    sanitizer,
    write_corpus,
)
from tests.services import ServiceMissing, without

N_RECORDS = 20_000
"""CI tries a million in a run of its own, `make fuzz`."""


@pytest.fixture(scope="module")
def by(tmp_path_factory: pytest.TempPathFactory) -> Sanitizer:
    """The compiler; without one the tests are skipped by hand, and fail in CI."""
    try:
        return sanitizer(tmp_path_factory.mktemp("probe"))
    except ServiceMissing as reason:
        without(reason, os.environ)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real records."""
    return write_corpus(real_records(100), tmp_path_factory.mktemp("corpus") / "all")


def test_nothing_is_found(by: Sanitizer, corpus: Path, tmp_path: Path) -> None:
    """And many records are taken: mutation does not spoil all of them."""
    done = fuzz(driver(by, tmp_path), corpus, N_RECORDS, seed=2)
    assert done.returncode == 0, done.stderr
    taken = int(done.stdout.split("tried, ")[1].split()[0])
    assert N_RECORDS / 10 < taken < N_RECORDS


def test_an_off_by_one_is_found(by: Sanitizer, corpus: Path, tmp_path: Path) -> None:
    """A build that looks one byte too far."""
    done = fuzz(driver(by, tmp_path, "-DPLANTED_FAULT"), corpus, N_RECORDS, seed=2)
    assert done.returncode != 0
    if "address" in by.said:
        assert "AddressSanitizer: heap-buffer-overflow" in done.stderr
