"""Heads of requests that one server could read otherwise than another."""

from http import HTTPStatus

from rankstream.operations.serving.calls import Call
from rankstream.operations.serving.problems import Problem, malformed

ONCE = (
    b"host", b"origin", b"authorization", b"content-type", b"content-encoding",
    b"content-length", b"transfer-encoding",
)  # fmt: skip
"""Headers that two readers could take different ones of."""


def check_head(call: Call, most: int) -> None:
    """Refuse heads that are large, or that two servers could read differently.

    Raises
    ------
    Problem
    """
    scope = call.scope
    if scope["http_version"] not in ("1.0", "1.1"):
        raise Problem(
            HTTPStatus.HTTP_VERSION_NOT_SUPPORTED,
            "version",
            f"a request must be HTTP/1.1 or 1.0; got {scope['http_version']!r}",
            is_last=True,
        )
    headers = scope["headers"]
    size = len(scope["raw_path"]) + len(scope["query_string"]) + 4 * len(headers)
    for name, value in headers:
        size += len(name) + len(value)
    if size > most:
        raise Problem(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            "head",
            f"a head must take at most {most:,} bytes (serve.head_bytes); got {size:,}",
            is_last=True,
        )
    is_twice = len(call.headers) < len(headers) and any(
        [name for name, _ in headers].count(each) > 1 for each in ONCE
    )
    if is_twice or (
        b"transfer-encoding" in call.headers and b"content-length" in call.headers
    ):
        raise _ambiguous(
            "host, origin, token, type and length must be said once; a header comes "
            "twice, or two headers say the length"
        )
    coding = call.header(b"transfer-encoding")
    if coding and coding.strip().lower() != "chunked":
        raise _ambiguous(
            f"transfer-encoding must be chunked and nothing else; got {coding[:100]!r}"
        )


def _ambiguous(detail: str) -> Problem:
    problem = malformed(detail, "head")
    problem.headers = ((b"connection", b"close"),)
    return problem
