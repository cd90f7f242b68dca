"""From one input element to one canonical event, or a reason why not."""

import base64
import struct
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from rankstream.settings import ExcludeSettings
from rankstream.wire.bounds import LAST_MS, MAX_CLICK_BYTES, MAX_SHOWN
from rankstream.wire.events import (
    LOGGED,
    PLACKETT_LUCE,
    POLICIES,
    SCHEMA,
    TAIL_SHUFFLE,
    Click,
    ClickEvent,
    Impression,
    QueryEvent,
)
from rankstream.wire.refusal_codes import Code
from rankstream.wire.routing import (
    identity,
    route_of_query,
)
from rankstream.wire.topics import MAX_EVENT_BYTES
from rankstream.wire.units_of_time import unit_of as time_unit_of
from streams.dead_letter import Origin
from streams.ingest.elements import UNREADABLE, reason_of
from streams.ingest.exclusion import Exclusion
from streams.ingest.identifiers import (
    check_canary,
    check_id,
    query_of,
    route_of_click,
    unit_of,
)
from streams.ingest.refusal import Refused, refuse
from streams.ingest.vectors import (
    check_assignments,
    check_attributes,
    check_features_hash,
    check_ranks,
    exposures_of,
    feature_rows,
    permuted,
    vector,
)

KNOWN_SETS = 4_096
"""Candidate sets whose canonical order is remembered."""

KNOWN_ITEMS = 1 << 18
"""Items in all remembered candidate sets together, at most."""

EXTRA_FIELDS = (
    "experiment",
    "rankings",
    "assignments",
    "ranks",
    "user",
    "session",
    "attributes",
    "features_hash",
    "canary",
)
"""Fields of a query event that only later stages read."""

EXCLUDED = "excluded"
"""Stands first among them, and is true, where a list enters no sum: C looks for it."""

AnyEvent = TypeVar("AnyEvent", QueryEvent, ClickEvent)

NO_EXTRA = (None,) * len(EXTRA_FIELDS)

_extra_values = attrgetter(*EXTRA_FIELDS)

_decode_query = msgspec.json.Decoder(QueryEvent).decode
_decode_click = msgspec.json.Decoder(ClickEvent).decode
_encode = msgspec.msgpack.Encoder().encode
_POLICY_NUMBER = {name: number for number, name in enumerate(POLICIES)}


class Accepted(NamedTuple):
    """A canonical event, where it goes, when it happened, and its bytes at most."""

    event: Impression | Click
    route: int
    at_ms: int
    n_bytes: int


class CandidateSet(NamedTuple):
    """A candidate set in canonical order, and the permutation that makes it.

    `order` [n_candidates] holds, of each row of it, the row in the event.
    """

    packed: bytes
    order: npt.NDArray[np.int64]
    row_of: dict[str, int]


OLDEST_US_MS = 20 * 365 * 86_400_000
"""A number may be a time of so long ago in microseconds, and is told so; of an older
one its sender may have meant something else."""


class EventValidator:
    """Validates and normalises; knows its limits and nothing else.

    Parameters
    ----------
    max_documents
        Most candidates that an impression may have.
    ahead_ms
        How far an event's time may be ahead of that at which it was appended.
    exclusion
        Whose lists enter no sum; by default all do.
    segment
        The attribute of lists that is part of their query; by default none is.
    """

    def __init__(
        self,
        *,
        max_documents: int,
        ahead_ms: int,
        exclusion: Exclusion | None = None,
        segment: str = "",
    ) -> None:
        self._max_documents = max_documents
        self._ahead_ms = ahead_ms
        self._segment = segment
        self._exclusion = exclusion or Exclusion(ExcludeSettings())
        self._known_sets: dict[tuple[str, ...], CandidateSet] = {}
        self._n_known_items = 0

    def query(self, raw: bytes, appended_ms: int) -> Accepted:
        """The impression in `raw`.

        Raises
        ------
        Refused
            With a code of `rankstream.wire.refusal_codes`.
        """
        event = _decoded(_decode_query, raw)
        _check_schema(event.schema)
        self._check_time(event.at_ms, appended_ms)
        check_id("impression_id", event.impression_id)
        check_id("model", event.model, may_be_empty=True)
        check_id("intervention", event.intervention or "", may_be_empty=True)
        check_canary(event.canary or "")
        query = query_of(event, self._segment)
        if not query:
            refuse(Code.NO_ROUTE, "query_id must hold a visible character")
        policy = _POLICY_NUMBER.get(event.policy)
        if policy is None:
            refuse(
                Code.POLICY, f"policy must be one of {POLICIES}; got {event.policy!r}"
            )
        if not -(2**63) <= event.seed < 2**64 or not 0 <= event.version < 2**63:
            refuse(Code.MALFORMED, "seed and version must fit 64 bits")
        impression = self._impression(event, query, policy, appended_ms)
        size = size_of(impression)
        if size > MAX_EVENT_BYTES:
            refuse(Code.TOO_LARGE, f"an event must fit {MAX_EVENT_BYTES} bytes")
        return Accepted(impression, route_of_query(query), event.at_ms, size)

    def click(self, raw: bytes, appended_ms: int, origin: Origin) -> Accepted:
        """The click in `raw`.

        Raises
        ------
        Refused
            With a code of `rankstream.wire.refusal_codes`.
        """
        event = _decoded(_decode_click, raw)
        _check_schema(event.schema)
        self._check_time(event.at_ms, appended_ms)
        check_id("impression_id", event.impression_id)
        item, position = event.item_id or "", event.position or 0
        if not item and event.position is None:
            refuse(Code.IDENTITY, "a click must name its item_id or its position")
        most = self._max_documents
        if event.position is not None and not 1 <= position <= most:
            refuse(
                Code.POSITION,
                f"position must be 1 to {most}, limits.documents; got {position}",
            )
        check_id("item_id", item, may_be_empty=True)
        check_id("action", event.action)
        if len(raw) > MAX_CLICK_BYTES:
            refuse(Code.TOO_LARGE, f"a click must fit {MAX_CLICK_BYTES} bytes")
        named = identity("i", event.impression_id)
        if event.event_id:
            check_id("event_id", event.event_id)
            own = identity("e", event.event_id)
        else:
            own = identity(
                "c",
                event.impression_id,
                item,
                str(position),
                event.action,
                str(event.at_ms),
            )
        click = Click(
            own, named, item, position, event.at_ms, event.action, raw, (*origin,)
        )
        return Accepted(click, route_of_click(event), event.at_ms, size_of(click))

    def _check_time(self, at_ms: int, appended_ms: int) -> None:
        if not 0 <= at_ms <= LAST_MS:
            is_us = 0 <= appended_ms - at_ms // 1_000 < OLDEST_US_MS
            is_ns = 0 <= appended_ms - at_ms // 1_000_000 < OLDEST_US_MS
            remedy = ", microseconds: send a thousandth of it" if is_us else ""
            remedy = ", nanoseconds: send a millionth of it" if is_ns else remedy
            refuse(
                Code.TIME, f"at_ms must be milliseconds since 1970; got {at_ms}{remedy}"
            )
        if time_unit_of(at_ms) == "s" and time_unit_of(appended_ms) == "ms":
            refuse(
                Code.TIME,
                "at_ms must be milliseconds since 1970; "
                f"got {at_ms}, seconds: send 1,000 times as much",
            )
        if at_ms > appended_ms + self._ahead_ms:
            refuse(
                Code.TIME_FUTURE,
                f"at_ms must be at most {self._ahead_ms} ms ahead of {appended_ms}, "
                f"when Kafka took the record; got {at_ms}",
            )

    def _impression(
        self, event: QueryEvent, query: str, policy: int, appended_ms: int
    ) -> Impression:
        is_open = event.candidates is None
        names = event.shown if event.candidates is None else event.candidates
        if not event.shown or len(event.shown) > MAX_SHOWN:
            refuse(
                Code.SHOWN,
                f"shown must hold 1 to {MAX_SHOWN} items; got {len(event.shown)}",
            )
        if len(names) > self._max_documents:
            refuse(
                Code.TOO_MANY_DOCUMENTS,
                f"candidates must be at most {self._max_documents}; got {len(names)}",
            )
        known = self._candidates(names)
        shown = _rows(event.shown, known.row_of)
        n, k = len(names), len(event.shown)
        scores = permuted(vector(Code.SCORES, event.scores, n), known.order, n)
        exposures = exposures_of(event.exposures, known.order, (n, k), policy)
        if is_open and (
            scores or exposures or policy in (PLACKETT_LUCE, TAIL_SHUFFLE, LOGGED)
        ):
            refuse(
                Code.CANDIDATES, f"candidates must be given with policy {event.policy}"
            )
        if policy == PLACKETT_LUCE and not scores:
            refuse(Code.SCORES, "scores must be given with policy plackett-luce")
        rows, n_features = feature_rows(event.features, k)
        extra = _extra(event, known, n, k)
        if self._exclusion.excludes(event, appended_ms):
            extra = {EXCLUDED: True} | extra
        return Impression(
            identity("i", event.impression_id),
            event.impression_id,
            query,
            event.at_ms,
            event.model,
            event.version,
            event.intervention if event.intervention is not None else event.model,
            event.seed,
            policy,
            known.packed,
            shown,
            is_open,
            scores,
            exposures,
            rows,
            n_features,
            unit_of(event),
            _encode(extra) if extra else b"",
        )

    def _candidates(self, names: list[str]) -> "CandidateSet":
        key = tuple(names)
        known = self._known_sets.get(key)
        if known is not None:
            return known
        if len(set(names)) != len(names):
            refuse(Code.CANDIDATES, "candidates must differ from each other")
        for name in names:
            check_id("item_id", name)
        order = sorted(range(len(names)), key=names.__getitem__)
        found = CandidateSet(
            _encode([names[row] for row in order]),
            np.array(order, np.int64),
            {names[original]: row for row, original in enumerate(order)},
        )
        self._n_known_items += len(key)
        if len(self._known_sets) >= KNOWN_SETS or self._n_known_items > KNOWN_ITEMS:
            self._known_sets.clear()
            self._n_known_items = len(key)
        self._known_sets[key] = found
        return found


def _rows(shown: list[str], row_of: dict[str, int]) -> bytes:
    try:
        rows = [row_of[item] for item in shown]
    except KeyError as error:
        raise Refused(
            Code.SHOWN, f"shown items must be candidates; got {error.args[0]!r:.100}"
        ) from error
    if len(set(rows)) != len(rows):
        refuse(Code.SHOWN, "shown items must differ from each other")
    return struct.pack(f"<{len(rows)}H", *rows)


def size_of(event: Impression | Click) -> int:
    """Bytes of the canonical event: an estimate that is never too small."""
    if isinstance(event, Click):
        return 256 + len(event.raw) + 4 * (len(event.item_id) + len(event.action))
    texts = (event.impression_id, event.query_id, event.model, event.intervention)
    vectors = (event.candidates, event.shown, event.scores, event.exposures)
    return (
        256
        + 4 * sum(map(len, texts))
        + sum(map(len, vectors))
        + len(event.features)
        + len(event.extra)
    )


def _decoded(decode: Callable[[bytes], AnyEvent], raw: bytes) -> AnyEvent:
    try:
        return decode(raw)
    except msgspec.ValidationError as error:
        raise Refused(Code.MALFORMED, str(error)) from error
    except UNREADABLE as error:
        raise Refused(Code.NOT_JSON, reason_of(error)) from error


def _check_schema(schema: int) -> None:
    if schema != SCHEMA:
        refuse(Code.SCHEMA, f"schema must be {SCHEMA}; got {schema}")


def _extra(event: QueryEvent, known: CandidateSet, n: int, k: int) -> dict[str, Any]:
    values = _extra_values(event)
    if values == NO_EXTRA and event.candidate_features is None:
        return {}
    named = zip(EXTRA_FIELDS, values, strict=True)
    # An empty session, user or canary is none, in the log as well.
    fields = {name: value for name, value in named if value not in (None, "")}
    if event.assignments is not None:
        check_assignments(event.assignments, k)
    if event.experiment is not None and not 0 < event.experiment.epoch < 2**31:
        refuse(Code.EXPERIMENT, "an experiment's epoch must be 1 or more, of 31 bits")
    if event.attributes is not None:
        check_attributes(event.attributes)
    if event.ranks is not None:
        check_ranks(event.ranks, n, k)
    if event.features_hash is not None:
        check_features_hash(event)
    if event.candidate_features is not None:
        rows, n_features = feature_rows(
            event.candidate_features, n, name=Code.CANDIDATE_FEATURES
        )
        matrix = np.frombuffer(rows, "<f4").reshape(n, n_features)
        # As an event has it, so that a log can be ingested again.
        fields["candidate_features"] = base64.b64encode(
            matrix[known.order].tobytes()
        ).decode("ascii")
    return fields
