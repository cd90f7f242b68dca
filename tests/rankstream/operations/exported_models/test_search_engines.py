"""Files for search engines: read by their own classes, they score as rankers do."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost

from rankstream.operations.exported_models.exported import ExportRefused
from rankstream.operations.exported_models.solr import SLACK, thresholds_of
from rankstream.operations.exported_models.targets import TARGETS, exported_file
from rankstream.operations.tree_files.formats import FORMATS
from rankstream.operations.tree_files.tree_file import ModelFileRefused
from rankstream.ranking.tree_scoring import TreeScorer
from rankstream.wire.envelope import features_hash
from rankstream.wire.models.forests import (
    MISSING_LEFT,
    NAN_IS_MISSING,
    NO_TREES,
    ZERO_IS_MISSING,
)
from tests.forest_factory import drawn_forest
from tests.rankstream.operations.exported_models.versions import (
    FOREST,
    assert_near,
    documents,
    live,
    of_layers,
    of_trees,
)
from tests.search_engines.scored_by_java import scored_by_java
from tests.snapshot_factory import snapshot
from tests.trained_elsewhere import N_FEATURES, NAMES

PLUGINS = ("elasticsearch-ltr", "opensearch-ltr")


def test_solr_and_ranklib_score_as_rankers_do(tmp_path: Path) -> None:
    """A thousand documents, also on thresholds: one process loads all that there is."""
    versions = {
        "line": of_layers(), "plain": of_layers(shift=b"", scale=b""),
        "trees": of_trees(), "none": of_trees(NO_TREES),
    }  # fmt: skip
    files = {
        f"{name}.{ending}": exported_file(version, target)
        for name, version in versions.items()
        for target, ending in (("solr-ltr", "solr"), ("ranklib", "ranklib"))
        if (name, target) != ("none", "ranklib")
    }
    features = documents()
    found = scored_by_java(tmp_path, files, features)

    assert not found.pop("none.solr").any()
    for file, scores in found.items():
        assert_near(scores, live(versions[file.partition(".")[0]], features))


def scored_by_plugin(document: bytes, features: Any) -> Any:
    """What the plug-ins' rule says, in single precision: they are in no registry.

    A normaliser comes before the sum; a split goes left below its condition, what is
    NaN to the child that `missing` names.
    """
    told = json.loads(document)["model"]["model"]
    definition = json.loads(told["definition"])
    columns = dict(zip(NAMES, features.T.astype(np.float32), strict=True))
    for name, normaliser in told.get("feature_normalizers", {}).items():
        (standard,) = normaliser.values()
        mean, deviation = (
            np.float32(standard[x]) for x in ("mean", "standard_deviation")
        )
        assert deviation > 0
        columns[name] = (columns[name] - mean) / deviation
    total = np.zeros(len(features), np.float32)
    if told["type"] == "model/linear":
        for name, weight in definition.items():
            total += np.float32(weight) * columns[name]
        return total
    for tree in definition:
        for row in range(len(features)):
            node = tree
            while "leaf" not in node:
                left, right = node["children"]
                assert (left["nodeid"], right["nodeid"]) == (node["yes"], node["no"])
                value = columns[node["split"]][row]
                if np.isnan(value):
                    is_left = node["missing"] == node["yes"]
                else:
                    is_left = np.float32(node["split_condition"]) > value
                node = left if is_left else right
            total[row] += np.float32(node["leaf"])
    return total


@pytest.mark.parametrize("target", PLUGINS)
def test_a_document_of_the_plugins_scores_by_their_rule_as_rankers_do(
    target: str,
) -> None:
    """Linear with normalisers, and trees: also where a feature is missing."""
    for version, features in (
        (of_layers(), documents()),
        (of_trees(), documents(has_missing=True)),
    ):
        document = exported_file(version, target)
        assert json.loads(document)["model"]["name"] == "m@0.1"
        assert_near(scored_by_plugin(document, features), live(version, features))


LARGEST = np.finfo(np.float32).max


def beyond(at: int) -> Any:
    """Trees with infinite thresholds, and others beyond single precision."""
    thresholds = FOREST.thresholds.copy()
    some = [np.inf, -np.inf, 1e300, -1e300, float(LARGEST), -float(LARGEST)]
    thresholds[at::7] = np.resize(some, len(thresholds[at::7]))
    return of_trees(FOREST._replace(thresholds=thresholds))


def large_documents(**more: Any) -> Any:
    """Documents, some of them at the ends of single precision."""
    features = documents(**more).copy()
    features[::3, 0], features[1::3, 2] = LARGEST, -LARGEST
    return features


def no_number(told: str) -> Any:
    """Refuses what Python alone takes for JSON."""
    raise AssertionError(told)


@pytest.mark.parametrize("target", [*PLUGINS, "xgboost"])
def test_thresholds_beyond_single_precision_are_json_and_part_alike(
    target: str,
) -> None:
    """LightGBM parts what is missing from the rest by an infinite one."""
    for version in (beyond(0), beyond(1)):
        content, features = exported_file(version, target), large_documents()
        features[2::3, 1] = np.nan
        told = json.loads(content, parse_constant=no_number)
        if target == "xgboost":
            booster = xgboost.Booster()
            booster.load_model(bytearray(content))
            matrix = xgboost.DMatrix(features, feature_names=NAMES, nthread=1)
            found = booster.predict(matrix, output_margin=True)
        else:
            json.loads(told["model"]["model"]["definition"], parse_constant=no_number)
            found = scored_by_plugin(content, features)
        assert_near(found, live(version, features))


def test_solr_and_ranklib_part_alike_by_such_thresholds(tmp_path: Path) -> None:
    """Their own classes read the numbers."""
    features = large_documents()
    files = {
        f"{at}.{ending}": exported_file(beyond(at), target)
        for at in (0, 1)
        for target, ending in (("solr-ltr", "solr"), ("ranklib", "ranklib"))
    }
    for file, scores in scored_by_java(tmp_path, files, features).items():
        assert_near(scores, live(beyond(int(file[0])), features))


@pytest.mark.parametrize("target", sorted(TARGETS.keys() - {"lightgbm"}))
def test_a_leaf_beyond_single_precision_is_refused(target: str) -> None:
    """LightGBM alone adds in double precision."""
    leaves = FOREST.leaves.copy()
    leaves[3] = -1e39
    version = of_trees(FOREST._replace(leaves=leaves))
    with pytest.raises(ModelFileRefused, match=r"one is -1e\+39: export it to Light"):
        exported_file(version, target)
    assert b"-1e+39" in exported_file(version, "lightgbm")


@pytest.mark.parametrize("name", ["größe", "日本", "\U0001f600", 'a"b', "a\\b"])
def test_xgboost_has_the_names(name: str) -> None:
    """It reads no letters that are told by their numbers."""
    names = [name, *NAMES[1:]]
    booster = xgboost.Booster()
    version = of_trees(feature_names=names, features_hash=features_hash(names))
    booster.load_model(bytearray(exported_file(version, "xgboost")))
    assert booster.feature_names == names
    version = of_trees(feature_names=["a\x01", *NAMES[1:]])
    with pytest.raises(ModelFileRefused, match="< and control characters for XGB"):
        exported_file(version, "xgboost")


def test_trees_of_a_document_come_back_by_an_import() -> None:
    """As single precision has them: the same decisions, features in another order."""
    document = exported_file(of_trees(), PLUGINS[0])
    found = FORMATS["elasticsearch"].read(document)
    features = documents(has_missing=True)
    turned = features[:, [NAMES.index(name) for name in found.names]]
    assert_near(TreeScorer(found.forest).scores(turned), live(of_trees(), features))


def test_nodes_have_numbers_and_depths_as_a_dump_has_them() -> None:
    """By hand: the root is 0 deep, and no number comes twice in a tree."""
    document = json.loads(exported_file(of_trees(), PLUGINS[0]))
    (first, *_) = json.loads(document["model"]["model"]["definition"])
    waiting, numbers = [(first, 0)], []
    while waiting:
        node, deep = waiting.pop()
        numbers.append(node["nodeid"])
        if "leaf" not in node:
            assert node["depth"] == deep
            waiting += [(child, deep + 1) for child in node["children"]]
    assert len({*numbers}) == len(numbers) == 29


def test_features_without_names_are_counted() -> None:
    """f1, f2 ...: names that a feature set or a store can give."""
    version = snapshot(weights=np.array([1, 2, 3], "<f4").tobytes())
    (told,) = (json.loads(exported_file(version, "solr-ltr")),)
    assert told["params"]["weights"] == {"f1": 1.0, "f2": 2.0, "f3": 3.0}
    assert told["features"] == [{"name": name} for name in ("f1", "f2", "f3")]


def test_what_solr_compares_with_is_the_threshold() -> None:
    """It adds a millionth in single precision: the sum is ours, or just below."""
    rng = np.random.default_rng(1)
    wide = rng.normal(size=2_000) * 10.0 ** rng.integers(-12, 8, 2_000)
    drawn = np.concatenate([wide, [0.0, 1e-35, -1e-35, 3.4e38, 1e300]])
    sums = (thresholds_of(drawn) + SLACK).astype(np.float64)
    single = np.clip(drawn, -3.4028234663852886e38, 3.4028234663852886e38)
    ours = single.astype(np.float32)
    ours = np.where(ours > single, np.nextafter(ours, np.float32(-np.inf)), ours)
    assert (sums <= single).all()
    below = ours.astype(np.float64) - sums
    assert below.max() < 5e-13
    assert (below[np.abs(drawn) > 1e-5] == 0).all()


@pytest.mark.parametrize("target", sorted(TARGETS.keys() - {"onnx"}))
def test_a_network_is_refused_with_what_can_have_it(target: str) -> None:
    """Names the kind, and where it can go."""
    with pytest.raises(ExportRefused, match=r"is of the kind 'neural': export .* onnx"):
        exported_file(of_layers("neural", (3,)), target)


@pytest.mark.parametrize("how", ["min-max", "standard"])
@pytest.mark.parametrize("target", ["solr-ltr", "onnx", "ranklib", *PLUGINS])
def test_normalisation_by_query_is_refused(target: str, how: str) -> None:
    """With the remedy."""
    with pytest.raises(ExportRefused, match=r"m\.normalisation = 'fixed'"):
        exported_file(of_layers(normalisation=how), target)


@pytest.mark.parametrize("target", ["lightgbm", "xgboost"])
def test_a_linear_ranker_is_no_trees(target: str) -> None:
    """All that can have it are named."""
    with pytest.raises(ExportRefused, match="ranklib, elasticsearch-ltr, opensearch"):
        exported_file(of_layers(), target)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("solr-ltr", "for Solr"), ("ranklib", "for RankLib"), ("onnx", "for ONNX"),
        (PLUGINS[0], r"for model/xgboost\+json"),
    ],
)  # fmt: skip
def test_splits_by_which_0_is_missing_are_refused(target: str, told: str) -> None:
    """LightGBM's alone: nobody else would send 0 another way than 1e-9."""
    forest = drawn_forest(2, n_features=N_FEATURES, kinds=[ZERO_IS_MISSING])
    with pytest.raises(ModelFileRefused, match=f"{told}; .* export it to LightGBM"):
        exported_file(of_trees(forest), target)


@pytest.mark.parametrize("name", ["a,b", "a=b"])
def test_names_that_solr_would_cut_are_refused(name: str) -> None:
    """Where it logs features it writes name=value, with commas between."""
    own: dict[str, Any] = {"feature_names": [name, *NAMES[1:]]}
    for version in (of_layers(**own), of_trees(**own)):
        with pytest.raises(ExportRefused, match=f"for Solr, .* got '{name}'"):
            exported_file(version, "solr-ltr")


def test_a_range_beyond_single_precision_is_refused() -> None:
    """Its width would be infinite there."""
    scale = np.array([1e-39, 1, 1, 1, 1, 1], "<f4").tobytes()
    with pytest.raises(ExportRefused, match=r"that of 'bm25' is 1e\+39 wide"):
        exported_file(of_layers(scale=scale), "solr-ltr")


def chained(n: int) -> Any:
    """A tree of n splits, each below the one before."""
    chain = drawn_forest(1, n_trees=1, n_leaves=n + 1, n_features=2)
    children = np.array([[-1 - at, at + 1] for at in range(n - 1)] + [[-n, -n - 1]])
    deep = chain._replace(
        roots=np.zeros(1, np.int32), children=children.astype(np.int32),
        missing=np.full(n, NAN_IS_MISSING + MISSING_LEFT, np.uint8),
    )  # fmt: skip
    return of_trees(deep)


@pytest.mark.parametrize("n", [201, 301])
def test_a_tree_that_is_too_deep_to_nest_is_refused(n: int) -> None:
    """With where it can go: RankLib's text nests too, and is read by a stack here."""
    with pytest.raises(ExportRefused, match=rf"at most 200 splits .* one has {n}"):
        exported_file(chained(n), "solr-ltr")
    assert exported_file(chained(n), "ranklib").count(b"<output>") == n + 1
    assert exported_file(chained(200), "solr-ltr").count(b'"value"') == 201


def test_the_forest_has_splits_of_all_sorts() -> None:
    """Else the documents would tell nothing."""
    assert {*np.unique(FOREST.missing)} == {0, 1, 4, 5}
