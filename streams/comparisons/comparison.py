"""One epoch of one experiment: its configuration, its sums and its health."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from models.arrays import Floats, Integers
from models.evaluation.list_counts import BY_RANKER, TOTALS, count_list
from models.evaluation.sums import N_GROUPS, SCALE, PreferenceSums
from models.interleaving.counterfactual import Counterfactual
from models.interleaving.logging_policy_credit import LoggingPolicy
from models.interleaving.method import NO_ONE, Method, Shown
from models.interleaving.possible_lists import is_possible, without_foreign
from models.interleaving.rankings import lengths_of, n_documents
from models.interleaving.registry import method_of
from rankstream.configuration.experiments import ExperimentSettings
from rankstream.ranking.combining import draw_seed
from rankstream.ranking.methods import LOGGING_POLICY
from rankstream.ranking.scored_beside import scored_methods
from rankstream.wire.events import PLACKETT_LUCE, Impression, Interaction
from rankstream.wire.schemas import check_schema
from streams.comparisons.extra import SCHEMA, Extra
from streams.comparisons.logged_lists import Faulty, ListReader, check_drawn
from streams.native.placing import placements_of_scores

REFUSALS = (
    "not-started",
    "ended",
    "method",
    "unreadable",
    "rankers",
    "no-rankings",
    "unknown-items",
    "repeated-items",
    "depth",
    "length",
    "assignments",
    "impossible-list",
    "policy",
)
"""Why impressions of this experiment were not credited."""

UNIDENTIFIED = ("foreign-items", "never-shown", "cut-short")
"""Why only counterfactual estimates took nothing from an impression."""


@dataclass
class Comparison:
    """An (experiment, epoch); the method that ran first, then those scored beside.

    Bounds of preferences are made from the rankings and the length that the settings
    ask for, never from the list that was drawn. `totals` [7] are the counts that
    `models.evaluation.list_counts.TOTALS` names. `slopes` [n_ranks] has, of each method
    whose lists a logging policy draws, the sum of what
    `models.interleaving.logging_policy_credit.LoggingPolicy.slopes` gives, in units of
    1 / `SCALE`.

    Raises
    ------
    ValueError
        Where a method or an option is unknown, or not fair on these lists.
    """

    name: str
    settings: ExperimentSettings
    totals: Integers = field(default_factory=lambda: np.zeros(len(TOTALS), np.int64))
    refusals: dict[str, int] = field(default_factory=dict)
    first_ms: int = -1
    last_ms: int = -1
    n_foreign_seeds: int = 0
    n_without_session: int = 0
    is_changed: bool = False

    def __post_init__(self) -> None:
        self.rankers = tuple(sorted(self.settings.rankers))
        self.by_ranker = np.zeros((len(self.rankers), len(BY_RANKER)), np.int64)
        try:
            self.methods = self._methods()
            self._warm()
        except ValueError as error:
            raise ValueError(f"experiments.{self.name}: {error}") from error
        self.sums = {
            name: PreferenceSums.empty(len(self.rankers)) for name in self.methods
        }
        self.slopes = {
            name: np.zeros(min(method.length, len(method.examination)), np.int64)
            for name, method in self.methods.items()
            if isinstance(method, LoggingPolicy)
        }

    @property
    def _drawing(self) -> Method:
        """The method that draws the lists."""
        return self.methods[self.settings.method]

    def _methods(self) -> dict[str, Method]:
        length = {"length": self.settings.length}
        return {
            name: method_of(
                method, options | length if _is_of_rates(method) else options
            )
            for name, (method, options) in scored_methods(self.settings).items()
        }

    def take(self, interaction: Interaction, extra: Extra, reader: ListReader) -> None:
        """Credit one closed impression, or count why not."""
        impression = interaction.impression
        self.is_changed = True
        try:
            self._check_time(impression.at_ms)
            if extra.experiment is None or (
                extra.experiment.method != self.settings.method
            ):
                raise Faulty("method")
            logged = reader.read(impression, extra)
            if logged.names != self.rankers:
                raise Faulty("rankers")
            check_drawn(self._drawing, logged.shown, self.settings.length)
            scores = self._scores(impression, logged.shown)
        except Faulty as error:
            self.refuse(error.reason)
            return
        clicks = np.zeros(len(logged.shown.shown), np.bool_)
        for mark in interaction.clicks:
            clicks[mark.position - 1] = True
        self._check_seed(impression)
        self.n_without_session += extra.session is None and extra.user is None
        self._count(logged.shown, clicks, impression.at_ms)
        own, own_clicks = without_foreign(logged.shown, clicks)
        for name, method, group in self._crediting(impression.unit, scores):
            if method.needs_assignments and not logged.is_assigned:
                self.totals[TOTALS.index("without_assignments")] += 1
            elif why := self._unidentified(method, logged.shown, own):
                self.refuse(why)
            else:
                self._credit(name, method, own, own_clicks, group)

    def take_plain(
        self, times_ms: tuple[int, int], n_foreign_seeds: int, n_without_session: int
    ) -> None:
        """Hear of impressions that were credited in C, in the arrays of these sums.

        `times_ms` are those of the first and of the last.
        """
        self.is_changed = True
        first_ms = times_ms[0]
        self.first_ms = first_ms if self.first_ms < 0 else min(self.first_ms, first_ms)
        self.last_ms = max(self.last_ms, times_ms[1])
        self.n_foreign_seeds += n_foreign_seeds
        self.n_without_session += n_without_session

    def _unidentified(self, method: Method, shown: Shown, own: Shown) -> str:
        """Why a counterfactual estimate cannot be made of this list; empty if it can.

        What others put in moves documents to ranks that no propensity was made for;
        what they cut off takes clicks away that the propensities count on. Clicks have
        no say. Where the draw decides on cuts, the lists that are left are no fair
        sample, and no estimate of all lists would be fair either.
        """
        if not isinstance(method, Counterfactual):
            return ""
        if len(own.shown) < len(shown.shown):
            return "foreign-items"
        if not method.is_identified(shown.rankings, self.settings.length):
            return "never-shown"
        return "" if method.is_whole(own, self.settings.length) else "cut-short"

    def refuse(self, reason: str) -> None:
        """Count an impression that credits nobody, or not by every method.

        Parameters
        ----------
        reason
            One of `REFUSALS` or of `UNIDENTIFIED`.
        """
        self.is_changed = True
        self.refusals[reason] = self.refusals.get(reason, 0) + 1

    @property
    def n_refused(self) -> int:
        """Impressions that were credited by no method."""
        return sum(n for why, n in self.refusals.items() if why not in UNIDENTIFIED)

    def _crediting(
        self, unit: int, scores: Floats | None
    ) -> Iterator[tuple[str, Method, int]]:
        """Methods that credit a list, and the group of sessions that it counts in.

        Each policy credits its own lists, and none on whose clicks it was fitted.
        """
        for name, method in self.methods.items():
            if not isinstance(method, LoggingPolicy) or scores is None:
                yield name, method, unit % N_GROUPS
                continue
            rest = method.judging(unit)
            if rest is not None:
                yield name, method.under(scores, placements_of_scores), rest % N_GROUPS

    def _scores(self, impression: Impression, shown: Shown) -> Floats | None:
        """Of the policy that drew a list, [n_documents]; None where none is asked for.

        Raises
        ------
        Faulty
            Where a list of the method `logging-policy` does not say them, or its policy
            could have shown what no ranker returned.
        """
        if not isinstance(self._drawing, LoggingPolicy):
            return None
        scores = np.frombuffer(impression.scores, "<f4").astype(np.float64)
        if impression.policy != PLACKETT_LUCE or not np.isfinite(scores).all():
            raise Faulty("policy")
        if len(np.unique(shown.rankings[shown.rankings >= 0])) < len(scores):
            raise Faulty("policy")
        return scores

    def _credit(
        self, name: str, method: Method, shown: Shown, clicks: Any, group: int
    ) -> None:
        sums = self.sums[name]
        is_silent = not lengths_of(shown.rankings).all()
        if is_silent and not method.traits.counts_where_silent:
            return  # else a ranker were compared where others had nothing to show
        length = min(self.settings.length, n_documents(shown.rankings))
        bounds = method.bounds(shown.rankings, length)
        if clicks.any():
            preferences = method.infer(shown, clicks)
        else:
            preferences = np.zeros(bounds.shape)
        if not sums.add(preferences, bounds, group):
            self.totals[TOTALS.index("too_heavy")] += 1
        elif isinstance(method, LoggingPolicy):
            slopes = method.slopes(shown, clicks)
            self.slopes[name] += np.rint(slopes * SCALE).astype(np.int64)

    def _check_seed(self, impression: Impression) -> None:
        """A draw that serves two impressions is not two draws."""
        named = impression.impression_id
        expected = draw_seed(self.name, self.settings.epoch, named)
        self.n_foreign_seeds += impression.seed != expected

    def _check_time(self, at_ms: int) -> None:
        if at_ms < self.settings.start_ms:
            raise Faulty("not-started")
        if self.settings.end_ms and at_ms >= self.settings.end_ms:
            raise Faulty("ended")

    def _count(self, shown: Shown, clicks: Any, at_ms: int) -> None:
        count_list(*shown, clicks, self.totals, self.by_ranker)
        self.first_ms = at_ms if self.first_ms < 0 else min(self.first_ms, at_ms)
        self.last_ms = max(self.last_ms, at_ms)

    def merge(self, other: "Comparison") -> None:
        """Add what another partition holds of the same epoch.

        Raises
        ------
        ValueError
            Where it was counted under other settings.
        """
        if self.settings != other.settings:
            raise ValueError(
                f"experiments.{self.name} must be the same in all partitions; epoch "
                f"{self.settings.epoch} was counted under different settings"
            )
        self.totals += other.totals
        self.by_ranker += other.by_ranker
        for reason, count in other.refusals.items():
            self.refusals[reason] = self.refusals.get(reason, 0) + count
        times = [each.first_ms for each in (self, other) if each.first_ms >= 0]
        self.first_ms = min(times, default=-1)
        self.last_ms = max(self.last_ms, other.last_ms)
        self.n_foreign_seeds += other.n_foreign_seeds
        self.n_without_session += other.n_without_session
        for name, sums in other.sums.items():
            self.sums[name].merge(sums)
        for name, slopes in other.slopes.items():
            self.slopes[name] += slopes

    def encoded(self) -> bytes:
        """Everything, as bytes that `decoded` takes; equal where sums are equal."""
        parts = [
            SCHEMA,
            msgspec.json.encode(self.settings, order="deterministic"),
            self.totals.astype("<i8").tobytes(),
            self.by_ranker.astype("<i8").tobytes(),
            sorted(self.refusals.items()),
            self.first_ms,
            self.last_ms,
            [
                [name, [array.astype("<i8").tobytes() for array in sums.arrays()]]
                for name, sums in sorted(self.sums.items())
            ],
            [self.n_foreign_seeds, self.n_without_session],
        ]
        if self.slopes:
            slopes = sorted(self.slopes.items())
            parts.append(
                [[name, each.astype("<i8").tobytes()] for name, each in slopes]
            )
        return msgspec.msgpack.encode(parts)

    def _warm(self) -> None:
        """Have everything compiled before the log is folded."""
        n = len(self.rankers)
        rankings = np.tile(np.arange(2), (n, 1))
        teams = np.zeros(2, np.int64)
        shown = Shown(rankings, np.arange(2), teams)
        for method in self.methods.values():
            bounds = method.bounds(rankings, 2)
            preferences = method.infer(shown, np.array([True, False]))
            PreferenceSums.empty(n).add(preferences, bounds, 0)
        for each in (shown, shown._replace(assignments=NO_ONE)):
            is_possible(self._drawing, each)
        count_list(
            *shown,
            np.array([True, False]),
            np.zeros_like(self.totals),
            np.zeros_like(self.by_ranker),
        )


def _is_of_rates(method: str) -> bool:
    """Whether it estimates click rates, for which it must know the whole length."""
    return ":" in method or method == LOGGING_POLICY


def decoded(name: str, value: bytes) -> Comparison:
    """What `Comparison.encoded` gave.

    Raises
    ------
    SchemaRefused
        Where another release wrote it.
    """
    where = f"preferences, experiment {name!r}"
    check_schema(value, SCHEMA, "the sums of an experiment", where)
    parts = msgspec.msgpack.decode(value)
    settings = msgspec.json.decode(parts[1], type=ExperimentSettings)
    found = Comparison(name, settings)
    found.totals = np.frombuffer(parts[2], "<i8").astype(np.int64)
    found.by_ranker = (
        np.frombuffer(parts[3], "<i8").astype(np.int64).reshape(found.by_ranker.shape)
    )
    found.refusals = dict(parts[4])
    found.first_ms, found.last_ms = parts[5:7]
    # Earlier versions counted no lists without a session, the first ones neither.
    seen = parts[8] if len(parts) > 8 else 0
    found.n_foreign_seeds, found.n_without_session = (
        (seen, 0) if isinstance(seen, int) else seen
    )
    for method, arrays in parts[7]:
        for mine, packed in zip(found.sums[method].arrays(), arrays, strict=True):
            mine[...] = np.frombuffer(packed, "<i8").reshape(mine.shape)
    for method, packed in parts[9] if len(parts) > 9 else ():
        found.slopes[method][...] = np.frombuffer(packed, "<i8")
    return found
