"""Statistics of a replay in this process, converted in their file."""

import shutil
from pathlib import Path

from rankstream.operations.conversion.schema1 import (
    DAY_MS,
    ConversionRefused,
    old_values,
    read_statistics,
)
from rankstream.operations.conversion.scopes import (
    Report,
    Situation,
    check_settings,
    converted,
    split,
)
from rankstream.settings import Settings
from streams.local import read_changes, write_changes

KEPT = ".schema1"
"""What the name of the copy ends in."""


def convert_file(file: Path, settings: Settings, *, is_trial: bool) -> Report | None:
    """Convert what `replay --local --out` wrote; None if nothing of before is there.

    The file is replaced as a whole; a copy of what it held is kept. It holds no
    watermark: that was past every list, and in the day that the counts name.

    Raises
    ------
    ConversionRefused
        Where settings or values do not allow it; the file is as it was.
    """
    values = dict(read_changes(file))
    old = old_values(values)
    if not old:
        return None
    if len(old) < len(values):
        raise ConversionRefused(
            f"statistics must be of one release; of {len(values)} keys {len(old)} are "
            f"of before, at {file}: run `rankstream replay --local` again"
        )
    check_settings(settings)
    statistics = read_statistics(old)
    latest_ms = max(
        (
            cell.last_ms
            for scope in statistics.cells
            for _, cell in statistics.cells_of(scope)
        ),
        default=-1,
    )
    watermark_ms = max(latest_ms, statistics.counts.day * DAY_MS)
    records, report = converted(statistics, Situation(0, watermark_ms, settings))
    if not is_trial:
        shutil.copy2(file, file.with_name(file.name + KEPT))
        write_changes(file, split(records))
    return report
