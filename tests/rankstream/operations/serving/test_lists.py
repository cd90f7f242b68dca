"""Rankings and combined lists over HTTP, and the events that tell of them."""

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.experiment_records import RUNNING
from rankstream.experiments import Experiments
from rankstream.operations.serving.matrices import exposures_of
from rankstream.operations.serving.remembered import MOST_BYTES, Kept, Remembered
from rankstream.ranker import Ranker
from rankstream.ranking.combining import draw_seed
from rankstream.redis_store.redis_scripts import Newest
from rankstream.settings import ExperimentSettings
from rankstream.snapshots import Pointer, SnapshotStore
from rankstream.wire.models.canaries import is_in_canary
from rankstream.wire.models.canary_snapshots import KnownCanary
from rankstream.wire.topics import QUERIES
from tests.canary_factory import canary_record
from tests.served import Served, served, settings_of, until
from tests.snapshot_factory import envelope

ITEMS: list[dict[str, Any]] = [
    {"id": f"d{number}", "features": [float(number), 1.0, 0.5]} for number in range(6)
]


class Documents:
    """A store that has one experiment, or none."""

    def __init__(self, settings: ExperimentSettings | None) -> None:
        self._found = {"boost": msgspec.json.encode(settings)} if settings else {}

    def documents(self, kind: str) -> dict[str, bytes]:
        """Those of a kind."""
        return self._found if kind == RUNNING else {}


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """One server for all, with an experiment."""
    with served() as found:
        store: Any = Documents(
            ExperimentSettings(rankers={"old": "", "new": ""}, length=4)
        )
        found.parts.experiments.store = store
        found.parts.experiments.refresh()
        yield found


def asked(**fields: Any) -> dict[str, Any]:
    """A request to rank."""
    return {"model": "m", "query_id": "red shoes", "items": ITEMS} | fields


def event_of(server: Served, impression: str) -> dict[str, Any]:
    """The one query event of a list."""
    (found,) = [
        each for each in server.events(QUERIES) if each["impression_id"] == impression
    ]
    event: dict[str, Any] = found
    return event


def test_a_list_is_that_of_the_ranker_and_its_event_says_so(server: Served) -> None:
    """With the same draw: the seed follows from the list's id."""
    answer = server.ask("/v1/rank", asked(k=4, session="s", attributes={"a": 1})).json
    event = event_of(server, answer["impression_id"])
    ranker = Ranker("m", source=lambda: envelope(2))
    ranker.load()
    ranking = ranker.rank(
        [item["features"] for item in ITEMS],
        cutoff=4,
        seed=draw_seed("m", 0, answer["impression_id"]),
    )
    expected = [f"d{row}" for row in ranking.order]
    assert answer["ranking"] == event["shown"] == expected
    assert (answer["version"], answer["intervention"], answer["policy"]) == (
        2, "m", "plackett-luce",
    )  # fmt: skip
    assert event["candidates"] == [item["id"] for item in ITEMS]
    assert (event["session"], event["attributes"]) == ("s", {"a": 1})
    scores = np.frombuffer(base64.b64decode(event["scores"]), "<f4")
    np.testing.assert_array_equal(scores, ranking.scores)


class WithCanary(SnapshotStore):
    """A store that has version 2 of `m`, and a canary."""

    def __init__(self) -> None:
        self.canary = canary_record(share=0.5)
        self.place = "nowhere"

    def newest(
        self,
        model: str,
        known: Pointer | None = None,
        known_canary: KnownCanary | None = None,
    ) -> Newest | None:
        """What Redis would answer."""
        del known_canary
        snapshot = None if known else envelope(2, model=model)
        return Newest(Pointer(0, 2), snapshot, self.canary)

    def notifications(self, model: str) -> Iterator[None]:
        """Now and then."""
        del model
        while True:
            yield
            time.sleep(0.01)


def test_a_session_is_served_the_version_of_its_arm() -> None:
    """The answer and the event name it, and the stage; asked again it is the same."""
    store = WithCanary()
    ranker = Ranker("m", store=store)
    ranker.load()
    with served(rankers={"m": ranker}) as server:
        arms, answers = set(), []
        for number in range(12):
            fields = {"session": f"s{number}", "impression_id": f"c{number}"}
            answer = server.ask("/v1/rank", asked(**fields)).json
            is_in = is_in_canary(f"s{number}", "m@0.9", 0.5)
            arm = (9, "m@0.9") if is_in else (2, "m")
            assert (answer["version"], answer["intervention"]) == arm
            assert answer["canary"] == "m@0.9/1"
            event = event_of(server, f"c{number}")
            assert (event["session"], event["canary"]) == (f"s{number}", "m@0.9/1")
            assert event.get("intervention", "m") == answer["intervention"]
            arms.add(arm)
            answers.append(answer)
        assert len(arms) == 2
        store.canary = canary_record(share=0.5, stage=2)
        until(lambda: ranker.canary == "m@0.9/2")
        again = server.ask("/v1/rank", asked(**fields)).json
        assert again == answers[-1]
        answer = server.ask("/v1/rank", asked(session="s0")).json
        assert (answer["canary"], answer["version"]) == (
            "m@0.9/2", answers[0]["version"],
        )  # fmt: skip
        for nobody in ({}, {"session": ""}, {"user": "u"}):
            answer = server.ask("/v1/rank", asked(**nobody)).json
            assert (answer["version"], "canary" in answer) == (2, False)
            assert "canary" not in event_of(server, answer["impression_id"])


def test_base64_gives_the_same_list_as_numbers(server: Served) -> None:
    """Little-endian float32, an item at a time."""
    packed = [
        {
            "id": item["id"],
            "features": base64.b64encode(
                np.array(item["features"], "<f4").tobytes()
            ).decode(),
        }
        for item in ITEMS
    ]
    numbers = server.ask("/v1/rank", asked(impression_id="n", policy="deterministic"))
    texts = server.ask(
        "/v1/rank", asked(items=packed, impression_id="t", policy="deterministic")
    )
    assert numbers.json["ranking"] == texts.json["ranking"]
    assert event_of(server, "n")["scores"] == event_of(server, "t")["scores"]


@pytest.mark.parametrize("policy", ["plackett-luce", "deterministic", "tail-shuffle"])
def test_exposures_are_how_often_items_come_at_ranks(
    server: Served, policy: str
) -> None:
    """Of many draws of the same request; each rank has one item."""
    answer = server.ask("/v1/rank", asked(k=3, policy=policy, exposures=True)).json
    told = np.array(answer["exposures"])
    np.testing.assert_allclose(told.sum(axis=0), 1.0, atol=1e-8)
    ranker = Ranker("m", source=lambda: envelope(2))
    ranker.load()
    counts, n = np.zeros_like(told), 3_000
    for seed in range(n):
        ranking = ranker.rank(
            [item["features"] for item in ITEMS], cutoff=3, policy=policy, seed=seed
        )
        counts[ranking.order, np.arange(3)] += 1
    np.testing.assert_allclose(counts / n, told, atol=5 * 0.5 / n**0.5)
    np.testing.assert_allclose(exposures_of(ranking), told, atol=1e-8)


def test_to_ask_again_gives_the_same_list_and_one_event(server: Served) -> None:
    """With the id that the client gave; another request may not use it."""
    first = server.ask("/v1/rank", asked(impression_id="again"))
    again = server.ask("/v1/rank", asked(impression_id="again"))
    assert first.body == again.body
    assert event_of(server, "again")
    other = server.ask("/v1/rank", asked(impression_id="again", k=2))
    assert (other.status, other.json["code"]) == (409, "impression")


def test_a_list_of_either_kind_uses_its_id_up(server: Served) -> None:
    """Two lists under one id would both be shown, and one of them counted."""
    calls = [("/v1/rank", asked), ("/v1/combine", combined)]
    for number, (first, second) in enumerate((calls, calls[::-1])):
        name = f"either-{number}"
        assert server.ask(first[0], first[1](impression_id=name)).status == 200
        other = server.ask(second[0], second[1](impression_id=name))
        assert (other.status, other.json["code"]) == (409, "impression")
        assert event_of(server, name)


def test_a_combined_list_is_given_again_when_its_experiment_is_over(
    server: Served,
) -> None:
    """It is in the log, so whoever lost the answer may show it."""
    first = server.ask("/v1/combine", combined(impression_id="over"))
    experiments: Any = server.parts.experiments
    store, experiments.store = experiments.store, Documents(None)

    def is_over() -> bool:
        experiments._running = {}
        return server.ask("/v1/combine", combined()).status == 404

    until(is_over)
    again = server.ask("/v1/combine", combined(impression_id="over"))
    experiments.store = store
    experiments.refresh()
    assert (again.status, again.body) == (200, first.body)
    assert first.json["ranking"] == event_of(server, "over")["shown"]


def test_a_list_that_was_not_answered_in_time_is_given_again() -> None:
    """Though the model has moved on: what is logged is what is shown."""
    version = 2
    ranker = Ranker("m", source=lambda: envelope(version))
    with served(settings_of(answer_s=1.0), rankers={"m": ranker}) as server:
        server.gate.is_shut = True
        first = server.ask("/v1/rank", asked(impression_id="lost"))
        assert (first.status, first.json["code"]) == (503, "unanswered")
        assert first.headers["retry-after"] == "1"
        version = 9
        until(lambda: ranker.version == 9)
        server.gate.is_shut = False
        again = server.ask("/v1/rank", asked(impression_id="lost"))
        assert (again.status, again.json["version"]) == (200, 2)
        assert event_of(server, "lost")["shown"] == again.json["ranking"]


def test_without_log_no_event_is_sent(server: Served) -> None:
    """A list that nobody is shown must not count."""
    before = len(server.values(QUERIES))
    for answer in (
        server.ask("/v1/rank", asked(log=False)),
        server.ask("/v1/combine", combined(log=False)),
    ):
        assert answer.json["ranking"]
    assert len(server.values(QUERIES)) == before


def test_answers_are_remembered_up_to_so_many_bytes() -> None:
    """The newest of them."""
    remembered = Remembered()
    for number in range(5):
        remembered.keep(str(number), Kept(b"x" * (MOST_BYTES // 2), 0, None))
    found = [remembered.of(str(number), 0) is not None for number in range(5)]
    assert found == [False, False, False, True, True]
    remembered.keep("4", Kept(b"small", 0, None))
    remembered.keep("5", Kept(b"x" * (MOST_BYTES // 2 - 5), 0, None))
    assert remembered.of("3", 0)


def test_a_learner_that_needs_candidates_has_them_logged() -> None:
    """And no other: they are most of an event."""
    settings = settings_of()
    form = settings.models["m"]
    models = {"m": form, "p": msgspec.structs.replace(form, learner="pl-rank")}
    settings = msgspec.structs.replace(settings, models=models)
    rankers = {
        name: Ranker(name, source=lambda name=name: envelope(2, model=name))  # type: ignore[misc]
        for name in models
    }
    with served(settings, rankers=rankers) as server:
        for name in models:
            answer = server.ask("/v1/rank", asked(model=name, impression_id=name))
            assert answer.status == 200
            event = event_of(server, name)
            assert ("candidate_features" in event) == (name == "p")


def test_a_list_whose_event_is_too_large_is_refused() -> None:
    """Before anything is sent."""
    items = [{"id": f"{n:0250}", "features": [0.0, 0.0, 0.0]} for n in range(32_000)]
    settings = settings_of(body_bytes=32 << 20, under_way_bytes=128 << 20)
    limits = msgspec.structs.replace(settings.limits, documents=50_000)
    with served(msgspec.structs.replace(settings, limits=limits)) as server:
        answer = server.ask("/v1/rank", asked(items=items))
        assert (answer.status, answer.json["code"]) == (422, "too-large")
        assert not server.values(QUERIES)


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"model": "none"}, 404, "model"),
        ({"items": []}, 400, "malformed"),
        ({"items": [{"id": "a", "features": [1.0]}]}, 422, "features"),
        ({"items": [{"id": "a", "features": []}]}, 422, "features"),
        ({"items": [ITEMS[0], {"id": "b", "features": [1.0]}]}, 422, "features"),
        ({"items": [ITEMS[0], {"id": "b", "features": "AAAA"}]}, 422, "features"),
        ({"items": [{"id": "b", "features": "not base64"}]}, 422, "features"),
        ({"items": [{"id": "b", "features": "AAAAAA=="}]}, 422, "features"),
        ({"items": [{"id": "b", "features": [1.0, 1e300, 1.0]}]}, 422, "features"),
        ({"items": [ITEMS[0], ITEMS[0]]}, 422, "candidates"),
        ({"items": [{"id": "", "features": [1.0, 1.0, 1.0]}]}, 400, "malformed"),
        ({"items": {"id": "a"}}, 400, "malformed"),
        ({"query_id": " "}, 422, "no-route"),
        ({"query_id": None}, 400, "malformed"),
        ({"k": 0}, 400, "malformed"),
        ({"policy": "multileave"}, 400, "malformed"),
        ({"surprise": 1}, 400, "malformed"),
        ({"attributes": json.loads('{"a":' * 40 + "1" + "}" * 40)}, 422, "attributes"),
        ({"at_ms": 10**18}, 422, "time"),
    ],
)
def test_a_request_that_gives_no_list_is_refused_in_words(
    server: Served, fields: dict[str, Any], status: int, code: str
) -> None:
    """And no event is sent."""
    before = len(server.values(QUERIES))
    answer = server.ask("/v1/rank", asked(**fields))
    assert (answer.status, answer.json["code"]) == (status, code), answer.json
    assert answer.json["detail"]
    assert len(server.values(QUERIES)) == before


def test_a_model_without_a_snapshot_is_not_there_yet() -> None:
    """Asking again may help; and the server is not ready."""
    with served(rankers={"m": Ranker("m", source=lambda: None)}) as server:
        answer = server.ask("/v1/rank", asked())
        assert (answer.status, answer.json["code"]) == (503, "no-snapshot")
        ready = server.ask("/readyz")
        assert ready.status == 503
        assert ready.json["reasons"] == ["model m: no snapshot yet"]


def combined(**fields: Any) -> dict[str, Any]:
    """A request to combine."""
    return {
        "experiment": "boost",
        "query_id": "red shoes",
        "session": "s1",
        "rankings": {"old": ["a", "b", "c", "d"], "new": ["c", "d", "e", "a"]},
    } | fields


def test_a_combined_list_is_what_the_experiment_draws(server: Served) -> None:
    """And its event holds all that the verdict needs."""
    answer = server.ask("/v1/combine", combined()).json
    event = event_of(server, answer["impression_id"])
    experiments = Experiments(server.parts.experiments.store)
    experiments.refresh()
    running = experiments.of("boost", unit="s1", now_ms=0)
    assert running
    drawn = running.combine(
        combined()["rankings"],
        query_id="red shoes",
        impression_id=answer["impression_id"],
    )
    assert answer["takes_part"]
    assert answer["ranking"] == event["shown"] == drawn.shown
    assert event["experiment"] == {
        "id": "boost", "epoch": 1, "method": "pairwise-preference",
    }  # fmt: skip
    assert (event["seed"], event["session"]) == (drawn.seed, "s1")


def test_the_session_decides_who_takes_part_before_the_user(server: Served) -> None:
    """As `unit` does before both: one that is in, and one that is not."""
    half = Documents(ExperimentSettings(rankers={"old": "", "new": ""}, share=0.5))
    experiments: Any = server.parts.experiments
    store, experiments.store = experiments.store, half
    experiments.refresh()
    parts: dict[bool, str] = {}
    for number in range(100):
        running = experiments.of("boost", unit=f"u{number}", now_ms=0)
        parts[running is not None] = f"u{number}"
    who: list[dict[str, str | None]] = [
        {"unit": None, "session": parts[True], "user": parts[False]},
        {"unit": None, "session": None, "user": parts[True]},
        {"unit": parts[True], "session": parts[False], "user": parts[False]},
    ]
    swapped = {parts[True]: parts[False], parts[False]: parts[True]}
    for each in who:
        other = {name: swapped.get(unit or "") for name, unit in each.items()}
        for fields, takes_part in ((each, True), (other, False)):
            answer = server.ask("/v1/combine", combined(**fields))
            assert answer.json["takes_part"] is takes_part, fields
    experiments.store = store
    experiments.refresh()


def test_candidates_make_exposures(server: Served) -> None:
    """Where the method has a closed form."""
    answer = server.ask("/v1/combine", combined(candidates=list("abcde"))).json
    event = event_of(server, answer["impression_id"])
    assert event["policy"] == "logged"
    assert len(base64.b64decode(event["exposures"])) == 4 * 5 * 4


def test_who_does_not_take_part_gets_no_list(server: Served) -> None:
    """And nothing is sent."""
    store: Any = Documents(
        ExperimentSettings(rankers={"old": "", "new": ""}, share=1e-12)
    )
    before, kept = len(server.values(QUERIES)), server.parts.experiments.store
    server.parts.experiments.store = store
    server.parts.experiments.refresh()
    answer = server.ask("/v1/combine", combined())
    server.parts.experiments.store = kept
    server.parts.experiments.refresh()
    assert (answer.status, answer.json) == (200, {"takes_part": False})
    assert len(server.values(QUERIES)) == before


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"experiment": "none"}, 404, "experiment"),
        ({"session": None}, 400, "malformed"),
        ({"rankings": {"old": ["a"]}}, 422, "rankings"),
        ({"rankings": {"old": ["a"], "other": ["b"]}}, 422, "rankings"),
        ({"candidates": ["a"]}, 422, "candidates"),
        ({"rankings": {"old": 3}}, 400, "malformed"),
    ],
)
def test_a_combination_that_cannot_be_is_refused_in_words(
    server: Served, fields: dict[str, Any], status: int, code: str
) -> None:
    """By codes that stay."""
    answer = server.ask("/v1/combine", combined(**fields))
    assert (answer.status, answer.json["code"]) == (status, code), answer.json
