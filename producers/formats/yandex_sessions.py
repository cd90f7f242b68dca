"""Result pages with clicks, as published for the study of click models.

A line is one page: `s` its number, `u` the user, `q` the query, `t` seconds from an
unknown zero, `rel` one grade per position, `clicks` 0-based positions in click
order. What the file does not say is decided here, the same way each time:

* the zero of time is unknown: `epoch_ms` is added;
* results have no ids: an item is the query and the rank, `query:rank`; or, asked for
  `graded` ones, `GRADE/TYPE#RANK`, of which estimates count those as one item that are
  equal before `#` (`models.estimators.item_classes`);
* clicks have no times: click i of a page (1, 2, ...) is at t + i seconds;
* how the lists came about is unknown: policy `unknown`, no scores, no features;
* dwell times are not used, and grades and types only where they name items.

A page comes before its clicks; pages come in the order of the file, which is not
that of time.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from models.estimators.item_classes import CLASS_END
from producers.formats.source_file import FileUnreadable, lines_of
from rankstream.adapters.adapter import AdapterOptions
from rankstream.wire.events import encode_event
from rankstream.wire.input_events import Event
from rankstream.wire.topics import CLICKS, QUERIES

EPOCH_MS = 1_577_836_800_000
"""Where the zero of time is put unless told otherwise: 2020-01-01 UTC."""


class _Page(msgspec.Struct):
    s: int
    q: int
    t: int
    rel: list[str]
    clicks: list[int]
    u: int | None = None
    type: list[str] = []


_decode = msgspec.json.Decoder(_Page).decode


def read_yandex_sessions(
    path: Path,
    *,
    epoch_ms: int = EPOCH_MS,
    adapter_options: AdapterOptions | None = None,
) -> Iterator[Event]:
    """The pages of a file, each followed by its clicks.

    Parameters
    ----------
    epoch_ms
        Added to all times.
    adapter_options
        `items` says how results are named.

    Raises
    ------
    FileUnreadable
        At the first line that is no page, or clicks outside its page, or a page
        without the types that are asked for.
    """
    is_graded = (adapter_options or AdapterOptions()).items == "graded"
    for number, line in lines_of(path):
        try:
            page = _decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise FileUnreadable(
                path, number, f"a line must be a result page; {error}: correct --format"
            ) from error
        if not page.rel:
            raise FileUnreadable(path, number, "a page must have results; got 0")
        outside = [row for row in page.clicks if not 0 <= row < len(page.rel)]
        if outside:
            reason = f"clicks must lie in 0..{len(page.rel) - 1}; got {outside[0]}"
            raise FileUnreadable(path, number, reason)
        if is_graded and len(page.type) != len(page.rel):
            raise FileUnreadable(
                path,
                number,
                f"a page must have a type for each of its {len(page.rel)} results; got "
                f"{len(page.type)}: leave out --option items=graded",
            )
        yield from _events(page, epoch_ms, is_graded=is_graded)


def _events(page: _Page, epoch_ms: int, *, is_graded: bool) -> Iterator[Event]:
    at_ms = epoch_ms + 1_000 * page.t
    query_id, impression_id = str(page.q), f"page-{page.s}"
    items = _graded(page) if is_graded else _placed(page)
    shown = {
        "impression_id": impression_id,
        "query_id": query_id,
        "at_ms": at_ms,
        "policy": "unknown",
        "shown": items,
    }
    if page.u is not None:
        shown["user"] = str(page.u)
    yield Event(at_ms, QUERIES, encode_event(shown))
    for order, row in enumerate(page.clicks, 1):
        click = {
            "impression_id": impression_id,
            "query_id": query_id,
            "at_ms": at_ms + 1_000 * order,
            "item_id": items[row],
            "position": row + 1,
        }
        yield Event(at_ms + 1_000 * order, CLICKS, encode_event(click))


def _placed(page: _Page) -> list[str]:
    return [f"{page.q}:{rank}" for rank in range(1, len(page.rel) + 1)]


def _graded(page: _Page) -> list[str]:
    # Items of a list must differ, and many have the same grade and type.
    pairs = zip(page.rel, page.type, strict=True)
    return [
        f"{grade}/{kind}{CLASS_END}{rank}"
        for rank, (grade, kind) in enumerate(pairs, 1)
    ]
