"""Settings of bandits: what cannot work is refused by its full name."""

import re
from pathlib import Path

import pytest

from rankstream.configuration.bandits import BanditSettings
from rankstream.settings import Settings, SettingsError, load_settings

MODELS = (
    "[models.search]\nfeatures = 3\nversions = 'trained'\n"
    "[models.search.training]\nexamination = [0.9, 0.6, 0.3]\n"
    "[models.shop]\nfeatures = 3\nversions = 'promoted'\n"
    "[models.online]\nfeatures = 3\n"
)
COMPARES = (
    "[models.lists-of-two]\nfeatures = 10\nversions = 'trained'\nkind = 'neural'\n"
    "hidden = [2]\nnormalisation = 'none'\n[models.lists-of-two.training]\n"
    "loss = 'logging-policy'\ncutoff = 3\nexamination = [0.9, 0.6, 0.3]\nafter = [9]\n"
)
SECTION = "[bandits.lists]\n"
PIE = MODELS + SECTION + "model = 'search'\nlength = 3\n"
TRUST = "[curves.looks]\nestimator = 'trust'\n"
LOOKS = "[curves.looks]\nestimator = 'position'\nranks = 3\n"


def loaded(tmp_path: Path, text: str) -> Settings:
    """The settings in a file."""
    path = tmp_path / "shop.toml"
    path.write_text(text)
    return load_settings(path, {})


@pytest.mark.parametrize(
    ("text", "expected", "words"),
    [
        (PIE, BanditSettings(model="search", length=3), "pie, lists of 3"),
        (
            MODELS + SECTION + "model = 'shop'\npolicy = 'cascade'\nevery_s = 5",
            BanditSettings(model="shop", policy="cascade", every_s=5.0),
            "cascade",
        ),
        (
            MODELS + SECTION + "model = 'shop'\npolicy = 'hotfix'",
            BanditSettings(model="shop", policy="hotfix"),
            "hotfix, all",
        ),
        (
            MODELS + SECTION + "model = 'search'\npolicy = 'hotfix'\ntop = 5",
            BanditSettings(model="search", policy="hotfix", top=5),
            "hotfix, the first 5",
        ),
        (
            LOOKS + MODELS + SECTION + "model = 'shop'\nlength = 3",
            BanditSettings(model="shop", length=3),
            "pie, lists of 3",
        ),
    ],
)
def test_a_section_is_taken(
    tmp_path: Path, text: str, expected: BanditSettings, words: str
) -> None:
    """Of each policy what it needs, and no more."""
    settings = loaded(tmp_path, text)
    assert settings.bandits == settings.decided == {"lists": expected}
    assert expected.bandit == words


EXAMINED = "bandits.lists.model must tell how often each rank of a list is examined, "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MODELS + SECTION, "bandits.lists.model must be set"),
        (
            MODELS + SECTION + "model = 'none'\nlength = 3",
            "bandits.lists.model must be a model, of ['online', 'search', 'shop']",
        ),
        (
            MODELS + SECTION + "model = 'online'\npolicy = 'hotfix'",
            "bandits.lists.model must be a model whose versions are deployed one by",
        ),
        (
            COMPARES + PIE.replace("model = 'search'", "model = 'lists-of-two'"),
            "bandits.lists.model must be a model that ranks for users; got 'lists-of-",
        ),
        (PIE + "policy = 'ucb'", "bandits.lists.policy must be one of ['pie', 'casc"),
        (
            MODELS + SECTION + "model = 'search'",
            "bandits.lists.length must be set, 1 or more, as the last rank of a list",
        ),
        (
            PIE + "policy = 'cascade'",
            "bandits.lists.length must be set where policy is 'pie' only; got 3 with",
        ),
        (PIE + "top = 2", "bandits.lists.top must be set where policy is 'hotfix'"),
        (PIE + "top = -1", "bandits.lists.top must be"),
        (PIE + "every_s = 0", "bandits.lists.every_s must be"),
        (PIE + "queries = 0", "bandits.lists.queries must be"),
        (PIE + "memory_mb = 63", "bandits.lists.memory_mb must be"),
        (
            PIE.replace("length = 3", "length = 4"),
            EXAMINED + "for 'pie'; `training.examination` has 3 ranks for lists of 4",
        ),
        (
            MODELS + SECTION + "model = 'shop'\nlength = 3",
            EXAMINED + "for 'pie'; it has neither `training.examination` nor a curve",
        ),
        (
            TRUST + MODELS + SECTION + "model = 'shop'\nlength = 3",
            EXAMINED + "for 'pie'; 'looks' is a curve of trust bias",
        ),
        (
            LOOKS + MODELS + SECTION + "model = 'shop'\nlength = 4",
            EXAMINED + "for 'pie'; 'looks' has 3 ranks for lists of 4",
        ),
        (
            MODELS + SECTION + "model = 'shop'\npolicy = 'hotfix'\ntop = 2",
            "bandits.lists.model must have log_candidates, as its order says which 2",
        ),
        (PIE.replace("lists]", '""]'), "bandits. must have a name of 1 to 200 charac"),
        (PIE.replace("lists]", '"a@1.0"]'), "bandits.a@1.0 must have a name of 1 to"),
        (
            PIE + "[bandits.more]\nmodel = 'search'\npolicy = 'cascade'",
            "bandits.more.model must be a model of one bandit or rule of decisions, as "
            "its rankers serve it; 'search' is that of the bandit 'lists' too",
        ),
        (
            PIE + "[decisions.rule]\ngeneral = 'search'\nlogging = 'shop'",
            "'search' is that of the rule 'rule' too",
        ),
        *(
            (
                LOOKS + MODELS + "[decisions.rule]\ngeneral = 'shop'\n"
                f"logging = 'search'\n[bandits.{name}]\nmodel = 'search'\nlength = 3",
                f"bandits.{name} must have a name of its own, as lists are logged "
                f"under it; there is a {what}",
            )
            for name, what in (
                ("shop", "model"), ("looks", "curve"), ("rule", "rule of decisions"),
            )
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """With what is known, where there is a choice."""
    with pytest.raises(SettingsError, match=re.escape(said)):
        loaded(tmp_path, text)
