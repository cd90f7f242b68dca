"""The header of a record that its sender could not adapt: it says why.

Such a record goes to an input topic as it came, so that nothing is lost; ingestion
makes a dead letter of it, with these words.
"""

from collections.abc import Iterable

REFUSED_HEADER = "rankstream-not-adapted"
"""Its content is a short name and the words, `code: words`."""

MAX_WORDS_BYTES = 384


def refused_header(words: str) -> tuple[str, bytes]:
    """The header of a record that is to become a dead letter; see `REFUSED_HEADER`."""
    packed = words.encode("utf-8", "backslashreplace")
    return REFUSED_HEADER, packed[:MAX_WORDS_BYTES]


def refusal_in(headers: Iterable[tuple[str, bytes | None]]) -> str | None:
    """Why the sender could not adapt the record; None where it says nothing."""
    for name, content in headers:
        if name == REFUSED_HEADER:
            return (content or b"").decode("utf-8", "replace")
    return None
