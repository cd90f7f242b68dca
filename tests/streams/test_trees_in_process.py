"""Trees that were trained here, and of another library: from clicks to a verdict."""

from functools import partial
from pathlib import Path

from rankstream.configuration.trees import TreesSettings
from rankstream.experiments import Running
from rankstream.operations.answers.models.tree_models import imported_snapshot
from rankstream.operations.tree_files.formats import read_model_file
from rankstream.ranker import Ranker
from rankstream.settings import (
    ExperimentSettings,
    ModelSettings,
    Settings,
    TrainingSettings,
)
from rankstream.snapshots import Snapshot, decode_snapshot, encode_snapshot
from streams.comparisons.verdicts import verdict_of
from streams.local import LocalPipeline, local_settings
from streams.training.local_trainer import LocalTrainer
from tests.clicked_lists import EXAMINATION, N_FEATURES, Shown, show, show_compared
from tests.trained_elsewhere import OF_TASTE, models_of_taste

START_MS = 1_700_000_000_000
N_LISTS = 1_500
TRAINING = TrainingSettings(
    least_support=1.0,
    examination=list(EXAMINATION),
    trees=TreesSettings(rounds=30, leaves=6, least_items=8, learning_rate=0.2),
)
OWN = ModelSettings(
    features=N_FEATURES, feature_names=OF_TASTE, kind="trees", normalisation="none",
    versions="trained", training=TRAINING,
)  # fmt: skip
BROUGHT = ModelSettings(
    features=N_FEATURES, feature_names=OF_TASTE, kind="trees", normalisation="none",
    versions="promoted",
)  # fmt: skip


def ranker_of(snapshot: Snapshot) -> Ranker:
    """One that serves it."""
    envelope = encode_snapshot(snapshot)
    ranker = Ranker(snapshot.model, source=partial(bytes, envelope))
    ranker.load()
    return ranker


def trained_here() -> Snapshot:
    """What clicks on lists by chance teach."""
    settings = local_settings(Settings(models={"own": OWN}))
    pipeline = LocalPipeline(settings, now=lambda: START_MS)
    trainer = LocalTrainer(settings, pipeline)
    pipeline.start()
    first = ranker_of(decode_snapshot(pipeline.snapshots[b"own"]))
    show(pipeline, first, Shown(0, START_MS), N_LISTS)
    pipeline.end()
    trainer.flush()
    return trainer.train("own").snapshot


def brought(folder: Path) -> Snapshot:
    """A model of XGBoost, which ranks the other way round."""
    models_of_taste(folder)
    settings = Settings(models={"turned": BROUGHT})
    file = read_model_file(folder / "model.ubj")
    return imported_snapshot("turned", settings, file)


def test_trained_trees_are_compared_with_imported_ones_to_a_verdict(
    tmp_path: Path,
) -> None:
    """By team draft: who ranks as users like it wins."""
    rankers = {x.model: ranker_of(x) for x in (trained_here(), brought(tmp_path))}
    experiment = ExperimentSettings(
        rankers={"own": "", "turned": ""}, method="team-draft", length=4
    )
    settings = local_settings(Settings(experiments={"boost": experiment}))
    pipeline = LocalPipeline(settings, now=lambda: START_MS)
    running, begin = Running("boost", experiment), Shown(0, START_MS)
    show_compared(pipeline, running, rankers, begin, N_LISTS)
    pipeline.end()
    (found,) = pipeline.comparisons()

    assert found.totals[0] == N_LISTS
    assert verdict_of(found).methods["team-draft"].winner == "own"
