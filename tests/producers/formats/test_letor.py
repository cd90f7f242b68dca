"""LETOR files: what they hold, and what is refused."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from producers.formats.letor import read_fold, read_letor
from producers.formats.source_file import FileUnreadable

DATA = Path("../shared/data")


def written(path, text):
    """A file of this text."""
    path.write_text(text)
    return path


def test_documents_stand_together_by_query(tmp_path):
    """Sparse features, float labels that are whole, comments with document ids."""
    path = written(
        tmp_path / "part.txt",
        "# head\n"
        "2 qid:a 1:0.5 3:-2e1 #docid = X inc = 1\n"
        "0.0 qid:a 2:1 # docid = Y\n"
        "\n"
        "1 qid:b #docid = Z\n",
    )
    read = read_letor(path)
    assert read.query_ids == ["a", "b"]
    assert read.labels.tolist() == [2, 0, 1]
    assert read.features.tolist() == [[0.5, 0, -20], [0, 1, 0], [0, 0, 0]]
    assert read.features.dtype == np.float32
    assert read.offsets.tolist() == [0, 2, 3]
    assert read.first_feature == 1
    assert read.document_ids == ["X", "Y", "Z"]


def test_feature_ids_may_count_from_zero(tmp_path):
    """Told by a feature 0, or by the caller; more columns on demand."""
    path = written(tmp_path / "zero.txt", "1 qid:1 0:5 2:7\n")
    read = read_letor(path)
    assert (read.first_feature, read.features.tolist()) == (0, [[5, 0, 7]])
    path = written(tmp_path / "one.txt", "1 qid:1 1:5\n")
    assert read_letor(path, first_feature=0).features.tolist() == [[0, 5]]
    assert read_letor(path, n_features=3).features.tolist() == [[5, 0, 0]]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 qid:2 1:nan", "feature 1 must be finite"),
        ("1 qid:2 1:1 2:inf", "feature 2 must be finite"),
        ("1 qid:2 1:1 2:1e39", "feature 2 must be finite"),
        ("1 qid:2 1:x", "could not convert"),
        ("1 qid:2 1 2:3", "pairs"),
        ("1 qid:2 1:2:3", "pairs"),
        ("1 qid:2 1.5:3", "feature ids"),
        ("1 qid:2 -1:3", "feature ids"),
        ("1 qid:2 999999999:3", "feature ids"),
        ("1 qid:2 1:3 1:4", "differ"),
        ("-1 qid:2 1:3", "label"),
        ("0.5 qid:2 1:3", "label"),
        ("nan qid:2 1:3", "'label qid"),
        ("x qid:2 1:3", "'label qid"),
        ("1 qid: 1:3", "qid must not be empty"),
        ("1 1:3", "qid is missing"),
        ("1 qid:2 1:3\n1 qid:1 1:3", "stand together"),
    ],
)
def test_a_line_that_does_not_parse_is_named(line, reason, tmp_path):
    """File, line and reason."""
    path = written(tmp_path / "bad.txt", f"1 qid:1 1:2\n{line}\n")
    with pytest.raises(FileUnreadable, match=rf"{reason}.*bad\.txt:[23]"):
        read_letor(path)


def test_a_file_without_documents_is_refused(tmp_path):
    """Also where comments stand in it."""
    path = written(tmp_path / "none.txt", "# nothing\n\n")
    with pytest.raises(FileUnreadable, match="0 documents"):
        read_letor(path)


def test_group_sizes_tell_where_queries_end(tmp_path):
    """As LightGBM writes them beside the file."""
    path = tmp_path / "rank.train.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n0 1:2\n2 1:3\n"))
    groups = written(tmp_path / "rank.train.query", "2\n1\n")
    read = read_letor(path)
    assert (read.query_ids, read.offsets.tolist()) == (["0", "1"], [0, 2, 3])
    for sizes, reason in (("2\n", "add up to 3"), ("3\n0\n", "documents"), ("x", "x")):
        written(groups, sizes)
        with pytest.raises(FileUnreadable, match=rf"{reason}.*rank\.train\.query"):
            read_letor(path)
    groups.unlink()
    with pytest.raises(FileUnreadable, match="qid"):
        read_letor(path)


@pytest.mark.parametrize("layout", ["folders", "plan"])
def test_folds_share_their_columns(layout, tmp_path):
    """Also where one split lacks the last features, or alone has a feature 0."""
    parts = {
        "train": "1 qid:1 0:1 1:2\n",
        "vali": "1 qid:2 1:3\n",
        "test": "0 qid:3 3:4",
    }
    folder = tmp_path / "Fold2" if layout == "folders" else tmp_path
    folder.mkdir(exist_ok=True)
    for name, text in parts.items():
        written(folder / f"{name}.txt", text)
    if layout == "plan":
        plan = {"Fold2": {"train": ["train"], "vali": "vali", "test": ["test"]}}
        written(tmp_path / "folds.json", json.dumps(plan))
    fold = read_fold(tmp_path, 2)
    assert fold.train.features.tolist() == [[1, 2, 0, 0]]
    assert fold.validation.features.tolist() == [[0, 3, 0, 0]]
    assert fold.test.features.tolist() == [[0, 0, 0, 4]]
    missing = "Fold3" if layout == "folders" else "must be one of Fold2; got 3"
    with pytest.raises(FileUnreadable, match=missing):
        read_fold(tmp_path, 3)


def test_real_files_have_the_sizes_that_are_known():
    """MQ2008's parts, the heads of MSLR, and LightGBM's example."""
    if not DATA.exists():
        pytest.skip("no ../shared/data")
    parts = sorted((DATA / "MQ2008").glob("S*.txt.gz"))
    whole = read_letor(parts)
    assert (len(whole.query_ids), whole.features.shape) == (784, (15_211, 46))
    relevant = np.maximum.reduceat(whole.labels, whole.offsets[:-1]) > 0
    assert int(relevant.sum()) == 564
    fold = read_fold(DATA / "MQ2008", 1)
    sizes = [len(split.labels) for split in (fold.train, fold.validation, fold.test)]
    assert sum(sizes) == 15_211
    heads = [read_letor(path) for path in (DATA / "MSLR-sample").glob("*.gz")]
    assert sum(len(head.query_ids) for head in heads) == 114
    assert sum(len(head.labels) for head in heads) == 11_597
    assert {head.features.shape[1] for head in heads} == {136}
    folder = DATA / "LightGBM-lambdarank"
    example = [read_letor(folder / f"rank.{split}.gz") for split in ("train", "test")]
    assert sum(len(split.query_ids) for split in example) == 251
    assert sum(len(split.labels) for split in example) == 3_773
