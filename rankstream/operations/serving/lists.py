"""`POST /v1/rank` and `/v1/combine`: a list, answered once Kafka has its event."""

import asyncio
import time
import zlib
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

import msgspec

from rankstream.experiments import Drawn, Experiments, Running, new_impression_id
from rankstream.operations.serving.calls import Answer, Call
from rankstream.operations.serving.documents import Documents
from rankstream.operations.serving.http.elements import Values, n_commas
from rankstream.operations.serving.matrices import exposures_of, features_of
from rankstream.operations.serving.problems import Problem, busy, malformed
from rankstream.operations.serving.remembered import Kept, Remembered
from rankstream.operations.serving.requests import (
    CombineAnswer,
    CombineRequest,
    Listing,
    RankAnswer,
    RankRequest,
)
from rankstream.operations.serving.sender import Outgoing, Sender
from rankstream.ranker import NoSnapshot, Ranker
from rankstream.ranking.combining import draw_seed
from rankstream.ranking.multileaving import Multileaving
from rankstream.ranking.ranked_list import Ranking
from rankstream.settings import Settings
from rankstream.wire.schemas import decoded
from rankstream.wire.topics import MAX_EVENT_BYTES, QUERIES
from streams.ingest.refusal import Refused
from streams.learning.learner_needs import (
    multileaving_of,
    needs_candidates,
    policy_for,
)

Asked = TypeVar("Asked", bound=Listing)

MOST_BYTES = MAX_EVENT_BYTES - (1 << 17)
"""An event of this size is accepted, whatever its texts take in the log."""

MOST_AT_ONCE = 20_000
"""Bytes, else commas, of a request that does not wait for its turn."""

MOST_EXPOSURES = 100_000
"""Numbers of one answer."""

_decode_rank = msgspec.json.Decoder(RankRequest).decode
_decode_combine = msgspec.json.Decoder(CombineRequest).decode
_to_json = msgspec.json.Encoder().encode


class _Needs(NamedTuple):
    """What a model's learner needs lists to be."""

    policy: str
    multileaving: Multileaving
    candidates: bool


class Lists:
    """Ranks with the models of the settings, and combines as experiments have it."""

    def __init__(
        self,
        settings: Settings,
        sender: Sender,
        documents: Documents,
        rankers: dict[str, Ranker],
        experiments: Experiments,
    ) -> None:
        self._values = Values(settings.serve.values)
        self._most_documents = settings.limits.documents
        self._needs = {
            name: _Needs(
                policy_for(model), multileaving_of(model), needs_candidates(model)
            )
            for name, model in settings.models.items()
        }
        self._sender = sender
        self._documents = documents
        self._rankers = rankers
        self._experiments = experiments
        self._remembered = Remembered()

    async def rank(self, call: Call) -> Answer:
        """Rank the items of a request.

        Raises
        ------
        Problem
        """
        kept = await self._ranked_list(await self._body(call))
        return await self._answered(call, kept)

    async def combine(self, call: Call) -> Answer:
        """Combine the rankings of a request, where its unit takes part.

        Raises
        ------
        Problem
        """
        kept = self._combined_list(await self._body(call))
        return await self._answered(call, kept)

    async def _body(self, call: Call) -> bytes:
        """The body, at its turn where that is long work."""
        body = await call.body(self._values.elements())
        if len(body) > MOST_AT_ONCE and n_commas(body) > MOST_AT_ONCE:
            await call.turn.begin()
            self._values.check(body)
        return body

    async def _ranked_list(self, body: bytes) -> Kept:
        """The answer, and its event on the way; nothing else of the request is held."""
        asked: RankRequest = _read(_decode_rank, body)
        digest = _digest(asked, body)
        kept = self._kept(asked, digest)
        if kept is not None:
            return kept
        if asked.log and len(asked.items) > self._most_documents:
            raise _unprocessable(
                "too-many-documents",
                f"items must be at most {self._most_documents:,} (limits.documents); "
                f"got {len(asked.items):,}",
            )
        impression = asked.impression_id or new_impression_id(asked.query_id)
        ranking = self._ranking(asked, impression)
        event = self._event_of(asked, ranking, impression) if asked.log else None
        exposures = await _exposures(ranking) if asked.exposures else None
        ids = [item.id for item in asked.items]
        answer = RankAnswer(
            impression_id=impression,
            query_id=asked.query_id,
            ranking=[ids[row] for row in ranking.order],
            model=asked.model,
            version=ranking.version,
            intervention=ranking.intervention or asked.model,
            policy=ranking.policy,
            exposures=exposures,
            canary=ranking.canary or None,
        )
        # Another request may have used the id while exposures were computed.
        kept = self._kept(asked, digest)
        return kept or self._begin(asked, event, answer, digest)

    def _combined_list(self, body: bytes) -> Kept:
        asked: CombineRequest = _read(_decode_combine, body)
        digest = _digest(asked, body)
        kept = self._kept(asked, digest)
        if kept is not None:
            return kept
        unit = asked.unit or asked.session or asked.user
        if not unit:
            raise malformed(
                "unit, session or user must be set; none is: it says who takes part"
            )
        at_ms = _at_ms(asked)
        running = self._experiments.of(asked.experiment, unit=unit, now_ms=at_ms)
        if running is None:
            self._check_known(asked.experiment)
            return Kept(_to_json(CombineAnswer(takes_part=False)), 0, None)
        drawn = _drawn(asked, running)
        event = None
        if asked.log and drawn.shown:
            event = _combined_event(asked, running, drawn, at_ms)
            self._check(event)
        answer = CombineAnswer(
            takes_part=True,
            impression_id=drawn.impression_id,
            query_id=asked.query_id,
            ranking=drawn.shown,
            epoch=running.settings.epoch,
            method=running.settings.method,
        )
        return self._begin(asked, event, answer, digest)

    def _kept(self, asked: Listing, digest: int) -> Kept | None:
        """What was answered to this request before, whatever has ended since."""
        named = asked.impression_id
        return self._remembered.of(named, digest) if named else None

    def _ranking(self, asked: RankRequest, impression: str) -> Ranking:
        ranker = self._rankers.get(asked.model)
        if ranker is None:
            raise Problem(
                HTTPStatus.NOT_FOUND,
                "model",
                f"model must be one of {sorted(self._rankers)}; got "
                f"{asked.model!r}: name it in the settings of the server",
            )
        needs = self._needs[asked.model]
        try:
            return ranker.rank(
                features_of(asked.items),
                cutoff=asked.k,
                policy=asked.policy or needs.policy,
                # It follows from the list's id, so that to ask again draws the same.
                seed=draw_seed(asked.model, 0, impression),
                multileaving=needs.multileaving,
                session=asked.session,
                query_id=asked.query_id,
                items=[item.id for item in asked.items],
                attributes=asked.attributes,
            )
        except NoSnapshot as error:
            raise busy(str(error), code="no-snapshot") from error
        except ValueError as error:
            of = f"of query {asked.query_id!r:.60}, list {impression!r:.60}"
            raise _unprocessable("features", f"{error} ({of})") from error

    def _event_of(self, asked: RankRequest, ranking: Ranking, impression: str) -> bytes:
        ids = [item.id for item in asked.items]
        event = self._rankers[asked.model].query_event(
            ranking,
            query_id=asked.query_id,
            items=ids,
            at_ms=_at_ms(asked),
            impression_id=impression,
            log_candidates=self._needs[asked.model].candidates,
            **_who(asked),
        )
        self._check_listing(asked, ids, event)
        return event

    def _check(self, event: bytes) -> None:
        """Send nothing that would be a dead letter."""
        try:
            self._documents.check(QUERIES, event)
        except Refused as error:
            raise _unprocessable(str(error.code), str(error)) from error

    def _check_listing(self, asked: RankRequest, ids: list[str], event: bytes) -> None:
        """The same of what the client said; vectors are ours, and need no check."""
        is_plain = asked.query_id.isascii() and not asked.query_id.isspace()
        if not is_plain or asked.at_ms is not None or asked.attributes is not None:
            said = {
                "impression_id": asked.impression_id or "new",
                "query_id": asked.query_id,
                "at_ms": _at_ms(asked),
                "shown": ids[:1],
                **_who(asked),
            }
            self._check(_to_json(said))
        if len(set(ids)) < len(ids):
            raise _unprocessable(
                "candidates", "items must have an id each; one has two"
            )
        if len(event) > MOST_BYTES:
            raise _unprocessable(
                "too-large",
                f"an event must take at most {MOST_BYTES:,} bytes; got "
                f"{len(event):,}: rank fewer items, or with fewer features",
            )

    def _check_known(self, experiment: str) -> None:
        if not self._experiments.is_known(experiment):
            raise Problem(
                HTTPStatus.NOT_FOUND,
                "experiment",
                f"experiment must be one that runs; got {experiment!r}: publish it "
                "with `rankstream experiments publish`",
            )

    def _begin(
        self,
        asked: Listing,
        event: bytes | None,
        answer: RankAnswer | CombineAnswer,
        digest: int,
    ) -> Kept:
        sending = None
        if event is not None:
            sending = self._sender.begin([Outgoing(QUERIES, event)])
        kept = Kept(_to_json(answer), digest, sending)
        if asked.impression_id:
            self._remembered.keep(asked.impression_id, kept)
        return kept

    async def _answered(self, call: Call, kept: Kept) -> Answer:
        # What was read is not held while others wait for Kafka too.
        call.close()
        if kept.sending is not None:
            await self._sender.wait(kept.sending)
        return Answer(kept.answer)


def _read(decode: Any, body: bytes) -> Any:
    try:
        return decoded(decode, body)
    except msgspec.ValidationError as error:
        raise malformed(f"a body must be what the description says; {error}") from error
    except msgspec.DecodeError as error:
        raise malformed(f"a body must be JSON; {error}", "not-json") from error


def _digest(asked: Listing, body: bytes) -> int:
    return zlib.crc32(body) if asked.impression_id else 0


def _at_ms(asked: Listing) -> int:
    return time.time_ns() // 1_000_000 if asked.at_ms is None else asked.at_ms


def _who(asked: Listing) -> dict[str, Any]:
    given = {
        "user": asked.user, "session": asked.session, "attributes": asked.attributes
    }  # fmt: skip
    return {name: value for name, value in given.items() if value is not None}


def _drawn(asked: CombineRequest, running: Running) -> Drawn:
    try:
        return running.combine(
            asked.rankings,
            query_id=asked.query_id,
            impression_id=asked.impression_id,
        )
    except ValueError as error:
        raise _unprocessable("rankings", str(error)) from error


def _combined_event(
    asked: CombineRequest, running: Running, drawn: Drawn, at_ms: int
) -> bytes:
    more: dict[str, Any] = _who(asked)
    if asked.candidates is not None:
        more["candidates"] = asked.candidates
    try:
        return running.query_event(drawn, at_ms=at_ms, **more)
    except (ValueError, KeyError) as error:
        raise _unprocessable("candidates", str(error)) from error


async def _exposures(ranking: Ranking) -> list[list[float]]:
    size = len(ranking.scores) * len(ranking.order)
    if size > MOST_EXPOSURES:
        raise _unprocessable(
            "exposures",
            f"exposures must be of at most {MOST_EXPOSURES:,} places, items times "
            f"ranks; got {size:,}: ask for fewer ranks with k",
        )
    try:
        # The core computes without the interpreter's lock: others go on meanwhile.
        found = await asyncio.to_thread(exposures_of, ranking)
    except ValueError as error:
        raise _unprocessable("exposures", str(error)) from error
    return [[round(each, 9) for each in row] for row in found.tolist()]


def _unprocessable(code: str, detail: str) -> Problem:
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, code, detail)
