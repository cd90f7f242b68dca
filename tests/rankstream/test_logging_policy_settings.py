"""Settings of logging policies: refused where they contradict, and set once."""

from pathlib import Path

import pytest

from rankstream.ranking.logging_options import FLOOR
from rankstream.settings import Settings, SettingsError, load_settings

EXPERIMENT = """
[experiments.boost]
method = "logging-policy"
rankers = { a = "search", b = "" }
length = 2
options = { model = "lists" }
"""
LISTS = """
[models.lists]
features = 8
versions = "trained"
normalisation = "none"
kind = "neural"
hidden = [4]
[models.lists.training]
loss = "logging-policy"
cutoff = 2
examination = [1.0, 0.5]
after = [1_000]
"""
SEARCH = """
[models.search]
features = 1
"""
BOTH = EXPERIMENT + LISTS + SEARCH
GIVEN = "examination = [1.0, 0.5]\n"
CURVE = BOTH.replace(GIVEN, "").replace(
    '"lists" }', '"lists", examination = [1, 0.5] }'
)
OPTIONS, EIGHT = '"lists" }', "features = 8"


def named(*names: str) -> str:
    """The model's features with names: the first, and the last two."""
    first, *last = names
    every = [first, "difference", "size", "square", "equal", "first-more", *last]
    return f"{EIGHT}\nfeature_names = {every}"


def loaded(folder: Path, text: str) -> Settings:
    """As every program reads them."""
    config = folder / "rankstream.toml"
    config.write_text(f'namespace = "x"\n{text}')
    return load_settings(config, {})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (OPTIONS, '"lists", groups = 10 }', "groups must be statistics.groups, 20"),
        (OPTIONS, '"lists", selection = 5 }', r"\.selection must be at most 4"),
        (OPTIONS, '"lists", examination = [1.0, 0.4] }', r"0.5\]; got \[1.0, 0.4\]"),
        (OPTIONS, '"lists", floor = 0.02 }', r"training, 0.01; got 0.02"),
        (OPTIONS, '"list" }', r"of \['lists'\]; got 'list'"),
        (OPTIONS, '"search" }', r"of \['lists'\]; got 'search'"),
        ('{ model = "lists" }', "{ floor = 0.1 }", r"of \['lists'\]; got ''"),
        ("cutoff = 2", "cutoff = 2\nfloor = 0.4", "above 0 and at most 0.25"),
        ("cutoff = 2", "cutoff = 2\nlargest_loss = 1", "largest_loss must be left"),
        ('b = ""', 'b = "", c = ""', "must be two for"),
        ('b = ""', 'b = "search"', "must be two that differ; got 'search' for both"),
        ('b = ""', 'b = "lists"', "rankers must be models that rank for users"),
        ("length = 2", "length = 1", "must be models.lists.training.cutoff, 2"),
        ("length = 2", "length = 3", "must be models.lists.training.cutoff, 2"),
        ('"trained"', '"online"', "must be set where versions are 'trained' only"),
        ('"neural"\nhidden = [4]', '"linear"', "kind must be that of a network"),
        ('"none"', '"min-max"', "needs normalisation = 'none'"),
        (EIGHT, "features = 6", "the last 7 features"),
        (EIGHT, "features = 9", "must be those of 'search'.*got 2 of its own"),
        (EIGHT, named("y", "rank-a", "rank-b"), "'search'.*got other names"),
        (EIGHT, named("x", "rank-b", "rank-a"), "feature_names must end with"),
        ("after = [1_000]", "", "after must be set with loss 'logging-policy'"),
        (GIVEN, "", "examination must be set"),
        (GIVEN, "examination = [1.0]\n", "cutoff must be at most 1, the ranks of"),
        ('norm', 'learns_from = ["search"]\nnorm', "learns_from must be left out"),
        ('loss = "logging-policy"', "floor = 0.02", "floor must be set with the loss"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    """Each by the setting that has to be corrected."""
    text = BOTH.replace(SEARCH, SEARCH + 'feature_names = ["x"]\n')
    assert text.count(old) >= 1
    with pytest.raises(SettingsError, match=said):
        loaded(tmp_path, text.replace(old, new))


@pytest.mark.parametrize(
    ("curves", "said"),
    [
        ('[curves.looks]\nestimator = "trust"', "must be of position bias alone"),
        ('[curves.looks]\nestimator = "position"\nranks = 2', ""),
    ],
)
def test_a_curve_says_who_looks(tmp_path: Path, curves: str, said: str) -> None:
    """One of position bias does, of as many ranks as lists have."""
    if said:
        with pytest.raises(SettingsError, match=said):
            loaded(tmp_path, CURVE + curves)
        return
    assert loaded(tmp_path, CURVE + curves).models["lists"].training.examination == []
    scaled = CURVE.replace("[1, 0.5]", "[0.8, 0.4]")
    with pytest.raises(
        SettingsError, match="examination must begin with 1, as the cur"
    ):
        loaded(tmp_path, scaled + curves)
    longer = CURVE.replace("cutoff = 2", "cutoff = 3")
    with pytest.raises(SettingsError, match="cutoff must be at most 2, the ranks"):
        loaded(tmp_path, longer + curves)


def test_a_model_of_policies_is_of_one_experiment(tmp_path: Path) -> None:
    """Lists of another would tell other rankers apart."""
    other = EXPERIMENT.replace("experiments.boost", "experiments.other")
    with pytest.raises(SettingsError, match="must be a model of one experiment"):
        loaded(tmp_path, BOTH + other)


def test_floor_and_examination_are_set_once(tmp_path: Path) -> None:
    """In the model; the experiment, whose record services read, has them too."""
    options = loaded(tmp_path, BOTH).experiments["boost"].options
    assert options == {"model": "lists", "floor": FLOOR, "examination": [1.0, 0.5]}

    higher = BOTH.replace("cutoff = 2", "cutoff = 2\nfloor = 0.02")
    assert loaded(tmp_path, higher).experiments["boost"].options["floor"] == 0.02


def test_a_policy_may_see_what_rankers_differ_in_alone(tmp_path: Path) -> None:
    """Whatever features the compared models have."""
    text = BOTH.replace("features = 8", "features = 7")
    assert loaded(tmp_path, text).models["lists"].features == 7
