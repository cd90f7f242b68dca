"""Which lists may have been made by a model that learned from clicks."""

from pathlib import Path

import pytest

from rankstream.operations.answers.folders import SNAPSHOTS_FILE
from rankstream.operations.answers.sources import learned_in
from rankstream.settings import ExperimentSettings, ModelSettings, Settings
from streams.local import write_changes
from streams.stage import Change
from streams.training.model_lists import LearnedOnline
from tests.snapshot_factory import envelope

MODELS = {
    "search": ModelSettings(features=3),
    "shop": ModelSettings(features=3, versions="trained"),
}


def unread() -> frozenset[str]:
    """Snapshots that nobody should ask for."""
    raise AssertionError("settings tell it")


def test_models_that_learn_are_known_from_settings() -> None:
    """No snapshot is read for them, nor for lists without a name."""
    learned = LearnedOnline(Settings(models=MODELS), unread)
    assert "search" in learned
    assert "" not in learned


def test_models_that_no_settings_name_any_more_are_known_from_snapshots() -> None:
    """What they learned is in the statistics for as long as an era lives."""
    learned = LearnedOnline(Settings(models=MODELS), lambda: ["old", "shop"])
    assert "old" in learned
    assert "shop" in learned, "it learned online before it was trained"
    assert "v2" not in learned
    assert "" not in learned


@pytest.mark.parametrize(
    ("rankers", "is_learned"),
    [
        ({"new": "search", "old": ""}, True),
        ({"new": "shop@1.7", "old": ""}, True),
        ({"new": "shop", "old": ""}, False),
        ({"new": "", "old": ""}, False),
    ],
)
def test_lists_without_a_name_may_be_of_an_experiment(
    rankers: dict[str, str], *, is_learned: bool
) -> None:
    """Combined lists name no model, and their exposures are known."""
    experiments = {"x": ExperimentSettings(rankers=rankers)}
    settings = Settings(models=MODELS, experiments=experiments)
    assert ("" in LearnedOnline(settings, unread)) is is_learned


def test_a_replay_tells_which_models_learned(tmp_path: Path) -> None:
    """Whatever the settings are under which its statistics are read."""
    assert learned_in(tmp_path) == frozenset()
    changes = [
        Change("snapshots", name.encode(), envelope(version, model=name))
        for name, version in (("search", 7), ("shop", 0))
    ]
    trained = envelope(9, model="news", intervention="news@0.9")
    changes.append(Change("snapshots", b"news", trained))
    write_changes(tmp_path / SNAPSHOTS_FILE, changes)
    assert learned_in(tmp_path) == {"search"}
    write_changes(tmp_path / SNAPSHOTS_FILE, [Change("snapshots", b"m", b"no")])
    with pytest.raises(ValueError, match="must hold snapshots"):
        learned_in(tmp_path)
