"""Settings of canaries: what cannot be so is refused by its full name."""

import re
from pathlib import Path

import pytest

from rankstream.configuration.canary import CanarySettings
from rankstream.settings import Settings, SettingsError, load_settings
from rankstream.wire.models.canaries import CanaryRules

PROMOTED = "[models.m]\nfeatures = 3\nversions = 'promoted'\n[models.m.canary]\n"
ORDERS = "[statistics]\nactions = {buy = 'order'}\n"


def loaded(tmp_path: Path, text: str) -> Settings:
    """The settings in a file."""
    path = tmp_path / "shop.toml"
    path.write_text(text)
    return load_settings(path, {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *(
            (f"{PROMOTED}shares = {shares}", "models.m.canary.shares must be shares of")
            for shares in ("[]", "[0.0]", "[1.0]", "[0.1, 0.1]", "[0.5, 0.1]", "[nan]")
        ),
        (PROMOTED + "shares = 0.1", "models.m.canary.shares"),
        (
            PROMOTED + "least = 9\nplanned = 8",
            "models.m.canary.least must be at most models.m.canary.planned, 8",
        ),
        (PROMOTED + "least = 0", "models.m.canary.least must be"),
        (PROMOTED + "alpha = 0.0", "models.m.canary.alpha must be"),
        (PROMOTED + "alpha = 1.0", "models.m.canary.alpha must be"),
        (PROMOTED + "margin = -0.1", "models.m.canary.margin must be"),
        (
            PROMOTED + "guardrails = ['click']",
            "guardrails must be among ['without click'], each once; got ['click']",
        ),
        (
            ORDERS + PROMOTED + "guardrails = ['order', 'order']",
            "guardrails must be among ['without click', 'order'], each once",
        ),
        (PROMOTED + "alfa = 0.1", "models.m.canary.alfa is no setting; did you mean"),
        (
            "[models.m]\nfeatures = 3\n[models.m.canary]\n",
            "models.m.canary must be left out where versions are 'online', as each",
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """With what is known, where there is a choice."""
    with pytest.raises(SettingsError, match=re.escape(said)):
        loaded(tmp_path, text)


def test_rules_are_those_of_the_section(tmp_path: Path) -> None:
    """What is left out is as by default; a model without a section has none."""
    text = ORDERS + PROMOTED + "shares = [0.2]\nguardrails = ['without click', 'order']"
    canary = loaded(tmp_path, text).models["m"].canary
    assert canary is not None
    usual = CanarySettings()
    assert canary.rules() == CanaryRules(
        [0.2], usual.planned, usual.least, usual.alpha, usual.margin,
        ["without click", "order"],
    )  # fmt: skip
    bare = PROMOTED.removesuffix("[models.m.canary]\n")
    assert loaded(tmp_path, bare).models["m"].canary is None
