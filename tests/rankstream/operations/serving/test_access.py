"""Who may ask: hosts, origins, tokens and rates, over sockets."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rankstream.configuration.serve import serve_faults
from rankstream.operations.serving.access import (
    ANY,
    CLICK,
    NOBODY,
    RANK,
    SEND,
    Access,
)
from rankstream.operations.serving.http.limits import MOST_CLIENTS, Rates
from rankstream.operations.serving.tokens import Tokens
from rankstream.settings import ServeSettings, SettingsError
from rankstream.wire.topics import CLICKS, QUERIES
from tests.rankstream.operations.serving.test_events import clicked, listed, named
from tests.served import Served, served, settings_of, until

SENDS, RANKS = "s" * 20, "r" * 20
SHOP = "https://shop.example"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that asks for tokens, and lets pages of the shop click."""
    folder = tmp_path_factory.mktemp("tokens")
    (folder / "send").write_text(f"# of the shop\n{SENDS}\n{SENDS}2\n")
    (folder / "rank").write_text(f"{RANKS}\n")
    settings = settings_of(
        send_tokens_file=str(folder / "send"),
        rank_tokens_file=str(folder / "rank"),
        origins=[SHOP],
        browser_clicks=True,
        click_rate=5.0,
    )
    with served(settings) as found:
        yield found


def bearer(token: str) -> dict[str, str]:
    """The header with a token."""
    return {"authorization": f"Bearer {token}"}


@pytest.mark.parametrize("path", ["/v1/events%0A", "/v1/%65vents%0a", "/v1/events/"])
def test_what_is_no_path_leads_to_no_handler(server: Served, path: str) -> None:
    """Though a path of those that there are begins it: none asks for a token."""
    for headers in ({}, bearer(SENDS)):
        answer = server.ask(path, listed("astray"), **headers)
        assert (answer.status, answer.json["code"]) == (404, "path")
    assert not named(server, QUERIES, "astray")


@pytest.mark.parametrize("token", [SENDS, SENDS + "2"])
def test_a_token_of_the_file_is_let_in(server: Served, token: str) -> None:
    """Any of its lines."""
    answer = server.ask("/v1/events", listed("let-in"), **bearer(token))
    assert answer.status == 202


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer(""),
        bearer(SENDS[:-1]),
        bearer(SENDS + "3"),
        bearer(RANKS),
        bearer("# of the shop"),
        {"authorization": SENDS},
        {"authorization": f"Basic {SENDS}"},
        bearer("s" * 8_000),
        bearer("é" * 20),
    ],
)
def test_other_tokens_are_not(server: Served, headers: dict[str, str]) -> None:
    """Those of another role neither; the answer does not repeat them."""
    answer = server.ask("/v1/events", listed("kept-out"), **headers)
    assert (answer.status, answer.json["code"]) == (401, "token")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert SENDS.encode() not in answer.body


@pytest.mark.parametrize("path", ["/v1/rank", "/v1/combine", "/metrics", "/v1/click"])
def test_every_other_path_asks_for_a_token_too(server: Served, path: str) -> None:
    """Before its body is read."""
    assert server.ask(path, b"{" * (path != "/metrics") or None).status in (401, 403)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json", "/beacon.js"])
def test_what_says_nothing_of_the_data_is_open(server: Served, path: str) -> None:
    """Probes ask under any host."""
    assert server.ask(path).status == 200
    if path.endswith("z"):
        assert server.ask(path, host="10.1.2.3").status == 200


def test_metrics_take_the_token_of_either_role(server: Served) -> None:
    """And tell what was answered."""
    assert server.ask("/healthz").status == 200
    for token in (SENDS, RANKS):
        answer = server.ask("/metrics", **bearer(token))
        assert answer.status == 200
        assert b'rankstream_serve_answers_total{path="/healthz"' in answer.body


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "", "localhost@evil", "*", "a b",
     "localhost:abc1", "localhost:1x", "localhost:\xb2", "localhost:-1"],
)  # fmt: skip
def test_another_host_is_refused(server: Served, host: str) -> None:
    """A page that was led here by its own name gets nothing."""
    answer = server.ask("/v1/events", listed("i"), host=host, **bearer(SENDS))
    assert (answer.status, answer.json["code"]) == (421, "host")


@pytest.mark.parametrize("host", ["10.1.2.3:8088", "evil.example", ""])
def test_metrics_are_read_by_address_with_a_token(server: Served, host: str) -> None:
    """Of each of several servers; a page that was led here has no token."""
    assert server.ask("/metrics", host=host, **bearer(SENDS)).status == 200
    for headers in ({}, bearer("another-token-of-16")):
        answer = server.ask("/metrics", host=host, **headers)
        assert (answer.status, answer.json["code"]) == (401, "token")


@pytest.mark.parametrize("has_tokens", [False, True])
def test_metrics_without_tokens_are_kept_from_other_hosts(
    has_tokens: bool, tmp_path: Path
) -> None:
    """Only what asks for a token may be asked for by any name."""
    file = tmp_path / "tokens"
    file.write_text(f"{SENDS}\n")
    named = ServeSettings(send_tokens_file=str(file))
    access = Access(named if has_tokens else ServeSettings(open=True))
    assert access.may_ask_any_host(ANY) is has_tokens
    assert not any(map(access.may_ask_any_host, (SEND, RANK, CLICK, NOBODY)))


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:9"]
)
def test_names_of_this_machine_are_served(server: Served, host: str) -> None:
    """At any port, as behind a forwarded one."""
    answer = server.ask("/v1/events", listed("h"), host=host, **bearer(SENDS))
    assert answer.status == 202


@pytest.mark.parametrize("origin", ["https://evil.example", "null", f"{SHOP}.evil"])
def test_pages_of_others_are_refused(server: Served, origin: str) -> None:
    """Even with a token, and no page may read the answer."""
    for headers in (bearer(SENDS), {}):
        answer = server.ask("/v1/events", listed("i"), origin=origin, **headers)
        assert (answer.status, answer.json["code"]) == (403, "origin")
        assert "access-control-allow-origin" not in answer.headers


def test_pages_that_are_named_may_ask_and_read(server: Served) -> None:
    """After the browser has asked beforehand."""
    before = server.ask(
        "/v1/events", method="OPTIONS", origin=SHOP,
        access_control_request_method="POST",
    )  # fmt: skip
    assert before.status == 204
    assert before.headers["access-control-allow-origin"] == SHOP
    assert "authorization" in before.headers["access-control-allow-headers"]
    answer = server.ask("/v1/events", listed("page"), origin=SHOP, **bearer(SENDS))
    assert answer.status == 202
    assert answer.headers["access-control-allow-origin"] == SHOP
    assert answer.headers["vary"] == "Origin"


def test_a_click_of_a_page_needs_no_token_but_an_origin(server: Served) -> None:
    """As browsers send it: text, without a time."""
    click = clicked("beacon")
    del click["at_ms"]
    told = {"content_type": "text/plain;charset=UTF-8"}
    before_ms = time.time_ns() // 1_000_000
    assert server.ask("/v1/click", click, origin=SHOP, **told).status == 202
    assert server.ask("/v1/click", click, **told).status == 403
    assert server.ask("/v1/click", click, **told, **bearer(SENDS)).status == 202
    assert server.ask("/v1/click", click, **told, **bearer(RANKS)).status == 401
    found = [e for e in server.events(CLICKS) if e["impression_id"] == "beacon"]
    assert {each["event_id"] for each in found} == {"e-beacon"}
    after_ms = time.time_ns() // 1_000_000
    assert all(before_ms <= each["at_ms"] <= after_ms for each in found)


ONCE = 1e-4
"""A rate at which nobody asks twice within a test."""


def test_clicks_of_one_address_are_bounded() -> None:
    """Who clicks more than a person can is told when to come again."""
    settings = settings_of(origins=[SHOP], browser_clicks=True, click_rate=ONCE)
    with served(settings) as server:
        in_time, late = (
            server.ask("/v1/click", clicked(f"c{n}"), origin=SHOP) for n in range(2)
        )
        assert in_time.status == 202
        assert (late.status, late.json["code"]) == (429, "rate")
        assert int(late.headers["retry-after"]) >= 1
        assert server.ask("/v1/events", listed("c0")).status == 202


def test_the_address_is_that_which_a_known_proxy_tells() -> None:
    """Not one that a client makes up, before it or instead of it."""
    told = {
        "10.0.0.1": 202,
        "10.0.0.2": 202,
        "9.9.9.9, 10.0.0.1": 429,
        "10.0.0.2, 127.0.0.9": 429,
        "10.0.0.1, 9.9.9.9": 202,
    }
    settings = settings_of(client_rate=ONCE, proxies=["127.0.0.0/8"])
    with served(settings) as server:
        for each, status in told.items():
            answer = server.ask("/v1/events", listed("x"), x_forwarded_for=each)
            assert answer.status == status, each
    with served(settings_of(client_rate=ONCE)) as server:
        statuses = [
            server.ask("/v1/events", listed("x"), x_forwarded_for=f"10.0.0.{n}").status
            for n in range(2)
        ]
        assert statuses == [202, 429]


def test_a_token_that_nobody_asks_for_is_no_other_client() -> None:
    """Or each request could come as another one."""
    with served(settings_of(client_rate=ONCE)) as server:
        statuses = [
            server.ask("/v1/events", listed("x"), **bearer(f"{n:020}")).status
            for n in range(2)
        ]
        assert statuses == [202, 429]


def test_a_bucket_fills_with_time_and_clients_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many there are."""
    now_s = 1_000.0
    clock = "rankstream.operations.serving.http.limits.time.monotonic"
    monkeypatch.setattr(clock, lambda: now_s)
    rates = Rates(50.0)
    passed = [rates.wait_s("one") == 0.0 for _ in range(200)]
    assert sum(passed) == 100
    assert rates.wait_s("one") == pytest.approx(0.02)
    now_s += 0.1
    assert [rates.wait_s("one") for _ in range(6)] == [0.0] * 5 + [pytest.approx(0.02)]
    for number in range(MOST_CLIENTS + 100):
        rates.wait_s(str(number))
    assert len(rates._buckets) == MOST_CLIENTS


def test_tokens_are_read_again_when_the_file_changes(tmp_path: Path) -> None:
    """What cannot be read leaves those that were good."""
    path = tmp_path / "tokens"
    path.write_text("a" * 20)
    tokens = Tokens("serve.send_tokens_file", str(path))
    assert tokens.knows("a" * 20)
    path.write_text("b" * 20 + "\n")
    until(lambda: tokens.knows("b" * 20))
    assert not tokens.knows("a" * 20)
    for wrong in (b"", b"short\n", b"\xff\xfe" * 20):
        path.write_bytes(wrong)
        tokens._looked_s = float("-inf")
        assert tokens.knows("b" * 20)
        assert not tokens.knows("short")
    path.unlink()
    tokens._looked_s = float("-inf")
    assert tokens.knows("b" * 20)


@pytest.mark.parametrize(
    "content",
    [b"", b"# only this\n", b"short\n", b"\xff" * 20, b"a" * 20 + b"\nshort\n"],
)
def test_a_file_without_good_tokens_is_refused(tmp_path: Path, content: bytes) -> None:
    """At the start; a file that is missing too."""
    path = tmp_path / "tokens"
    with pytest.raises(SettingsError, match="must be a readable file of tokens"):
        Tokens("serve.rank_tokens_file", str(path))
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=r"serve\.rank_tokens_file must"):
        Tokens("serve.rank_tokens_file", str(path))


@pytest.mark.parametrize(
    ("fields", "setting"),
    [
        ({"host": "0.0.0.0"}, "serve.send_tokens_file"),  # noqa: S104
        ({"host": "::", "send_tokens_file": "f"}, "serve.rank_tokens_file"),
        ({"host": "search.example"}, "serve.send_tokens_file"),
        ({"hosts": ["https://shop.example"]}, "serve.hosts"),
        ({"hosts": ["shop.example:80"]}, "serve.hosts"),
        ({"origins": ["*"]}, "serve.origins"),
        ({"origins": ["https://shop.example/"]}, "serve.origins"),
        ({"origins": ["shop.example"]}, "serve.origins"),
        ({"browser_clicks": True}, "serve.origins"),
        ({"proxies": ["proxy"]}, "serve.proxies"),
        ({"key_file": "k"}, "serve.key_file"),
        ({"body_bytes": 32 << 20}, "serve.under_way_bytes"),
    ],
)
def test_settings_that_would_open_a_door_are_refused(
    fields: dict[str, Any], setting: str
) -> None:
    """Each under its name, with what to do."""
    (found,) = list(serve_faults(ServeSettings(**fields)))[:1]
    assert found[0] == setting
    assert found[1].startswith(setting)


def test_settings_that_are_open_on_purpose_are_taken() -> None:
    """Behind something that keeps strangers away."""
    serve = ServeSettings(host="0.0.0.0", open=True, hosts=["*"])  # noqa: S104
    assert not list(serve_faults(serve))
