"""A replay through the folds in this process: what became of events, and its results.

Ingest hears one and the same time all along, the moment at which the replay began:
how fast the file is read changes nothing in what is counted.
"""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from producers.formats.log_files import LogFiles
from producers.formats.registry import format_of
from rankstream.adapters.file_formats import AUTO, CANONICAL
from rankstream.operations.answers.folders import SNAPSHOTS_FILE, STATISTICS_FILE
from rankstream.settings import Settings
from rankstream.wire.topics import CLICKS, QUERIES, dead_letters
from streams.dead_letter import HEADER_PREFIX
from streams.local import LocalPipeline, write_changes
from streams.stage import Change, Output

OUTCOMES = (
    ("impressions applied", ("applied_impressions",)),
    ("clicks applied", ("applied_clicks",)),
    ("duplicate", ("duplicate",)),
    ("late", ("late",)),
    ("orphan", ("orphan",)),
    ("dead letter", ("dead_letter", "ingestion_dead_letter")),
    ("pending", ("pending",)),
)
"""Rows of the table, and the counters that each adds up."""

LOST = ("late", "orphan", "dead letter")
"""Outcomes of events that are in no sum."""

_LETTERS = {dead_letters(topic) for topic in (QUERIES, CLICKS)}
_CODE, _REASON = HEADER_PREFIX + "code", HEADER_PREFIX + "exception.message"


class LocalReplay:
    """A pipeline in this process, and what became of the events.

    Parameters
    ----------
    settings
        Their partition counts hold.

    Attributes
    ----------
    letters
        Dead letters by topic and code.
    reasons
        Of the first one of each topic and code, in words.
    """

    def __init__(self, settings: Settings) -> None:
        began_ms = int(time.time() * 1_000)
        self.letters: Counter[tuple[str, str]] = Counter()
        self.reasons: dict[tuple[str, str], str] = {}
        self.pipeline = LocalPipeline(
            settings, now=lambda: began_ms, on_output=self._look
        )

    def counters(self) -> dict[str, int]:
        """Counts of all stages; `consumed` is what came in, wherever it ended."""
        counts = self.pipeline.counters()
        consumed = counts["consumed"] + counts["ingestion_dead_letter"]
        return counts | {"consumed": consumed}

    def outcomes(self) -> list[tuple[str, int]]:
        """The outcomes by name; together they are all events that came in."""
        counts = self.counters()
        return [(name, sum(map(counts.__getitem__, each))) for name, each in OUTCOMES]

    def told_of_lost(self) -> str:
        """Events that are in no sum, and where that is explained; empty without any."""
        lost = [(name, n) for name, n in self.outcomes() if n and name in LOST]
        if not lost:
            return ""
        told = ", ".join(f"{n:,} {name}" for name, n in lost)
        return f"not applied: {told}; `rankstream validate` says why, event by event"

    def lacks(self) -> str:
        """What was sent and never applied, so that nothing can be told; else empty."""
        found = dict(self.outcomes())
        if not any(found[name] for name in LOST):
            return ""
        if not found["impressions applied"]:
            return "list"
        lost_clicks = found["orphan"] + sum(
            n for (topic, _), n in self.letters.items() if topic == dead_letters(CLICKS)
        )
        return "click" if lost_clicks and not found["clicks applied"] else ""

    def _look(self, output: Output) -> None:
        if output.topic in _LETTERS:
            # The last of a name is ours: a record may have brought one like it.
            told = dict(output.headers)
            place = output.topic, told.get(_CODE, b"unknown").decode()
            self.letters[place] += 1
            reason = told.get(_REASON, b"").decode("utf-8", "replace")
            self.reasons.setdefault(place, reason)


def dump_among(files: Sequence[Path], form: str) -> Path | None:
    """The dump that is to be folded as it is; None where files are no dumps.

    Raises
    ------
    ValueError
        Where a dump is named beside other files.
    """
    dumps = [
        file
        for file in files
        if (format_of(file).name if form == AUTO else form) == CANONICAL
    ]
    if dumps and len(files) > 1:
        raise ValueError(
            f"a dump must be folded alone; got {len(files)} files; at {dumps[0]}"
        )
    return dumps[0] if dumps else None


def dump_of(log: LogFiles) -> Path | None:
    """The dump that a log is; see `dump_among`."""
    return None if log.clicks else dump_among(log.files, log.lists.form)


def write_results(
    pipeline: LocalPipeline, changes: Iterable[Change], folder: Path
) -> list[tuple[Path, int]]:
    """Write statistics and snapshots; returns the files and their numbers of values.

    Raises
    ------
    RuntimeError
        Where the folder is not writable.
    """
    snapshots = [
        Change("snapshots", model, value) for model, value in pipeline.snapshots.items()
    ]
    named = ((STATISTICS_FILE, changes), (SNAPSHOTS_FILE, snapshots))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [
            (folder / name, write_changes(folder / name, content))
            for name, content in named
        ]
    except OSError as error:
        raise RuntimeError(
            f"a folder must be writable; {error.strerror}; at {folder}"
        ) from error
