"""Why an element cannot be taken: a stable code and a sentence."""

from typing import NoReturn


class Refused(ValueError):
    """An element cannot be taken; `code` is stable, the text says why.

    Operator action: look at the dead letter with `rankstream dlq show`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def refuse(code: str, message: str) -> NoReturn:
    """Refuse the element that is being read."""
    raise Refused(code, message)
