"""How experiments and learners went, in a bounded number of points."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rankstream.operations.answers.comparisons.experiment_standing import pace_of
from rankstream.wire.verdicts import Verdict

COURSE_POINTS = 240
"""Points remembered of each course; when full, every second one is dropped."""

SHOWN_POINTS = 60
"""Of a learner's course: a picture as wide as a word needs no more."""


class CoursePoint(NamedTuple):
    """A verdict: event time, impressions, and `ends` [n_pairs, 3].

    These are mean and both ends of each pair, NaN where nothing could be said.
    """

    at_ms: int
    impressions: int
    ends: npt.NDArray[np.float32]


@dataclass
class Course:
    """How the intervals of one experiment went."""

    points: deque[CoursePoint] = field(default_factory=deque)

    def add(self, verdict: Verdict) -> None:
        """Remember a verdict."""
        found = verdict.drawn_by
        ends = np.array([[x.mean, *x.to_come] for x in found.pairs], np.float32)
        self.points.append(CoursePoint(verdict.last_ms, found.impressions, ends))
        if len(self.points) > COURSE_POINTS:
            self.points = deque(list(self.points)[::2])

    def of_pair(self, pair: int) -> list[list[float]]:
        """Impressions, mean and both ends, where something could be said."""
        return [
            [n, *map(float, ends[pair])]
            for _, n, ends in self.points
            if 0 <= pair < len(ends) and np.isfinite(ends[pair]).all()
        ]

    def pace(self) -> float | None:
        """Lists a day over the last day that was seen; None from one verdict."""
        return pace_of([(x.at_ms, x.impressions) for x in self.points])


@dataclass
class LearnerProgress:
    """How one model's learner went: event times and lists learned, as they were seen.

    A version that goes back, as of a model that begins anew, begins a new course.
    """

    points: deque[tuple[int, int]] = field(default_factory=deque)

    def add(self, created_ms: int, learned: int) -> None:
        """Remember a snapshot, once."""
        if self.points and learned < self.points[-1][1]:
            self.points.clear()
        if not self.points or learned > self.points[-1][1]:
            self.points.append((created_ms, learned))
        if len(self.points) > COURSE_POINTS:
            self.points = deque(list(self.points)[::2])

    def shown(self) -> list[list[int]]:
        """Event time and lists learned, thinned to what can be seen; the last stays."""
        points = list(self.points)[::-1]
        every = 1 + (len(points) - 1) // SHOWN_POINTS
        return [list(each) for each in points[::every][::-1]]

    def per_minute(self) -> float | None:
        """Lists learned in a minute of event time; None with fewer than two points."""
        (start_ms, before), (end_ms, now) = self.points[0], self.points[-1]
        if end_ms <= start_ms:
            return None
        return (now - before) * 60_000.0 / (end_ms - start_ms)
