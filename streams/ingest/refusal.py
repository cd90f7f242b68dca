"""Why an element cannot be taken: a stable code and a sentence."""

from typing import NoReturn

from rankstream.wire.refusal_codes import Code


class Refused(ValueError):
    """An element cannot be taken; `code` is stable, the text says why.

    Operator action: look at the dead letter with `rankstream dlq show`.
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


def refuse(code: Code, message: str) -> NoReturn:
    """Refuse the element that is being read."""
    raise Refused(code, message)
