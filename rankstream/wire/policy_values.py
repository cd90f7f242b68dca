"""What policies are worth by the log: JSON on the topic `evaluations`, of each model.

A record holds all that is known of a model's versions, so its last one is enough.
Numbers that JSON cannot hold are null.
"""

import msgspec

from rankstream.wire.schemas import decoded
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
_decode_values = msgspec.json.Decoder(ModelValues).decode


def decode_values(value: bytes) -> ModelValues:
    """A record of `evaluations`.

    Raises
    ------
    msgspec.DecodeError
        Where it is something else.
    """
    return decoded(_decode_values, value)
