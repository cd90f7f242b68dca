"""A segment that is part of the query: exact, segment by segment."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest

from producers.formats.canonical_dump import query_event
from rankstream.settings import Settings
from rankstream.wire.events import Impression
from rankstream.wire.segments import query_in_segment
from rankstream.wire.topics import CLICKS, QUERIES
from streams.ingest.ingest import Ingest
from streams.ingest.refusal import Refused
from streams.ingest.validation import EventValidator
from streams.local import LocalPipeline, local_settings
from streams.stage import SourceRecord
from streams.statistics.keys import scope_key
from streams.statistics.reader import Statistics

NOW_MS = 1_700_000_000_000
COUNTRIES = ("NL", "de", " Nl ")
BY_COUNTRY = msgspec.convert({"ingestion": {"segment": "country"}}, Settings)

Sent = list[tuple[str, dict[str, Any]]]


def events() -> Sent:
    """Lists of two queries in two countries, one of them written in two ways."""
    rng = np.random.default_rng(3)
    found: Sent = []
    for number in range(120):
        items = [f"d{item}" for item in rng.permutation(4)]
        query = ("Shoes", "red  hat")[number % 2]
        shown = {
            "impression_id": f"i{number}",
            "query_id": query,
            "at_ms": NOW_MS + number,
            "policy": "deterministic",
            "candidates": sorted(items),
            "shown": items[:3],
            "session": f"s{number % 9}",
            "attributes": {"country": COUNTRIES[rng.integers(3)], "age": number},
        }
        clicked = {
            "impression_id": f"i{number}",
            "query_id": query,
            "at_ms": NOW_MS + number + 5,
            "position": int(rng.integers(1, 4)),
        }
        found += [(QUERIES, shown), (CLICKS, clicked)]
    return found


def counted(sent: Sent, settings: Settings) -> dict[tuple[str, bytes], bytes | None]:
    """Values of all scopes by query and candidate set, where no click was lost."""
    pipeline = LocalPipeline(local_settings(settings), now=lambda: NOW_MS)
    for topic, event in sent:
        pipeline.send(topic, json.dumps(event).encode())
    pipeline.end()
    assert pipeline.counters()["applied_clicks"] == len(sent) // 2
    values = {one.key: one.value for one in pipeline.statistics()}
    return {
        (name.query, name.candidate_set): values[scope_key(name)]
        for name in Statistics(values.items()).scopes()
    }


def of_country(sent: Sent, country: str) -> Sent:
    """Lists of one country, with their clicks."""
    chosen = {
        event["impression_id"]
        for topic, event in sent
        if topic == QUERIES
        and event["attributes"]["country"].strip().lower() == country
    }
    return [each for each in sent if each[1]["impression_id"] in chosen]


def test_each_segment_is_counted_as_if_it_were_alone() -> None:
    """Clicks find their lists though they name no segment."""
    sent = events()
    apart = counted(sent, BY_COUNTRY)
    expected = {
        (query_in_segment(query, country), candidates): scope
        for country in ("nl", "de")
        for (query, candidates), scope in counted(
            of_country(sent, country), Settings()
        ).items()
    }
    assert len(apart) == 4
    assert apart == expected


def ingested(event: dict[str, Any], settings: Settings) -> Impression:
    """A list as the log has it."""
    validator = EventValidator(
        max_documents=9, ahead_ms=0, segment=settings.ingestion.segment
    )
    found = validator.query(json.dumps(event).encode(), NOW_MS + 200).event
    assert isinstance(found, Impression)
    return found


def test_a_dump_is_ingested_again_with_the_same_segment_or_without() -> None:
    """Its events are as they were sent, so the setting of then decides."""
    sent = [event for topic, event in events() if topic == QUERIES]
    for event in sent[:10]:
        first = ingested(event, BY_COUNTRY)
        again = json.loads(query_event(first))
        assert ingested(again, BY_COUNTRY) == first
        assert ingested(again, Settings()) == ingested(event, Settings())


@pytest.mark.parametrize("told", [None, {}, {"country": 3}, {"country": " "}])
def test_a_list_without_a_segment_is_a_dead_letter(told: Any) -> None:
    """With its code, and the reason; without the setting it is taken."""
    event = events()[0][1] | {"attributes": told}
    with pytest.raises(Refused, match=r"segment") as refusal:
        ingested(event, BY_COUNTRY)
    assert refusal.value.code == "segment"
    assert ingested(event, Settings()).query_id == "shoes"
    ingest = Ingest(QUERIES, 0, local_settings(BY_COUNTRY))
    raw = json.dumps(event).encode()
    ingest.fold(SourceRecord(QUERIES, 0, 0, NOW_MS + 200, None, raw, ()))
    assert ingest.counters()["dead_letter"] == 1
