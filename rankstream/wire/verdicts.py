"""Verdicts: JSON on the topic `evaluations`, for each (experiment, epoch) that moved.

Names, order and shapes of the fields are those of the JSON. A reader passes over what
lacks a field, as verdicts of earlier releases do, and skips fields that it does not
know. Numbers that JSON cannot hold are null.
"""

from typing import Any, Literal

import msgspec

from rankstream.wire.schemas import decoding

Ends = tuple[float | None, float | None]
"""Both ends of an interval; None where nothing can be said."""

Light = Literal["ok", "warning", "alarm"]


class PairVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Two rankers under one method; `Verdict.questions` says what intervals answer.

    `mean` is the preference for `a` over `b`, in units of the method; `log_e_a` and
    `log_e_b` are natural logarithms of evidence that either is better. `preferred_a`,
    `preferred_b` and `possible` count impressions: those that preferred one, and those
    that could have.
    """

    a: str
    b: str
    mean: float
    to_come: Ends
    came: Ends
    fixed: Ends
    sessions: Ends
    log_e_a: float
    log_e_b: float
    preferred_a: int
    preferred_b: int
    possible: int


class SessionCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """Groups of sessions, of 100, that carry the impressions, and how many must.

    `why` says in words what is missing before a winner may be named; else it is empty.
    """

    effective_groups: float
    needed: float
    enough: bool
    why: str


class MethodVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one method says; rankers in the order of `Verdict.rankers`.

    `matrix`, [n_rankers, n_rankers], holds mean preferences of row over column.
    `cycles` go by means, `decided_cycles` by intervals that exclude 0.
    """

    impressions: int
    sessions: SessionCoverage
    matrix: list[list[float]]
    pairs: list[PairVerdict]
    winner: str | None
    copeland: list[float]
    bradley_terry: list[float]
    cycles: list[list[str]]
    decided_cycles: list[list[str]]


class RateDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Clicks per list of two arms of an A/B comparison: `a` minus `b`.

    `lists` counts those of either arm; intervals are as in `PairVerdict`.
    """

    a: str
    b: str
    mean: float
    to_come: Ends
    came: Ends
    fixed: Ends
    sessions: Ends
    lists: tuple[int, int]


class HealthCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A number that tells whether the comparison can be believed.

    `detail` is whatever helps to judge it: counts by reason, a number for each ranker,
    or a sentence.
    """

    name: str
    value: float | None
    state: Light
    detail: Any


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one epoch of an experiment.

    `method` drew the lists; `methods` also holds those that were scored beside it.
    Intervals of a method hold together at 1 - `alpha`. Times are of events, in epoch
    milliseconds, -1 without any.
    """

    experiment: str
    epoch: int
    method: str
    rankers: list[str]
    alpha: float
    correction: str
    first_ms: int
    last_ms: int
    totals: dict[str, int]
    questions: dict[str, str]
    methods: dict[str, MethodVerdict]
    clicks_per_list: list[RateDifference]
    health: list[HealthCheck]

    def __post_init__(self) -> None:
        if self.method not in self.methods:
            raise ValueError(
                f"methods must hold the one that drew; got {sorted(self.methods)} "
                f"without {self.method!r}"
            )

    @property
    def drawn_by(self) -> MethodVerdict:
        """What the method says that drew the lists."""
        return self.methods[self.method]


encode_verdict = msgspec.json.Encoder().encode
decode_verdict = decoding(msgspec.json.Decoder(Verdict).decode)
