"""Why a request is refused: a status, a code that stays, and words (RFC 9457)."""

from http import HTTPStatus
from typing import Any

import msgspec

_to_json = msgspec.json.Encoder().encode


class Problem(Exception):
    """A request is not answered with success.

    Parameters
    ----------
    code
        Short and stable, for programs.
    detail
        What must be so, what was got, what to do.
    retry_s
        When to ask again, where that may help.
    headers
        Further ones of the answer.
    more
        Further members of the answer's object.

    Attributes
    ----------
    is_last
        Whether nothing more is read from the connection.
    """

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        detail: str,
        *,
        retry_s: int = 0,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        is_last: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.is_last = is_last
        self.headers = headers
        if retry_s:
            self.headers += ((b"retry-after", b"%d" % retry_s),)
        if is_last:
            self.headers += ((b"connection", b"close"),)
        self._more = more

    def body(self) -> bytes:
        """The problem as JSON."""
        return _to_json(
            {
                "title": self.status.phrase,
                "status": int(self.status),
                "code": self.code,
                "detail": str(self),
                **self._more,
            }
        )


def busy(detail: str, *, code: str = "busy", is_last: bool = False) -> Problem:
    """There is no room for the request now."""
    return Problem(
        HTTPStatus.SERVICE_UNAVAILABLE, code, detail, retry_s=1, is_last=is_last
    )


def malformed(detail: str, code: str = "malformed") -> Problem:
    """The request is not what it must be."""
    return Problem(HTTPStatus.BAD_REQUEST, code, detail)
