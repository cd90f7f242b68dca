"""What was counted of a log, and what became of its events."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rankstream.operations.answers.sources import CountedLog
from rankstream.operations.answers.statistics import left_label, missing_label
from rankstream.operations.folded_log import FoldedLog
from rankstream.operations.local_replay import LOST
from rankstream.settings import Settings
from rankstream.wire.nearest_name import nearest
from rankstream.wire.routing import normalised_query
from streams.comparisons.comparison import Comparison
from streams.statistics.keys import ScopeName
from streams.training.recorded_inputs import Recorded

MOST_NAMES = 10_000
"""Among so many queries the nearest one is looked for."""


@dataclass(frozen=True)
class Counted:
    """A log that was counted; the pipeline that did it is gone.

    Parameters
    ----------
    source
        As answers take it.
    recorded
        As a training takes it.
    settings
        Those that it was counted under, with the log's numbers of partitions.
    names
        Names of features by the hash of their list.
    comparisons
        Sums of experiments.
    outcomes
        Events by outcome, in an order that is always the same.
    letters
        How many dead letters there are by topic and code, and why the first one is.
    remarks
        What was said while the log was read.
    queries
        Lists and clicks of each query.
    """

    source: CountedLog
    recorded: Recorded
    settings: Settings
    names: Mapping[bytes, list[str]]
    comparisons: tuple[Comparison, ...]
    outcomes: Mapping[str, int]
    letters: Mapping[tuple[str, str], tuple[int, str]]
    remarks: tuple[str, ...]
    queries: Mapping[str, tuple[int, int]]

    @classmethod
    def of(
        cls, folded: FoldedLog, settings: Settings, remarks: tuple[str, ...]
    ) -> "Counted":
        """What a log gave that was folded."""
        recorded, replay = folded.recorded(), folded.replay
        source = folded.source(settings, recorded)
        letters = {
            place: (n, replay.reasons[place])
            for place, n in sorted(replay.letters.items())
        }
        return cls(
            source,
            recorded,
            folded.settings,
            folded.names,
            tuple(replay.pipeline.comparisons()),
            dict(replay.outcomes()),
            letters,
            remarks,
            source.statistics.queries(),
        )

    @property
    def n_queries(self) -> int:
        """Queries of which a list was counted."""
        return len(self.queries)

    @property
    def n_lists(self) -> int:
        """Lists that were counted."""
        return sum(lists for lists, _ in self.queries.values())

    @property
    def n_clicks(self) -> int:
        """Clicks that were counted; a repeated one counts once."""
        return sum(clicks for _, clicks in self.queries.values())

    def lost(self) -> Iterator[str]:
        """That events are in no sum, and why; nothing where all are."""
        lost = [(name, n) for name, n in self.outcomes.items() if n and name in LOST]
        if lost:
            told = ", ".join(f"{n:,} {name}" for name, n in lost)
            why = "; of dead letters `dead_letters()` says why" if self.letters else ""
            yield f"not applied: {told}{why}"
        if not self.n_lists and self.letters:
            _, first = next(iter(self.letters.values()))
            yield f"no list was counted; the first was refused: {first}"
        statistics = self.source.statistics
        yield from filter(
            None,
            [
                left_label(statistics),
                missing_label(
                    statistics.n_missing(self.n_lists),
                    "interaction that was counted",
                    "interactions that were counted",
                ),
            ],
        )

    def scopes(self, query: str | int) -> list[ScopeName]:
        """What was counted of a query, one or more.

        Raises
        ------
        ValueError
            Where nothing was; it names the nearest query.
        """
        # Ids of frames may be whole numbers.
        name = normalised_query(str(query))
        found = self.source.statistics.scopes(name)
        if found:
            return found
        known = self.queries if self.n_queries <= MOST_NAMES else ()
        near = nearest(name, known)
        meant = f": did you mean {near!r:.100}?" if near else ""
        raise ValueError(
            f"a query must have a list that was counted; {str(query)!r:.100} has none "
            f"of {self.n_queries:,}{meant}"
        )
