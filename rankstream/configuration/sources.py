"""Documents of other systems: topics that are read, and formats of files."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rankstream.adapters.file_formats import (
    CLICKS,
    FILE_FORMATS,
    LISTS,
    ROLES,
    roles_of,
)
from rankstream.configuration.section import Fault, Section
from rankstream.wire.nearest_name import suggestion

STARTS = ("earliest", "latest")


class SourceSettings(Section, frozen=True):
    """A topic of another system, whose documents the role `adapt` makes events of.

    `topic` is its full name on the same cluster. `format` names an adapter, `options`
    are its. `start` says where reading begins that has never begun.
    """

    topic: str
    format: str
    options: dict[str, Any] = {}
    start: str = "earliest"


class TableSettings(Section, frozen=True):
    """How the files of lists, or those of clicks, of a log are read.

    An empty `format` is that of the log; `columns` are by role, `options` those of the
    format.
    """

    format: str = ""
    columns: dict[str, str] = {}
    options: dict[str, Any] = {}


class FormatSettings(TableSettings, frozen=True):
    """A format of files by a name of one's own, which `--format NAME` takes.

    `queries` and `clicks` are of files that hold one of both, and go before what is
    said of the log. With `session_join` clicks find their lists by session, query and
    time.
    """

    session_join: bool = False
    queries: TableSettings = TableSettings()
    clicks: TableSettings = TableSettings()


def source_faults(
    sources: Mapping[str, SourceSettings],
) -> Iterator[Fault]:
    """Each setting of `[sources.NAME]` that cannot be so."""
    read: dict[str, str] = {}
    for name, source in sources.items():
        place = f"sources.{name}"
        if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", source.topic):
            yield (
                f"{place}.topic",
                f"{place}.topic must be a topic by its full name; got {source.topic!r}",
            )
        other = read.setdefault(source.topic, name)
        if other != name:
            # Both would share its offsets, and one of them read nothing.
            yield (
                f"{place}.topic",
                f"{place}.topic must be another one than that of sources.{other}; got "
                f"{source.topic!r} twice",
            )
        if source.start not in STARTS:
            setting = f"{place}.start"
            yield (
                setting,
                f"{setting} must be one of {list(STARTS)}; got {source.start!r}",
            )
        # Adapters are loaded where settings name one.
        from rankstream.adapters.registry import adapter_named  # noqa: PLC0415

        try:
            adapter_named(source.format)
        except ValueError as error:
            yield f"{place}.format", f"{place}.format: {error}"
        yield from _option_faults(place, source.options)


def format_faults(formats: Mapping[str, FormatSettings]) -> Iterator[Fault]:
    """Each setting of `[formats.NAME]` that cannot be so."""
    for name, told in formats.items():
        place = f"formats.{name}"
        if name in FILE_FORMATS:
            yield (
                place,
                f"{place} must have a name of its own; there is a format {name!r}",
            )
        yield from _table_faults(place, told, ROLES)
        for part, table, of in (
            ("queries", told.queries, LISTS),
            ("clicks", told.clicks, CLICKS),
        ):
            roles = tuple(each.name for each in roles_of(of))
            yield from _table_faults(f"{place}.{part}", table, roles)


def _table_faults(
    place: str, table: TableSettings, roles: tuple[str, ...]
) -> Iterator[Fault]:
    if table.format and table.format not in FILE_FORMATS:
        yield (
            f"{place}.format",
            f"{place}.format must be one of {list(FILE_FORMATS)}; got "
            f"{table.format!r}{suggestion(table.format, FILE_FORMATS)}",
        )
    for role in table.columns:
        if role not in roles:
            setting = f"{place}.columns"
            yield (
                setting,
                f"{setting} must be by the roles {', '.join(roles)}; got "
                f"{role!r}{suggestion(role, roles)}",
            )
    yield from _option_faults(place, table.options)


def _option_faults(place: str, options: dict[str, Any]) -> Iterator[Fault]:
    from rankstream.adapters.registry import options_of  # noqa: PLC0415  as above

    try:
        options_of(options)
    except ValueError as error:
        yield f"{place}.options", f"{place}.options: {error}"
