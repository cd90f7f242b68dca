"""What a worker's stages and roles count, for Prometheus."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from streams.kafka.append_time import wall_ms
from streams.kafka.status.meanings import MEANINGS
from streams.kafka.status.stage_times import StageTimes
from streams.series import SecondsHistogram, Series, label_of

GAUGES = (
    "_in_force",
    "pending",
    "_seconds",
    "_out",
    "lag_",
    "source_lag_",
    "folded_",
    "open_",
    "known_",
    "experiment_",
    "ready",
    "caught_up",
    "redis_up",
    "statistics_scopes",
    "statistics_lists",
    "statistics_exposure_rows",
    "statistics_bytes",
)
"""Names that begin or end so are gauges: they may fall as well as rise."""

TIMES_MS = {
    "frontier_ms": "frontier_timestamp_seconds",
    "watermark_ms": "watermark_timestamp_seconds",
}
"""Counts in epoch milliseconds, and what they are called in seconds."""

UNITS = ("seconds", "bytes")

Family = CounterMetricFamily | GaugeMetricFamily


class Gauges:
    """Shows what every open partition counted, as of its last commit.

    The page is served by another thread, which must not touch a stage.

    Parameters
    ----------
    stages
        What the process runs, with the times of each: histograms are there before any
        partition is.
    """

    def __init__(
        self,
        committers: Mapping[Any, Any],
        stages: Mapping[str, StageTimes],
        lag_of: Callable[[Any], int],
        clock_difference_s: Callable[[Any], float | None],
    ) -> None:
        self._committers = committers
        self._stages = stages
        self._lag_of = lag_of
        self._clock_difference_s = clock_difference_s
        self._level_ms: dict[Any, int] = {}

    def look(self) -> None:
        """Note which partitions are level now; called once a second."""
        now_ms, known = wall_ms(), self._level_ms
        self._level_ms = {
            place: now_ms if not self._lag_of(place) else known.get(place, 0)
            for place in list(self._committers)
        }

    def collect(self) -> Iterator[Metric]:
        """One family for each count, labelled by stage and partition."""
        families: dict[str, Family] = {}
        labels = ("stage", "partition")
        for place, committer in list(self._committers.items()):
            where = (committer.kind.name, str(committer.partition))
            counts: dict[str, float] = dict(committer.counts or committer.restored)
            for name in counts.keys() & TIMES_MS.keys():
                at_ms = counts.pop(name)
                if at_ms >= 0:  # below, there is none yet
                    counts[TIMES_MS[name]] = at_ms / 1_000.0
            counts["unacknowledged_records_pending"] = len(committer.backlog)
            counts["lag_records"] = self._lag_of(place)
            counts["lag_seconds"] = self._lag_s(place, committer)
            counts["folded_offset"] = committer.folded
            counts["commits"] = committer.position.number
            ahead_s = self._clock_difference_s(place)
            if ahead_s is not None:
                counts["clock_difference_seconds"] = ahead_s
            lost = sum(map(len, committer.position.losses))
            counts["accepted_loss_offsets"] = lost
            for name, count in counts.items():
                family = families.get(name)
                if family is None:
                    family = families[name] = family_of(name, labels)
                family.add_metric(where, count)
        yield from families.values()
        yield from families_of(
            [
                Series(name, {"stage": stage}, times)
                for stage, of_stage in self._stages.items()
                for name, times in of_stage.histograms().items()
            ]
        )

    def _lag_s(self, place: Any, committer: Any) -> float:
        """For how long the next record has waited, at most.

        It was appended after the one that was folded last, and after the partition was
        seen to be level. Of who has folded nothing yet nothing is known.
        """
        if not self._lag_of(place):
            return 0.0
        now_ms: float = wall_ms()
        level_ms = self._level_ms.get(place, 0)
        appended_ms = committer.appended_ms
        if appended_ms:
            appended_ms += 1_000.0 * (self._clock_difference_s(place) or 0.0)
        begun_ms: float = max(level_ms, appended_ms)
        return max(0.0, now_ms - begun_ms) / 1_000.0 if begun_ms else 0.0


def families_of(
    series: Iterable[Series], role: str = "", *, most: int | None = None
) -> Iterator[Metric]:
    """Series as metrics, with how many were left out, if any.

    Parameters
    ----------
    role
        A label of all of them, where it is not empty.
    most
        Series of one metric that are shown, the first ones; None for all.
    """
    of_role = {"role": role} if role else {}
    by_name: dict[str, dict[tuple[str, ...], Series]] = {}
    for each in series:
        place = tuple(map(label_of, {**of_role, **each.labels}.values()))
        by_name.setdefault(each.name, {}).setdefault(place, each)
    left_out = GaugeMetricFamily(
        "rankstream_series_left_out", MEANINGS["series_left_out"], labels=("metric",)
    )
    for name, found in by_name.items():
        first, *_ = found.values()
        labels = (*of_role, *first.labels)
        shown = list(found.items())[:most]
        if isinstance(first.value, SecondsHistogram):
            yield _histogram(name, labels, shown)
        else:
            family = family_of(name, labels)
            for place, each in shown:
                if not isinstance(each.value, SecondsHistogram):
                    family.add_metric(place, each.value)
            yield family
        if len(shown) < len(found):
            left_out.add_metric((f"rankstream_{name}",), len(found) - len(shown))
    if most is not None:
        yield left_out


def family_of(name: str, labels: Sequence[str]) -> Family:
    """The metric of a count, a gauge by the look of its name or else a counter."""
    is_gauge = any(name.startswith(part) or name.endswith(part) for part in GAUGES)
    kind = GaugeMetricFamily if is_gauge else CounterMetricFamily
    return kind(f"rankstream_{name}", _said(name), labels=labels, unit=unit_of(name))


def unit_of(name: str) -> str:
    """The unit that a name ends with; "" of none."""
    return next((each for each in UNITS if name.endswith(f"_{each}")), "")


def _histogram(
    name: str, labels: Sequence[str], shown: Iterable[tuple[Sequence[str], Series]]
) -> Metric:
    family = HistogramMetricFamily(
        f"rankstream_{name}", _said(name), labels=labels, unit=unit_of(name)
    )
    for place, each in shown:
        if isinstance(each.value, SecondsHistogram):
            family.add_metric(place, *each.value.read())
    return family


def _said(name: str) -> str:
    return MEANINGS.get(name, name.replace("_", " "))
