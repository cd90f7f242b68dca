"""Coefficients of drivers from runs: not below 0, by least squared relative errors."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import nnls

from rankstream.lab.benchmarks.capacity.runs import Measured
from rankstream.operations.answers.capacity.drivers import drivers_of
from rankstream.settings import KafkaSettings
from rankstream.wire.topics import (
    CLICKS,
    EVENTS,
    INTERACTIONS,
    QUERIES,
    SNAPSHOTS,
    STATISTICS,
    state_topic,
)
from streams.topology import topics_of

OF_PROCESSES = {
    "broker": ("idle", "commits", "wakes", "events", "list_kilobytes"),
    "ingest": ("idle", "commits", "wakes", "events", "list_kilobytes"),
    "fold": (
        "idle",
        "commits",
        "wakes",
        "events",
        "text_kilobytes",
        "number_kilobytes",
        "scopes",
    ),
    "learn": ("idle", "commits", "lists", "text_kilobytes", "number_kilobytes"),
    "publish": ("idle", "commits"),
}
"""What each process's CPU is explained by."""

OF_TOPICS = {
    QUERIES: ("wakes", "lists", "list_kilobytes"),
    CLICKS: ("wakes", "clicks"),
    EVENTS: ("commits", "wakes", "events", "text_kilobytes", "number_kilobytes"),
    INTERACTIONS: ("commits", "lists", "clicks", "text_kilobytes", "number_kilobytes"),
    STATISTICS: ("commits", "scopes", "scope_kilobytes", "row_kilobytes"),
    state_topic("ingest-queries"): ("commits",),
    state_topic("ingest-clicks"): ("commits",),
    state_topic("fold"): ("commits", "events"),
    state_topic("learn"): ("commits", "lists"),
    SNAPSHOTS: ("commits", "lists"),
}
"""What the bytes of each topic are explained by; all others get none."""


PACED = {state_topic("fold")}
"""Topics that are measured where events come at their pace: in a flood identities are
forgotten before a checkpoint is due."""


LEAST_SHARE = 1e-9
"""Of what a run takes, at the most: less is what rounding leaves."""


def coefficients(
    runs: Sequence[Measured],
    values: Sequence[float],
    drivers: Sequence[str],
) -> dict[str, float]:
    """What each driver costs, in the unit of the values; those that cost nothing go.

    Parameters
    ----------
    values : [n_runs]
        What each run took a second; runs that took nothing say nothing.
    """
    told = [
        (run, value) for run, value in zip(runs, values, strict=True) if value > 0.0
    ]
    rows = [[drivers_of(run.load)[name] for name in drivers] for run, _ in told]
    return fitted(drivers, rows, [value for _, value in told])


def fitted(
    names: Sequence[str], rows: Sequence[Sequence[float]], values: Sequence[float]
) -> dict[str, float]:
    """What each column costs, to four digits; those that cost nothing go.

    Parameters
    ----------
    rows : [n_runs, n_names]
    values : [n_runs]
        Over 0.
    """
    if not rows:
        return {}
    matrix = np.array(rows) / np.array(values)[:, None]
    # Drivers differ by six powers of ten.
    scales = np.maximum(matrix.max(axis=0), 1e-300)
    found, _ = nnls(matrix / scales, np.ones(len(rows)))
    return {
        name: float(f"{share / scale:.4g}")
        for name, share, scale in zip(names, found, scales, strict=True)
        if share > LEAST_SHARE
    }


def cpu_of(runs: Sequence[Measured]) -> Mapping[str, dict[str, float]]:
    """Microseconds of CPU by process and driver."""
    return {
        name: coefficients(
            [run for run in runs if name in run.cpu],
            [1e6 * run.cpu[name] for run in runs if name in run.cpu],
            drivers,
        )
        for name, drivers in OF_PROCESSES.items()
    }


def bytes_of(runs: Sequence[Measured]) -> Mapping[str, dict[str, float]]:
    """Bytes by topic and driver; those that runs wrote nothing to get nothing."""
    found: dict[str, dict[str, float]] = {
        topic.name: {} for topic in topics_of(KafkaSettings())
    }
    for name, drivers in OF_TOPICS.items():
        told = [run for run in runs if not (name in PACED and run.load.is_waiting)]
        values = [run.n_bytes.get(name, 0.0) for run in told]
        found[name] = coefficients(told, values, drivers)
    return found
