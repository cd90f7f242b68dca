"""The schemas of events: what they refuse, ingestion refuses, and hardly more."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankstream.operations.cli import main
from rankstream.operations.commands.schemas import contract, file_name
from rankstream.wire.event_schemas import DIALECT, event_schemas, schema_file
from rankstream.wire.events import POLICIES
from streams.dead_letter import Origin
from streams.ingest.refusal import Refused
from streams.ingest.validation import EventValidator
from tests.session.cases import n_cases

FOLDER = Path(__file__).parents[3] / "docs" / "contract"
PAGE = FOLDER.parent / "events.md"
NOW_MS = 1_795_257_000_000

SCHEMAS = event_schemas()
CHECKED = {
    name: jsonschema.Draft202012Validator(schema) for name, schema in SCHEMAS.items()
}
VALIDATOR = EventValidator(max_documents=10_000, ahead_ms=60_000)

QUERY = {
    "impression_id": "f3a9", "query_id": "red shoes", "at_ms": NOW_MS,
    "shown": ["b", "a"], "candidates": ["a", "b", "c"],
}  # fmt: skip
CLICK = {"impression_id": "f3a9", "query_id": "q", "at_ms": NOW_MS, "position": 1}

BEYOND_SCHEMAS = {
    "query-event": {
        "no-route", "time", "time-future", "scores", "exposures", "features", "shown",
        "candidate_features", "assignments", "attributes", "ranks", "malformed",
        "too-many-documents",
    },
    "click-event": {"no-route", "time", "time-future", "position", "malformed"},
}  # fmt: skip
"""Codes for which an event may be refused that its schema takes: the README says why.

`malformed`: a whole number that was written with a point.
"""

TEXTS = st.sampled_from(
    ["", " ", "a", "b", "c", "x" * 256, "x" * 257, "\u00e9" * 4_097]
)
NUMBERS = st.sampled_from(
    [-(2**63) - 1, -1, 0, 1, 2, 1.0, 1.5, NOW_MS, NOW_MS + 10**6, 2**31, 2**63, 2**64]
)
LISTS = st.lists(TEXTS, max_size=4) | st.just([f"i{each}" for each in range(1_001)])
VALUES = (
    st.none()
    | st.booleans()
    | TEXTS
    | NUMBERS
    | LISTS
    | st.lists(NUMBERS, max_size=4)
    | st.sampled_from(POLICIES)
    | st.sampled_from(["0123456789abcdef", "0123456789ABCDEF", "AACAPwAAAEAAAEBA"])
    | st.fixed_dictionaries({"id": TEXTS, "epoch": NUMBERS, "method": TEXTS})
    | st.dictionaries(TEXTS, LISTS, max_size=2)
)


def refused(name: str, event: Any) -> str:
    """The code for which ingestion refuses an event; empty where it takes it."""
    raw = json.dumps(event).encode()
    try:
        if name == "query-event":
            VALIDATOR.query(raw, NOW_MS)
        else:
            VALIDATOR.click(raw, NOW_MS, Origin("clicks", 0, 0, 0))
    except Refused as error:
        return str(error.code)
    return ""


def test_the_stored_schemas_are_those_of_the_structs() -> None:
    """`rankstream schemas --out docs/contract` writes them anew."""
    stored = {path.name: path.read_bytes() for path in FOLDER.glob("*.json")}
    ours = {file_name(name): schema_file(each) for name, each in contract().items()}
    assert stored == ours


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_is_a_schema_of_its_dialect(name: str) -> None:
    """As its meta-schema has it."""
    assert SCHEMAS[name]["$schema"] == DIALECT
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])


def test_events_of_the_page_are_taken() -> None:
    """By the schema and by ingestion."""
    blocks = PAGE.read_text(encoding="utf-8").split("```json\n")[1:]
    events = [json.loads(each.partition("```")[0]) for each in blocks]
    assert len(events) == 2
    for name, event in zip(("query-event", "click-event"), events, strict=True):
        CHECKED[name].validate(event)
        assert not refused(name, event | {"at_ms": NOW_MS})


@pytest.mark.parametrize(
    ("name", "event"), [("query-event", QUERY), ("click-event", CLICK)]
)
def test_a_schema_and_ingestion_refuse_the_same(
    name: str, event: dict[str, Any]
) -> None:
    """Of events in which one or two fields are anything, or are gone."""
    fields = sorted(SCHEMAS[name]["$defs"][SCHEMAS[name]["$ref"][8:]]["properties"])
    taken = set()

    @settings(max_examples=n_cases(400, 1_000))
    @given(
        st.dictionaries(st.sampled_from([*fields, "other"]), VALUES, max_size=2),
        st.sampled_from([*event, None]),
    )
    def try_one(changed: dict[str, Any], gone: str | None) -> None:
        tried = {key: each for key, each in (event | changed).items() if key != gone}
        code = refused(name, tried)
        if CHECKED[name].is_valid(tried):
            assert code in {"", *BEYOND_SCHEMAS[name]}, tried
            taken.add(code)
        else:
            assert code, tried

    try_one()
    assert "" in taken


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("query-event", {"policy": "plackett-luce", "scores": [0.5, 0.25, 0.125]}),
        ("query-event", {"policy": "logged", "exposures": [0.5] * 2 + [0.0] * 4}),
        ("query-event", {"experiment": {"id": "e", "epoch": 1, "method": "ab"}}),
        ("query-event", {"seed": 2**63 - 1, "version": 2**63 - 1, "attributes": {}}),
        ("query-event", {"assignments": [0, -1], "rankings": {"a": ["b"], "b": []}}),
        ("query-event", {"canary": "x" * 276, "session": "s"}),
        ("click-event", {"position": None, "item_id": "x" * 256, "event_id": "e"}),
    ],
)  # fmt: skip
def test_what_both_take(name: str, changed: dict[str, Any]) -> None:
    """Events with fields that hang together."""
    event = (QUERY if name == "query-event" else CLICK) | changed
    assert CHECKED[name].is_valid(event)
    assert not refused(name, event)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("query-event", {"policy": "plackett-luce"}),
        ("query-event", {"policy": "logged"}),
        ("query-event", {"policy": "tail-shuffle", "candidates": None}),
        ("query-event", {"scores": [1.0, 0.5], "candidates": None}),
        ("query-event", {"features_hash": "0123456789abcdef"}),
        ("query-event", {"assignments": [1_000, 0]}),
        ("query-event", {"shown": ["a", "a"]}),
        ("query-event", {"canary": "x" * 277}),
        ("query-event", {"schema": 2}),
        ("click-event", {"position": None}),
        ("click-event", {"position": None, "item_id": ""}),
        ("click-event", {"action": ""}),
    ],
)  # fmt: skip
def test_what_both_refuse(name: str, changed: dict[str, Any]) -> None:
    """Among it what follows from several fields."""
    event = (QUERY if name == "query-event" else CLICK) | changed
    assert not CHECKED[name].is_valid(event)
    assert refused(name, event)


def test_the_command_prints_and_writes_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One, all, and as files."""
    assert main(["schemas", "click-event"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMAS["click-event"]
    assert main(["schemas"]) == 0
    assert json.loads(capsys.readouterr().out) == contract()
    assert main(["schemas", "--out", str(tmp_path / "new")]) == 0
    said = capsys.readouterr().out.split()
    assert sorted(map(Path, said)) == sorted((tmp_path / "new").iterdir())
    assert len(said) == len(contract())
