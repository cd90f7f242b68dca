"""Trees of a file as a version of a model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankstream.operations.answers.folders import snapshot_in
from rankstream.operations.answers.models import tree_models
from rankstream.operations.answers.models.tree_models import (
    FittedOn,
    ImportRefused,
    imported_snapshot,
)
from rankstream.operations.exported_models.targets import exported_file
from rankstream.operations.tree_files.formats import ReadFile, read_model_file
from rankstream.operations.tree_files.lightgbm_text import write_lightgbm
from rankstream.operations.tree_files.tree_file import TreeFile
from rankstream.ranking.checked_weights import checked_weights
from rankstream.ranking.tree_scoring import TreeScorer
from rankstream.settings import ModelSettings, Settings, SettingsError, load_settings
from rankstream.wire.envelope import Snapshot, encode_snapshot
from rankstream.wire.models.forests import NAN_IS_MISSING, pack_forest
from streams.learning.model_fold import ModelFold
from tests.forest_factory import drawn_forest, telling_documents
from tests.trained_elsewhere import N_FEATURES, NAMES

FOREST = drawn_forest(1, n_features=N_FEATURES)

FORM: dict[str, Any] = {
    "kind": "trees",
    "normalisation": "none",
    "versions": "promoted",
}


def settings_with(**fields: Any) -> Settings:
    """A model of trees by six features, with names unless told otherwise."""
    own: dict[str, Any] = {"features": N_FEATURES, "feature_names": NAMES}
    return Settings(models={"search": ModelSettings(**(FORM | own | fields))})


def a_file(names: list[str] | None = None, **fields: Any) -> ReadFile:
    """What was read of a file."""
    trees = TreeFile(FOREST, N_FEATURES, NAMES if names is None else names, **fields)
    return ReadFile(trees, "lightgbm", b"content")


def scores_of(made: Snapshot, features: np.ndarray) -> list[float]:
    """Of documents by a snapshot."""
    found: list[float] = checked_weights(made, None).scores(features, made).tolist()
    return found


def test_features_are_put_into_the_order_of_the_model() -> None:
    """By name: the file has another order, and one that no split looks at."""
    turned = NAMES[::-1]
    settings = settings_with(feature_names=[*turned, "new"], features=7)
    made = imported_snapshot("search", settings, a_file())

    features = telling_documents(FOREST, 50, N_FEATURES)
    given = np.zeros((50, 7), np.float32)
    for column, name in enumerate(NAMES):
        given[:, [*turned, "new"].index(name)] = features[:, column]
    expected = TreeScorer(FOREST).scores(features).astype(np.float32).tolist()
    assert scores_of(made, given) == expected
    assert made.feature_names == [*turned, "new"]


def test_a_model_whose_kind_is_chosen_may_begin_with_trees_of_others() -> None:
    """They see features as they are, whatever linear versions do."""
    settings = settings_with(
        kind="selected", normalisation="min-max", versions="trained"
    )
    made = imported_snapshot("search", settings, a_file())

    assert (made.kind, made.normalisation) == ("trees", "none")
    own = settings_with(versions="trained")
    assert made == imported_snapshot("search", own, a_file())


def test_without_names_features_go_by_their_place() -> None:
    """Of the file, or of both; then their number must be the same."""
    for settings in (settings_with(), settings_with(feature_names=[])):
        made = imported_snapshot("search", settings, a_file([]))
        assert made.weights == pack_forest(FOREST)
        fewer = ReadFile(TreeFile(FOREST, N_FEATURES - 1, []), "lightgbm", b"")
        with pytest.raises(ImportRefused, match=r"as many features as models\.search"):
            imported_snapshot("search", settings, fewer)
    wider = settings_with(feature_names=[], features=9)
    made = imported_snapshot("search", wider, a_file([], counts_all=False))
    assert made.n_features == 9
    with pytest.raises(ImportRefused, match="9; it has 6 and no names"):
        imported_snapshot("search", wider, a_file([]))
    narrow = settings_with(feature_names=[], features=5)
    with pytest.raises(ImportRefused, match="5; it has 6 and no names"):
        imported_snapshot("search", narrow, a_file([], counts_all=False))


@pytest.mark.parametrize(
    ("settings", "found", "told"),
    [
        (settings_with(feature_names=[]), a_file(), "feature_names must be set"),
        (
            settings_with(feature_names=["bm_25", *NAMES[1:]]),
            a_file(),
            "'bm25' is not: did you mean bm_25?",
        ),
        (settings_with(), a_file(["age", *NAMES[1:]]), "got 'age' again"),
        (Settings(), a_file(), "'search' has no section"),
        (
            Settings(models={"search": ModelSettings(features=6)}),
            a_file(),
            "'search' has 'linear'",
        ),
    ],
)
def test_what_the_model_does_not_rank_by_is_refused(
    settings: Settings, found: ReadFile, told: str
) -> None:
    """Names that are missing, others, or twice; a model of another kind."""
    with pytest.raises(ImportRefused) as refused:
        imported_snapshot("search", settings, found)
    assert told in str(refused.value)


def test_a_snapshot_beyond_its_bound_is_refused_with_what_would_fit() -> None:
    """As many of the first trees as it says do fit, and one more does not."""
    bound = 3_000
    settings = settings_with(snapshot_bytes=bound)
    with pytest.raises(ImportRefused) as refused:
        imported_snapshot("search", settings, a_file())
    told = str(refused.value)
    n_fit = int(told.partition("the first ")[2].partition(" ")[0])
    assert 0 < n_fit < len(FOREST.roots)
    for n_trees, fits in ((n_fit, True), (n_fit + 1, False)):
        part = drawn_forest(1, n_features=N_FEATURES, n_trees=n_trees)
        fewer = ReadFile(TreeFile(part, N_FEATURES, NAMES), "lightgbm", b"")
        if fits:
            made = imported_snapshot("search", settings, fewer)
            assert len(encode_snapshot(made)) <= bound
            continue
        with pytest.raises(ImportRefused, match=r"snapshot_bytes"):
            imported_snapshot("search", settings, fewer)


def test_the_same_file_gives_the_same_bytes() -> None:
    """Whenever it is read; whose clicks it saw is part of it."""
    made = [imported_snapshot("search", settings_with(), a_file()) for _ in range(2)]
    assert encode_snapshot(made[0]) == encode_snapshot(made[1])
    assert (made[0].updates, made[0].groups) == (1, [])
    for fitted_on, updates, groups in (
        (FittedOn(is_known=True), 0, []),
        (FittedOn(is_known=True, groups=(3, 1)), 1, [1, 3]),
    ):
        found = imported_snapshot("search", settings_with(), a_file(), fitted_on)
        assert (found.updates, found.groups) == (updates, groups)
    beyond = FittedOn(is_known=True, groups=(0, settings_with().statistics.groups))
    with pytest.raises(ImportRefused, match=r"must be those of the statistics, from 0"):
        imported_snapshot("search", settings_with(), a_file(), beyond)


def test_a_version_in_a_folder_ranks_and_goes_back(tmp_path: Path) -> None:
    """It is read as any other, and its file is that of the model it came from."""
    plain = drawn_forest(2, n_features=N_FEATURES, kinds=[NAN_IS_MISSING])
    # On either side of 0 LightGBM's own thresholds are not 0 itself.
    plain = plain._replace(thresholds=plain.thresholds + 1e-3)
    path = tmp_path / "model.txt"
    path.write_bytes(write_lightgbm(plain, NAMES, N_FEATURES))
    found = read_model_file(path)
    made = imported_snapshot("search", settings_with(), found)
    file = tree_models.write_version(tmp_path / "run", made)
    assert file.name == "search@1.0.snapshot"
    read = snapshot_in(tmp_path / "run", "search")
    assert read.intervention == "search@1.0"
    features = telling_documents(plain, 50, N_FEATURES)
    expected = TreeScorer(plain).scores(features).astype(np.float32).tolist()
    assert scores_of(read, features) == expected

    assert exported_file(read, "lightgbm") == path.read_bytes()
    told = tree_models.told_of(path, found, read)
    assert (told.trees, told.leaves, told.format) == (20, 300, "lightgbm")


def test_version_0_of_trees_ranks_nothing_above_anything() -> None:
    """The role `learn` publishes it; a state of it is taken back."""
    model = settings_with().models["search"]
    fold = ModelFold("search", model)
    features = np.random.default_rng(1).normal(size=(4, N_FEATURES)).astype(np.float32)
    assert scores_of(fold.snapshot(), features) == [0.0] * 4
    again = ModelFold("search", settings_with(snapshot_bytes=9_999).models["search"])
    again.restore(fold.state())
    assert again.snapshot() == fold.snapshot()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"normalisation": "min-max"}, 'write normalisation = "none"'),
        ({"versions": "online"}, 'write versions = "trained"'),
        ({"hidden": [3]}, "none of a linear ranker or trees; got [3] for 'trees'"),
        ({"snapshot_bytes": 0}, "snapshot_bytes"),
        ({"snapshot_bytes": 1 << 30}, "snapshot_bytes"),
    ],
)
def test_settings_that_trees_cannot_have_are_refused(
    tmp_path: Path, fields: dict[str, Any], told: str
) -> None:
    """With what to write."""
    lines = [f"{name} = {value!r}" for name, value in (FORM | fields).items()]
    config = tmp_path / "settings.toml"
    config.write_text("\n".join(["[models.search]", "features = 6", *lines]))
    with pytest.raises(SettingsError) as refused:
        load_settings(config)
    assert told in str(refused.value)
