"""Whether fuzzing the core finds what it must, and nothing else."""

import os
import re
import shutil
from pathlib import Path

import pytest

from streams.native.compiler import FOLDER
from tests.fuzz.fuzzing import (
    Sanitizer,
    driver,
    fuzz,
    real_records,
    records_of_inputs,
    records_of_scopes,
    sanitizer,
    write_corpus,
)
from tests.services import ServiceMissing, without

N_RECORDS = 20_000
"""By which a planted fault is found."""

N_SOUND = 50_000
"""In which none may be found; `make long` tries a million."""


OF_INPUTS = ("input_vectors.c", "input_events.c")


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


@pytest.fixture(scope="module")
def scopes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of scopes."""
    return write_corpus(records_of_scopes(), tmp_path_factory.mktemp("scopes") / "all")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Input events."""
    return write_corpus(records_of_inputs(), tmp_path_factory.mktemp("inputs") / "all")


@pytest.fixture(scope="module")
def sound(by: Sanitizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver with the core as it is."""
    return driver(by, tmp_path_factory.mktemp("sound"))


def test_nothing_is_found(sound: Path, corpus: Path) -> None:
    """And many records are taken: mutation does not spoil all of them."""
    done = fuzz(sound, corpus, N_SOUND, seed=2)
    assert done.returncode == 0, done.stderr
    located, _, joined, tabled, *_ = taken(done.stdout)
    assert tabled == 0
    assert N_SOUND / 10 < located < N_SOUND
    # But for those that no join goes on after.
    assert 0.9 * located < joined <= located
    found = re.search(
        r"join: (\d+) closed, (\d+) clicks in them, (\d+) joins", done.stdout
    )
    assert found is not None
    closed, clicks, joins = map(int, found.groups())
    assert closed > 1_000
    assert clicks > closed / 10
    assert 1 < joins < N_SOUND / 20
    orphans, met = map(int, re.findall(r"(\d+) (?:orphans|times met)", done.stdout))
    assert orphans > 500
    assert met > 100
    counted, refused, restored, broken = map(
        int,
        re.findall(
            r"(\d+) (?:batches counted|refused,|records taken back|broken)", done.stdout
        ),
    )
    assert counted > refused > 0
    assert restored > 1_000
    assert broken > joins / 4
    credited, not_plain, of_any = map(
        int, re.findall(r"(\d+) (?:lists credited|not plain|of any)", done.stdout)
    )
    assert credited > 500
    assert not_plain > 200
    assert of_any > credited
    found = re.search(r"interventions: (\d+) lists counted", done.stdout)
    assert found is not None
    assert int(found[1]) > 500


@pytest.fixture(scope="module")
def corpora(corpus: Path, scopes: Path, inputs: Path) -> dict[str, Path]:
    """All three, by what they are of."""
    return {"log": corpus, "scopes": scopes, "inputs": inputs}


def taken(said: str) -> list[int]:
    """Records that each entry point took."""
    return [int(n) for n in re.findall(r"tried, (\d+) taken", said)]


def test_nothing_is_found_in_tables(sound: Path, scopes: Path) -> None:
    """Of scopes' records: many are taken, and many are not."""
    done = fuzz(sound, scopes, N_SOUND, seed=2)
    assert done.returncode == 0, done.stderr
    *_, tabled, _, _ = taken(done.stdout)
    assert N_SOUND / 10 < tabled < 0.9 * N_SOUND


def test_nothing_is_found_in_input_events(sound: Path, inputs: Path) -> None:
    """Of either kind many are taken, and many are not."""
    done = fuzz(sound, inputs, N_SOUND, seed=2)
    assert done.returncode == 0, done.stderr
    *_, queries, clicks = taken(done.stdout)
    assert N_SOUND / 10 < queries < 0.9 * N_SOUND
    assert N_SOUND / 10 < clicks < 0.9 * N_SOUND


def test_an_off_by_one_is_found(by: Sanitizer, corpus: Path, tmp_path: Path) -> None:
    """A build that looks one byte too far."""
    done = fuzz(driver(by, tmp_path, "-DPLANTED_FAULT"), corpus, N_RECORDS, seed=2)
    assert done.returncode != 0
    if "address" in by.said:
        assert "AddressSanitizer: heap-buffer-overflow" in done.stderr


@pytest.mark.parametrize(
    ("file", "written", "instead"),
    [
        ("queue.h", "queue->n * queue->width);", "(queue->n - 1) * queue->width);"),
        ("closing.c", "MOST_HEAD_BYTES = 8", "MOST_HEAD_BYTES = 1"),
        ("compared_list.c", "row >= list->n_items || ", ""),
        ("scope_tables.c", "next_below(&pass->from, n_pairs)", "positive(pass)"),
        ("input_vectors.c", "text.n / 4 * 3 / 4 + 1", "text.n / 8 + 1"),
        ("input_events.c", "raw_end > n_raw_bytes", "n_raw_bytes < 0"),
        ("input_events.c", "!has_room(&pass, pass.bridge.at - first))", "first < 0)"),
    ],
)
def test_faults_of_the_core_are_found(
    file: str,
    written: str,
    instead: str,
    by: Sanitizer,
    corpora: dict[str, Path],
    tmp_path: Path,
) -> None:
    """A queue that loses rows, too little room for what closes, rows without end.

    And pairs of clicks of places that are not there, memory that is too little for
    numbers, raw bytes that nobody gave, and events without room.
    """
    of_scopes = file == "scope_tables.c"
    kind = "scopes" if of_scopes else "inputs" if file in OF_INPUTS else "log"
    sources = tmp_path / "native"
    ignored = shutil.ignore_patterns(".*", "libfold*", "__pycache__")
    shutil.copytree(FOLDER, sources, ignore=ignored)
    text = (sources / file).read_text()
    assert text.count(written) == (2 if of_scopes else 1)
    (sources / file).write_text(text.replace(written, instead))
    program = driver(by, tmp_path, sources=sources)
    # One seed may never draw what shows the fault.
    assert any(
        fuzz(program, corpora[kind], N_RECORDS, seed=seed).returncode
        for seed in range(2, 10)
    )
