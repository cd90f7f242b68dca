"""Seeds of the runs of chapter 10: what pairs share, and what nothing else does."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankstream.lab.closed_loops.policy_log import AFFINE, AWARE
from rankstream.lab.closed_loops.policy_training import POLICY_GRADIENT
from rankstream.lab.reproduction.data import prepare
from rankstream.lab.reproduction.engine import Job, Setup
from rankstream.lab.reproduction.interventions import runs
from rankstream.lab.reproduction.interventions.plan import (
    CONTINUOUS,
    PDGD,
    SHARP,
    Cell,
)
from rankstream.lab.reproduction.interventions.runs import live_once
from tests.rankstream.lab.reproduction.test_reproduce import parts_folder

AWARE_50 = Cell(SHARP, AWARE, 50, POLICY_GRADIENT, 100)
AFFINE_0 = Cell(SHARP, AFFINE, 0, POLICY_GRADIENT, 100)
ONLINE = Cell(SHARP, PDGD, CONTINUOUS, "", 100)


class Begun(Exception):
    """A run has its generators, which is all that is asked for."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folds, prepared."""
    place = tmp_path_factory.mktemp("place")
    folder = parts_folder(place / "data")
    for fold in (1, 2):
        prepare(folder, fold, place, normalisation="min-max")
    return place


def test_pairs_share_users_and_trainings_and_nothing_else_does(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells of a fold and run; other seeds, folds and runs draw anew."""
    drawn: list[tuple[float, ...]] = []

    def scene_of(setup: Setup, job: Job[Cell], rng: np.random.Generator) -> Any:
        del setup, job
        drawn.append((float(rng.random()),))

    def learner_of(_: Any, cell: Cell, *rngs: np.random.Generator) -> Any:
        del cell
        drawn[-1] += tuple(float(rng.random()) for rng in rngs)
        raise Begun

    monkeypatch.setattr(runs, "_scene_of", scene_of)
    monkeypatch.setattr(runs, "_learner_of", learner_of)

    def begun(cell: Cell, fold: int = 1, run: int = 0, seed: int = 1) -> Any:
        with pytest.raises(Begun):
            live_once(Setup(place, "min-max", 3, seed), Job(cell, fold, run))
        return drawn[-1]

    first = begun(AWARE_50)
    assert begun(AFFINE_0) == begun(ONLINE) == first
    others = begun(AWARE_50, fold=2), begun(AWARE_50, run=1), begun(AWARE_50, seed=2)
    numbers = [*first, *(number for each in others for number in each)]
    assert len({*numbers}) == len(numbers) == 4 * 3
