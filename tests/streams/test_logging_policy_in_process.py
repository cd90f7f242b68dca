"""An experiment whose logging policy is optimised twice, from ingestion on."""

from pathlib import Path

import numpy as np
import pytest

from rankstream.experiments import Running
from rankstream.logging_lists import LoggingLists
from rankstream.ranker import Ranker
from rankstream.settings import load_settings
from rankstream.wire.topics import CLICKS, QUERIES
from streams.comparisons.verdicts import verdict_of
from streams.local import LocalPipeline, local_settings
from streams.training.local_trainer import LocalTrainer
from tests.logging_shop import (
    EXPERIMENT,
    MODEL,
    LoggingShop,
    is_below,
    split_mean_square,
    squared_errors,
    true_difference,
    uniform_mean_square,
)

START_MS = 1_700_000_000_000
COUNTS = (400, 800, 1_200)
TIMES = "[time]\ndisorder_ms = 500\nclick_window_ms = 1_000\nremember_ms = 1_000\n"


class Run:
    """All of it, once."""

    def __init__(self, folder: Path) -> None:
        config = folder / "rankstream.toml"
        config.write_text(f"namespace = 'x'\n{TIMES}{MODEL}{EXPERIMENT}")
        settings = local_settings(load_settings(config))
        self.pipeline = LocalPipeline(settings, now=lambda: START_MS)
        self.trainer = LocalTrainer(settings, self.pipeline)
        self.pipeline.start()
        ranker = Ranker("lists", source=lambda: self.pipeline.snapshots.get(b"lists"))
        running = Running("boost", settings.experiments["boost"])
        self.shop = LoggingShop(running, ranker, self.pipeline)
        self.mean_squares = []
        for count in COUNTS:
            self.shop.show(count - len(self.shop.credits), START_MS)
            self.mean_squares.append(self.shop.mean_square())
            if count < COUNTS[-1]:
                self.pipeline.flush()
                self.trainer.train("lists")
        self.pipeline.end()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Of the tests here."""
    return Run(tmp_path_factory.mktemp("logging"))


def test_each_list_is_credited_under_the_policy_that_drew_it(run: Run) -> None:
    """The sum over all lists is that of the client; the judged ones are a part."""
    (found,) = run.pipeline.comparisons()
    every = found.sums["all:logging-policy"]
    judged = found.sums["logging-policy"]
    n = int(judged.impressions.sum())

    assert found.refusals == {}
    assert found.totals[0] == COUNTS[-1]
    assert every.impressions.sum() == COUNTS[-1]
    assert every.mean()[0] == pytest.approx(np.mean(run.shop.credits), abs=1e-5)
    assert 0.15 * COUNTS[-1] < n < 0.25 * COUNTS[-1]
    verdict = verdict_of(found).methods["logging-policy"]
    assert verdict.impressions == n


def test_each_policy_is_an_intervention_that_tells_more(run: Run) -> None:
    """Less variance than uniform lists and than A/B's, after the second change."""
    assert sorted(set(run.shop.versions)) == [0, *[r.version for r in run.trainer.runs]]
    assert len({r.intervention for r in run.trainer.runs}) == 2
    assert run.mean_squares[0] == pytest.approx(uniform_mean_square(), rel=0.02)
    for each in run.trainer.runs:
        losses = [loss for _, loss, _ in each.epochs]
        assert len(losses) == each.best_epoch
        assert 0.0 < losses[-1] < losses[0]
    assert run.mean_squares[2] < 0.8 * run.mean_squares[0]
    assert run.mean_squares[2] < 0.8 * split_mean_square()


def test_errors_of_the_same_users_are_smaller(run: Run) -> None:
    """By two paired standard errors; each mean is that of the exact moments."""
    errors, squared = squared_errors(run.shop.scores, 2_000), true_difference() ** 2
    exact = {
        "logging": run.shop.mean_square(),
        "uniform": uniform_mean_square(),
        "ab": split_mean_square(),
    }
    for name, each in errors.items():
        error = each.std(ddof=1) / np.sqrt(len(each))
        assert abs(each.mean() - (exact[name] - squared)) < 4.0 * error
    assert is_below(errors["logging"], errors["ab"])
    assert is_below(errors["logging"], errors["uniform"])


def test_a_second_run_gives_the_same_bits(run: Run, tmp_path: Path) -> None:
    """Of both policies, and of all sums."""
    again = Run(tmp_path)
    digests = [each.sha256 for each in run.trainer.runs]

    assert [each.sha256 for each in again.trainer.runs] == digests
    assert [each.loss for each in run.trainer.runs] == ["logging-policy"] * 2
    (ours,), (theirs,) = run.pipeline.comparisons(), again.pipeline.comparisons()
    assert ours.encoded() == theirs.encoded()


def test_equal_rankers_are_told_and_no_policy_is_made(tmp_path: Path) -> None:
    """Their difference has no variance: the version that is served stays."""
    config = tmp_path / "rankstream.toml"
    model = MODEL.replace("[600, 1_500]", "[40]")
    config.write_text(f"namespace = 'x'\n{TIMES}{model}{EXPERIMENT}")
    settings = local_settings(load_settings(config))
    pipeline = LocalPipeline(settings, now=lambda: START_MS)
    trainer = LocalTrainer(settings, pipeline)
    pipeline.start()
    served = pipeline.snapshots[b"lists"]
    ranker = Ranker("lists", source=lambda: pipeline.snapshots.get(b"lists"))
    ranker.load()
    running = Running("boost", settings.experiments["boost"])
    policies, row = LoggingLists(ranker), [f"d{item}" for item in range(5)]
    for number in range(160):
        named, at_ms, query = f"i{number}", START_MS + 20 * number, f"q{number % 12}"
        drawn = policies.draw(
            running, {"a": row, "b": row}, np.zeros((5, 2)), query_id=query,
            session=f"s{number}", impression_id=named,
        )  # fmt: skip
        pipeline.send(QUERIES, policies.query_event(running, drawn, at_ms=at_ms))
        click = Ranker.click_event(named, query_id=query, at_ms=at_ms + 1, position=1)
        pipeline.send(CLICKS, click)
    assert trainer.flush() == []
    pipeline.end()

    assert "their difference has no variance" in trainer.refusals["lists"]
    assert pipeline.snapshots[b"lists"] == served
    (found,) = pipeline.comparisons()
    assert found.totals[0] > 100
    assert not found.sums["all:logging-policy"].possible_impressions().any()
