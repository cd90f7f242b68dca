"""What is said of documents that `POST /v1/events` does not take."""

from http import HTTPStatus

from rankstream.adapters.adapter import NotAdapted
from rankstream.adapters.registry import NAMES, resembled
from rankstream.operations.serving.problems import Problem
from rankstream.operations.serving.requests import Rejected
from rankstream.operations.serving.sender import Outgoing
from rankstream.wire.input_events import kind_of, recognised, refused_header
from rankstream.wire.refusal_codes import Code
from rankstream.wire.units_of_time import unit_of
from streams.ingest.refusal import Refused

MOST_TOLD = 100
"""Documents whose refusal an answer tells."""


def letter_of(document: bytes, error: NotAdapted | Refused) -> Outgoing:
    """The document as it came, with what ingestion is to say of it."""
    if isinstance(error, NotAdapted):
        return Outgoing(error.kind, document, (error.header,))
    header = refused_header(f"{error.code}: {error}")
    return Outgoing(kind_of(document), document, (header,))


def rejected_of(
    index: int, document: bytes, error: NotAdapted | Refused, asked: str
) -> Rejected:
    """Which one it is, and why; `asked` is the format that it was taken for."""
    reason = f"{error}{_hint(document, asked, error)}"
    return Rejected(index=index, code=str(error.code), reason=reason)


def _hint(document: bytes, asked: str, error: NotAdapted | Refused) -> str:
    """Which parameter to give: the format that a document looks like, or its unit."""
    form = resembled(document) if asked == NAMES[0] else ""
    if form:
        return f"; it looks like {form}: name it with ?format={form}"
    unit = _unit(document, error)
    if not unit:
        return ""
    return f": with ?format={asked}&time_unit={unit} it is taken as such"


def _unit(document: bytes, error: NotAdapted | Refused) -> str:
    """Of a time that is refused as it is in no milliseconds; empty for all else."""
    if isinstance(error, NotAdapted):
        return error.unit
    if error.code != Code.TIME:
        return ""
    try:
        unit = unit_of(recognised(document).at_ms)
    except ValueError:
        return ""
    return "" if unit == "ms" else unit


def refusal_of(rejected: list[Rejected], n_documents: int) -> Problem:
    """The answer where some are not taken: none is."""
    first = rejected[0]
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "rejected",
        f"every document must be taken; {len(rejected):,} of {n_documents:,} are not, "
        f"the first at {first.index}: {first.reason}: nothing was sent, correct them "
        "or leave them out",
        rejected=rejected[:MOST_TOLD],
    )
