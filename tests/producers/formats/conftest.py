"""The real rows of Open Bandit data, read once for all tests of them."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from rankstream.operations.cli import main
from streams.local import read_changes
from streams.statistics.reader import Statistics
from tests.data_sets import folder_of
from tests.producers.formats.bandit_rows import BanditRow

SAMPLE = folder_of("OBD-small")
WITHOUT = f"Open Bandit data is not at {SAMPLE}, so nothing was checked on real rows"
POLICIES = ("bts", "random")


@pytest.fixture(scope="session")
def bandit_files() -> list[str]:
    """The folders of a campaign, of both policies."""
    if not SAMPLE.exists():
        pytest.skip(WITHOUT)
    return [str(SAMPLE / policy / "men") for policy in POLICIES]


@pytest.fixture(scope="session")
def bandit_rows(bandit_files: list[str]) -> list[BanditRow]:
    """Its rows, by the csv module alone."""
    found = []
    for policy, folder in zip(POLICIES, bandit_files, strict=True):
        with gzip.open(Path(folder) / "men.csv.gz", "rt", encoding="utf-8") as file:
            found += [
                BanditRow(
                    policy,
                    f"men/{row['position']}",
                    row["item_id"],
                    row["click"] == "1",
                    float(row["propensity_score"]),
                )
                for row in csv.DictReader(file)
            ]
    return found


@pytest.fixture(scope="session")
def bandit_statistics(
    bandit_files: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Statistics:
    """What the fold counts of them."""
    folder = tmp_path_factory.mktemp("obd")
    words = ["replay", *bandit_files, "--format", "obd", "--local", "--strict"]
    assert main([*words, "--out", str(folder)]) == 0
    return Statistics(read_changes(folder / "statistics.bin"))


@pytest.fixture(scope="session")
def bandit_export(
    bandit_files: list[str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, np.ndarray]:
    """Their arrays, as `rankstream export` writes them."""
    file = tmp_path_factory.mktemp("obd") / "men.npz"
    words = ["export", *bandit_files, "--format", "obd", "--arrays", str(file)]
    assert main(words) == 0
    with np.load(file) as arrays:
        return dict(arrays)
