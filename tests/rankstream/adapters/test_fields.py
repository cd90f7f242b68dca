"""What is said of a field that is of the wrong type."""

import pytest

from rankstream.adapters.adapter import NotAdapted
from rankstream.adapters.fields import items, object_in


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        (b"null", "nothing"),
        (b"7", "a number"),
        (b"0.5", "a number"),
        (b"true", "true or false"),
        (b'"text"', "text"),
        (b"[1]", "an array"),
    ],
)
def test_a_document_that_is_no_object_is_called_what_it_is(
    document: bytes, kind: str
) -> None:
    """As JSON would call it."""
    with pytest.raises(NotAdapted, match=f"got {kind}$"):
        object_in(document)


def test_a_field_that_is_no_array_is_called_what_it_is() -> None:
    """With its name, and the topic whose letters take the document."""
    with pytest.raises(NotAdapted, match="hits must be an array; got an object") as no:
        items({}, "hits", "queries")
    assert (no.value.code, no.value.kind) == ("type", "queries")
