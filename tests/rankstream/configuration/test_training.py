"""Settings of training: what contradicts itself is refused by its full name."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from models.estimators.registry import ESTIMATORS
from models.losses.proximal import RATIO
from models.losses.registry import DEFAULT, LOSSES, PARENT
from rankstream.configuration import training
from rankstream.settings import Settings, SettingsError, TrainingSettings, load_settings

MODEL = "[models.m]\nfeatures = 3\n"
CURVE = "[curves.c]\nestimator = 'position'\n"
TRAINED = MODEL + "versions = 'trained'\n[models.m.training]\n"


def loaded(
    tmp_path: Path, text: str, variables: Mapping[str, str] | None = None
) -> Settings:
    """The settings in a file."""
    path = tmp_path / "shop.toml"
    path.write_text(text)
    return load_settings(path, variables or {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TRAINED + "after = [3, 2]", "models.m.training.after must ascend; got [3, 2]"),
        (TRAINED + "after = [3, 3]", "models.m.training.after must ascend"),
        (TRAINED + "after = [0]", "models.m.training.after[0] must be a whole number"),
        (
            TRAINED + "at = ['2026-01-02T00:00:00Z', 2026-01-01T00:00:00Z]",
            "models.m.training.at must ascend; got ['2026-01-02",
        ),
        (TRAINED + "at = ['tomorrow']", "models.m.training.at[0]: Invalid RFC3339"),
        (TRAINED + "at = [2026-01-01T00:00:00]", "with a timezone component"),
        (
            TRAINED + "interventions = 3",
            "models.m.training.last must be more than first, 10000, for 3 "
            "interventions between; got 0",
        ),
        (
            TRAINED + "interventions = 4\nfirst = 5\nlast = 7",
            "last must be 8 or more, for 4 interventions from 5 on; got 7",
        ),
        (TRAINED + "examination = [1.0, 1.2]", "must be probabilities by rank"),
        (
            TRAINED + "loss = 'hinge'",
            "models.m.training.loss must be one of truncated-lambda, ",
        ),
        (
            TRAINED + "estimator = 'ips'",
            "training.estimator must be one of naive, oblivious, ",
        ),
        (
            TRAINED + "losses = ['arp-linear']",
            "models.m.training.losses must be set where loss is 'selected' only; got "
            "['arp-linear']: take it out, or set loss",
        ),
        (TRAINED + "loss = 'selected'", "losses must be two or more of truncated-"),
        (
            TRAINED + "loss = 'selected'\nlosses = ['arp-linear', 'arp-linear']",
            "each once, for loss 'selected'; got ['arp-linear', 'arp-linear']",
        ),
        (
            TRAINED + "loss = 'selected'\nlosses = ['arp-linear', 'selected']",
            "losses must be two or more of truncated-lambda, ",
        ),
        (
            TRAINED + "proximal_ratio = 1.5",
            "models.m.training.proximal_ratio must be set with the loss 'proximal' "
            "only; got 1.5 with 'truncated-lambda': take it out, or set loss = ",
        ),
        (
            TRAINED + "loss = 'proximal'\nproximal_ratio = 1.0",
            "models.m.training.proximal_ratio must be a number, more than 1.0; got 1.0",
        ),
        (
            TRAINED + "loss = 'proximal'\nproximal_ratio = 0.8",
            "models.m.training.proximal_ratio must be a number, more than 1.0; got 0.8",
        ),
        (
            TRAINED + "loss = 'proximal'\nproximal_ratio = inf",
            "models.m.training.proximal_ratio must be a finite number above 1; got inf",
        ),
        (TRAINED + "loss = 'proximal'\nproximal_ratio = nan", "proximal_ratio must be"),
        (TRAINED + "loss = 'proximal'\nproximal_ratio = 'c'", "proximal_ratio must be"),
        (
            TRAINED + "largest_loss = 0.0",
            "models.m.training.largest_loss must be a number, more than 0.0; got 0.0",
        ),
        (TRAINED + "largest_loss = -0.5", "largest_loss must be a number, more than"),
        (TRAINED + "largest_loss = nan", "models.m.training.largest_loss must be"),
        (
            TRAINED + "largest_loss = inf",
            "models.m.training.largest_loss must be a finite number above 0, in "
            "expected looks of a list; got inf: leave it out for no bound",
        ),
        (TRAINED + "largest_loss = 'much'", "models.m.training.largest_loss"),
        (TRAINED + "held_out = 1.0", "models.m.training.held_out must be a number"),
        (TRAINED + "cutof = 3", "training.cutof is no setting; did you mean cutoff?"),
        (
            MODEL + "[models.m.training]\ncutoff = 3",
            "models.m.training must be set where versions are 'trained' only; got it "
            "with 'online': take it out, or set versions = 'trained'",
        ),
        (
            TRAINED.replace("[models.m.t", "learner = 'mgd'\n[models.m.t"),
            "models.m.learner must be left out where versions are 'trained', as "
            "nothing is learned online; got 'mgd': take it out",
        ),
        (
            TRAINED.replace("[models.m.t", "options = {tau = 1}\n[models.m.t"),
            "models.m.options must be left out where versions are 'trained'",
        ),
        (
            MODEL + "versions = 'promised'",
            "versions must be one of ['online', 'trained', 'promoted']; got 'promised'",
        ),
        (
            CURVE + TRAINED + "curve = 'd'",
            "models.m.training.curve must be a curve, of ['c']; got 'd'",
        ),
        (
            CURVE + TRAINED + "curve = 'c'\nexamination = [1.0]",
            "models.m.training.curve must be left out where examination is given",
        ),
        (
            CURVE + "[curves.d]\nestimator = 'pivot'\n" + TRAINED,
            "models.m.training.curve must be one of ['c', 'd'], as there are several",
        ),
        (MODEL + "learns_from = ['a', 'a']", "learns_from must be names, each once"),
        (
            MODEL + "learns_from = ['']",
            "learns_from must be names of models, as an online learner goes by them; "
            "got ['']: take '' out, or set versions = 'trained'",
        ),
        (
            MODEL + "learns_from = ['b', 'c']",
            "models.m.learns_from must be models of one partition of interactions, as "
            "an online learner reads one; got ['b', 'c'] in [1, 3]: set "
            "kafka.learner_partitions = 1 in another namespace, or name one",
        ),
        ("[train]\nmemory_mb = 1", "train.memory_mb must be a whole number, 64 or"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    """With what was got."""
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, text)
    assert said in str(caught.value)


def test_event_times_are_read_in_every_form(tmp_path: Path) -> None:
    """Milliseconds, a text, and what TOML has for times."""
    text = TRAINED + "at = [1_000, '1970-01-01T00:00:02Z', 1970-01-01T01:00:03+01:00]"
    assert loaded(tmp_path, text).models["m"].training.at_ms == [1_000, 2_000, 3_000]


def test_a_schedule_is_whatever_trains_without_being_asked(tmp_path: Path) -> None:
    """By itself nothing does."""
    for text, has_one in (
        ("", False), ("first = 5", False), ("after = [5]", True), ("at = [5]", True),
        ("interventions = 1", True),
    ):  # fmt: skip
        model = loaded(tmp_path, TRAINED + text).models["m"]
        assert model.training.has_points is has_one, text


def test_a_trained_model_takes_lists_of_any_partition(tmp_path: Path) -> None:
    """Statistics are read of all of them."""
    text = TRAINED.replace("[models.m.t", "learns_from = ['b', 'c']\n[models.m.t")
    model = loaded(tmp_path, text).models["m"]
    assert model.sources_of("m") == ["b", "c"]
    assert msgspec.structs.replace(model, learns_from=[]).sources_of("m") == ["m"]


def test_settings_know_all_losses_and_estimators() -> None:
    """In the order in which messages list them."""
    assert (*LOSSES,) == training.LOSSES
    assert training.SELECTED not in LOSSES
    assert (*ESTIMATORS,) == training.ESTIMATORS
    assert TrainingSettings().loss == DEFAULT
    assert PARENT in LOSSES[training.PROXIMAL].needs
    assert TrainingSettings().proximal_ratio == training.PROXIMAL_RATIO == RATIO


def test_a_ratio_goes_to_the_loss_that_takes_it(tmp_path: Path) -> None:
    """Alone or among those that are chosen from; a bound goes with every loss."""
    for text in (
        "loss = 'proximal'\nproximal_ratio = 2",
        "loss = 'selected'\nlosses = ['arp-linear', 'proximal']\nproximal_ratio = 2",
        "proximal_ratio = 1.25\nlargest_loss = 1",
    ):
        found = loaded(tmp_path, TRAINED + text).models["m"].training
        assert found.proximal_ratio == (1.25 if found.largest_loss else 2.0)


def test_a_training_takes_the_curve_that_it_names_or_the_only_one(
    tmp_path: Path,
) -> None:
    """With several it must name one; with examination it takes none."""
    two = CURVE + "[curves.d]\nestimator = 'pivot'\n"
    for text, wanted in (
        (TRAINED, ""),
        (CURVE + TRAINED, "c"),
        (two + TRAINED + "curve = 'd'", "d"),
        (two + TRAINED + "examination = [1.0, 0.5]", ""),
    ):
        found = loaded(tmp_path, text)
        assert found.curve_for(found.models["m"]) == wanted
    assert [*found.models] == ["m"]
    assert [*found.curves] == ["c", "d"]
