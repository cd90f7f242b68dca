"""How large the records of each topic may become, and why none can be too large.

Sizes are those of key, value and headers together. `ARCHITECTURE.md` has the table.
Where a bound follows from a stage that cuts what it writes, the stage takes the number
from here.
"""

from collections.abc import Iterable

from rankstream.wire.topics import (
    CANDIDATES,
    CLICKS,
    DECISIONS,
    EVALUATIONS,
    EVENTS,
    EXPERIMENTS,
    INTERACTIONS,
    LATE,
    MAX_EVENT_BYTES,
    MAX_RECORD_BYTES,
    MIB,
    PREFERENCES,
    QUERIES,
    SNAPSHOTS,
    STATISTICS,
    TRAINING,
    dead_letters,
    state_topic,
)

WIRE_BYTES = 1_024
"""What the protocol adds to a record that is alone in its batch, and more."""

MAX_ID_CHARACTERS = 256
"""Longest impression id, item id, model name, action or event id."""

MAX_CANARY_CHARACTERS = MAX_ID_CHARACTERS + 20
"""Longest `canary` of a query event: an intervention, and the number of a stage."""

MAX_QUERY_CHARACTERS = 4_096
"""Normalising combining marks takes time quadratic in their number."""

MAX_SHOWN = 1_000
"""Longest list that one impression may show."""

LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""

LARGEST_TEAM = 999
"""Numbers of rankers in one list lie below a thousand."""

HEAD_BYTES = 64
"""Begins each record of `events` and `interactions`: schema, source, number, length."""

MAX_CLICK_BYTES = 64 * 1_024
"""Largest click at ingestion: its texts at their longest fit, all escaped."""

CLICK_OVERHEAD_BYTES = 4_096
"""What a canonical click may take beside its own bytes: its texts once more."""

MAX_CLICKS_BYTES = 4 * MIB
"""Largest `limits.click_bytes`: an impression and its clicks fit a record."""

KEY_BYTES = 64 * 1_024
"""Longest key of `statistics`: a query, 12 bytes a character, and an intervention."""

PART_BYTES = MIB
"""A value of state that is larger is split."""

LETTER_BYTES = 1_024
"""What a dead letter adds to the bytes, the key and the headers of its record."""

LETTERS_FACTOR = 32
"""Dead letters of one array take at most so many times its record, else it is one."""

NUMBERS_BYTES = MIB
"""Positions and sequence numbers of as many partitions as a cluster can have."""

MODEL_BYTES = MAX_RECORD_BYTES - WIRE_BYTES - NUMBERS_BYTES
"""A snapshot without positions: weights, and little else."""

LARGEST = {
    dead_letters(QUERIES): MAX_EVENT_BYTES + LETTER_BYTES,
    dead_letters(CLICKS): MAX_EVENT_BYTES + LETTER_BYTES,
    state_topic("ingest-queries"): NUMBERS_BYTES,
    state_topic("ingest-clicks"): NUMBERS_BYTES,
    EVENTS: MAX_EVENT_BYTES + HEAD_BYTES,
    LATE: MAX_CLICK_BYTES + LETTER_BYTES,
    state_topic("fold"): MAX_EVENT_BYTES + HEAD_BYTES,
    STATISTICS: PART_BYTES + KEY_BYTES,
    PREFERENCES: PART_BYTES + KEY_BYTES,
    EVALUATIONS: MAX_RECORD_BYTES - WIRE_BYTES,
    CANDIDATES: MAX_EVENT_BYTES + HEAD_BYTES,
    state_topic("candidates"): KEY_BYTES,
    INTERACTIONS: MAX_EVENT_BYTES + MAX_CLICKS_BYTES + HEAD_BYTES,
    state_topic("learn"): PART_BYTES + KEY_BYTES,
    SNAPSHOTS: MAX_RECORD_BYTES - WIRE_BYTES,
    EXPERIMENTS: MIB,
    TRAINING: MAX_RECORD_BYTES - WIRE_BYTES,
    DECISIONS: MAX_RECORD_BYTES - WIRE_BYTES,
}
"""The largest record of each topic that we write.

An element of `events` that is larger than a batch has a record of its own, and so has
an interaction: what is cut by `BATCH_BYTES` is smaller than any bound here.
"""


def carried_bytes(
    key: bytes | None, headers: Iterable[tuple[str, bytes | None]]
) -> int:
    """About what key and headers of a record take, and never less."""
    size = len(key or b"")
    for name, content in headers:
        # A name in UTF-8, and the two lengths.
        size += len(name.encode(errors="surrogatepass")) + len(content or b"") + 10
    return size
