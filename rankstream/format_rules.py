"""What `[formats.NAME]` may not be."""

from collections.abc import Iterator, Mapping

from rankstream.adapters.file_formats import FILE_FORMATS
from rankstream.adapters.registry import options_of
from rankstream.adapters.table_roles import CLICKS, LISTS, ROLES, roles_of
from rankstream.sections import FormatSettings, TableSettings
from rankstream.wire.nearest_name import suggestion


def format_faults(formats: Mapping[str, FormatSettings]) -> Iterator[tuple[str, str]]:
    """Each setting that cannot be so, and why."""
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
) -> Iterator[tuple[str, str]]:
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
    try:
        options_of(table.options)
    except ValueError as error:
        yield f"{place}.options", f"{place}.options: {error}"
