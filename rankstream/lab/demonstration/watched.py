"""The demonstration as the monitor's page sees a deployment."""

import time

from rankstream.lab.demonstration.demonstration import MODEL, Demonstration
from rankstream.operations.answers.models.snapshots import ServedVersion
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.position_bias import curve_of
from rankstream.wire.envelope import pointer_of
from rankstream.wire.verdicts import encode_verdict
from streams.training.curves.estimated_curve import NO_INTERVAL

VERDICT_EVERY_S, FLOW_EVERY_S = 1.0, 2.0


class Watched:
    """Keeps what a monitor knows up to date with a demonstration.

    What the monitor reads from topics, Redis and the pages of workers is here that of
    the pipeline in this process.
    """

    def __init__(self, gathered: Gathered) -> None:
        self._gathered = gathered
        self._judged_s = self._flowed_s = 0.0
        # There are no topics to be created.
        gathered.set_steps([True])

    def look(self, demonstration: Demonstration, *, is_last: bool = False) -> None:
        """Take what is new; verdicts and flow now and then, and at the last look."""
        now_s = time.monotonic()
        counts = demonstration.counters()
        self._take_counts(counts)
        self._take_snapshot(demonstration)
        if is_last or now_s - self._flowed_s >= FLOW_EVERY_S:
            self._flowed_s = now_s
            pages = {
                "ingest": {"consumed": counts["ingestion_consumed"]},
                "fold": {"consumed": counts["consumed"]},
                "learn": {"learned": counts["learned"]},
            }
            self._gathered.take_flow(pages, now_s)
        if is_last or now_s - self._judged_s >= VERDICT_EVERY_S:
            self._judged_s = now_s
            for verdict in demonstration.verdicts():
                if verdict.drawn_by.impressions:
                    self._gathered.take_verdict(encode_verdict(verdict))

    def _take_counts(self, counts: dict[str, int]) -> None:
        letters = counts["dead_letter"] + counts["ingestion_dead_letter"]
        self._gathered.set_counts({**counts, "dead_letter": letters})
        done = (
            True,
            counts["ingestion_consumed"] > 0,
            counts["applied_clicks"] > 0,
            counts["statistics_impressions"] > 0,
            counts["compared_credited"] > 0,
        )
        self._gathered.set_steps([*done])

    def _take_snapshot(self, demonstration: Demonstration) -> None:
        snapshot = demonstration.snapshot
        if snapshot.updates:
            # The first version is of no time.
            served = ServedVersion(
                MODEL,
                str(pointer_of(snapshot)),
                snapshot.created_ms,
                snapshot.updates,
                is_trained=False,
            )
            self._gathered.set_snapshots([served.to_dict()])
        estimated = demonstration.state.estimated
        if estimated is not None:
            # Most lists are those of a model that learns from these clicks.
            told = curve_of(estimated.without_intervals(NO_INTERVAL))
            self._gathered.set_examination(told)
