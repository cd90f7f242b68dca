"""An experiment through the whole pipeline in this process, from ingestion on."""

import numpy as np
import pytest

from rankstream.experiments import Running
from rankstream.ranker import Ranker
from rankstream.settings import ExperimentSettings, Settings
from rankstream.wire.topics import CLICKS, QUERIES
from streams.comparisons.verdicts import verdict_of
from streams.local import LocalPipeline, local_settings

START_MS = 1_700_000_000_000
ITEMS = [f"d{i}" for i in range(8)]


@pytest.mark.parametrize(
    ("method", "n_without"),
    [("pairwise-preference", 0), ("team-draft", 0), ("ab", 0), ("probabilistic", 400)],
)
def test_compared_lists_are_judged_and_counted_with_their_exposures(
    method: str, n_without: int
) -> None:
    """A verdict, and statistics that keep exact propensities meanwhile."""
    experiment = ExperimentSettings(
        rankers={"good": "", "bad": ""}, method=method, length=4
    )
    settings = local_settings(Settings(experiments={"boost": experiment}))
    pipeline = LocalPipeline(settings, now=lambda: START_MS)
    running = Running("boost", experiment)
    rng = np.random.default_rng(0)
    for number in range(400):
        at_ms = START_MS + number
        rankings = {"good": ITEMS[:5], "bad": ITEMS[:2:-1]}
        name = Ranker.impression_id(f"i{number}", "shoes")
        drawn = running.combine(rankings, query_id="shoes", impression_id=name)
        event = running.query_event(
            drawn, at_ms=at_ms, session=f"s{number}", candidates=ITEMS
        )
        pipeline.send(QUERIES, event)
        for place, item in enumerate(drawn.shown, 1):
            if rng.random() < (0.6 if item < "d4" else 0.05):
                click = Ranker.click_event(name, at_ms=at_ms + 5, position=place)
                pipeline.send(CLICKS, click)
    pipeline.end()
    (found,) = pipeline.comparisons()
    counters = pipeline.counters()

    assert verdict_of(found).methods[method].winner == "good"
    assert found.totals[0] == 400
    assert found.refusals == {}
    assert counters["statistics_without_exposure"] == n_without
    assert counters["compared_credited"] == counters["applied_impressions"] == 400
