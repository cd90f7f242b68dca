"""The documents in a body, by its media type."""

from http import HTTPStatus

import msgspec

from rankstream.operations.serving.http.elements import lines_of
from rankstream.operations.serving.problems import Problem, malformed
from rankstream.wire.schemas import decoded

JSON_KINDS = {
    "",
    "application/json",
    "text/plain",
    # What `curl -d` says. A page may say it too, as it may say text/plain: what keeps
    # strangers' pages out is their Origin.
    "application/x-www-form-urlencoded",
}
LINE_KINDS = {
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/x-jsonlines",
}
CLOUD_EVENT, CLOUD_EVENTS = (
    "application/cloudevents+json",
    "application/cloudevents-batch+json",
)

_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode


def documents_of(body: bytes, kind: str) -> list[bytes]:
    """The documents in a body: one, those of an array, or one a line.

    Raises
    ------
    Problem
        Where it holds none, or is of another type.
    """
    if kind in LINE_KINDS:
        return _some(lines_of(body))
    if kind not in JSON_KINDS | {CLOUD_EVENT, CLOUD_EVENTS}:
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "type",
            "content-type must be application/json, application/x-ndjson or that of "
            f"CloudEvents; got {kind[:100]!r}",
        )
    start = body.lstrip()[:1]
    if start == b"[":
        try:
            return _some([bytes(each) for each in decoded(_decode_array, body)])
        except msgspec.DecodeError as error:
            raise malformed(f"a body must be JSON; {error}", "not-json") from error
    return _some([body] if start else [])


def _some(documents: list[bytes]) -> list[bytes]:
    if not documents:
        raise malformed("a body must hold an event; got none", "empty")
    return documents
