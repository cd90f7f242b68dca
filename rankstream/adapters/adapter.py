"""What an adapter is: a document of another system in, events of ours out."""

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

import msgspec

from rankstream.wire.input_events import Event, refused_header
from rankstream.wire.topics import CLICKS

if TYPE_CHECKING:
    from rankstream.adapters.impressions import Seen

Headers = tuple[tuple[str, bytes], ...]

Queries = MutableMapping[str, str]
"""The query of each list, by the list's id: what a caller remembers of lists."""

HIT_FIELDS = (
    "query_response_hit_ids",
    "query_response_object_ids",
    "query_response_objects_ids",
)


class AdapterOptions(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """How documents are to be read; `[sources.NAME.options]` has the same fields.

    Parameters
    ----------
    ordinal_base
        Number of the first place of a list, where documents number places: 1 or 0.
    ordinals
        Whether to believe them. Where a page shows one list in parts, or counts in
        another way, only the item says what was clicked.
    hit_fields
        Names that the list of shown items may have in UBI; the first that is there
        counts.
    impression_actions
        Actions that say that an item was seen: they are no clicks. Where a query's
        answer has no list of its own, they make it.
    impression_ms
        How long after the first item of a list the others are seen. With 0 lists are
        never made of impressions.
    actions
        Actions that count as clicks; all others on an item where there are none here.
    query
        `text`: what the user asked for is the query of a list and of its clicks. `id`:
        the list's id is, which joins clicks that do not say what was asked for, and
        keeps statistics of each list apart.
    time_unit
        Unit of numbers that are times. Without it they must be milliseconds.
    model
        Which ranker drew the lists, as documents do not say so.
    data
        What CloudEvents carry: the name of another adapter.
    items
        Names of results that have no ids, in result pages: `place`, the query and the
        rank, or `graded`, the grade, the type and the rank.
    separator
        What stands between the items of a list in one cell of a table. Without it the
        first of `|`, `;` and `,` that the cell has.
    """

    ordinal_base: Literal[0, 1] = 1
    ordinals: bool = True
    hit_fields: tuple[str, ...] = HIT_FIELDS
    impression_actions: tuple[str, ...] = ("impression", "view")
    impression_ms: Annotated[int, msgspec.Meta(ge=0, le=3_600_000)] = 10_000
    actions: tuple[str, ...] = ()
    query: Literal["text", "id"] = "text"
    time_unit: Literal["", "s", "ms", "us", "ns"] = ""
    model: str = ""
    data: str = "rankstream"
    items: Literal["place", "graded"] = "place"
    separator: str = ""


NO_QUERY = "no-query"
"""Code of a click that does not name its query: its list may come yet, and say it."""


class NotAdapted(ValueError):
    """A document cannot be made an event; `code` is short, the text says why.

    Operator action: correct the sender, or the options of the source.

    Parameters
    ----------
    kind
        The input topic whose dead letters take the document.
    unit
        That of its time, where it is refused for that: the option `time_unit`.
    number
        That time.
    """

    def __init__(
        self,
        code: str,
        words: str,
        *,
        kind: str = CLICKS,
        unit: str = "",
        number: float = 0,
    ) -> None:
        super().__init__(words)
        self.code = code
        self.kind = kind
        self.unit = unit
        self.number = number

    @property
    def header(self) -> tuple[str, bytes]:
        """Of the record that takes the document to ingestion, as it came."""
        return refused_header(f"{self.code}: {self}")


class Adapter(Protocol):
    """One format of documents."""

    @property
    def name(self) -> str:
        """As `--format` and `[sources.NAME]` take it."""

    @property
    def doc(self) -> str:
        """What `--help` says of it."""

    @property
    def time_field(self) -> str:
        """Where a document has its time."""

    def adapt(
        self,
        document: bytes,
        options: AdapterOptions,
        headers: Headers = (),
        queries: Queries | None = None,
        seen: "Seen | None" = None,
    ) -> list[Event]:
        """The events in a document, in their order; none where it says nothing to us.

        Knows no clock and keeps nothing.

        Parameters
        ----------
        headers
            Of the record or request that brought it; only CloudEvents have any.
        queries
            Takes the query of each list, and gives it to clicks that do not name it.
        seen
            Takes impressions, and makes lists of them. Without it they say nothing.

        Raises
        ------
        NotAdapted
            And nothing else, whatever the document is.
        """
