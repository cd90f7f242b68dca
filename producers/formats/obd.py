"""The Open Bandit Dataset: rows of one recommended item, its place and its propensity.

A row is an item that was shown at one of three places beside each other, the
probability that the policy put it there, and whether it was clicked. What stood at the
other places is in no row, so a row is a list of one item. What the files do not say is
decided here, the same way each time:

* a place is a part of the query, `CAMPAIGN/PLACE`, and the item's rank is 1: ranks
  above it in a list would be items of which nothing was logged;
* the candidates are the items of `item_context.csv`, which lies beside the file;
* the policy that logged is the intervention: the folder's name, `random` or `bts`;
* under `random` each item had the same probability, so the placements of all are
  known: policy `logged`. Under any other policy a row tells the probability of its
  own item only, and nobody knows those of the others: policy `unknown`;
* the propensity of the row, its place and its user's features are `attributes`
  (`propensity`, `position`, `context`), the propensity in full precision;
* clicks have no times: a click is a second after its list;
* affinities of users to items are not used.

References
----------
Saito, Aihara, Matsutani & Narita (NeurIPS Datasets and Benchmarks 2021), "Open Bandit
Dataset and Pipeline".
"""

import base64
import csv
import io
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from producers.formats.source_file import UNPACKING_ERRORS, FileUnreadable, opened
from rankstream.wire.events import encode_event
from rankstream.wire.input_events import Event
from rankstream.wire.topics import CLICKS, QUERIES

ITEMS_FILE = "item_context.csv"
"""Beside each file of rows; has a row for each item of the campaign."""

UNIFORM = "random"
"""The policy that is known to draw each item alike."""

PROPENSITY = ("propensity_score", "action_prob")
"""Names of that column: of the files, and of their description."""

N_PLACES = 3

CLICKED_AFTER_MS = 1_000

ROUNDING = 1e-9
"""By how much a propensity of the uniform policy may differ from 1 / items."""


class _Source(NamedTuple):
    """What all rows of a file share."""

    policy: str
    campaign: str
    items: list[str]
    exposures: str


def read_obd(path: Path) -> Iterator[Event]:
    """The rows of a file, each followed by its click if it has one.

    Of a folder the files of items are passed over.

    Raises
    ------
    FileUnreadable
        At the first row that is none, or where the items are not beside it.
    """
    if path.name == ITEMS_FILE:
        return
    source = _source_of(path)
    for number, (line, row) in enumerate(_rows(path)):
        try:
            yield from _events(source, number, row)
        except (KeyError, TypeError, ValueError) as error:
            told = (
                f"column {error} is missing" if isinstance(error, KeyError) else error
            )
            raise FileUnreadable(
                path, line, f"a row must be one shown item; {told}"
            ) from error


def _source_of(path: Path) -> _Source:
    """Of `POLICY/CAMPAIGN.csv` or `POLICY/CAMPAIGN/CAMPAIGN.csv`, packed or not."""
    campaign = path.name.split(".")[0]
    folder = path.absolute().parent
    policy = folder.parent.name if folder.name == campaign else folder.name
    beside = path.with_name(ITEMS_FILE)
    if not beside.exists():
        raise FileUnreadable(
            path, 0, f"{ITEMS_FILE} must lie beside it, as it names the candidates"
        )
    items = [row.get("item_id") or "" for _, row in _rows(beside)]
    if not items or "" in items:
        raise FileUnreadable(
            beside, 0, "each row must have an item_id, and one be there"
        )
    uniform = np.full(len(items), 1.0 / len(items), "<f4").tobytes()
    exposures = base64.b64encode(uniform).decode() if policy == UNIFORM else ""
    return _Source(policy, campaign, items, exposures)


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Rows by the names of their columns, each with its line."""
    line = 1
    try:
        with opened(path) as file:
            text = io.TextIOWrapper(file, "utf-8-sig", newline="")
            reader = csv.DictReader(text, strict=True)
            for row in reader:
                line = reader.line_num
                yield line, row
    except (*UNPACKING_ERRORS, UnicodeError, csv.Error) as error:
        raise FileUnreadable(
            path, line, f"a file must be readable to its end; {error}"
        ) from error


def _events(source: _Source, number: int, row: Mapping[str, str]) -> Iterator[Event]:
    item, place, propensity = row["item_id"], int(row["position"]), _propensity(row)
    _check(source, item, place, propensity)
    at_ms = _at_ms(row["timestamp"])
    impression_id = f"{source.policy}-{source.campaign}-{number}"
    query_id = f"{source.campaign}/{place}"
    attributes: dict[str, Any] = {"propensity": propensity, "position": place}
    context = [row[name] for name in row if (name or "").startswith("user_feature")]
    if context:
        attributes["context"] = context
    shown: dict[str, Any] = {
        "impression_id": impression_id,
        "query_id": query_id,
        "at_ms": at_ms,
        "intervention": source.policy,
        "policy": "logged" if source.exposures else "unknown",
        "shown": [item],
        "candidates": source.items,
        "attributes": attributes,
    }
    if source.exposures:
        shown["exposures"] = source.exposures
    yield Event(at_ms, QUERIES, encode_event(shown))
    if _is_clicked(row["click"]):
        click = {
            "impression_id": impression_id,
            "query_id": query_id,
            "at_ms": at_ms + CLICKED_AFTER_MS,
            "item_id": item,
            "position": 1,
        }
        yield Event(at_ms + CLICKED_AFTER_MS, CLICKS, encode_event(click))


def _propensity(row: Mapping[str, str]) -> float:
    for name in PROPENSITY:
        if name in row:
            return float(row[name])
    raise KeyError(PROPENSITY[0])


def _check(source: _Source, item: str, place: int, propensity: float) -> None:
    if item not in source.items:
        raise ValueError(f"item_id must be one of {ITEMS_FILE}; got {item!r:.40}")
    if not 1 <= place <= N_PLACES:
        raise ValueError(f"position must be 1 to {N_PLACES}; got {place}")
    if not 0.0 < propensity <= 1.0:
        raise ValueError(f"the propensity must lie in (0, 1]; got {propensity}")
    uniform = 1.0 / len(source.items)
    if source.exposures and abs(propensity - uniform) > ROUNDING:
        raise ValueError(
            f"the propensity under {UNIFORM} must be 1 / {len(source.items)}; got "
            f"{propensity}: name the folder of another policy otherwise"
        )


def _at_ms(told: str) -> int:
    time = datetime.fromisoformat(told)
    if time.tzinfo is None:
        raise ValueError(f"the timestamp must have a zone; got {told!r:.60}")
    return int(time.timestamp() * 1_000)


def _is_clicked(told: str) -> bool:
    if told not in ("0", "1"):
        raise ValueError(f"click must be 0 or 1; got {told!r:.40}")
    return told == "1"
