"""The monitor: what it keeps, what it shows, and what its page gives away."""

import hashlib
import http.client
import io
import json
import re
import socket
import threading
from collections.abc import Container, Iterable, Iterator
from importlib.resources import files
from typing import Any

import msgspec
import numpy as np
import pytest
from rich.console import Console

from models.bias.examination import ExaminationCurve
from models.counts.definition import ClosedImpression
from producers.topic_reader import Record
from rankstream.operations.answers.installation.health import added_up
from rankstream.operations.monitoring import position_bias
from rankstream.operations.monitoring.courses import COURSE_POINTS
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.position_bias import PositionBias
from rankstream.operations.monitoring.terminal import view_of
from rankstream.operations.monitoring.web import CONNECTIONS, Server, static
from streams.statistics.keys import ScopeName
from streams.training.curves.estimated_curve import NO_INTERVAL
from tests.models.counts.scope_values import ScopeValue
from tests.streams.statistics.statistics_records import NAME, scope_records

EVIL = "<script>alert(1)</script>"


def verdict(name: str = "boost", *, n: int = 100, epoch: int = 1, rankers: int = 3):
    """As the evaluator writes it."""
    names = [f"r{i}" for i in range(rankers)]
    names[0] = EVIL
    pairs = [
        {
            "a": names[i],
            "b": names[j],
            "mean": 0.1 * (j - i),
            "to_come": [0.05, 0.2],
            "came": [0.07, 0.2],
            "fixed": [0.08, 0.2],
            "sessions": [0.06, 0.2],
            "log_e_a": 3.5,
            "log_e_b": -2.0,
            "preferred_a": n // 2,
            "preferred_b": n // 4,
            "possible": n,
        }
        for i in range(rankers)
        for j in range(i + 1, rankers)
    ]
    matrix = [[0.1 * (j - i) for j in range(rankers)] for i in range(rankers)]
    found = {
        "impressions": n,
        "sessions": {
            "effective_groups": 20.0,
            "needed": 8.5,
            "enough": True,
            "why": "",
        },
        "matrix": matrix,
        "pairs": pairs,
        "winner": names[0],
        "copeland": list(range(rankers)),
        "bradley_terry": [0.1 * i for i in range(rankers)],
        "cycles": [],
        "decided_cycles": [],
    }
    return {
        "experiment": name,
        "epoch": epoch,
        "method": "team-draft",
        "rankers": names,
        "alpha": 0.05,
        "correction": "Bonferroni over 3 pairs",
        "first_ms": 0,
        "last_ms": 1,
        "totals": {"impressions": n},
        "questions": {"to_come": "To come?", "came": "For those?", "winner": "Both."},
        "methods": {"team-draft": found},
        "clicks_per_list": [],
        "health": [
            {"name": "refused", "value": 0.2, "state": "alarm", "detail": {}},
            {"name": "coverage", "value": None, "state": "ok", "detail": None},
        ],
    }


def printed(gathered: Gathered, selected: str | None = None) -> str:
    """The screen as text."""
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(view_of(gathered, selected))
    return console.export_text()


def test_the_last_verdict_of_the_last_epoch_is_kept_with_its_course() -> None:
    """An old epoch that still counts does not come back; nonsense is passed over."""
    gathered = Gathered()
    for n in range(3 * COURSE_POINTS):
        gathered.take_verdict(msgspec.json.encode(verdict(n=n, epoch=2)))
    gathered.take_verdict(msgspec.json.encode(verdict(n=7, epoch=1)))
    for nonsense in (b"", None, b"{", b"[]", b'{"experiment": 1}'):
        gathered.take_verdict(nonsense)
    found = gathered.experiment("boost")

    assert found is not None
    assert found["verdict"].epoch == 2
    assert len(found["course"]) <= COURSE_POINTS
    assert found["course"][-1][0] == 3 * COURSE_POINTS - 1
    assert found["course"][0] == pytest.approx([0, 0.1, 0.05, 0.2])
    other = gathered.experiment("boost", 1)
    assert other is not None
    assert other["course"][0] == pytest.approx([0, 0.2, 0.05, 0.2])
    assert (gathered.experiment("boost", 99) or {})["course"] == []
    (row,) = gathered.overview()["experiments"]
    assert (row["impressions"], row["health"]) == (3 * COURSE_POINTS - 1, "alarm")


def test_readers_hear_of_news_and_of_nothing_else() -> None:
    """The number moves with every change only."""
    gathered = Gathered()
    gathered.set_counts({"late": 3, "unheard": 1})
    first = gathered.overview()["number"]
    gathered.set_counts({"late": 3})
    gathered.note("scopes", "")

    assert gathered.overview()["number"] == first
    gathered.note("scopes", "a scope is of another release")
    assert gathered.overview()["number"] == first + 1
    assert gathered.overview()["counts"] == {"late": 3}


def test_metrics_are_added_up() -> None:
    """Over partitions and roles; comments and strangers are left out."""
    page = (
        '# HELP x\nrankstream_late_total{partition="0",stage="fold"} 2.0\n'
        'rankstream_late_total{partition="1",stage="fold"} 3.0\n'
        'rankstream_lag_records{partition="1",stage="fold"} 1e+03\npython_info{} 1\n'
    )
    assert added_up(page) == {"late": 5, "lag_records": 1000}


def test_what_is_no_verdict_and_no_number_stops_nothing() -> None:
    """Without health, with a state of nobody; metrics that are NaN or infinite."""
    gathered = Gathered()
    gathered.take_verdict(msgspec.json.encode(verdict("good")))
    without = verdict("without")
    del without["health"]
    strange = verdict("strange")
    strange["health"][0]["state"] = "purple"
    for bad in (
        without, strange, verdict("other") | {"health": [1]},
        verdict() | {"experiment": 5}, verdict() | {"epoch": 2.5},
        verdict() | {"epoch": None}, verdict() | {"experiment": ["x"]},
    ):  # fmt: skip
        gathered.take_verdict(msgspec.json.encode(bad))
    page = "\n".join(
        f'rankstream_lag_records{{partition="{i}"}} {value}'
        for i, value in enumerate(("NaN", "3", "+Inf", "nonsense"))
    )

    assert [row["name"] for row in gathered.overview()["experiments"]] == ["good"]
    assert added_up(page) == {"lag_records": 3}
    assert "good" in printed(gathered)


def before_sessions(name: str) -> dict[str, Any]:
    """As an earlier release wrote it: one interval that might be looked at."""
    old: dict[str, Any] = verdict(name)
    del old["questions"]
    for pair in old["methods"]["team-draft"]["pairs"]:
        del pair["came"]
        pair["anytime"] = pair.pop("to_come")
    del old["methods"]["team-draft"]["sessions"]
    return old


def test_a_verdict_of_an_earlier_release_is_passed_over_and_said_once() -> None:
    """Until one of this release comes; not where one was read already."""
    gathered = Gathered()
    gathered.take_verdict(msgspec.json.encode(verdict("good")))
    gathered.take_verdict(msgspec.json.encode(before_sessions("good")))
    assert gathered.overview()["trouble"] == ""
    first = gathered.overview()["number"]
    for _ in range(3):
        gathered.take_verdict(msgspec.json.encode(before_sessions("old")))
    told = gathered.overview()["trouble"]

    assert gathered.overview()["number"] == first + 1
    assert told.count("old") == 1
    assert "another release" in told
    assert "another release" in printed(gathered)
    assert [row["name"] for row in gathered.overview()["experiments"]] == ["good"]
    gathered.note("scopes", "Some are left out.")
    assert gathered.overview()["trouble"].startswith("Some are left out. Verdicts on")
    gathered.note("scopes", "")
    gathered.take_verdict(msgspec.json.encode(verdict("old")))
    assert gathered.overview()["trouble"] == ""


def test_the_terminal_says_what_to_do_and_then_what_came_out() -> None:
    """Steps; then sentence, matrix, intervals, what warns; names as they are."""
    gathered = Gathered()
    assert "rankstream experiments publish" in " ".join(printed(gathered).split())
    gathered.take_verdict(msgspec.json.encode(verdict()))
    gathered.set_counts({"late": 12_345})
    gathered.set_snapshots(
        [
            {
                "model": "m",
                "version": "0.7",
                "created_ms": 0,
                "updates": 1,
                "is_trained": False,
            }
        ]
    )
    screen = printed(gathered)

    words = gathered.overview()["experiments"][0]["words"]
    for text in (
        "boost", "team-draft", "+0.200", "12,345", "version 0.7", words[:40],
        "alarm: refused 0.2: see the reasons",
    ):  # fmt: skip
        assert text in screen
    assert "has no verdict" in printed(gathered, "else")


@pytest.fixture
def page() -> Iterator[tuple[Server, Gathered]]:
    """A page on any port."""
    gathered = Gathered()
    server = Server("127.0.0.1", 0, gathered)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server, gathered
    server.close()
    thread.join()


def got(
    server: Server, path: str, host: str | None = None, method: str = "GET"
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """One answer."""
    port = server.port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    headers = {} if host is None else {"Host": host}
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers, body


def test_a_head_is_a_get_without_its_body(page: tuple[Server, Gathered]) -> None:
    """Same status, same length said, nothing sent."""
    for path in (*static(), "/overview", "/experiment?name=else", "/nowhere"):
        status, _, body = got(page[0], path)
        only = got(page[0], path, method="HEAD")
        assert (only[0], only[1]["Content-Length"]) == (status, str(len(body)))
        assert only[2] == b""
    status, headers, body = got(page[0], "/events", method="HEAD")
    assert (status, headers["Content-Type"]) == (
        200,
        "text/event-stream; charset=utf-8",
    )
    assert body == b""


def test_the_page_and_its_data(page: tuple[Server, Gathered]) -> None:
    """Static files under a strict policy; a verdict by name; names are data only."""
    server, gathered = page
    gathered.take_verdict(msgspec.json.encode(verdict(EVIL)))
    for path in static():
        status, headers, body = got(server, path)
        assert status == 200
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert b" style=" not in body
        assert b" onclick=" not in body
        assert b"innerHTML" not in body or path.startswith("/uPlot")
    _, headers, body = got(server, "/experiment?name=%3Cscript%3Ealert(1)%3C/script%3E")

    assert headers["Content-Type"] == "application/json"
    assert json.loads(body)["verdict"]["experiment"] == EVIL
    assert got(server, "/experiment?name=else")[0] == 404
    assert got(server, "/favicon.ico")[0] == 204
    assert got(server, "/../../etc/passwd")[0] == 404
    assert json.loads(got(server, "/overview")[2])["experiments"][0]["name"] == EVIL


PINNED = {
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f71615"
    "66dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uPlot.LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
"""SHA-256 of the files of uPlot 1.6.32 as it was released."""

NAMED = re.compile(rb"https?://[^\s\"')]+")


def test_the_page_needs_no_other_host_and_its_charts_are_pinned() -> None:
    """Addresses are names of a vocabulary, or say where uPlot is from."""
    room = files("rankstream.operations.monitoring").joinpath("page")
    for name, digest in PINNED.items():
        held = room.joinpath(name).read_bytes()
        assert hashlib.sha256(held).hexdigest() == digest, name
    named = {each for _, body in static().values() for each in NAMED.findall(body)}
    assert named == {
        b"http://www.w3.org/2000/svg",
        b"https://github.com/leeoniya/uPlot",
    }


def test_another_host_name_is_refused(page: tuple[Server, Gathered]) -> None:
    """A name that somebody else points at this machine reads nothing."""
    server, _ = page
    port = server.port

    assert got(server, "/overview", f"evil.example:{port}")[0] == 421
    assert got(server, "/overview", f"localhost:{port}")[0] == 200


def test_half_an_address_is_a_bad_request(page: tuple[Server, Gathered]) -> None:
    """Answered, as anything else is."""
    port = page[0].port
    with socket.create_connection(("127.0.0.1", port), timeout=300) as connection:
        host = f"Host: 127.0.0.1:{port}\r\n\r\n".encode()
        connection.sendall(b"GET http://[::1/ HTTP/1.1\r\n" + host)
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


def news(server: Server, n_events: int) -> Iterator[dict[str, Any]]:
    """Events of a stream, as they come; the stream is left after so many."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    connection.request("GET", "/events")
    answer = connection.getresponse()
    while n_events:
        line = answer.readline()
        if line.startswith(b"data: "):
            n_events -= 1
            yield json.loads(line.removeprefix(b"data: "))
    connection.close()


def test_a_stream_has_all_first_and_then_what_changed(
    page: tuple[Server, Gathered],
) -> None:
    """Experiments are not told again where only counts moved; a word without news."""
    server, gathered = page
    gathered.take_verdict(msgspec.json.encode(verdict()))
    events = news(server, 3)
    first = next(events)
    assert first.keys() == gathered.overview().keys()
    assert [row["name"] for row in first["experiments"]] == ["boost"]
    gathered.set_counts({"late": 3})
    second = next(events)
    assert second.keys() == {"number", "now_ms", "counts"}
    assert second["counts"] == {"late": 3}
    assert next(events).keys() == {"now_ms"}
    assert list(events) == []


def test_as_many_connections_as_may_be_and_no_more(
    page: tuple[Server, Gathered],
) -> None:
    """One more is told to come again; once others have gone it is served."""
    server, _ = page
    held = [
        socket.create_connection(("127.0.0.1", server.port), 300)
        for _ in range(CONNECTIONS)
    ]
    status, _, body = got(server, "/overview")
    assert (status, b"connections" in body) == (503, True)
    for each in held:
        each.close()
    while got(server, "/overview")[0] == 503:
        pass
    assert got(server, "/overview")[0] == 200


def test_who_hangs_up_leaves_no_trace(
    page: tuple[Server, Gathered], caplog: pytest.LogCaptureFixture
) -> None:
    """In the middle of a stream, of an answer, or before one; others are answered."""
    server, gathered = page
    gathered.take_verdict(msgspec.json.encode(verdict()))
    for path in ("/events", "/overview", "/uPlot.iife.min.js"):
        with socket.create_connection(("127.0.0.1", server.port), 300) as connection:
            host = f"Host: 127.0.0.1:{server.port}\r\n\r\n"
            connection.sendall(f"GET {path} HTTP/1.1\r\n{host}".encode())
            assert connection.recv(10)
    gathered.set_counts({"late": 1})
    assert got(server, "/overview")[0] == 200
    assert caplog.text == ""


def test_a_stream_ends_with_the_page() -> None:
    """So that a monitor stops at once, whoever looks."""
    server = Server("127.0.0.1", 0, Gathered())
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    events = news(server, 10)
    next(events)
    server.close()
    thread.join(300)
    assert not thread.is_alive()


def test_the_overview_is_numbered_by_what_moved(
    page: tuple[Server, Gathered],
) -> None:
    """So that the page draws anew with the next verdict, and not without one."""
    server, gathered = page
    first = json.loads(got(server, "/overview")[2])
    again = json.loads(got(server, "/overview")[2])
    gathered.take_verdict(msgspec.json.encode(verdict()))
    second = json.loads(got(server, "/overview")[2])

    assert (first["experiments"], again["number"]) == ([], first["number"])
    assert second["number"] == first["number"] + 1
    assert [row["name"] for row in second["experiments"]] == ["boost"]


def counted(
    orders: Iterable[np.ndarray], planted: np.ndarray, name: ScopeName = NAME
) -> list[Record]:
    """Lists of ten items and the clicks of users who like every second one more.

    Every fourth list is of the other era; of those, cells of some groups lie apart.
    """
    rng = np.random.default_rng(3)
    lists: tuple[list[ClosedImpression], ...] = ([], [])
    for n, shown in enumerate(orders):
        liked = np.where(shown % 2, 0.8, 0.3)
        clicked = (np.flatnonzero(rng.random(10) < planted * liked) + 1).tolist()
        one = ClosedImpression(n % 20, shown.tolist(), {0: clicked})
        lists[n % 4 == 0].append(one)
    items = [f"d{row}" for row in range(10)]
    early = ScopeValue(items).take(lists[0])
    late = ScopeValue(items, most_lists=0, pieces=range(0, 20, 8)).take(lists[1])
    records = [*scope_records(name, early)]
    records += scope_records(name._replace(era=name.era + 1), late)
    return [Record(0, i, 0, *pair, ()) for i, pair in enumerate(records)]


def estimated(
    records: list[Record], online: Container[str] = ()
) -> list[dict[str, Any]]:
    """What the monitor makes of it."""
    bias = PositionBias(online)
    bias.take(records)
    assert not bias.refused
    return bias.estimate()


def test_position_bias_is_that_of_the_users() -> None:
    """Planted examination is in its intervals; items that never moved say nothing."""
    planted = np.arange(1.0, 11.0) ** -0.8
    rng = np.random.default_rng(3)
    # Those that are liked stand above the others, but for an exchange now and then.
    orders = []
    for _ in range(6_000):
        order = np.array([1, 3, 5, 7, 9, 0, 2, 4, 6, 8], "<u2")
        at = rng.integers(9)
        order[[at, at + 1]] = order[[at + 1, at]]
        orders.append(order)
    found = estimated(counted(orders, planted))
    rates = [each["ratio"] for each in found]

    assert len(found) == 10
    assert rates == pytest.approx(planted.tolist(), rel=0.35)
    for each, truth in zip(found, planted, strict=True):
        low, high = each["interval"]
        assert low <= truth <= high
        assert high < 2.0 * low or truth < 0.2
        assert each["reason"] == ""
    assert estimated(counted([orders[0]] * 50, planted)) == []
    gathered = Gathered()
    gathered.set_examination(found)
    screen = printed(gathered)
    assert "examination by rank" in screen
    assert "{:.3f}-{:.3f}".format(*found[1]["interval"]) in screen


def test_ranks_without_an_interval_say_why() -> None:
    """In the terminal, and to the page."""
    exchanged = np.arange(10)
    exchanged[[0, 1]] = 1, 0
    orders = [np.arange(10), exchanged] * 200
    found = estimated(counted(orders, 1.0 / np.arange(1.0, 11.0)))
    gathered = Gathered()
    gathered.set_examination(found)

    assert [each["ratio"] is None for each in found] == [False] * 2 + [True] * 8
    assert found[2]["interval"] is None
    assert found[2]["reason"] in printed(gathered)
    assert gathered.overview()["examination"] == found


@pytest.mark.parametrize("name", ["m", "other@1.200"])
def test_position_bias_has_no_intervals_where_policies_were_chosen(name: str) -> None:
    """From the same clicks; lists that were fixed beside them are taken alone."""
    planted, rng = np.arange(1.0, 11.0) ** -0.8, np.random.default_rng(5)
    orders = [rng.permutation(10) for _ in range(400)]
    chosen = counted(orders, planted, NAME._replace(intervention=name))
    found = estimated(chosen, ["m"])
    assert [each["ratio"] is None for each in found] == [False] * 10
    assert {each["interval"] for each in found} == {None}
    assert {each["reason"] for each in found} == {NO_INTERVAL}
    fixed = counted(orders[::-1], planted, NAME._replace(intervention="v2"))
    assert estimated([*chosen, *fixed], ["m"]) == estimated(fixed)
    assert estimated(fixed)[1]["interval"] is not None


def test_position_bias_is_computed_again_only_where_counts_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Records of other kinds, or none, ask for nothing; a scope that goes does."""
    bias, calls = PositionBias(), list[ExaminationCurve]()

    def noted(curve: ExaminationCurve) -> list[dict[str, Any]]:
        calls.append(curve)
        return []

    monkeypatch.setattr(position_bias, "curve_of", noted)
    orders = [np.random.default_rng(n).permutation(10) for n in range(40)]
    records = counted(orders, np.ones(10))
    bias.estimate()
    assert not calls
    bias.take(records)
    bias.estimate()
    bias.estimate()
    bias.take([Record(0, 9_000, 0, b"\xa3set", b"\x01", ())])
    bias.estimate()
    assert len(calls) == 1
    for n, kind in enumerate((b"\xa5scope", b"\xa5piece")):
        gone = next(each for each in records if (each.key or b"")[1:7] == kind)
        bias.take([Record(0, 9_001 + n, 0, gone.key, None, ())])
        bias.estimate()
        assert len(calls) == 2 + n
    # Of the scope whose piece went nothing is left, nor of the other one.
    assert np.isnan(calls[-1].ratios).all()
