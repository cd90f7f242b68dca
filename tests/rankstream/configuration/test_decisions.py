"""Settings of decisions: what cannot be so is refused by its full name."""

import re
from pathlib import Path

import pytest

from models.decisions.meta_policy import Rule
from models.evaluation.bounds.families import Bound
from rankstream.configuration.decisions import (
    BOUNDS,
    META_POLICIES,
    DecisionSettings,
)
from rankstream.settings import Settings, SettingsError, load_settings

MODELS = (
    "[models.general]\nfeatures = 3\nversions = 'trained'\n"
    "[models.shop]\nfeatures = 3\nversions = 'promoted'\n"
    "[models.online]\nfeatures = 3\n"
    "[curves.looks]\nestimator = 'position'\n"
)
COMPARES = (
    "[models.lists-of-two]\nfeatures = 10\nversions = 'trained'\nkind = 'neural'\n"
    "hidden = [2]\nnormalisation = 'none'\n[models.lists-of-two.training]\n"
    "loss = 'logging-policy'\ncutoff = 3\nexamination = [0.9, 0.6, 0.3]\nafter = [9]\n"
)
SECTION = "[decisions.lists]\n"
BOTH = MODELS + SECTION + "general = 'general'\nlogging = 'shop'\n"


def loaded(tmp_path: Path, text: str) -> Settings:
    """The settings in a file."""
    path = tmp_path / "shop.toml"
    path.write_text(text)
    return load_settings(path, {})


def test_a_section_is_taken(tmp_path: Path) -> None:
    """With confidence 0 and 1 too, which are bounds that say nothing or all."""
    for confidence in (0.0, 1.0):
        settings = loaded(tmp_path, BOTH + f"confidence = {confidence}")
        expected = DecisionSettings(
            general="general", logging="shop", confidence=confidence
        )
        assert settings.decisions == {"lists": expected}


def test_all_that_is_known_may_be_asked_for() -> None:
    """Settings name bounds and rules without importing them."""
    assert [*Bound] == [*BOUNDS]
    assert [each.value for each in Rule] == [*META_POLICIES]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MODELS + SECTION + "general = 'general'", "decisions.lists.logging must be"),
        (
            MODELS + SECTION + "general = 'general'\nlogging = 'general'",
            "decisions.lists.logging must be another model than general",
        ),
        (
            MODELS + SECTION + "general = 'online'\nlogging = 'shop'",
            "decisions.lists.general must be a model whose versions are deployed one",
        ),
        (
            MODELS + SECTION + "general = 'general'\nlogging = 'looks'",
            "decisions.lists.logging must be a model, of ['general', 'online', 'shop']",
        ),
        (
            BOTH.replace("[models.shop]\nfeatures = 3", "[models.shop]\nfeatures = 4"),
            "decisions.lists.logging must be a model of the features of general, as "
            "one ranker serves both; got 4 features for 3",
        ),
        (
            BOTH + "[decisions.more]\ngeneral = 'general'\nlogging = 'shop'",
            "decisions.more.general must be a model of one rule, as its rankers serve "
            "it; 'general' is that of 'lists' too",
        ),
        (
            BOTH.replace("decisions.lists", "decisions.'shop/eu'"),
            "decisions.shop/eu must have a name of 1 to 200 characters without @ or /",
        ),
        (
            COMPARES + BOTH.replace("logging = 'shop'", "logging = 'lists-of-two'"),
            "decisions.lists.logging must be a model that ranks for users; got 'lists-",
        ),
        (BOTH + "bound = 'any'", f"decisions.lists.bound must be one of {[*BOUNDS]}"),
        (
            BOTH + "meta_policy = 'safe'",
            f"decisions.lists.meta_policy must be one of {[*META_POLICIES]}",
        ),
        (BOTH + "confidence = 1.1", "decisions.lists.confidence must be"),
        (BOTH + "confidence = -0.1", "decisions.lists.confidence must be"),
        (BOTH + "every_s = 0", "decisions.lists.every_s must be"),
        (BOTH + "queries = 0", "decisions.lists.queries must be"),
        (BOTH + "every = 5", "decisions.lists.every is no setting; did you mean"),
        *(
            (
                MODELS + f"[decisions.{name}]\ngeneral = 'general'\nlogging = 'shop'",
                f"decisions.{name} must have a name of its own, as lists are logged "
                f"under it; there is a {what}",
            )
            for name, what in (("shop", "model"), ("looks", "curve"))
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """With what is known, where there is a choice."""
    with pytest.raises(SettingsError, match=re.escape(said)):
        loaded(tmp_path, text)
