"""Test vectors for programs in other languages, computed by the code that runs.

    python -m tests.contract.vectors   writes docs/contract/vectors/ anew

Numbers of 64 bits are text, as many readers of JSON hold doubles. Cases are few and
odd: names that are not ASCII, empty lists, repeats, shared prefixes, unequal lengths.
"""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rankstream.experiments import Running
from rankstream.ranking.combining import draw_seed, list_exposures
from rankstream.settings import ExperimentSettings
from rankstream.wire.envelope import features_hash
from rankstream.wire.events import ClickEvent, QueryEvent
from rankstream.wire.routing import (
    normalised_query,
    partition_of_input,
    partition_of_route,
    route_of_impression,
    route_of_query,
    routed_impression_id,
)
from rankstream.wire.segments import query_in_segment
from streams.dead_letter import Origin
from streams.ingest.identifiers import unit_of
from streams.ingest.validation import EventValidator
from tests.contract.cases import (
    COMPARISONS,
    FEATURE_LISTS,
    NOW_MS,
    QUERIES,
    SEGMENTS,
    SHARES,
    UNITS,
)

FOLDER = Path(__file__).parents[2] / "docs" / "contract" / "vectors"

Case = dict[str, Any]

VALIDATOR = EventValidator(max_documents=10_000, ahead_ms=60_000)


def routing() -> list[Case]:
    """Queries, their normal form, their route, and ids that carry it."""
    found = []
    for query in QUERIES:
        normal = normalised_query(query)
        route = route_of_query(normal)
        named = routed_impression_id("9f2c", route)
        if route_of_impression(named) != route:
            raise ValueError(f"an id must carry its route; got {named}")
        found.append(
            {
                "query_id": query,
                "normalised": normal,
                "route": f"{route:016x}",
                "impression_id": named,
                "partition_of_8": partition_of_route(route, 8),
                "partition_of_12": partition_of_route(route, 12),
            }
        )
    return found


def segments() -> list[Case]:
    """Queries in segments: the form that is kept, and the route, which has none."""
    return [
        {
            "query_id": query_id,
            "segment": segment,
            "query": (query := query_in_segment(query_id, segment)),
            "route": f"{route_of_query(query):016x}",
        }
        for query_id, segment in SEGMENTS
    ]


def partitions() -> list[Case]:
    """Where our own producers put a record of an input topic."""
    values = [
        '{"impression_id":"i1","at_ms":1,"position":1}',
        "caf\u00e9",
        "\U0001f45f",
    ]
    keys = ["", "s81", "\u00fcser"]
    return [
        {
            "key": key or None,
            "value": value,
            **{
                f"partition_of_{n}": partition_of_input(key.encode(), value.encode(), n)
                for n in (1, 4, 12)
            },
        }
        for value in values
        for key in keys
    ]


def identities() -> list[Case]:
    """What tells a repeat: 16 bytes, in hexadecimal."""
    clicks: list[Case] = [
        {"position": 1},
        {"position": 1, "action": "buy"},
        {"item_id": "sku-7"},
        {"item_id": "sku-7", "position": 2},
        {"position": 1, "event_id": "e-1"},
        {"item_id": "caf\u00e9", "event_id": ""},
    ]
    found: list[Case] = []
    for named in ("f3a9", "a~0123456789abcdef", "\u00e9\u4e2d"):
        event = QueryEvent(
            impression_id=named, query_id="q", at_ms=NOW_MS, shown=["sku-7"]
        )
        kept = VALIDATOR.query(msgspec.json.encode(event), NOW_MS).event
        found.append({"impression_id": named, "identity": kept.identity.hex()})
    for fields in clicks:
        click = ClickEvent(impression_id="f3a9", query_id="q", at_ms=NOW_MS, **fields)
        raw, origin = msgspec.json.encode(click), Origin("clicks", 0, 0, 0)
        own = VALIDATOR.click(raw, NOW_MS, origin).event
        named_by = {"impression_id": "f3a9", "at_ms": NOW_MS, **fields}
        found.append({"click": named_by, "identity": own.identity.hex()})
    return found


def units() -> list[Case]:
    """Hashes of sessions: groups of statistics and of verdicts."""
    found = []
    for names in UNITS:
        event = QueryEvent(query_id="q", at_ms=NOW_MS, shown=["a"], **names)
        unit = unit_of(event)
        found.append(
            {
                **names,
                "unit": str(unit),
                "group_of_20": unit % 20,
                "group_of_100": unit % 100,
            }
        )
    return found


def shares() -> list[Case]:
    """Who takes part in an experiment."""
    return [
        {
            "experiment": name,
            "unit": unit,
            "takes_part": {
                str(share): _running(name, share=share).includes(unit, NOW_MS)
                for share in (0.1, 0.5, 0.9, 1.0)
            },
        }
        for name, unit in SHARES
    ]


def feature_hashes() -> list[Case]:
    """Hashes of lists of features."""
    found: list[Case] = [
        {"names": names, "features_hash": features_hash(names).hex()}
        for names in FEATURE_LISTS
    ]
    numbers = [{"number": n, "features_hash": features_hash(n).hex()} for n in (1, 136)]
    return found + numbers


def encodings() -> list[Case]:
    """Matrices as events hold them in base64, row after row."""
    exposures = [[0.5, 0.25, 0.0], [0.5, 0.25, 0.25], [0.0, 0.5, 0.5], [0.0, 0.0, 0.25]]
    matrices: list[tuple[str, list[list[Any]]]] = [
        ("float32", exposures),
        ("float32", [[0.1], [-1.5], [3e38]]),
        ("uint16", [[1, 3], [2, 1], [3, 65_535]]),
    ]
    return [
        {"type": kind, "rows": rows, "base64": _packed(rows, kind)}
        for kind, rows in matrices
    ]


def draws() -> list[Case]:
    """Numbers that a seed gives, for who draws lists by itself."""
    seeds = [0, 1, 2**32 - 1, 2**32, 2**63 - 1, draw_seed("boost", 1, "f3a9")]
    return [
        {
            "seed": str(seed),
            "uniforms": np.random.default_rng(seed).random(5).tolist(),
        }
        for seed in seeds
    ]


def lists() -> list[Case]:
    """Combined lists: what is asked, what is shown, and the event to send."""
    found = []
    for given in COMPARISONS:
        running = _running(
            "boost",
            method=given["method"],
            rankers=tuple(given["rankings"]),
            length=given["length"],
            options=given.get("options", {}),
            epoch=given.get("epoch", 1),
        )
        drawn = running.combine(
            given["rankings"],
            query_id="red shoes",
            impression_id=given["impression_id"],
        )
        exposures = None
        named: Case = {"at_ms": NOW_MS, "session": "s81"}
        if candidates := given.get("candidates"):
            named["candidates"] = candidates
            exposures = list_exposures(
                given["method"], given["rankings"], candidates, given["length"]
            )
        event = running.query_event(drawn, **named)
        VALIDATOR.query(event, NOW_MS)
        sent = json.loads(event)
        del sent["seed"]  # a double cannot hold it
        found.append(
            {
                "experiment": "boost",
                "epoch": running.settings.epoch,
                **given,
                "seed": str(drawn.seed),
                "shown": drawn.shown,
                "assignments": drawn.assignments,
                "logged_rankings": drawn.rankings,
                "exposures": None if exposures is None else exposures.tolist(),
                "event": sent,
            }
        )
    return found


FILES: dict[str, tuple[str, Callable[[], list[Case]]]] = {
    "routing": ("A query's normal form, its route, and ids that carry it.", routing),
    "segments": ("A query with its segment, and the route of both.", segments),
    "partitions": (
        "CRC-32 of the key, else of the value, modulo partitions.",
        partitions,
    ),
    "identities": ("BLAKE2b of the parts that name an event.", identities),
    "units": ("BLAKE2b of session, else user, else impression id.", units),
    "shares": ("Which units an experiment's share includes.", shares),
    "features": ("BLAKE2b of names of features.", feature_hashes),
    "encodings": ("Matrices, row after row, little-endian, in base64.", encodings),
    "draws": ("PCG64 of a seed: the first five uniforms.", draws),
    "lists": (
        "Lists of experiments, their exposures, and their events but for the seed.",
        lists,
    ),
}
"""Files by name: what each is about, and what makes its cases."""


def written(name: str) -> str:
    """A file of vectors as it is stored: a case a line."""
    about, make = FILES[name]
    lines = ",\n".join(json.dumps(case, ensure_ascii=True) for case in make())
    return f'{{"about": {json.dumps(about)}, "cases": [\n{lines}\n]}}\n'


def stored(name: str) -> list[Case]:
    """The cases of a stored file."""
    cases: list[Case] = json.loads((FOLDER / f"{name}.json").read_text())["cases"]
    return cases


def _packed(rows: list[list[Any]], kind: str) -> str:
    packed = np.array(rows, np.dtype(kind).newbyteorder("<")).tobytes()
    return base64.b64encode(packed).decode("ascii")


def _running(
    name: str, *, rankers: tuple[str, ...] = ("a", "b"), **set_: Any
) -> Running:
    named = dict.fromkeys(rankers, "")
    return Running(name, ExperimentSettings(rankers=named, **set_))


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for each in FILES:
        (FOLDER / f"{each}.json").write_text(written(each))
