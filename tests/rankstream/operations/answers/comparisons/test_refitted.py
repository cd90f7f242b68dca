"""A difference under the newest curve, from ingestion on."""

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pytest

from models.evaluation.sums import SCALE
from rankstream.experiments import Running
from rankstream.operations.answers import sources
from rankstream.operations.answers.comparisons.experiments import Judged
from rankstream.operations.answers.comparisons.refitted import (
    curve_of_policies,
    refitted,
)
from rankstream.operations.answers.sources import source_of_replay
from rankstream.operations.cli import main
from rankstream.operations.commands import experiments
from rankstream.ranker import Ranker
from rankstream.ranking.logging_options import FLOOR
from rankstream.settings import Settings, load_settings
from rankstream.wire.envelope import Snapshot, decode_snapshot, encode_snapshot
from rankstream.wire.models.curves import curve_rows
from rankstream.wire.models.training import RunRecord
from streams.comparisons.comparison import Comparison, decoded
from streams.comparisons.verdicts import refused_verdict
from streams.local import LocalPipeline, local_settings
from streams.statistics.reader import Statistics
from streams.training.inputs import TrainingRefused
from streams.training.local_trainer import LocalTrainer
from tests.logging_shop import EXPERIMENT, MODEL, THETA, LoggingShop

START_MS, N_LISTS = 1_700_000_000_000, 1_000
TIMES = "[time]\ndisorder_ms = 500\nclick_window_ms = 1_000\nremember_ms = 1_000\n"
CURVE = '[curves.looks]\nestimator = "position"\nranks = 3\n'
GIVEN = f"examination = {list(THETA)}\n"
TEXT = f"namespace = 'x'\n{TIMES}{MODEL.replace(GIVEN, '')}{EXPERIMENT}{CURVE}"


class Counted(NamedTuple):
    """What a log says, and a curve of it."""

    settings: Settings
    comparison: Comparison
    statistics: Statistics
    curve: Snapshot
    run: RunRecord
    refusal: str


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Counted:
    """Lists of the first version, and a curve that is fitted on them."""
    config = tmp_path_factory.mktemp("refitted") / "rankstream.toml"
    config.write_text(TEXT)
    settings = local_settings(load_settings(config, {}))
    pipeline = LocalPipeline(settings, now=lambda: START_MS)
    boost = settings.experiments["boost"]
    options = boost.options | {"examination": [1.0, 0.95, 0.9]}
    others = {"boost": msgspec.structs.replace(boost, options=options)}
    credited_by_others = msgspec.structs.replace(settings, experiments=others)
    trainer = LocalTrainer(credited_by_others, pipeline)
    pipeline.start()
    ranker = Ranker("lists", source=lambda: pipeline.snapshots.get(b"lists"))
    running = Running("boost", boost)
    LoggingShop(running, ranker, pipeline).show(N_LISTS, START_MS)
    pipeline.flush()
    trainer.fit("looks")
    (comparison,) = pipeline.comparisons()
    statistics = Statistics(trainer.statistics().items())
    curve = decode_snapshot(pipeline.snapshots[b"looks"])
    run = trainer.train("lists").run
    of_judges = msgspec.structs.replace(curve, groups=[13, 14, 19])
    pipeline.snapshots[b"looks"] = encode_snapshot(of_judges)
    with pytest.raises(TrainingRefused) as refused:
        trainer.train("lists")
    pipeline.end()
    return Counted(settings, comparison, statistics, curve, run, str(refused.value))


def test_the_curve_moves_the_difference_and_widens_its_interval(
    counted: Counted,
) -> None:
    """By what slopes say; the curve is from validation groups, which do not judge."""
    settings, comparison, *_ = counted
    found = refitted(*counted[:4])
    sums = comparison.sums["logging-policy"]
    slopes = comparison.slopes["logging-policy"] / SCALE / sums.impressions.sum()
    alpha = curve_rows(counted.curve)[0]

    assert curve_of_policies(settings, comparison) == "looks"
    assert found.n_refits == len(counted.curve.groups) == 3
    assert set(counted.curve.groups) < set(range(16))
    expected = slopes @ (alpha - np.array(THETA))
    assert found.found.moved == pytest.approx(expected, abs=1e-6)
    assert found.found.mean == pytest.approx(sums.mean()[0] + expected, abs=1e-6)
    assert abs(expected) > 1e-4
    assert found.found.curve_error > 0.0
    assert "refits without each of 3 groups" in found.said()
    assert found.to_dict()["curve"] == counted.curve.intervention


def test_a_curve_in_ratios_trains_policies(counted: Counted) -> None:
    """And its record says that lists are credited by other numbers."""
    run = counted.run

    assert run.loss == "logging-policy"
    assert run.curve.source == counted.curve.intervention
    assert run.curve.is_ratio_only
    assert run.settings["training"]["floor"] == FLOOR
    assert "experiments.boost credits lists by an examination" in run.curve.warning


@pytest.mark.parametrize("has_version", [True, False])
def test_the_command_prints_it(
    counted: Counted,
    has_version: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of what workers counted; or that the curve has no version yet."""
    config = tmp_path / "rankstream.toml"
    config.write_text(TEXT)
    versions = [(b"looks", encode_snapshot(counted.curve))] * has_version
    source = source_of_replay(
        counted.settings, counted.statistics, list, {}, n_partitions=1
    )
    source = replace(source, versions=lambda: versions)
    judged = Judged(refused_verdict("boost", 1, ""), "", {}, counted.comparison)
    monkeypatch.setattr(sources, "source_of", lambda _: source)
    monkeypatch.setattr(experiments, "judged", lambda *_: judged)
    words = ["experiments", "show", "boost", "--refit", "--json"]
    status = main([*words, "--config", str(config)])
    said = capsys.readouterr()

    if has_version:
        assert status == 0
        expected = refitted(*counted[:4]).to_dict()
        assert json.loads(said.out) == expected
    else:
        assert status == 1
        assert "the curve 'looks' must have a version" in " ".join(said.err.split())


def test_slopes_are_counted_stored_and_merged(counted: Counted) -> None:
    """As all sums are; multiples of a curve change nothing."""
    comparison = counted.comparison
    again = decoded("boost", comparison.encoded())
    twice = decoded("boost", comparison.encoded())
    twice.merge(again)
    for name, slopes in comparison.slopes.items():
        n = comparison.sums[name].impressions.sum()
        assert abs(slopes @ np.array(THETA)) < 10.0 * n
        assert np.abs(slopes).max() > 1_000 * n
        assert again.slopes[name].tolist() == slopes.tolist()
        assert twice.slopes[name].tolist() == (2 * slopes).tolist()


def test_curves_of_those_who_judge_are_refused(counted: Counted) -> None:
    """As are such that say too little, or nothing that clicks told."""
    settings, comparison, statistics, curve, *_ = counted
    assert (
        "the curve or the parent is from selection groups [19] too" in counted.refusal
    )
    judging = msgspec.structs.replace(curve, groups=[12, 13, 14, 19])
    with pytest.raises(ValueError, match=r"is from \[19\] too"):
        refitted(settings, comparison, statistics, judging)
    alone = msgspec.structs.replace(curve, groups=[12])
    with pytest.raises(ValueError, match="can be refitted without each group"):
        refitted(settings, comparison, statistics, alone)

    lists = settings.models["lists"]
    training = msgspec.structs.replace(lists.training, examination=list(THETA))
    given = msgspec.structs.replace(lists, training=training)
    whole = msgspec.structs.replace(settings, models={"lists": given})
    with pytest.raises(ValueError, match="so that there is nothing to refit"):
        curve_of_policies(whole, comparison)
    with pytest.raises(ValueError, match="--refit must be asked of an experiment of"):
        curve_of_policies(msgspec.structs.replace(settings, models={}), comparison)
