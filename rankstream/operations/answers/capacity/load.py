"""What is to be carried: events a second, what they hold, and settings."""

from dataclasses import dataclass, field, replace

import numpy as np
from msgspec.structs import replace as replace_section

from rankstream.configuration.cluster import kafka_faults
from rankstream.configuration.counting import time_faults
from rankstream.settings import Settings
from rankstream.wire.events import (
    DETERMINISTIC,
    LOGGED,
    PLACKETT_LUCE,
    POLICIES,
    ClickEvent,
    QueryEvent,
    encode_event,
)
from rankstream.wire.exposures import CELL_BYTES
from rankstream.wire.routing import route_of_query, routed_impression_id
from rankstream.wire.topics import MAX_EVENT_BYTES

PLANNED = tuple(POLICIES[each] for each in (DETERMINISTIC, LOGGED, PLACKETT_LUCE))
"""Policies whose lists were measured."""

BASE64 = 4.0 / 3.0
FLOAT_BYTES = 4
AT_MS = 1_700_000_000_000
NUMBER_KEYS = len('"features":"",')

MOST_PER_S, MOST_QUERIES = 1e12, 1e15
"""Beyond that nothing is planned: whole numbers would end."""


@dataclass(frozen=True)
class Load:
    """Events as they come, and the settings under which they are counted.

    Parameters
    ----------
    per_second
        Events of both kinds, lists and clicks, 0 or more.
    items
        Shown items of a list, 1 or more; at most `limits.documents`, like candidates.
    queries
        Distinct queries within an era. The q-th most frequent comes in proportion to
        1 / q.
    clicks
        Clicks of a list on average, 0 or more.
    features
        Numbers of each shown item, for learners; 0 for none.
    candidates
        Of a list, at least `items`; they are sent where lists are drawn or logged.
    policy
        How lists are drawn, one of `PLANNED`.
    counted_s
        For how long queries have been counted; 0 for as long as statistics keep them
        in the mean, one and a half eras.
    is_waiting
        Whether events wait in the topics, so that many are taken at once.
    """

    per_second: float
    items: int
    queries: float
    clicks: float = 0.4
    features: int = 0
    candidates: int = 0
    policy: str = POLICIES[DETERMINISTIC]
    settings: Settings = field(default_factory=Settings)
    counted_s: float = 0.0
    is_waiting: bool = False

    def __post_init__(self) -> None:
        """Check what the options say.

        Raises
        ------
        ValueError
        """
        least = {"events": 0, "lists": 1, "queries": 1, "clicks": 0, "features": 0}
        told = {"events": self.per_second, "lists": self.items} | {
            name: getattr(self, name) for name in ("queries", "clicks", "features")
        }
        largest = {"events": MOST_PER_S, "queries": MOST_QUERIES}
        for name, bound in least.items():
            if not bound <= told[name] < np.inf:
                raise ValueError(
                    f"--{name} must be {bound} or more; got {told[name]:g}"
                )
            if told[name] > largest.get(name, np.inf):
                raise ValueError(
                    f"--{name} must be {largest[name]:g} at most; got {told[name]:g}"
                )
        if self.policy not in PLANNED:
            raise ValueError(
                f"--policy must be one whose lists were measured, {', '.join(PLANNED)};"
                f" got {self.policy!r}"
            )
        if self.candidates and self.candidates < self.items:
            raise ValueError(
                f"--candidates must be as many as --lists, {self.items}, or more; got "
                f"{self.candidates}"
            )
        self._check_sizes()

    def _check_sizes(self) -> None:
        """Check that ingestion takes such lists.

        Raises
        ------
        ValueError
        """
        most = self.settings.limits.documents
        for name, n in (("lists", self.items), ("candidates", self.candidates)):
            if n > most:
                raise ValueError(
                    f"--{name} must be at most limits.documents, {most:,}, as larger "
                    f"lists are dead letters; got {n:,}"
                )
        if self.list_bytes > MAX_EVENT_BYTES:
            raise ValueError(
                f"a list must take at most {MAX_EVENT_BYTES:,} bytes, as larger ones "
                f"are dead letters; these take {self.list_bytes:,.0f}: fewer --features"
            )

    @property
    def lists_per_s(self) -> float:
        """Query events a second."""
        return self.per_second / (1.0 + self.clicks)

    @property
    def clicks_per_s(self) -> float:
        """Click events a second."""
        return self.per_second - self.lists_per_s

    @property
    def n_candidates(self) -> int:
        """Of a list; those that are shown where nobody says more."""
        return self.candidates or self.items

    @property
    def list_bytes(self) -> float:
        """Bytes of a query event as JSON, with vectors as base64."""
        n_numbers = self._n_numbers(self.n_candidates * self.items)
        n_vectors = bool(self.features) + self.is_drawn
        vectors = n_vectors * NUMBER_KEYS + n_numbers * FLOAT_BYTES * BASE64
        return self.text_bytes + vectors

    @property
    def number_bytes(self) -> float:
        """Bytes of its vectors as the canonical log has them.

        Logged exposures are those of lists that two orders could have given.
        """
        n_cells = self.n_candidates * self.items
        n_cells = min(n_cells, 2 * self.items * CELL_BYTES // FLOAT_BYTES)
        return self._n_numbers(n_cells) * float(FLOAT_BYTES)

    @property
    def is_drawn(self) -> bool:
        """Whether lists say from what they were drawn."""
        return self.policy != POLICIES[DETERMINISTIC]

    def _n_numbers(self, n_exposures: int) -> int:
        is_logged = self.policy == POLICIES[LOGGED]
        drawn = n_exposures if is_logged else self.n_candidates
        return self.features * self.items + (drawn if self.is_drawn else 0)

    @property
    def text_bytes(self) -> int:
        """Bytes of a query event as JSON, without vectors."""
        # In the middle of all lists, by its rank.
        which = int(np.sqrt(self.queries))
        items = [f"d{which}-{row}" for row in range(self.n_candidates)]
        query = f"query {which}"
        event = QueryEvent(
            impression_id=routed_impression_id(f"{1:012x}", route_of_query(query)),
            query_id=query,
            at_ms=AT_MS,
            model="model",
            policy=self.policy,
            shown=items[: self.items],
            candidates=items if self.is_drawn else None,
        )
        return len(encode_event(event))

    @property
    def click_bytes(self) -> float:
        """Bytes of a click event as JSON."""
        name = routed_impression_id(f"{1:012x}", route_of_query("query"))
        event = ClickEvent(
            impression_id=name, at_ms=AT_MS, position=1, event_id="0" * 9
        )
        return len(encode_event(event))

    @property
    def n_counted(self) -> float:
        """Lists that the statistics hold."""
        keep_s = self.settings.time.keep_ms / 1e3
        return self.lists_per_s * (self.counted_s or 1.5 * keep_s)

    def at(self, per_second: float) -> "Load":
        """The same at another rate."""
        return replace(self, per_second=per_second)

    def under(self, settings: Settings) -> "Load":
        """The same under other settings."""
        return replace(self, settings=settings)


def planned_settings(
    settings: Settings,
    *,
    partitions: int | None = None,
    retention_days: int | None = None,
    window_s: float | None = None,
    replicas: int | None = None,
) -> Settings:
    """Settings with what is to be planned in place of what they say.

    Raises
    ------
    ValueError
        Where a setting cannot be so.
    """
    kafka: dict[str, int | None] = {
        "partitions": partitions,
        "input_partitions": partitions,
        "events_days": retention_days,
        "interactions_days": retention_days,
        "replication_factor": replicas,
    }
    given = {name: value for name, value in kafka.items() if value is not None}
    least = min([1, *(v for k, v in given.items() if not k.endswith("_days"))])
    if least < 1 or not 0.0 < (1.0 if window_s is None else window_s) < np.inf:
        raise ValueError(
            "--partitions, --replicas and --window must be over 0; got "
            f"{partitions}, {replicas}, {window_s}"
        )
    changed = replace_section(settings.kafka, **given)
    time = settings.time
    if window_s is not None:
        time = replace_section(time, click_window_ms=round(1_000 * window_s))
    for _, sentence in (*kafka_faults(changed), *time_faults(time)):
        raise ValueError(sentence)
    return replace_section(settings, kafka=changed, time=time)
