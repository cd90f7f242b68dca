"""Whether a forged forest can make the compiled scoring read what is not its own."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from rankstream.ranking.tree_scoring import TreeScorer
from rankstream.wire.models import forests as checks
from tests.fuzz import forests
from tests.fuzz.fuzzing import Sanitizer, sanitizer
from tests.services import ServiceMissing, without
from tests.session.cases import n_cases

N_TRIED = n_cases(3_000, 100_000)


@pytest.fixture(scope="module")
def by(tmp_path_factory: pytest.TempPathFactory) -> Sanitizer:
    """The compiler; without one the tests are skipped by hand, and fail in CI."""
    try:
        return sanitizer(tmp_path_factory.mktemp("probe"))
    except ServiceMissing as reason:
        without(reason, os.environ)


@pytest.fixture(scope="module")
def program(by: Sanitizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores forests where memory ends with each array."""
    return forests.driver(by, tmp_path_factory.mktemp("forests"))


def test_what_decoding_lets_pass_is_scored_within_its_arrays(
    program: Path, tmp_path: Path
) -> None:
    """To the bits of numpy; some of what is spoilt passes, and most does not."""
    passed = [*forests.passed(N_TRIED, seed=1)]
    assert N_TRIED / 20 < len(passed) < N_TRIED / 2
    cases = [forests.case_of(each, n) for n, each in enumerate(passed)]
    done = scored(program, tmp_path, [told for told, _ in cases])

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(cases)
    for line, (_, expected) in zip(lines, cases, strict=True):
        bits = [int(each, 16) for each in line.split()]
        assert bits == expected.view(np.uint64).tolist()


@pytest.mark.parametrize("name", ["_fault_of_numbers", "_fault_of_children"])
def test_without_a_check_something_is_found(
    name: str, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A feature, or a child, that is not there; or a tree that never ends."""
    monkeypatch.setattr(checks, name, lambda *_: "")
    found = []
    for number, packed in enumerate(forests.passed(200, seed=2)):
        monkeypatch.setattr(TreeScorer, "scores_in_numpy", lambda *_: None)
        told, _ = forests.case_of(packed, number)
        try:
            done = scored(program, tmp_path, [told], timeout_s=2)
        except subprocess.TimeoutExpired:
            found.append("no end")
            break
        if done.returncode:
            found.append(done.stderr)
            break
    assert found


def scored(
    program: Path, folder: Path, cases: list[bytes], timeout_s: float | None = None
) -> "subprocess.CompletedProcess[str]":
    """What the program says of forests."""
    path = folder / "cases"
    path.write_bytes(b"".join(cases))
    return subprocess.run(
        [str(program), str(path)],
        capture_output=True, text=True, check=False, timeout=timeout_s,
    )  # fmt: skip
