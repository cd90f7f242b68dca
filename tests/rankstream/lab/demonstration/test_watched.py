"""The demonstration on the monitor's page: the numbers of its own pipeline, live."""

import asyncio
import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from models.click_models.position_based import PositionBasedModel
from producers.formats.letor import generated_queries
from rankstream.lab.demonstration.compared import (
    COMPARISON,
    EXPERIMENT,
    LEARNED,
    LISTS_OF_A_SESSION,
    PRODUCTION,
    ComparedLists,
)
from rankstream.lab.demonstration.demonstration import (
    COMPARE_EVERY,
    MODEL,
    Demonstration,
)
from rankstream.lab.demonstration.watched import Watched
from rankstream.operations.monitoring.overview import Gathered
from rankstream.settings import Settings
from streams.local import LocalPipeline, local_settings
from tests import chromium
from tests.chromium import PATIENCE_S

COMPILED_WITHIN = 3
"""Times the browser's patience."""

START_MS = 1_750_000_000_000


def test_compared_lists_are_credited_to_who_brought_what_users_like() -> None:
    """Each is folded; of two rankers the one that orders by labels is preferred."""
    rng = np.random.default_rng(3)
    queries = generated_queries(n_queries=20, n_documents=12, n_features=2, rng=rng)
    users = PositionBasedModel((1.0, 0.7, 0.5, 0.3), (0.02, 0.1, 0.3, 0.5, 0.9))
    settings = Settings(experiments={EXPERIMENT: COMPARISON})
    at_ms = START_MS
    pipeline = LocalPipeline(local_settings(settings), now=lambda: at_ms)
    pipeline.start()
    compared, n = ComparedLists(queries, users, pipeline, rng), 400

    def orders_of(query: int) -> dict[str, list[int]]:
        labels = queries.labels[queries.offsets[query] : queries.offsets[query + 1]]
        best = np.argsort(-labels, kind="stable").tolist()
        return {LEARNED: best, PRODUCTION: best[::-1]}

    for _ in range(n):
        at_ms += 3_000
        compared.show(orders_of, at_ms)
    pipeline.end()

    counts = pipeline.counters()
    assert counts["compared_credited"] == counts["compared_impressions"] == n
    assert counts["ingestion_dead_letter"] == counts["dead_letter"] == 0
    assert counts["late"] == counts["orphan"] == 0
    (found,) = pipeline.comparisons()
    assert found.sums[COMPARISON.method].mean()[0] > 0.1
    assert n % LISTS_OF_A_SESSION == 0


def test_the_overview_is_that_of_the_pipeline() -> None:
    """Counts, verdict, version and steps; without a comparison there is no verdict."""
    n, gathered = 240, Gathered()
    watched = Watched(gathered)
    assert [each["is_done"] for each in gathered.overview()["steps"]][:2] == [
        True, False
    ]  # fmt: skip
    demonstration = Demonstration(None, n_impressions=n, seed=7, is_compared=True)
    looks = []

    def look() -> None:
        watched.look(demonstration)
        looks.append(gathered.overview()["number"])

    demonstration.run(look)
    watched.look(demonstration, is_last=True)
    overview, counts = gathered.overview(), demonstration.counters()

    assert looks == sorted(looks)
    assert overview["counts"]["applied_impressions"] == n + n // COMPARE_EVERY
    assert overview["counts"]["dead_letter"] == counts["ingestion_dead_letter"]
    assert overview["counts"]["pending"] == 0
    (row,) = overview["experiments"]
    assert (row["name"], row["impressions"]) == (EXPERIMENT, n // COMPARE_EVERY)
    (served,) = overview["snapshots"]
    assert (served["model"], served["version"]) == (MODEL, f"0.{n}")
    assert all(each["is_done"] for each in overview["steps"])
    assert {each["role"] for each in overview["flow"]} == {"ingest", "fold", "learn"}
    assert overview["away"] == []

    alone = Demonstration(None, n_impressions=60, seed=7)
    assert alone.verdicts() == []


@pytest.mark.parametrize("words", [["--web", "--plain"]])
def test_a_demonstration_has_one_face(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A page, or tables."""
    from rankstream.operations.cli import main  # noqa: PLC0415

    with pytest.raises(SystemExit):
        main(["demo", *words])
    assert "not allowed with" in capsys.readouterr().err


def test_demo_opens_its_page_and_stays_until_it_is_stopped(tmp_path: Path) -> None:
    """In a browser: what comes is seen while lists are shown, and stays after."""
    browser, n = chromium.path(), 400
    words = ["demo", "--web", "--port", "0", "--no-browser", "--impressions", str(n)]

    def begun() -> tuple[subprocess.Popen[str], str]:
        process = running.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "rankstream.operations.cli", *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        running.callback(process.kill)
        assert process.stdout is not None
        return process, process.stdout.readline()

    async def watch(
        talk: chromium.Talk,
    ) -> tuple[subprocess.Popen[str], str, str]:
        async def until_said(words: str) -> None:
            # Everything is compiled first, where nobody did that before.
            for _ in range(COMPILED_WITHIN):
                if await talk.once_true(f"document.body.innerText.includes('{words}')"):
                    break

        # The browser is there before: it may take longer than all lists.
        process, said = await asyncio.to_thread(begun)
        url = said.split()[-1]
        assert url.startswith("http://127.0.0.1:")
        await talk.go(url)
        await until_said(EXPERIMENT)
        first = await talk.value("document.body.innerText")
        await until_said(f"version 0.{n},")
        await until_said("pending\\n0")
        last = await talk.value("document.body.innerText")
        assert talk.complaints == []
        return process, first, last

    with contextlib.ExitStack() as running:
        process, first, last = chromium.visited(browser, tmp_path, watch)
        assert process.stdout is not None
        for line in process.stdout:
            if "the page stays until Ctrl-C" in line:
                break
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == 0

    assert "live" in first
    assert f"version 0.{n}," not in first
    assert f"applied impressions\n{n + n // COMPARE_EVERY}" in last
    assert "undecided" in last
