"""Events as JSON lines: a line is a query event or a click event.

A query event is one that has `shown`. Lines are passed on byte for byte.
"""

from collections.abc import Iterator
from pathlib import Path

from producers.formats.adapted import Adapted
from producers.formats.source_file import BYTE_ORDER_MARK, FileUnreadable, lines_of
from rankstream.adapters.adapter import AdapterOptions, NotAdapted
from rankstream.adapters.own import with_time_in_ms
from rankstream.adapters.registry import resembled
from rankstream.wire.input_events import Event, kind_of, recognised


def read_jsonl(
    path: Path,
    *,
    bad_lines: list[int] | None = None,
    adapter_options: AdapterOptions | None = None,
    adapted: Adapted | None = None,
) -> Iterator[Event]:
    """The events of a file, plain, gzip or zstd, in its order.

    Parameters
    ----------
    adapter_options, adapted
        Their `time_unit`, if it is said, converts times, and refusals are counted.
    bad_lines
        Takes the numbers of lines that are no events. They are passed on
        at the time of the event before them, for ingestion to bury.

    Raises
    ------
    FileUnreadable
        At the first line that is no event, where `bad_lines` is not given.
    """
    at_ms = 0
    unit = adapter_options.time_unit if adapter_options else ""
    for number, line in lines_of(path):
        text = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
        try:
            event = recognised(text)
        except ValueError as error:
            if bad_lines is None:
                remedy = "replay --pass-bad-lines sends such lines on, as dead letters"
                if form := resembled(text):
                    remedy = f"it looks like {form}, which --format {form} reads"
                raise FileUnreadable(path, number, f"{error}; {remedy}") from error
            bad_lines.append(number)
            event = Event(at_ms, kind_of(line), line)
        else:
            event = converted(event, unit, adapted or Adapted()) if unit else event
        at_ms = event.at_ms
        yield event


def converted(event: Event, unit: str, adapted: Adapted) -> Event:
    """The same event with its time in milliseconds; a refusal where it is none."""
    try:
        return with_time_in_ms(event, unit)
    except NotAdapted as error:
        adapted.documents += 1
        adapted.refuse(error)
        return event._replace(at_ms=0, refusal=f"{error.code}: {error}")
