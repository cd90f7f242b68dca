"""Names of formats of files of events, and of roles that columns of tables have.

As a call, settings and help give them; a new role of columns is a row here.
"""

from typing import NamedTuple

AUTO, JSONL, PARQUET, CANONICAL = "auto", "jsonl", "parquet", "canonical"
YANDEX_SESSIONS, OBD, CSV = "yandex-sessions", "obd", "csv"
UBI, METARANK, CLOUD_EVENTS = "ubi", "metarank", "cloudevents"

FILE_FORMATS = (
    AUTO,
    JSONL,
    PARQUET,
    CANONICAL,
    YANDEX_SESSIONS,
    OBD,
    CSV,
    UBI,
    METARANK,
    CLOUD_EVENTS,
)
"""In the order in which help tells of them."""

LISTS, CLICKS = "lists", "clicks"
"""Tables that a column may be of: rows of shown items, and rows of clicks."""


class Role(NamedTuple):
    """What a column is.

    Parameters
    ----------
    name
        As `--columns ROLE=COLUMN` and `[formats.NAME.columns]` take it. A column of
        this name is it, unless another is named.
    doc
        What the column holds.
    also
        Other names by which a column is known, the first that is there: those of the
        fields of our events.
    of
        The tables that it is read from.
    """

    name: str
    doc: str
    also: tuple[str, ...] = ()
    of: tuple[str, ...] = (LISTS, CLICKS)

    @property
    def names(self) -> tuple[str, ...]:
        """All by which a column is known."""
        return (self.name, *self.also)


ROLE_TABLE = (
    Role("impression", "the list", ("impression_id",)),
    Role("item", "the shown item, or the clicked one", ("item_id",)),
    Role("items", "all items of the list, in their order", ("shown",), (LISTS,)),
    Role("at", "when the list was shown, or the click came", ("at_ms", "timestamp")),
    Role("position", "the place of the item"),
    Role("clicked", "whether it was clicked"),
    Role("clicked_at", "when it was clicked"),
    Role("query", "the query", ("query_id",)),
    Role("user", "whose it is", ("user_id",)),
    Role("session", "what lists share", ("session_id",)),
    Role("action", "what the user did"),
    Role("event", "tells a repeated click", ("event_id",), (CLICKS,)),
    Role("policy", "how the list was drawn", of=(LISTS,)),
    Role("scores", "the score that the item was drawn or sorted by", of=(LISTS,)),
    Role(
        "exposures", "how likely the item was at rank 1, 2, ...: an array", of=(LISTS,)
    ),
    Role("features", "features of the item: A+B, or PREFIX* for several", of=(LISTS,)),
)
"""In the order in which help texts tell of them; a new role is a row here."""

ROLES = tuple(each.name for each in ROLE_TABLE)

FEATURES = "features"
"""Of several columns, which are read as a table of their own, beside the lists."""


def roles_of(table: str) -> tuple[Role, ...]:
    """The roles of a table of `LISTS` or of `CLICKS`."""
    return tuple(each for each in ROLE_TABLE if table in each.of)
