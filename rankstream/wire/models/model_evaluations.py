"""What is told of each model: JSON on the topic `evaluations`.

Of its versions what they are worth by the log, and of its interventions the clicks per
list. A record holds all that is known of its kind, so the last one is enough. Numbers
that JSON cannot hold are null.
"""

import msgspec

from rankstream.wire.envelope import Pointer, SnapshotError, pointer_from
from rankstream.wire.schemas import decoding
from rankstream.wire.verdicts import Ends

UNKNOWN: Ends = (None, None)
"""Of an interval that is not known."""


class PolicyValue(msgspec.Struct, frozen=True, kw_only=True):
    """What one policy is worth per list, and what that rests on.

    Attributes
    ----------
    policy
        MODEL@EPOCH.VERSION, or `logged`: what was shown.
    value, interval
        Clicks per list, and the ends of the interval of 95 %.
    difference, difference_interval
        Value less that of what was logged, paired; null of that itself.
    unseen
        Share, in [0, 1], of what it would show that no clicks tell of.
    largest_share
        Share, in [0, 1], of one click in all that clicks add.
    effective_clicks
        So many clicks of one weight vary as little.
    why
        Why something of it is not known, in words; empty where all is.
    """

    policy: str
    value: float | None = None
    interval: Ends
    difference: float | None = None
    difference_interval: Ends
    unseen: float | None = None
    largest_share: float | None = None
    effective_clicks: float | None = None
    why: str = ""


class ModelValues(msgspec.Struct, frozen=True, kw_only=True):
    """Versions of a model beside what was logged.

    Attributes
    ----------
    at_ms
        Event time: the least watermark of the statistics.
    estimator
        A name of `models.estimators.registry`.
    curve
        Which curve of bias clicks were corrected by, in words; empty where there was
        none.
    groups
        Of the statistics: whose clicks values are made of.
    queries, lists, clicks
        That values are of: those whose candidates each policy ranks.
    lists_all
        Lists of these groups.
    policies
        `logged` first, then the version that is served, then the one it came from.
    remarks
        What must be known of all of them.
    """

    model: str
    at_ms: int
    estimator: str
    curve: str
    groups: list[int]
    queries: int
    lists: int
    clicks: int
    lists_all: int
    policies: list[PolicyValue]
    remarks: list[str]


encode_values = msgspec.json.Encoder().encode
decode_values = decoding(msgspec.json.Decoder(ModelValues).decode)


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
decode_rates = decoding(msgspec.json.Decoder(ModelRates).decode)


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
