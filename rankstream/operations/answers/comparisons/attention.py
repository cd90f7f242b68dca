"""Checks of an experiment's health that warn, each with what to do about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rankstream.operations.answers.as_builtins import Answer
from rankstream.wire.verdicts import HealthCheck, Light

REMEDIES = {
    "refused": "see the reasons: a service that combines lists sends what it drew from",
    "too heavy": "preferences of these lists are too large to count: send shorter "
    "rankings, or bound the clicks that count (`most_clicks`)",
    "teams missing": "send `assignments` with each list, as the method gives them",
    "unfair methods": "believe the methods that are not named here",
    "empty lists": "some ranker returned nothing: see whether its model is served",
    "list length": "give all rankers the same cutoff",
    "foreign clicks": "clicks name items of no ranker: send only what the list held",
    "sample ratio": "chance alone does not share lists so unevenly: see whether some "
    "are lost on their way, or drawn by other seeds",
    "first picks": "chance alone does not share first picks so unevenly: see whether "
    "some lists are lost on their way",
    "places": "the rankers' items stand at unlike places: see how services cut lists",
    "coverage": "the rankers often agree: nothing is wrong, but it takes longer",
    "sessions": "wait for more sessions, and send `session` in query events",
    "without session": "send `session`, else `user`, in query events",
    "foreign seeds": "draw with the seed of the client: `Running.combine` gives it",
    "partitions unread": "run one release of all roles",
    "join rate": "clicks miss their lists: see whether they are late, and whether "
    "`time.click_window_ms` is long enough",
    "duplicate": "clients send events twice; they count once",
    "late": "events come behind their window: see `time.click_window_ms`, and the "
    "clocks of clients",
    "orphan": "clicks name lists that never came: see whether query events are sent",
    "dead_letter": "see why with `rankstream dlq list`",
    "unknown experiments": "lists name experiments that are not in the settings: add "
    "them, or end them in services",
    "records refused": "run one release of all roles, or raise the epoch",
}
"""What to do where a check warns, by its name."""

SEVERITY: tuple[Light, ...] = "alarm", "warning"


@dataclass(frozen=True)
class Attention(Answer):
    """A check that warns.

    Parameters
    ----------
    value
        What was measured; None where it is no number.
    detail
        What came, for whoever has to judge; empty where the value says it.
    remedy
        What to do.
    """

    name: str
    state: Light
    value: float | None
    detail: str
    remedy: str

    @property
    def words(self) -> str:
        """All of it in a sentence."""
        shown = "" if self.value is None else f" {self.value:.3g}"
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.state}: {self.name}{shown}{detail}: {self.remedy}"

    def to_dict(self) -> dict[str, Any]:
        """It by names, with the sentence."""
        return {**super().to_dict(), "words": self.words}

    @classmethod
    def gives(cls) -> dict[str, Any]:
        """Types by name of what `to_dict` gives."""
        return {**super().gives(), "words": str}


def attention_to(checks: Iterable[HealthCheck]) -> list[Attention]:
    """The checks that warn, alarms first; none where all is well."""
    found = [
        Attention(
            check.name,
            check.state,
            check.value,
            _told(check.detail),
            REMEDIES.get(check.name, "see docs/online-evaluation.md"),
        )
        for check in checks
        if check.state != "ok"
    ]
    return sorted(found, key=lambda each: SEVERITY.index(each.state))


def _told(detail: object) -> str:
    if isinstance(detail, dict):
        return ", ".join(f"{name} {count:,}" for name, count in detail.items())
    if isinstance(detail, list):
        return " / ".join(_figure(each) for each in detail)
    return "" if detail is None else str(detail)


def _figure(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
