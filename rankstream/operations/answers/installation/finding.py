"""A line of a diagnosis."""

from dataclasses import dataclass
from typing import Literal

from rankstream.operations.answers.as_builtins import Answer

State = Literal["ok", "warns", "fails"]

OK: State = "ok"
WARNS: State = "warns"
FAILS: State = "fails"


@dataclass(frozen=True)
class Finding(Answer):
    """What was found of a part.

    Parameters
    ----------
    part
        Which one: `installation`, `kafka`, `topics`, `redis` or `clocks`.
    state
        `warns` where all works, and may not for long.
    says
        A sentence, with what to do where something is not as it must be.
    """

    part: str
    state: State
    says: str
