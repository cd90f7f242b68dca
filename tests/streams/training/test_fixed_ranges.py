"""Normalisation by fixed ranges: found in the log, kept, and the same wherever."""

import json
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from models.learners.registry import LEARNERS
from rankstream.operations.exported_models.targets import exported_file
from rankstream.ranker import Ranker
from rankstream.ranking.fixed_ranges import with_ranges
from rankstream.settings import ModelSettings, SettingsError, load_settings
from rankstream.wire.envelope import decode_snapshot, encode_snapshot
from rankstream.wire.models.training import ASKED
from rankstream.wire.topics import CANDIDATES
from streams.learning.model_fold import ModelFold
from streams.statistics.reader import Statistics
from streams.training.inputs import Inputs, TrainingRefused, feature_records_for
from streams.training.trained_snapshot import train_model
from streams.training.versions.ranged_parent import ranges_of_log
from tests.snapshot_factory import snapshot
from tests.streams.training.shop import N_FEATURES, Shop, model_of, settings_of

PLAN: dict[str, Any] = {
    "normalisation": "fixed", "examination": [1.0, 0.5, 1 / 3, 0.25, 0.2],
    "least_support": 1.0, "epochs": 3,
}  # fmt: skip


@pytest.fixture(scope="module")
def shop() -> Shop:
    """A site that showed some lists, every query among them."""
    made = Shop(settings_of({"m": model_of(**PLAN)}))
    made.show(600, np.random.default_rng(1))
    made.pipeline.end()
    return made


def trained(shop: Shop, parent: Any = None, settings: Any = None) -> Any:
    """A training of what the site has; the snapshot that came of it."""
    features = [
        (x.key, x.value) for x in shop.outputs if x.topic == CANDIDATES and x.key
    ]
    statistics = Statistics(shop.trainer.statistics().items())
    inputs = Inputs(statistics, feature_records_for(shop.settings, "m", features))
    own = parent or shop.snapshot()
    taken = settings or shop.settings
    return train_model("m", taken, inputs, own, reason=ASKED).snapshot


def serving(version: Any) -> Ranker:
    """What ranks by a version."""
    ranker = Ranker("m", source=lambda: encode_snapshot(version))
    ranker.refresh()
    return ranker


def test_ranges_are_those_of_the_log(shop: Shop) -> None:
    """By hand: the least becomes 0, the most 1; what follows keeps them."""
    assert shop.snapshot().scale == b""
    found = trained(shop)
    least, most = shop.data.features.min(axis=0), shop.data.features.max(axis=0)
    assert np.frombuffer(found.shift, "<f4").tolist() == least.tolist()
    scale = np.frombuffer(found.scale, "<f4")
    assert scale == pytest.approx(1 / (most.astype(float) - least), rel=1e-6)
    assert found.normalisation == "none"
    assert decode_snapshot(encode_snapshot(found)) == found
    following = trained(shop, found)
    assert (following.shift, following.scale) == (found.shift, found.scale)
    assert encode_snapshot(trained(shop)) == encode_snapshot(found)


def test_live_and_exported_scores_are_the_same(shop: Shop) -> None:
    """And a document's does not depend on those beside it."""
    version = trained(shop)
    ranker = serving(version)
    features = shop.data.features[:40]
    live = ranker.rank(features, cutoff=5, seed=1).scores
    alone = [ranker.rank(features[[row]], cutoff=1, seed=1).scores[0] for row in (0, 7)]
    assert alone == pytest.approx(live[[0, 7]].tolist(), rel=1e-6)

    told = json.loads(exported_file(version, "solr-ltr"))
    weights = [*told["params"]["weights"].values()]
    norms = [each["norm"]["params"] for each in told["features"]]
    moved = np.stack(
        [
            (features[:, at].astype(float) - float(norm["avg"])) / float(norm["std"])
            for at, norm in enumerate(norms)
        ],
        axis=1,
    )
    assert np.ptp(live) > 0.01
    np.testing.assert_allclose(moved @ weights, live, atol=1e-6 * np.abs(live).max())


def test_a_parent_that_learned_on_another_scale_is_refused(shop: Shop) -> None:
    """Its weights are of features as they were normalised then."""
    first = msgspec.structs.replace(shop.snapshot(), updates=1)
    with pytest.raises(TrainingRefused, match=r"linear, fixed; it is of .* none"):
        trained(shop, first)


def test_ranges_that_are_given_are_taken(shop: Shop) -> None:
    """From version 0 on, so that lists of all versions are of one scale."""
    ranges = [(-1.0, 3.0)] * N_FEATURES
    fold = ModelFold("m", model_of(**PLAN, feature_ranges=ranges))
    assert np.frombuffer(fold.snapshot().shift, "<f4").tolist() == [-1.0] * N_FEATURES
    assert np.frombuffer(fold.snapshot().scale, "<f4").tolist() == [0.25] * N_FEATURES
    parent = with_ranges(shop.snapshot(), ranges)
    assert trained(shop, parent).scale == parent.scale


def test_a_training_takes_ranges_of_the_settings(shop: Shop) -> None:
    """Of a parent from before the setting, and not those of the log."""
    model = model_of(**PLAN, feature_ranges=[(-1.0, 3.0)] * N_FEATURES)
    settings = msgspec.structs.replace(shop.settings, models={"m": model})
    parent = shop.snapshot()
    assert parent.scale == b""
    found = trained(shop, parent, settings)
    assert np.frombuffer(found.shift, "<f4").tolist() == [-1.0] * N_FEATURES
    assert np.frombuffer(found.scale, "<f4").tolist() == [0.25] * N_FEATURES


def test_numbers_that_are_none_make_no_range() -> None:
    """Of a feature without any it is 0 to 0."""
    rows = [[1, np.nan, np.inf], [3, 5, np.nan], [2, -np.inf, -np.inf]]
    table = SimpleNamespace(features=np.array(rows, np.float32))
    features: Any = SimpleNamespace(n_features=3, of=lambda *_: table)
    found = ranges_of_log(features, [("q", []), ("r", [])])
    assert found is not None
    assert found.tolist() == [[1, 3], [5, 5], [0, 0]]


@pytest.mark.parametrize("width", [0.0, 1e-45, 2.9e-39])
def test_a_constant_feature_is_0(width: float) -> None:
    """As by min-max of each query; values outside of a range go beyond 0 and 1."""
    made = with_ranges(snapshot(), [(5, 5), (0, 2), (-1, 1)])
    narrow = with_ranges(snapshot(), [(0, width), (0, 2), (-1, 1)])
    assert narrow.scale == made.scale
    ranker = serving(made)
    ranking = ranker.rank([[5, 0, 1], [9, 3, -2]], cutoff=2, seed=1)
    assert ranking.features.tolist() == [[0, 0, 1], [0, 1.5, -0.5]]


@pytest.mark.parametrize("learner", ["coltr", "pdgd"])
def test_what_learns_online_sees_logged_candidates_on_that_scale(learner: str) -> None:
    """Candidates are logged as the service gave them."""
    assert learner in LEARNERS
    settings = ModelSettings(
        features=2, learner=learner, normalisation="fixed",
        feature_ranges=[(0, 4), (1, 3)],
    )  # fmt: skip
    fold = ModelFold("m", settings)
    seen = fold._normalised(np.array([[2, 2], [4, 5]], np.float32))
    assert seen.tolist() == [[0.5, 0.5], [1.0, 2.0]]
    again = ModelFold("m", settings)
    again.restore(fold.state())
    assert "feature_ranges" in fold.state()[5]
    assert "feature_ranges" not in ModelFold("m", ModelSettings(features=2)).state()[5]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("", "feature_ranges must be given where versions are 'online'"),
        ("feature_ranges = [[0, 1]]", "must be as many as features, 2; got 1"),
        ("feature_ranges = [[0, 1], [2, 1]]", "pairs of the least and the most"),
        ("feature_ranges = [[0, 1], [0, inf]]", "pairs of the least and the most"),
        ("feature_ranges = [[0, 1], [0, nan]]", "pairs of the least and the most"),
        ("feature_ranges = [[0, 1], [0, 1e-39]]", "pairs that are 2.94e-39 apart or m"),
    ],
)
def test_ranges_that_cannot_be_are_refused(
    tmp_path: Any, lines: str, told: str
) -> None:
    """With the setting's name."""
    file = tmp_path / "settings.toml"
    file.write_text(f'[models.m]\nfeatures = 2\nnormalisation = "fixed"\n{lines}\n')
    with pytest.raises(SettingsError, match="feature_ranges"):
        load_settings(file)
    with pytest.raises(SettingsError, match=told):
        load_settings(file)
    other = lines.replace("[2, 1]", "[1, 2]") or "feature_ranges = [[0, 1], [0, 1]]"
    file.write_text(f"[models.m]\nfeatures = 2\n{other}\n")
    with pytest.raises(SettingsError, match="must be left out where normalisation"):
        load_settings(file)
