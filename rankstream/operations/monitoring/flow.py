"""How the log flows through each role: events a second, and how far it is behind."""

import itertools
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rankstream.operations.answers.as_builtins import Answer

SAMPLES = 90
"""Looks remembered of each role, of two seconds each: three minutes."""

COUNTED = ("consumed", "learned")
"""What a role has done so far, by the name that its page gives it."""

LAGS = ("lag_records", "source_lag_records")
"""Records that it has not read yet, likewise."""


class Sample(NamedTuple):
    """A look at a role's page: when, and events so far; None where it counts none."""

    at_s: float
    events: int | None
    behind: int


@dataclass(frozen=True)
class RoleFlow(Answer):
    """The flow through a role, as its page told it.

    Parameters
    ----------
    per_s
        Events a second between looks, the oldest first; empty of a role that counts
        none.
    behind
        Records that it has not read yet.
    behind_s
        How long that takes at its present pace; None where it stands still.
    """

    role: str
    per_s: list[float]
    behind: int
    behind_s: float | None


@dataclass
class Flow:
    """Looks at the pages of all roles."""

    samples: dict[str, deque[Sample]] = field(default_factory=dict)

    def take(self, role: str, counts: Mapping[str, int], at_s: float) -> None:
        """Take the counts of a role's page.

        Parameters
        ----------
        at_s
            When it was looked at, by a monotonic clock.
        """
        known = next((counts[name] for name in COUNTED if name in counts), None)
        behind = sum(counts.get(name, 0) for name in LAGS)
        looks = self.samples.setdefault(role, deque(maxlen=SAMPLES + 1))
        before = looks[-1].events if looks else None
        if before is not None and (known is None or known < before):
            looks.clear()  # it was started again, and counts what its state says
        looks.append(Sample(at_s, known, behind))

    def forget(self, role: str) -> None:
        """Hear that its page does not answer: what flowed before is no flow."""
        self.samples.pop(role, None)

    def all(self) -> list[RoleFlow]:
        """The flow of each role that answers."""
        return [_flow_of(role, list(looks)) for role, looks in self.samples.items()]


def _flow_of(role: str, looks: list[Sample]) -> RoleFlow:
    rates = [
        round((now.events - then.events) / (now.at_s - then.at_s), 2)
        for then, now in itertools.pairwise(looks)
        if now.events is not None and then.events is not None and now.at_s > then.at_s
    ]
    behind = looks[-1].behind
    recent = rates[-5:]
    pace = sum(recent) / len(recent) if recent else 0.0
    behind_s = 0.0 if not behind else (behind / pace if pace > 0.0 else None)
    return RoleFlow(role, rates, behind, behind_s)
