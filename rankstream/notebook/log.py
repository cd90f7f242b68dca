"""A log that was counted, and what can be asked of it."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from models.estimators.bias_curve import BiasCurve, position_curve
from rankstream.notebook import answer_tables
from rankstream.notebook.comparing import comparison
from rankstream.notebook.counted import Counted
from rankstream.notebook.misnamed import refuse_misnamed
from rankstream.notebook.policies import check_how, policies_named
from rankstream.notebook.progress import NotedLines
from rankstream.notebook.python_words import in_python
from rankstream.notebook.ranker import ClickRanker
from rankstream.notebook.results import Result
from rankstream.notebook.simulated import simulated_on
from rankstream.notebook.sources import Source, Table
from rankstream.notebook.tables import Shown
from rankstream.operations.answers.curve import curve_for
from rankstream.operations.answers.named_curve import estimated_by
from rankstream.operations.answers.values import (
    NothingToValue,
    ValueOptions,
    values_of,
)
from rankstream.operations.terminal.words import counted
from rankstream.settings import Settings
from streams.estimation.question import LOGGED

Examination = Sequence[float]
"""P(looked at) at ranks 1, 2, ...; or in units of the first."""


class Log:
    """What lists and clicks say, counted once; `rankstream.read` makes one.

    Asked for nothing, it shows what became of each event. A method gives an answer that
    prints as a table and is a DataFrame by `to_pandas()` or `to_polars()`. The same log
    gives the same answers, to the bit.

    Parameters
    ----------
    source
        Where it comes from.
    settings
        Those of the pipeline.
    features
        Of its items, beside those that it has.
    progress
        Whether it says how far it is.

    Attributes
    ----------
    counted
        What was counted, as `rankstream.operations.answers` takes it.
    progress
        Whether what takes long says how far it is.
    """

    def __init__(
        self,
        source: Source,
        settings: Settings,
        *,
        features: Table = None,
        progress: bool = True,
    ) -> None:
        self._source = source
        self._settings = settings
        self.progress = progress
        self._count(features)

    def _count(self, features: Table) -> None:
        lines = NotedLines(is_shown=self.progress)
        folded = self._source.folded(self._settings, features, lines)
        self.counted = Counted.of(folded, self._settings, tuple(lines.remarks))

    @property
    def outcomes(self) -> dict[str, int]:
        """What became of the events: how many of each outcome; together they are all.

        Only those that were applied are in what is counted.
        """
        return dict(self.counted.outcomes)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was found while it was read."""
        return self.counted.remarks

    def dead_letters(self) -> Result[Any, Any]:
        """Events that could not be taken, by the reason: with the first of each."""
        return answer_tables.dead_letters(self.counted)

    def statistics(self, query: str | int | None = None) -> Result[Any, Any]:
        """What was counted: of each query, or of each item and rank of one.

        Raises
        ------
        ValueError
            Where no list of the query was counted; it names the nearest.
        """
        if query is None:
            return answer_tables.queries(self.counted)
        return answer_tables.places(self.counted, query)

    def bias(self, estimator: str | None = None) -> answer_tables.Bias:
        """The curve of bias: how often users look at each rank, with intervals.

        Parameters
        ----------
        estimator
            `position`, `trust`, `adjacent-pairs`, `pivot` or `all-pairs`; None: what
            corrects relevance, which is `position` without settings
            (`docs/curves.md`).

        Raises
        ------
        ValueError
            Where there is no estimator of that name.
        """
        if estimator is None:
            return answer_tables.bias(curve_for(self.counted.source))
        return answer_tables.bias(estimated_by(self.counted.source, estimator))

    def relevance(
        self,
        query: str | int,
        *,
        estimator: str | None = None,
        examination: Examination | None = None,
        classes: bool = False,
    ) -> Result[Any, Any]:
        """Items of a query, the most relevant first, corrected for where they stood.

        Parameters
        ----------
        estimator
            By name (`docs/estimators.md`); None: the one that what was logged allows.
        examination
            The curve, where it is known; None: the one of `bias`.
        classes
            Whether items whose ids are equal before # count as one.

        Raises
        ------
        ValueError
            Where no list of the query was counted, or clicks do not tell the curve.
        """
        curve = curve_for(
            self.counted.source, given=_curve(examination), has_classes=classes
        )
        return answer_tables.relevance(
            self.counted, query, curve, estimator=estimator, has_classes=classes
        )

    def evaluate(  # noqa: PLR0913  all that a valuation depends on
        self,
        policies: Mapping[str, Any],
        *,
        against: str = LOGGED,
        weights: str = "clicks",
        estimator: str | None = None,
        examination: Examination | None = None,
        ranks: int = 0,
        temperature: float = 1.0,
        classes: bool = False,
    ) -> Result[Any, Any]:
        """What rankers would earn a list, had these users been shown their lists.

        Parameters
        ----------
        policies
            By name: a ranker of `train`; a file or folder of a snapshot; rankings, as
            `{query: [item, ...]}`, `{query: {item: score}}`, a DataFrame with columns
            `query`, `item` and `score` or `position`, or a file of them
            (`docs/evaluate.md`). Lists are drawn from scores by Plackett-Luce.
        against
            The name of whom the others are compared with; what was logged by default.
        weights
            What an item at a rank is worth: `clicks`, `relevant-clicks`, `looks` or
            `dcg`.
        estimator, examination, classes
            See `relevance`.
        ranks
            How many items policies show at most; 0: as many as lists did.
        temperature
            What scores of rankers are divided by; 0: the best always goes first.

        Raises
        ------
        ValueError
            Where a policy is none, or there is nothing to value it on; it says why.
        """
        source = self.counted.source
        check_how(weights, ranks)
        named = policies_named(
            policies, source, against=against, temperature=temperature
        )
        curve = _curve(examination)
        asked = ValueOptions(weights, estimator, curve, None, ranks, classes)
        lines = NotedLines(is_shown=self.progress)
        try:
            found = values_of(
                source, named, asked,
                fitting=partial(lines.counting, "fitting the curve", None, "fits"),
                valuing=partial(lines.counting, "valuing", None, "queries"),
            )  # fmt: skip
        except ValueError as error:
            if isinstance(error, NothingToValue):
                refuse_misnamed(self.counted, named.targets)
            raise ValueError(in_python(str(error))) from None
        return answer_tables.values(found)

    def compare(
        self,
        a: str,
        b: str,
        *,
        method: str | None = None,
        experiment: str | None = None,
    ) -> Result[Any, Any]:
        """The verdict on two rankers that were compared live, in an experiment.

        Parameters
        ----------
        a, b
            Names of rankers in `[experiments.NAME]` of the settings that the log was
            read with.
        method
            By which interleaving is credited; None: the one that drew the lists.
        experiment
            In which; None: the one of both that had a list last.

        Raises
        ------
        ValueError
            Where no experiment compares these two, or none of its lists was counted.
        """
        return comparison(self.counted, a, b, method, experiment)

    def train(
        self, kind: str = "linear", *, features: Table = None, **params: Any
    ) -> ClickRanker:
        """A ranker that learned from these clicks, corrected for bias.

        Parameters
        ----------
        kind
            `linear` or `neural`.
        features
            Of the items, where `read` was given none: the log is counted again with
            them, and has them from then on.
        params
            Others of `ClickRanker`.

        Raises
        ------
        ValueError
            Where the log has no features, or its clicks do not tell enough; it says
            what is missing.
        """
        if features is not None:
            self._count(features)
        return ClickRanker(kind=kind, **params).fit(self)

    def simulate(self, users: str = "position_based", **options: Any) -> "Log":
        """A log of simulated users who search the queries of this one.

        Their taste is what `relevance` says of each item, and how they click is known:
        what is estimated from their clicks can be compared with it.

        Parameters
        ----------
        users
            See `rankstream.simulate`, which has the other options too.

        Raises
        ------
        ValueError
            Where the log has no features, or its clicks do not tell the curve.
        """
        return Log(
            simulated_on(self.counted, users, **options),
            self._settings,
            progress=self.progress,
        )

    def __repr__(self) -> str:
        return self._shown().text()

    def _repr_html_(self) -> str:
        return self._shown().html()

    def _shown(self) -> Shown:
        found = self.counted
        rows = [{"outcome": name, "events": n} for name, n in found.outcomes.items()]
        title = (
            f"log of {self._source.name}: "
            f"{counted(found.n_queries, 'query', 'queries')}, "
            f"{counted(found.n_lists, 'list')}, {counted(found.n_clicks, 'click')}"
        )
        told = [in_python(each) for each in (*found.lost(), *found.remarks)]
        return Shown(title, ("outcome", "events"), rows, told)


def _curve(examination: Examination | None) -> BiasCurve | None:
    return None if examination is None else position_curve([*examination])
