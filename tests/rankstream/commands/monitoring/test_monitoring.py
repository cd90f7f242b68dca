"""The monitor: what it keeps, what it shows, and what its page gives away."""

import http.client
import io
import json
import socket
import threading
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from rich.console import Console

from producers.topic_reader import Record
from rankstream.commands.monitoring.gathered import (
    COURSE_POINTS,
    Gathered,
    added_up,
)
from rankstream.commands.monitoring.position_bias import PositionBias
from rankstream.commands.monitoring.terminal import view_of
from rankstream.commands.monitoring.web import STATIC, Server
from rankstream.events import ClickMark, Interaction
from rankstream.settings import LimitSettings
from streams.folds.closed import closed_of
from streams.folds.statistics import StatisticsFold
from tests.event_factory import impression

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
        }
        for i in range(rankers)
        for j in range(i + 1, rankers)
    ]
    matrix = [[0.1 * (j - i) for j in range(rankers)] for i in range(rankers)]
    found = {
        "impressions": n,
        "matrix": matrix,
        "pairs": pairs,
        "winner": names[0],
        "decided_cycles": [],
    }
    return {
        "experiment": name,
        "epoch": epoch,
        "method": "team-draft",
        "rankers": names,
        "alpha": 0.05,
        "correction": "Bonferroni over 3 pairs",
        "methods": {"team-draft": found},
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
    assert found["verdict"]["epoch"] == 2
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
    first = gathered.wait(-1, 0.0)
    gathered.set_counts({"late": 3})
    gathered.set_trouble("")

    assert gathered.wait(first, 0.01) == first
    gathered.set_trouble("Redis must answer")
    assert gathered.wait(first, 0.01) == first + 1
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


def test_the_terminal_says_what_to_do_and_then_what_came_out() -> None:
    """Empty state; experiments, matrix, intervals, health; names as they are."""
    gathered = Gathered()
    assert "rankstream experiments publish" in printed(gathered)
    gathered.take_verdict(msgspec.json.encode(verdict()))
    gathered.set_counts({"late": 12_345})
    gathered.set_snapshots(
        [{"model": "m", "version": "0.7", "created_ms": 0, "updates": 1}]
    )
    screen = printed(gathered)

    for text in ("boost", "team-draft", "+0.200", "refused", "12,345", "version 0.7"):
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
    port = server.server_address[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    headers = {} if host is None else {"Host": host}
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers, body


def test_a_head_is_a_get_without_its_body(page: tuple[Server, Gathered]) -> None:
    """Same status, same length said, nothing sent; also of the endless stream."""
    for path in (*STATIC, "/overview", "/experiment?name=else", "/nowhere"):
        status, _, body = got(page[0], path)
        only = got(page[0], path, method="HEAD")
        assert (only[0], only[1]["Content-Length"]) == (status, str(len(body)))
        assert only[2] == b""
    assert got(page[0], "/events", method="HEAD")[0] == 200


def test_the_page_and_its_data(page: tuple[Server, Gathered]) -> None:
    """Static files under a strict policy; a verdict by name; names are data only."""
    server, gathered = page
    gathered.take_verdict(msgspec.json.encode(verdict(EVIL)))
    for path in STATIC:
        status, headers, body = got(server, path)
        assert status == 200
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert b"innerHTML" not in body
        assert b" style=" not in body
        assert b" onclick=" not in body
    _, headers, body = got(server, "/experiment?name=%3Cscript%3Ealert(1)%3C/script%3E")

    assert headers["Content-Type"] == "application/json"
    assert json.loads(body)["verdict"]["experiment"] == EVIL
    assert got(server, "/experiment?name=else")[0] == 404
    assert got(server, "/favicon.ico")[0] == 204
    assert got(server, "/../../etc/passwd")[0] == 404
    assert json.loads(got(server, "/overview")[2])["experiments"][0]["name"] == EVIL


def test_another_host_name_is_refused(page: tuple[Server, Gathered]) -> None:
    """A name that somebody else points at this machine reads nothing."""
    server, _ = page
    port = server.server_address[1]

    assert got(server, "/overview", f"evil.example:{port}")[0] == 421
    assert got(server, "/overview", f"localhost:{port}")[0] == 200


def test_half_an_address_is_a_bad_request(page: tuple[Server, Gathered]) -> None:
    """Answered, as anything else is."""
    port = page[0].server_address[1]
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        host = f"Host: 127.0.0.1:{port}\r\n\r\n".encode()
        connection.sendall(b"GET http://[::1/ HTTP/1.1\r\n" + host)
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")


def test_who_hangs_up_leaves_no_trace(
    page: tuple[Server, Gathered], capsys: pytest.CaptureFixture[str]
) -> None:
    """Faults of ours are told."""
    for error in (
        BrokenPipeError(),
        ConnectionResetError(),
        TimeoutError(),
        KeyError(),
    ):
        try:
            raise error
        except (OSError, KeyError):
            page[0].handle_error(None, ("127.0.0.1", 1))
        is_ours = isinstance(error, KeyError)
        assert ("Traceback" in capsys.readouterr().err) == is_ours


def test_events_come_as_they_happen(page: tuple[Server, Gathered]) -> None:
    """The first overview at once, another with the next verdict."""
    server, gathered = page
    port = server.server_address[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/events")
    answer = connection.getresponse()
    first = answer.readline()
    answer.readline()
    gathered.take_verdict(msgspec.json.encode(verdict()))
    second = answer.readline()
    connection.close()

    assert json.loads(first.removeprefix(b"data: "))["experiments"] == []
    rows = json.loads(second.removeprefix(b"data: "))["experiments"]
    assert [row["name"] for row in rows] == ["boost"]


def test_position_bias_is_that_of_the_users() -> None:
    """Planted examination comes back; items that never moved say nothing."""
    planted = 1.0 / np.arange(1, 11)
    rng = np.random.default_rng(3)
    limits = LimitSettings()
    fold = StatisticsFold(limits, keep_ms=90 * 86_400_000)
    still = StatisticsFold(limits, keep_ms=90 * 86_400_000)
    interactions = []
    for n in range(6_000):
        shown = rng.permutation(10).astype("<u2")
        looked = rng.random(10) < planted
        liked = rng.random(10) < np.where(shown % 2, 0.8, 0.3)
        clicked = np.flatnonzero(looked & liked) + 1
        names = [f"d{row}" for row in shown]
        one = impression(f"i{n}", items=names)
        marks = [ClickMark(int(rank), n, "click") for rank in clicked]
        interactions.append(Interaction(one, marks))
    fold.take(closed_of(interactions))
    unmoved = [Interaction(impression(f"i{n}"), []) for n in range(50)]
    still.take(closed_of(unmoved))

    def estimate(counted: StatisticsFold) -> list[float | None]:
        bias = PositionBias()
        changes = enumerate(counted.changes())
        bias.take(Record(0, i, 0, each.key, each.value, ()) for i, each in changes)
        return bias.estimate()

    found = estimate(fold)
    assert found == pytest.approx(planted.tolist(), abs=0.05)
    assert estimate(still) == []
    gathered = Gathered()
    gathered.set_examination(found)
    assert "examination by rank" in printed(gathered)
