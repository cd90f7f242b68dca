"""What is told of a canary: JSON on the topic `evaluations`, the last one of a model.

Numbers that JSON cannot hold are null.
"""

import msgspec

from rankstream.wire.schemas import decoding
from rankstream.wire.verdicts import Ends

OUT = "going out"
"""The state of one that is going out; else what became of it."""


class CanaryDifference(msgspec.Struct, frozen=True, kw_only=True):
    """How far the canary moves a quantity per list, canary less served.

    Attributes
    ----------
    name
        `clicks`, or a guardrail.
    mean, interval
        So far, and ends of the interval for sessions to come, at any time.
    """

    name: str
    mean: float | None
    interval: Ends


class CanaryReport(msgspec.Struct, frozen=True, kw_only=True):
    """A version that goes out to a share of sessions, and how it does.

    Attributes
    ----------
    canary, before
        MODEL@EPOCH.VERSION, and EPOCH.VERSION that all others are served.
    state
        `going out`, or what became of it, as the history says.
    stage, stages, share
        The present one, of how many, and its share of sessions.
    at_ms
        When it was judged, by the trainer's clock.
    canary_lists, served_lists
        Of all its stages.
    needed, planned
        Lists of the canary that this stage lacks, and by which it ends.
    differences
        Clicks first, then guardrails.
    largest_loss
        Of expected looks a list, whatever users like; null where it is not known.
    words
        The judgement, for a person.
    """

    model: str
    canary: str
    before: str
    state: str
    stage: int
    stages: int
    share: float
    at_ms: int
    canary_lists: int
    served_lists: int
    needed: int
    planned: int
    differences: list[CanaryDifference]
    largest_loss: float | None = None
    words: str


encode_report = msgspec.json.Encoder().encode
decode_report = decoding(msgspec.json.Decoder(CanaryReport).decode)
