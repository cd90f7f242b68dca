"""What a running deployment rests on stays in its rows."""

import pytest

from rankstream.settings import (
    DecisionSettings,
    ExperimentSettings,
    ModelSettings,
    Settings,
    SourceSettings,
)
from streams.topology import STAGES
from streams.worker_roles import ROLES

ROWS = {
    # version, the first whose states it takes, state at every commit, compiled before
    "ingest-queries": (3, 1, True, False),
    "ingest-clicks": (3, 1, True, False),
    "fold": (6, 2, False, True),
    "learn": (2, 1, True, True),
}


@pytest.mark.parametrize("kind", STAGES, ids=lambda kind: kind.name)
def test_versions_states_and_warm_up_change_on_purpose_only(kind):
    """Versions say which states are taken; a cold stage looks dead."""
    is_warmed = kind.warm_up is not None
    row = (kind.version, kind.since, kind.state_always, is_warmed)
    assert row == ROWS.get(kind.name, row)


def needed(settings: Settings) -> set[str]:
    """Roles of a worker that is told none."""
    return {name for name, role in ROLES.items() if role.is_needed(settings)}


def test_verdicts_are_made_where_there_is_an_experiment_or_an_intervention():
    """Whoever starts a worker without naming roles gets those that are needed."""
    compared = ExperimentSettings(rankers={"a": "", "b": ""})
    trained = ModelSettings(features=1, versions="trained")
    always = set(ROLES) - {"evaluate", "train", "adapt", "decide"}
    assert needed(Settings()) == always
    assert needed(Settings(experiments={"e": compared})) == always | {"evaluate"}
    assert needed(Settings(models={"m": trained})) == always | {"evaluate", "train"}


def test_decisions_are_made_where_there_is_a_rule():
    """As with verdicts."""
    rule = DecisionSettings(general="m", logging="n")
    assert needed(Settings(decisions={"d": rule})) - needed(Settings()) == {"decide"}


def test_documents_are_adapted_where_there_is_a_source():
    """As with verdicts."""
    source = SourceSettings(topic="ubi", format="ubi")
    assert needed(Settings(sources={"s": source})) - needed(Settings()) == {"adapt"}
