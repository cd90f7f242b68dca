"""Which files a log is, by the names that a call and `[formats]` of settings use."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from producers.formats.log_files import (
    CLICK_FILES,
    QUERY_FILES,
    FilesOfAForm,
    LogFiles,
)
from producers.formats.registry import files_of
from rankstream.adapters.file_formats import (
    AUTO,
    CLICKS,
    FEATURES,
    FILE_FORMATS,
    LISTS,
    ROLES,
    roles_of,
)
from rankstream.adapters.registry import options_of
from rankstream.settings import FormatSettings, Settings, TableSettings
from rankstream.wire.nearest_name import suggestion

TABLES = {QUERY_FILES: LISTS, CLICK_FILES: CLICKS}
"""The tables of the two parts of a log."""


@dataclass(frozen=True)
class NamedLog:
    """Files, and what is said of how they are read.

    Parameters
    ----------
    lists
        Files of lists; without `clicks` they hold clicks as well.
    clicks
        Files of clicks alone.
    form
        A format, `[formats.NAME]` of the settings, or `queries=NAME,clicks=NAME`.
    columns, options
        By role, and by name of the option; `queries.` or `clicks.` before it says of
        which part of the log.
    joins_sessions
        Whether clicks find their lists by session, query and time.
    """

    lists: Sequence[Path]
    clicks: Sequence[Path] = ()
    form: str = AUTO
    columns: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    joins_sessions: bool = False

    def files(self, settings: Settings) -> LogFiles:
        """The files with their formats.

        Raises
        ------
        ValueError
            Where a format or an option is none.
        FileUnreadable
            Where a file is not there.
        """
        base, forms = _format(self.form, settings.formats)
        columns, options = parts_of(self.columns), parts_of(self.options)

        def files_of_part(name: str, paths: Sequence[Path]) -> FilesOfAForm:
            part = forms.get(name, TableSettings())
            given = {**options[""], **options[name]}
            return FilesOfAForm(
                files_of(paths),
                part.format or base.format,
                _without_features({**part.columns, **columns[name]}),
                options_of({**base.options, **part.options, **given}),
            )

        has_parts = bool(self.clicks)
        lists = QUERY_FILES if has_parts else ""
        features: dict[str, str] = {
            **base.columns,
            **columns[""],
            **forms.get(lists, TableSettings()).columns,
            **columns[lists],
        }
        return LogFiles(
            files_of_part(lists, self.lists),
            files_of_part(CLICK_FILES, self.clicks) if has_parts else None,
            _without_features({**base.columns, **columns[""]}),
            self.joins_sessions or base.session_join,
            settings.time.click_window_ms,
            features.get(FEATURES, ""),
        )


def roles_of_part(name: str) -> tuple[str, ...]:
    """Roles that a column may have which is named `PART.ROLE`, or `ROLE` alone."""
    part = name.rpartition(".")[0]
    if part in TABLES:
        return tuple(each.name for each in roles_of(TABLES[part]))
    return ROLES


def is_role(name: str) -> bool:
    """Whether `PART.ROLE`, or `ROLE` alone, is one that columns have."""
    part, mark, role = name.rpartition(".")
    return role in roles_of_part(name) and (part in TABLES or not mark)


def parts_of(told: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What is said of a log by "", and of its parts, `queries.` and `clicks.`."""
    found: dict[str, dict[str, Any]] = {"": {}, QUERY_FILES: {}, CLICK_FILES: {}}
    for name, value in told.items():
        part, mark, inner = name.partition(".")
        if mark and part in found:
            found[part][inner] = value
        else:
            found[""][name] = value
    return found


def _without_features(columns: Mapping[str, str]) -> dict[str, str]:
    return {role: name for role, name in columns.items() if role != FEATURES}


def _format(
    asked: str, formats: Mapping[str, FormatSettings]
) -> tuple[FormatSettings, dict[str, TableSettings]]:
    """What is said of the log, and of its parts by their names."""
    if "=" not in asked:
        base = _named(asked, formats)
        return base, {QUERY_FILES: base.queries, CLICK_FILES: base.clicks}
    found: dict[str, TableSettings] = {}
    for word in asked.split(","):
        name, _, form = word.partition("=")
        if name not in TABLES:
            raise ValueError(
                "--format must be a name, or queries=NAME,clicks=NAME; got "
                f"{word!r}{suggestion(name, TABLES)}"
            )
        found[name] = _named(form, formats)
    return FormatSettings(format=AUTO), found


def _named(name: str, formats: Mapping[str, FormatSettings]) -> FormatSettings:
    if name in formats:
        told = formats[name]
        form = told.format or AUTO
        return msgspec.structs.replace(told, format=form)
    if name not in FILE_FORMATS:
        known = (*FILE_FORMATS, *formats)
        raise ValueError(
            f"--format must be one of {', '.join(known)}, or [formats.NAME] of the "
            f"settings; got {name!r}{suggestion(name, known)}"
        )
    return FormatSettings(format=name)
