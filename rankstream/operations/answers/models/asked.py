"""A training that somebody asked for."""

from dataclasses import dataclass

from rankstream.operations.answers.as_builtins import Answer


@dataclass(frozen=True)
class Asked(Answer):
    """A training that was asked for, and when; the role `train` makes it."""

    model: str
    request: str
    at_ms: int
