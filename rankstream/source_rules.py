"""What `[sources.NAME]` may not be."""

import re
from collections.abc import Iterator, Mapping

from rankstream.adapters.registry import adapter_named, options_of
from rankstream.sections import SourceSettings

STARTS = ("earliest", "latest")


def source_faults(
    sources: Mapping[str, SourceSettings],
) -> Iterator[tuple[str, str]]:
    """Each setting that cannot be so, and why."""
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
        try:
            adapter_named(source.format)
        except ValueError as error:
            yield f"{place}.format", f"{place}.format: {error}"
        try:
            options_of(source.options)
        except ValueError as error:
            yield f"{place}.options", f"{place}.options: {error}"
