"""Settings of trees: refused where they contradict, in one sentence each."""

from pathlib import Path

import pytest

from models.losses.compiled_loss import is_convex
from models.losses.registry import LOSSES, compiled_loss
from rankstream.configuration.trees_faults import CONVEX_LOSSES, OF_LAYERS
from rankstream.settings import Settings, SettingsError, load_settings

MODEL = """
[models.m]
features = 3
feature_names = ["price", "rating", "age"]
kind = "trees"
normalisation = "none"
versions = "trained"
"""
TRAINING = "[models.m.training]\n"
TREES = "[models.m.training.trees]\n"


def loaded(folder: Path, text: str) -> Settings:
    """As every program reads them."""
    config = folder / "rankstream.toml"
    config.write_text(f'namespace = "x"\n{text}')
    return load_settings(config, {})


def test_trees_are_read_as_they_are_written(tmp_path: Path) -> None:
    """Constraints by the names of features."""
    found = loaded(
        tmp_path,
        f'{MODEL}{TREES}leaves = 7\nmonotone = {{ price = "falling" }}\n'
        'missing = "zero"\n',
    )
    trees = found.models["m"].training.trees
    assert (trees.leaves, trees.monotone, trees.missing) == (
        7, {"price": "falling"}, "zero",
    )  # fmt: skip
    assert trees.rounds == 300


def test_losses_that_trees_take_are_those_that_are_convex() -> None:
    """Services, which read settings, have no models."""
    convex = [name for name in LOSSES if is_convex(compiled_loss(name, 1, 1))]
    assert [*CONVEX_LOSSES] == convex


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{TRAINING}epochs = 9\n", r"epochs must be left out .*trees\.rounds"),
        (
            f"{TRAINING}batch = 9\n",
            r"batch must be left out where .* 9: take it out; in",
        ),
        (f"{TRAINING}learning_rate = 0.5\n", r"set .*trees\.learning_rate"),
        (f"{TRAINING}patience = 9\n", r"set .*trees\.patience"),
        (f'{TRAINING}loss = "dcg-logistic"\n', r"\.loss must have a curvature .*dcg-l"),
        (f'{TRAINING}loss = "logging-policy"\n', r"\.loss must have a curvature"),
        (
            f'{TRAINING}loss = "selected"\nlosses = ["lambda-rank", "arp-linear"]\n',
            r"\.losses must have a curvature .*; got arp-linear: take trunc",
        ),
        (
            f"{TREES}rounds = 9\nrounds_at_most = 8\n",
            "must be rounds, 9, or more; got 8",
        ),
        (f"{TREES}regularisation = inf\n", "regularisation must be finite; got inf"),
        (
            f'{TREES}monotone = {{ weight = "rising" }}\n',
            r"must name features .*; got weight: it has price, rating, age",
        ),
        (f'{TREES}monotone = {{ age = "up" }}\n', "monotone"),
        (f"{TREES}leaves = 1\n", "leaves"),
        (f"{TREES}leaves = 600\n", "leaves"),
        (f"{TREES}share_of_queries = 0.0\n", "share_of_queries"),
        (f'{TREES}missing = "nan"\n', "missing"),
        (f"{TREES}trees = 5\n", "trees"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    tmp_path: Path, text: str, said: str
) -> None:
    """With the setting."""
    with pytest.raises(SettingsError, match=said):
        loaded(tmp_path, MODEL + text)


def test_other_kinds_have_no_trees(tmp_path: Path) -> None:
    """Nor are settings of layers missed where they are as by default."""
    linear = MODEL.replace('"trees"', '"linear"')
    with pytest.raises(SettingsError, match=r"kind is 'trees' or 'selected' only"):
        loaded(tmp_path, f"{linear}{TREES}leaves = 7\n")
    assert set(OF_LAYERS) <= {
        *loaded(tmp_path, MODEL).models["m"].training.__struct_fields__
    }


def test_a_kind_may_be_chosen(tmp_path: Path) -> None:
    """With settings of both, by losses that both take, of what is trained alone."""
    either = MODEL.replace('"trees"', '"selected"')
    text = f"{either}[models.m.training]\nepochs = 7\n{TREES}leaves = 7\n"
    linear, trees = loaded(tmp_path, text).models["m"].forms

    assert (linear.kind, linear.training.epochs) == ("linear", 7)
    assert (trees.kind, trees.normalisation) == ("trees", "none")
    assert trees.training.trees.leaves == 7
    for wrong, said in (
        (either.replace('"trained"', '"online"'), "'trained' where kind is 'selected'"),
        (
            either.replace('"none"', '"fixed"'),
            r"normalisation must be one of .*'fixed'",
        ),
        (
            f'{either}[models.m.training]\nloss = "dcg-linear"\n',
            "must have a curvature",
        ),
        (either.replace("features =", "hidden = [3]\nfeatures ="), "and none of a lin"),
    ):
        with pytest.raises(SettingsError, match=said):
            loaded(tmp_path, wrong)
