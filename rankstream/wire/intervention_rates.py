"""Clicks per list of interventions: JSON on the topic `evaluations`, of each model.

A record holds all interventions of a trained model that are counted, so its last one is
enough. Numbers that JSON cannot hold are null.
"""

import msgspec

from rankstream.wire.envelope import Pointer, SnapshotError, pointer_from
from rankstream.wire.schemas import decoded
from rankstream.wire.verdicts import Ends

FIRST_POLICY = Pointer(-1, -1)
"""Stands before all others: what is served before the first intervention, whose lists
are logged under the name of the model alone."""


class InterventionRate(msgspec.Struct, frozen=True, kw_only=True):
    """Lists that were shown under an intervention, and clicks on them.

    Attributes
    ----------
    intervention
        Its name, MODEL@EPOCH.VERSION; MODEL of the first policy.
    mean
        Clicks per list so far; None before any list.
    to_come
        Ends of the interval for sessions to come, at any time.
    effective_groups, needed
        Groups of sessions, of 100, that carry the lists, and how many must.
    why
        What is missing before anything can be said of sessions to come, in words; else
        empty.
    """

    intervention: str
    lists: int
    clicks: int
    mean: float | None
    to_come: Ends
    effective_groups: float
    needed: float
    why: str


class ModelRates(msgspec.Struct, frozen=True, kw_only=True):
    """All of a model, the newest last; each interval holds alone at 1 - `alpha`.

    Intervals are narrowest at `planned` lists; `question` is what they answer.
    """

    model: str
    alpha: float
    planned: int
    question: str
    interventions: list[InterventionRate]


encode_rates = msgspec.json.Encoder().encode
_decode_rates = msgspec.json.Decoder(ModelRates).decode


def decode_rates(value: bytes) -> ModelRates:
    """A record of `evaluations`.

    Raises
    ------
    msgspec.DecodeError
        Where it is something else.
    """
    return decoded(_decode_rates, value)


def place_of(name: str) -> tuple[str, Pointer]:
    """Model and pointer of an intervention.

    Examples
    --------
    >>> place_of("m@1.20")
    ('m', Pointer(epoch=1, version=20))
    >>> place_of("m") == ("m", FIRST_POLICY)
    True
    """
    model, _, pointer = name.rpartition("@")
    try:
        return model, pointer_from(pointer.encode(errors="replace"))
    except SnapshotError:
        return name, FIRST_POLICY
