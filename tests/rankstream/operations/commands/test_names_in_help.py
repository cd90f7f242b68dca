"""Names that help has by hand, so that it is quick, are those of what runs."""

from models.interleaving.simulated import NAMES
from rankstream.lab.commands import reproduce
from rankstream.lab.commands.reproduce.run import STUDIES
from rankstream.lab.reproduction import bandits
from rankstream.lab.reproduction.engine import Study
from rankstream.lab.reproduction.genspec.report import GenspecStudy
from rankstream.lab.reproduction.interventions import plan as interventions
from rankstream.lab.reproduction.interventions.report import InterventionStudy
from rankstream.lab.reproduction.literature import DATA_SETS
from rankstream.lab.reproduction.logopt.report import LogOptStudy
from rankstream.lab.reproduction.online.plan import (
    BASELINES,
    LEARNERS_TABLE,
    LONG_RUNS,
    SCORING_ALL,
)
from rankstream.lab.reproduction.top_k.report import TopKStudy
from rankstream.lab.reproduction.trees.report import TreesStudy
from rankstream.operations.answers import values
from rankstream.operations.answers.installation import new_settings
from rankstream.operations.answers.models import training_settings
from rankstream.operations.commands import evaluate, init
from rankstream.operations.commands.options import kinds
from streams.estimation.question import LOGGED


def test_evaluate_names_all_weights_and_what_was_logged() -> None:
    """In their order."""
    assert tuple(values.WEIGHTS) == evaluate.WEIGHTS
    assert evaluate.LOGGED == LOGGED


def test_reproduce_names_all_tables_and_what_they_have() -> None:
    """With how many runs each has."""
    assert {*reproduce.TABLES} == {*STUDIES, reproduce.MULTILEAVING, bandits.TABLE}
    assert reproduce.LEARNERS_TABLE == LEARNERS_TABLE
    learners = {*BASELINES, *SCORING_ALL, *(name for name, _ in LONG_RUNS)}
    assert tuple(sorted(learners)) == reproduce.LEARNERS
    assert reproduce.METHODS == NAMES
    assert reproduce.PARTS == interventions.PARTS
    assert tuple(DATA_SETS) == reproduce.DATA_SETS
    runs = (
        Study.n_runs, TopKStudy.n_runs, TreesStudy.n_runs, InterventionStudy.n_runs,
        GenspecStudy.n_runs, LogOptStudy.n_runs, bandits.N_RUNS,
    )  # fmt: skip
    assert runs == reproduce.RUNS


def test_init_names_all_events_and_goals() -> None:
    """In their order."""
    assert new_settings.EVENTS == init.EVENTS
    assert new_settings.GOALS == init.GOALS


def test_train_and_simulate_name_the_kinds_that_need_no_settings() -> None:
    """The first is the default."""
    assert training_settings.BY_THE_LOG == kinds.BY_THE_LOG
