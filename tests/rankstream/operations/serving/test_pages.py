"""What tells of the server: its description, its health, its script for browsers."""

import functools
import http.server
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from rankstream.operations.serving.openapi import STRUCTS, description
from rankstream.ranker import Ranker
from rankstream.snapshots import SnapshotStore
from rankstream.wire.topics import CLICKS
from tests import chromium
from tests.served import served, settings_of, until

PAGE = """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">
<script src="http://127.0.0.1:{port}/beacon.js"></script>
<ol data-rankstream-list="shown-1" data-rankstream-query="red shoes">
<li data-rankstream-item="sku-7" data-rankstream-position="1"><b id="one">A</b></li>
<li data-rankstream-item="sku-8" data-rankstream-position="2">B</li></ol>
"""


def test_the_description_names_every_path_and_no_other() -> None:
    """But those of operators, and references lead somewhere."""
    with served() as server:
        answer = server.ask("/openapi.json")
        told = answer.json
        assert answer.headers["content-type"] == "application/json"
        for path, methods in told["paths"].items():
            for method in methods:
                body: Any = None if method == "get" else {}
                assert server.ask(path, body).status not in (404, 405), path
    assert told == description()
    components = told["components"]["schemas"]
    text = msgspec.json.encode(told).decode()
    for part in text.split('"#/components/schemas/')[1:]:
        assert part.partition('"')[0] in components
    assert {each.__name__ for each in STRUCTS} <= set(components)


def test_another_method_is_told_those_that_there_are() -> None:
    """The head of what is read may be asked for alone."""
    with served() as server:
        for method, path, allowed in (
            ("POST", "/healthz", "GET, HEAD"),
            ("GET", "/v1/events", "POST"),
            ("HEAD", "/v1/rank", "POST"),
        ):
            answer = server.ask(path, method=method)
            assert (answer.status, answer.headers["allow"]) == (405, allowed)
        answer = server.ask("/healthz", method="HEAD")
        assert (answer.status, answer.body) == (200, b"")


def test_the_counts_say_what_was_answered() -> None:
    """As Prometheus reads them."""
    with served() as server:
        server.ask("/v1/events", b"{")
        server.ask("/nowhere")
        text = server.ask("/metrics").body.decode()
    assert 'rankstream_serve_answers_total{path="/v1/events",status="422"} 1.0' in text
    assert 'rankstream_serve_answers_total{path="other",status="404"} 1.0' in text
    assert "rankstream_serve_under_way_bytes 0.0" in text
    assert 'rankstream_serve_model_version{model="m"} 2.0' in text


def test_the_counts_are_openmetrics_where_that_is_asked_for() -> None:
    """With what each model has, and how old that is."""
    with served() as server:
        server.parts.rankers["m"].refresh()
        answer = server.ask("/metrics", accept="application/openmetrics-text")
        found = {
            sample.name: sample.value
            for family in text_string_to_metric_families(answer.body.decode())
            for sample in family.samples
        }
    kind = answer.headers["content-type"]
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    assert found["rankstream_serve_ready"] == 1.0
    assert found["rankstream_serve_redis_up"] == 1.0
    assert found["rankstream_serve_redis_failures_total"] == 0.0
    created_ms = server.parts.rankers["m"].snapshot.created_ms
    told_s = found["rankstream_serve_model_created_timestamp_seconds"]
    assert told_s == created_ms / 1_000.0


def test_redis_that_is_away_is_told() -> None:
    """As 0, with the number of looks that failed."""
    store = SnapshotStore("redis://127.0.0.1:1/0", retries=0)
    ranker = Ranker("m", store=store, n_features=3)
    ranker.refresh()
    with served(rankers={"m": ranker}) as server:
        text = server.ask("/metrics").body.decode()
    store.close()
    assert 'rankstream_serve_redis_up{model="m"} 0.0' in text
    failures = 'rankstream_serve_redis_failures_total{model="m",reason="unavailable"}'
    assert float(text.partition(failures)[2].split()[0]) >= 1.0


def test_a_fault_of_the_server_says_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To the client; the log says more."""
    with served() as server:

        def broken(*_: object) -> None:
            raise KeyError("a secret")

        monkeypatch.setattr(server.parts.rankers["m"], "rank", broken)
        item = {"id": "a", "features": [1, 2, 3]}
        asked = {"model": "m", "query_id": "q", "items": [item]}
        answer = server.ask("/v1/rank", asked)
        assert (answer.status, answer.json["code"]) == (500, "failed")
        assert b"secret" not in answer.body
        assert server.ask("/healthz").status == 200


def test_the_script_is_small_and_needs_nothing() -> None:
    """Less than 2 kB, by any page."""
    with served() as server:
        answer = server.ask("/beacon.js")
    assert len(answer.body) < 2_000
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
    assert b"import" not in answer.body


def test_clicks_on_a_page_reach_kafka_from_a_browser(tmp_path: Path) -> None:
    """By the page's marks and by the function, from another origin."""
    browser = chromium.path()
    (tmp_path / "site").mkdir()
    handler = functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "site")
    )
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{site.server_port}"
    settings = settings_of(origins=[origin], browser_clicks=True)
    with served(settings) as server:
        page = PAGE.format(port=server.port)
        (tmp_path / "site" / "page.html").write_text(page)
        questions = [
            "document.readyState == 'complete' && !!window.rankstream",
            "(document.getElementById('one').click(), true)",
            "rankstream.click({impression_id: 'shown-1', query_id: 'q', item_id: 'x'})",
        ]
        found, complaints = chromium.answers(
            browser, f"{origin}/page.html", questions, tmp_path / "profile"
        )
        until(lambda: len(server.events(CLICKS)) >= 2)
    site.shutdown()
    site.server_close()
    assert found == [True, True, True]
    assert complaints == []
    by_item = {each["item_id"]: each for each in server.events(CLICKS)}
    assert by_item["sku-7"]["position"] == 1
    assert by_item["sku-7"]["query_id"] == "red shoes"
    assert all(len(each["event_id"]) == 36 for each in by_item.values())
