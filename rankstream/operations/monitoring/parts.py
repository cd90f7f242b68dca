"""Which of the parts that the monitor asks answers, and since when one does not."""

from collections.abc import Iterable
from dataclasses import dataclass

from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.terminal.words import moment

KAFKA, REDIS, ROLE = "Kafka", "Redis", "role "
"""Names of parts; behind the last one comes the name of a role."""

TOGETHER_MS = 10_000
"""Roles that went within so long of each other are told together."""


@dataclass(frozen=True)
class Part(Answer):
    """A part, and how it was found at the last look.

    Parameters
    ----------
    trouble
        Why it is away; empty where it answers.
    heard_ms
        When it answered last, by the monitor's clock; None where it never did.
    away_ms
        Since when it does not; None where it does.
    """

    name: str
    trouble: str
    heard_ms: int | None
    away_ms: int | None


class Parts:
    """What became of each look at a part."""

    def __init__(self) -> None:
        self._parts: dict[str, Part] = {}

    def heard(self, name: str, at_ms: int) -> bool:
        """Hear that it answered; whether that is news."""
        before = self._parts.get(name)
        self._parts[name] = Part(name, "", at_ms, None)
        return before is None or before.away_ms is not None

    def missed(self, name: str, trouble: str, at_ms: int) -> bool:
        """Hear that it did not answer; whether that is news."""
        before = self._parts.get(name)
        if before is not None and before.trouble == trouble:
            return False
        heard_ms = None if before is None else before.heard_ms
        since_ms = None if before is None else before.away_ms
        since_ms = at_ms if since_ms is None else since_ms
        self._parts[name] = Part(name, trouble, heard_ms, since_ms)
        return True

    @property
    def trouble(self) -> str:
        """Of all of them; empty where all answer."""
        return "; ".join(
            each.trouble
            if each.trouble.startswith(each.name)
            else f"{each.name}: {each.trouble}"
            for each in self.all()
            if each.trouble
        )

    def all(self) -> list[Part]:
        """All of them, in the order in which they were first asked."""
        return list(self._parts.values())


@dataclass(frozen=True)
class Away(Answer):
    """What is away, in words.

    Parameters
    ----------
    words
        Which part, since when, and why.
    since_ms, heard_ms
        As in `Part`.
    """

    words: str
    since_ms: int
    heard_ms: int | None


def away_of(parts: Iterable[Part]) -> list[Away]:
    """What is away; roles that went together are one, as their worker was stopped."""
    together: list[list[Part]] = []
    for part in parts:
        if part.away_ms is None:
            continue
        if together and _went_with(together[-1][0], part):
            together[-1].append(part)
        else:
            together.append([part])
    return [_away(each) for each in together]


def _away(parts: list[Part]) -> Away:
    first, since_ms = parts[0], parts[0].away_ms or 0
    name = first.name
    if len(parts) > 1:
        roles = ", ".join(each.name.removeprefix(ROLE) for each in parts)
        name = f"{ROLE.strip()}s {roles}"
    verb = "are" if len(parts) > 1 else "is"
    words = f"{name} {verb} away since {moment(since_ms)} UTC: {first.trouble}"
    return Away(words, since_ms, first.heard_ms)


def _went_with(first: Part, part: Part) -> bool:
    return (
        first.name.startswith(ROLE)
        and part.name.startswith(ROLE)
        and (first.heard_ms is None) == (part.heard_ms is None)
        and abs((part.away_ms or 0) - (first.away_ms or 0)) <= TOGETHER_MS
    )
