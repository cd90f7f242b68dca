"""How many values a document may hold, as a step that nobody can interrupt is as long.

Numbers of a field that is a vector are cheap. What may be anything becomes objects,
each several times as dear: attributes, and documents of other formats.
"""

import base64
import binascii
import contextlib
from http import HTTPStatus

import msgspec

from rankstream.operations.serving.elements import Elements, n_values
from rankstream.operations.serving.problems import Problem
from rankstream.wire.schemas import decoded

LOOSE_PART = 4
"""What may be anything has so much less."""


class _Loose(msgspec.Struct, gc=False):
    """Members that are not what they seem: of any type, or a document once more."""

    attributes: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    data_base64: str | msgspec.UnsetType = msgspec.UNSET


_decode = msgspec.json.Decoder(_Loose).decode


class Values:
    """Refuses documents with too many values.

    Parameters
    ----------
    most
        Values of a document of ours.

    Attributes
    ----------
    most_loose
        Values where each may be anything.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.most_loose = most // LOOSE_PART

    def check(self, document: bytes, *, is_own: bool = True) -> None:
        """Look at a document, or a request, that is no array of them.

        Raises
        ------
        Problem
        """
        if len(document) <= self.most_loose:
            return
        n = n_values(document)
        # Of a key that comes twice the decoder makes all, and this sees the last.
        n_keys = document.count(b"attributes") + document.count(b"\\u00")
        if n > (self.most if is_own and n_keys <= 1 else self.most_loose):
            raise self.too_many_values()
        try:
            loose = decoded(_decode, document)
        except msgspec.DecodeError:
            return  # it will be refused for that
        held = []
        if loose.attributes is not msgspec.UNSET:
            held.append(bytes(loose.attributes))
        if not is_own and loose.data_base64 is not msgspec.UNSET:
            with contextlib.suppress(binascii.Error, ValueError):
                held.append(base64.b64decode(loose.data_base64, validate=True))
        if any(n_values(each) > self.most_loose for each in held):
            raise self.too_many_values()

    def elements(self) -> Elements:
        """What counts in a body that is one object."""
        refusal = self.too_many_values
        return Elements(self.most, refusal, self.most, refusal)

    def too_many_values(self) -> Problem:
        """There are."""
        return Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "too-many",
            f"a document must hold at most {self.most:,} values (serve.values), "
            f"{self.most_loose:,} of them in attributes or in another format; this one "
            "holds more: send vectors as base64, or less at once",
            is_last=True,
        )
