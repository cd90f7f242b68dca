"""Files of other libraries: what they say is read, and what cannot be is refused."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankstream.operations.tree_files import formats
from rankstream.operations.tree_files.formats import FORMATS, read_model_file
from rankstream.operations.tree_files.lightgbm_text import (
    read_lightgbm,
    write_lightgbm,
)
from rankstream.operations.tree_files.ranklib_xml import read_ranklib, write_ranklib
from rankstream.operations.tree_files.tree_file import ModelFileRefused, in_single
from rankstream.operations.tree_files.ubjson import UbjsonDamaged, decode_ubjson
from rankstream.operations.tree_files.xgboost_model import (
    missing_goes_left,
    read_xgboost,
    write_xgboost,
)
from rankstream.ranking.tree_scoring import TreeScorer
from rankstream.wire.models.forests import (
    MISSING_LEFT,
    MOST_DEEP,
    NAN_IS_MISSING,
    NEAR_ZERO,
    Forest,
)
from tests.forest_factory import drawn_forest
from tests.trained_elsewhere import (
    N_FEATURES,
    NAMES,
    lightgbm_model,
    saved,
    xgboost_model,
)


@pytest.fixture(scope="module")
def of_lightgbm() -> str:
    """A text of three trees, with names."""
    return str(lightgbm_model(3, names=NAMES).model_to_string())


@pytest.fixture(scope="module")
def of_xgboost(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """JSON of three trees, with names."""
    booster = xgboost_model(3, names=NAMES)
    return saved(booster, tmp_path_factory.mktemp("xgboost"), "json")


@pytest.fixture(scope="module")
def ubj_of_xgboost(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """UBJSON of the same."""
    booster = xgboost_model(3, names=NAMES)
    return saved(booster, tmp_path_factory.mktemp("xgboost"), "ubj")


RANKLIB = b"""## LambdaMART
## No. of trees = 2

<ensemble>
	<tree id="1" weight="0.5">
		<split>
			<feature> 3 </feature>
			<threshold> 0.1 </threshold>
			<split pos="left">
				<output> -2.0 </output>
			</split>
			<split pos="right">
				<feature> 1 </feature>
				<threshold> -1.5 </threshold>
				<split pos="left">
					<output> 1.0 </output>
				</split>
				<split pos="right">
					<output> 3.0 </output>
				</split>
			</split>
		</split>
	</tree>
	<tree id="2" weight="1.0">
		<split>
			<output> 0.25 </output>
		</split>
	</tree>
</ensemble>
"""

DUMP: list[dict[str, Any]] = [
    {
        "nodeid": 0, "depth": 0, "split": "ctr", "split_condition": 0.5, "yes": 1,
        "no": 2, "missing": 2,
        "children": [
            {"nodeid": 2, "leaf": 2.0},
            {
                "nodeid": 1, "depth": 1, "split": "age", "split_condition": -1.0,
                "yes": 3, "no": 4, "missing": 3,
                "children": [{"nodeid": 3, "leaf": -1.0}, {"nodeid": 4, "leaf": 0.5}],
            },
        ],
    },
    {"nodeid": 0, "leaf": 0.125},
]  # fmt: skip


LEAST = -(2**63)
"""Of 64 bits: its opposite has none."""


def document(kind: str, definition: object, **more: object) -> bytes:
    """A model document, as the plug-in is given it."""
    model = {"type": kind, "definition": definition, **more}
    return json.dumps({"model": {"name": "m", "model": model}}).encode()


def test_ranklib_goes_left_up_to_a_threshold_and_weighs_trees() -> None:
    """By hand: thresholds of single precision, what is missing is 0."""
    found = read_ranklib(RANKLIB)
    tenth = np.float32(0.1)
    features = np.array(
        [
            [0, 0, tenth], [0, 0, np.nextafter(tenth, np.float32(1))], [-1.5, 0, 1],
            [np.nan, 0, 1], [0, 0, np.nan],
        ],
        np.float32,
    )  # fmt: skip
    assert TreeScorer(found.forest).scores(features).tolist() == [
        -1.0 + 0.25, 1.5 + 0.25, 0.5 + 0.25, 1.5 + 0.25, -1.0 + 0.25,
    ]  # fmt: skip
    assert (found.n_features, found.names, found.counts_all) == (3, [], False)


@pytest.mark.parametrize(
    "definition", [DUMP, json.dumps(DUMP), {"objective": "rank:ndcg", "splits": DUMP}]
)
def test_a_dump_goes_left_below_a_condition(definition: object) -> None:
    """By hand: exactly on a condition is right, and `missing` names a node."""
    found = FORMATS["elasticsearch"].read(document("model/xgboost+json", definition))
    assert found.names == ["ctr", "age"]
    below = np.nextafter(np.float32(0.5), np.float32(0))
    features = np.array(
        [[0.5, 0], [below, -1.0], [below, -2.0], [np.nan, 0], [0, np.nan]], np.float32
    )
    assert TreeScorer(found.forest).scores(features).tolist() == [
        2.125, 0.625, -0.875, 2.125, -0.875,
    ]  # fmt: skip


def test_a_document_of_ranklib_is_what_its_text_says() -> None:
    """As it is given, and as the plug-in returns what it stored."""
    given = document("model/ranklib", RANKLIB.decode())
    stored = json.dumps({"_index": ".ltrstore", "_source": json.loads(given)}).encode()
    for content in (given, stored):
        found = FORMATS["elasticsearch"].read(content)
        expected = read_ranklib(RANKLIB).forest
        assert [x.tolist() for x in found.forest] == [x.tolist() for x in expected]


def test_a_feature_set_says_the_order() -> None:
    """Where it comes along, and names what no split looks at."""
    content = json.loads(document("model/xgboost+json", DUMP))
    features = [{"name": name} for name in ("bm25", "age", "ctr")]
    content["model"]["feature_set"] = {"features": features}
    found = FORMATS["elasticsearch"].read(json.dumps(content).encode())
    assert found.names == ["bm25", "age", "ctr"]
    assert found.forest.features.tolist() == [2, 1]
    del features[1]
    with pytest.raises(ModelFileRefused, match="'age', and the feature set not"):
        FORMATS["elasticsearch"].read(json.dumps(content).encode())
    features[:] = [{"name": name} for name in ("ctr", "ctr", "age")]
    with pytest.raises(ModelFileRefused, match="different names; got 'ctr' twice"):
        FORMATS["elasticsearch"].read(json.dumps(content).encode())


def test_each_format_is_told_by_how_it_begins(
    tmp_path: Path, of_lightgbm: str, of_xgboost: bytes, ubj_of_xgboost: bytes
) -> None:
    """Without a name that would say it."""
    for content, form in (
        (of_lightgbm.encode(), "lightgbm"),
        (of_xgboost, "xgboost"),
        (ubj_of_xgboost, "xgboost"),
        (write_xgboost(drawn_forest(1, kinds=[NAN_IS_MISSING]), [], 6), "xgboost"),
        (RANKLIB, "ranklib"),
        (RANKLIB.partition(b"\n\n")[2], "ranklib"),
        (document("model/xgboost+json", DUMP), "elasticsearch"),
    ):
        path = tmp_path / "model"
        path.write_bytes(content)
        assert read_model_file(path).form == form
    for content in (b"", b"\x80\x04pickle", b"tree\n", b"{}", b"<html>"):
        path.write_bytes(content)
        with pytest.raises(ModelFileRefused, match="must begin as one of"):
            read_model_file(path)


def test_files_that_are_not_there_or_huge_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before they are read."""
    with pytest.raises(ModelFileRefused, match="No such file"):
        read_model_file(tmp_path / "model")
    monkeypatch.setattr(formats, "LARGEST_FILE", len(RANKLIB) - 1)
    (tmp_path / "model").write_bytes(RANKLIB)
    with pytest.raises(ModelFileRefused, match="must have at most"):
        read_model_file(tmp_path / "model")


def refusal(read: Callable[[bytes], object], content: bytes) -> str:
    """Why a file is refused."""
    with pytest.raises(ModelFileRefused) as caught:
        read(content)
    return str(caught.value)


def test_every_cut_is_refused(
    of_lightgbm: str, of_xgboost: bytes, ubj_of_xgboost: bytes
) -> None:
    """Wherever a file ends too early: at each line, and here and there."""
    text = of_lightgbm.partition("end of trees")[0].encode()
    rng = np.random.default_rng(1)
    for read, content in (
        (read_lightgbm, text),
        (read_xgboost, of_xgboost),
        (read_xgboost, ubj_of_xgboost),
        (read_ranklib, RANKLIB.rstrip()),
        (FORMATS["elasticsearch"].read, document("model/xgboost+json", DUMP)),
    ):
        lines = [found.end() for found in re.finditer(rb"\n", content)]
        for end in (0, 1, *lines, *rng.integers(len(content), size=60).tolist()):
            assert refusal(read, content[:end])


@pytest.mark.parametrize(
    ("written", "instead", "told"),
    [
        ("objective=lambdarank", "objective=binary sigmoid:1", "more than sums"),
        ("objective=lambdarank", "objective=regression sqrt", "more than sums"),
        ("num_class=1", "num_class=3", "num_class=3"),
        ("version=v4", "version=v9", "its version is 'v9'"),
        ("num_cat=0", "num_cat=1", "a categorical split"),
        ("is_linear=0", "is_linear=1", "linear trees"),
        ("label_index=0", "label_index=0\naverage_output", "an average of trees"),
        ("label_index=0", "label_index=0\nnew=1", "new"),
        ("\nis_linear=0", "\nis_linear=0\nnew=1", "'new' in tree 0"),
        ("Tree=1", "Tree=2", "in the place of 1"),
        (r"tree_sizes=\d+ ", "tree_sizes=", "it has 3 trees of 2"),
        (r"tree_sizes=", "tree_sizes=1 ", "it has 3 trees of 4"),
        (r"left_child=(-?\d+)", "left_child=99", "children must be among"),
        (r"left_child=(-?\d+)", "left_child=0", "one parent"),
        (r"left_child=(-?\d+)", "left_child=x", "read as LightGBM's text"),
        (r"left_child=(-?\d+)", "left_child=99999999999", "numbers of its own"),
        (r"left_child=", "left_child=1 ", "left_child of tree 0 has"),
        (r"split_feature=(\d+)", "split_feature=4294967296", "numbers of its own"),
        (r"split_feature=(\d+)", "split_feature=6", "among the 6 of the model"),
        (r"leaf_value=(\S+)", "leaf_value=inf", "leaves must be finite"),
        (r"threshold=(\S+)", "threshold=nan", "thresholds must be numbers"),
        (r"decision_type=(\d+)", "decision_type=3", "a categorical split in tree 0"),
        (r"decision_type=(\d+)", "decision_type=14", "missing must be 5"),
        (r"decision_type=(\d+)", "decision_type=16", "decision_type of tree 0 has 16"),
        (r"decision_type=(\d+)", "decision_type=-16", "tree 0 has -16"),
        (r"split_feature=(\d+)", f"split_feature={LEAST}", "numbers of its own"),
        (r"left_child=(-?\d+)", f"left_child={LEAST}", "numbers of its own"),
        (r"num_leaves=(\d+)", "num_leaves=2000000000", "has"),
        ("feature_names=bm25 ", "feature_names=", "got 5 names"),
        ("max_feature_idx=5", "max_feature_idx=1e3", "read as LightGBM's text"),
    ],
)
def test_what_lightgbm_could_not_mean_is_refused(
    written: str, instead: str, told: str, of_lightgbm: str
) -> None:
    """One thing changed in a text that is taken as it is."""
    read_lightgbm(of_lightgbm.encode())
    changed = re.sub(written, instead, of_lightgbm, count=1)
    assert changed != of_lightgbm
    assert told in refusal(read_lightgbm, changed.encode())


def _with(model: Any, path: str, value: object) -> None:
    *above, last = path.split("/")
    for name in above:
        model = model[int(name) if name.isdigit() else name]
    if value is None:
        del model[last]
        return
    model[int(last) if last.isdigit() else last] = value


BOOSTER = "learner/gradient_booster"
FIRST = f"{BOOSTER}/model/trees/0"


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("learner/objective/name", "binary:logistic", "more than sums"),
        (f"{BOOSTER}/name", "dart", "the booster 'dart', whose trees have weights"),
        (f"{BOOSTER}/name", "gblinear", "the booster 'gblinear'"),
        ("learner/learner_model_param/num_class", "3", "num_class = 3"),
        ("learner/learner_model_param/num_target", "2", "num_target = 2"),
        ("learner/feature_types", ["float", "c"], "categorical features"),
        ("learner/new", 1, "'new' in learner"),
        ("new", 1, "'new' in the model"),
        (f"{BOOSTER}/model/new", 1, "'new' in the booster"),
        (f"{FIRST}/new", [], "'new' in tree 0"),
        (f"{FIRST}/split_type/0", 1, "a categorical split in tree 0"),
        (f"{FIRST}/categories", [1], "a categorical split in tree 0"),
        (f"{FIRST}/left_children/0", 0, "node 0 of tree 0 is no child of one node"),
        (f"{FIRST}/left_children/0", 2, "node 2 of tree 0 is no child of one node"),
        (f"{FIRST}/left_children/0", 999, "node 999 of tree 0"),
        (f"{FIRST}/right_children/0", -7, "node -7 of tree 0"),
        (f"{FIRST}/right_children/0", 1.5, "read as XGBoost's model"),
        (f"{FIRST}/split_indices/0", 6, "among the 6 of the model"),
        (f"{FIRST}/split_indices/0", "0", "read as XGBoost's model"),
        (f"{FIRST}/split_conditions/0", float("nan"), "thresholds must be numbers"),
        (f"{FIRST}/split_conditions", [], "of different lengths"),
        (f"{FIRST}/tree_param/size_leaf_vector", "3", "leaves of several numbers"),
        (f"{BOOSTER}/model/gbtree_model_param/num_trees", "4", "it has 3 trees of 4"),
        (f"{BOOSTER}/model/trees", None, "'trees' is missing"),
        ("learner/learner_model_param/base_score", "x", "read as XGBoost's model"),
        ("learner/learner_model_param/base_score", "inf", "leaves must be finite"),
        ("learner/feature_names", ["a"], "got 1 names"),
        ("learner", [], "learner is no object"),
        ("learner/learner_model_param", "a", "read as XGBoost's model"),
        (BOOSTER, 1, "read as XGBoost's model"),
        (f"{BOOSTER}/model/cats", [1], "read as XGBoost's model"),
    ],
)
def test_what_xgboost_could_not_mean_is_refused(
    path: str, value: object, told: str, of_xgboost: bytes
) -> None:
    """One thing changed in a model that is taken as it is."""
    read_xgboost(of_xgboost)
    model = json.loads(of_xgboost)
    _with(model, path, value)
    assert told in refusal(read_xgboost, json.dumps(model).encode())


@pytest.mark.parametrize(
    ("written", "instead", "told"),
    [
        (b"<feature> 3 </feature>", b"<feature> 0 </feature>", "the first is 1"),
        (b"<feature> 3 </feature>", b"<feature> 3.5 </feature>", "RankLib's XML"),
        (b"<feature> 3 </feature>", b"", "no two below"),
        (b"<threshold> 0.1 <", b"<threshold> nan <", "no finite number"),
        (b"<output> -2.0 <", b"<output> 1e99 <", "no finite number"),
        (b'pos="left"', b'pos="up"', "to the side 'up'"),
        (b'pos="left"', b'pos="right"', "to the side 'right', or again"),
        (b'pos="left"', b'pos="left" cat="1"', "'cat' in split"),
        (b"<ensemble>", b"<forest>", "'forest' in the file"),
        (b"<split>", b"<split><new></new>", "'new' in split"),
        (b"<ensemble>", b'<!DOCTYPE e [<!ENTITY a "b">]><ensemble>', "a type of"),
        (b'weight="0.5"', b'weight="inf"', "no finite number"),
        (b"<output> 0.25 </output>", b"", "no two below"),
        (
            b"## LambdaMART",
            b'<?xml version="1.0" encoding="foo"?>',
            "read as RankLib's XML, unknown encoding",
        ),
    ],
)
def test_what_ranklib_could_not_mean_is_refused(
    written: bytes, instead: bytes, told: str
) -> None:
    """One thing changed in an ensemble that is taken as it is."""
    changed = RANKLIB.replace(written, instead, 1)
    assert changed != RANKLIB
    assert told in refusal(read_ranklib, changed)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (document("model/linear", {"a": 1.0}), "the type 'model/linear'"),
        (document("model/xgboost+json", {"splits": DUMP, "new": 1}), "'new'"),
        (
            document(
                "model/xgboost+json", {"splits": DUMP, "objective": "binary:logistic"}
            ),
            "more than sums",
        ),
        (
            document("model/xgboost+json", DUMP, feature_normalizers={"a": {}}),
            "features that are normalised",
        ),
        (document("model/xgboost+json", [{**DUMP[0], "new": 1}]), "'new'"),
        (document("model/xgboost+json", [{**DUMP[0], "children": []}]), "no two"),
        (document("model/xgboost+json", [{**DUMP[0], "yes": 9}]), "9 is missing"),
        (document("model/xgboost+json", [{**DUMP[0], "no": 1}]), "on both sides"),
        (document("model/xgboost+json", [7]), "a model document of Elasticsearch"),
        (b'{"model": 1}', "a model document of Elasticsearch"),
    ],
)
def test_what_a_document_could_not_mean_is_refused(content: bytes, told: str) -> None:
    """Types, normalisers, objectives, and nodes that are none."""
    assert told in refusal(FORMATS["elasticsearch"].read, content)


def test_trees_that_are_too_deep_are_refused_in_words() -> None:
    """However a file nests them; no stack of Python's is in the way."""
    n, inner = MOST_DEEP + 2, '{"nodeid": 0, "leaf": 1.0}'
    for number in range(1, n):
        inner = (
            f'{{"nodeid": {number}, "split": "a", "split_condition": 0.5, '
            f'"yes": -1, "no": {number - 1}, '
            f'"children": [{{"nodeid": -1, "leaf": 0}}, {inner}]}}'
        )
    parts = n * [
        b'<split pos="right"><feature>1</feature><threshold>1</threshold>'
        b'<split pos="left"><output>1</output></split>'
    ]
    last = b'<split pos="right"><output>1</output></split>'
    xml = b"<ensemble><tree>" + b"".join(parts) + last + n * b"</split>"
    xml += b"</tree></ensemble>"
    assert "deeper than 512" in refusal(read_ranklib, xml)
    assert refusal(FORMATS["elasticsearch"].read, dump_of(inner))


def dump_of(tree: str) -> bytes:
    """The document of one tree that is text."""
    return document("model/xgboost+json", 0).replace(b" 0}", f" [{tree}]}}".encode())


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[$Z#L\x7f\xff\xff\xff\xff\xff\xff\xff", b"[#l\x7f\xff\xff\xff",
        b"[$d#L\x00\x00\x00\x00\x7f\xff\xff\xff", b"{i\x01aTi\x01aT}", b"[$d", b"[#d",
        b"Si\xff", b"[" * 1_000, b"{}x", b"Si\x01\xff", b"?", b"[#i\xff]",
    ],
)  # fmt: skip
def test_bytes_that_are_no_document_are_refused(content: bytes) -> None:
    """Without memory for what they say that they hold, and without a deep stack."""
    with pytest.raises(UbjsonDamaged):
        decode_ubjson(content)


def test_every_mark_of_the_format_is_read() -> None:
    """By the draft: numbers are big-endian, containers may say kind and number."""
    content = (
        b"{i\x01a[$I#U\x02\x00\x01\xff\xfei\x01b[TFZNi\x07]i\x01cSU\x02hiU\x01dCx"
        b"i\x01eD\x3f\xf8\0\0\0\0\0\0i\x01f{$i#i\x01i\x01g\x05i\x01h[#i\x01L"
        b"\0\0\0\0\0\0\0\x09}"
    )
    assert decode_ubjson(content) == {
        "a": [1, -2], "b": [True, False, None, 7], "c": "hi", "d": "x", "e": 1.5,
        "f": {"g": 5}, "h": [9],
    }  # fmt: skip


def test_a_threshold_of_0_parts_what_counts_as_0_to_the_left(of_lightgbm: str) -> None:
    """LightGBM takes what is near 0 for 0, which is at most 0; and so may NaN be."""
    text = re.sub(r"threshold=(\S+)", "threshold=0.0", of_lightgbm, count=1)
    text = re.sub(r"decision_type=(\d+)", "decision_type=0", text, count=1)
    found = read_lightgbm(text.encode()).forest
    assert found.thresholds[0] == np.float32(NEAR_ZERO)

    for threshold, goes_left in ((0.0, True), (-0.0, True), (-1e-300, False)):
        exact = found._replace(
            thresholds=np.full_like(found.thresholds, threshold),
            missing=np.zeros_like(found.missing),
        )
        to_left = missing_goes_left(exact, np.arange(len(found.features)))
        assert to_left.tolist() == [goes_left] * len(found.features)


@pytest.mark.parametrize("side", [0, MISSING_LEFT])
@pytest.mark.parametrize(("end", "goes_below"), [(np.inf, True), (-np.inf, False)])
def test_a_split_of_what_is_missing_is_turned_with_it(
    end: float, goes_below: bool, side: int
) -> None:
    """Numbers go one way and NaN its own, whichever sides they have."""
    forest = Forest(
        np.zeros(1, np.int32), np.zeros(1, np.int32), np.array([end]),
        np.array([[-1, -2]], np.int32), np.array([NAN_IS_MISSING + side], np.uint8),
        np.array([1.0, 2.0]),
    )  # fmt: skip
    turned = in_single(forest, "a library", goes_below=goes_below)
    assert turned.children.tolist() == [[-2, -1]]
    features = np.array([[0.0], [-3e38], [3e38], [np.nan]], np.float32)
    expected = TreeScorer(forest).scores(features).tolist()
    assert TreeScorer(turned).scores(features).tolist() == expected


def test_trees_that_a_library_cannot_have_are_not_written() -> None:
    """Names, and splits by which 0 is missing."""
    forest = drawn_forest(1, n_features=N_FEATURES)
    for write in (write_xgboost, write_ranklib):
        with pytest.raises(ModelFileRefused, match="export it to LightGBM"):
            write(forest, NAMES, N_FEATURES)
    plain = drawn_forest(1, n_features=N_FEATURES, kinds=[NAN_IS_MISSING])
    odd = ["in stock", *NAMES[1:]]
    with pytest.raises(ModelFileRefused, match="without spaces"):
        write_lightgbm(plain, odd, N_FEATURES)
    with pytest.raises(ModelFileRefused, match="without brackets"):
        write_xgboost(plain, ["a[0]", *NAMES[1:]], N_FEATURES)
    assert read_xgboost(write_xgboost(plain, odd, N_FEATURES)).names == odd
