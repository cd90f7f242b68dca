"""Configurations that clients follow, and the events of those who take part."""

import hashlib
from collections.abc import Callable, Mapping
from functools import partial

import msgspec
import pytest

from rankstream.experiment_publication import Counted, ExperimentError, planned
from rankstream.experiment_records import (
    REMOVED,
    RUNNING,
    ExperimentRecord,
    decode_record,
    encode_record,
    put_records,
    running,
    stored_records,
)
from rankstream.experiments import Experiments, Running
from rankstream.ranking.combining import draw_seed
from rankstream.settings import (
    ExperimentSettings,
    Settings,
    SettingsError,
    load_settings,
)
from rankstream.wire.bounds import LARGEST
from rankstream.wire.events import QueryEvent
from rankstream.wire.topics import EXPERIMENTS

BOOST = ExperimentSettings(rankers={"old": "search", "new": ""}, share=0.25)


class Shelf:
    """Documents in memory, with the interface of the store; and a topic beside."""

    def __init__(self) -> None:
        self.held: dict[str, dict[str, bytes]] = {}
        self.topic: dict[str, ExperimentRecord] = {}

    def documents(self, kind: str) -> dict[str, bytes]:
        """Of that kind."""
        return dict(self.held.get(kind, {}))

    def put_documents(self, changes: Mapping[str, Mapping[str, bytes | None]]) -> None:
        """Write or remove."""
        for kind, documents in changes.items():
            held = {**self.documents(kind), **documents}
            self.held[kind] = {name: each for name, each in held.items() if each}

    def running(self) -> dict[str, ExperimentSettings]:
        """Those that clients follow."""
        records, refused = stored_records(self)
        assert refused == {}
        return {name: each.settings for name, each in records.items() if each.settings}


def publish(
    shelf: Shelf,
    experiments: Mapping[str, ExperimentSettings],
    counted: Callable[[], Counted] = dict,
) -> dict[str, str]:
    """As the command does, with a topic in memory."""
    verdicts, records = planned(shelf.topic, experiments, counted)
    shelf.topic = {
        name: decode_record(encode_record(name, record))
        for name, record in records.items()
    }
    put_records(shelf, records)
    return verdicts


def changed(**fields: object) -> ExperimentSettings:
    """The same experiment, otherwise."""
    return msgspec.structs.replace(BOOST, **fields)


def test_a_change_needs_a_new_epoch() -> None:
    """New, unchanged, refused, replaced, removed."""
    shelf = Shelf()

    assert publish(shelf, {"boost": BOOST}) == {"boost": "new"}
    assert publish(shelf, {"boost": BOOST}) == {"boost": "unchanged"}
    with pytest.raises(ExperimentError, match="epoch above 1"):
        publish(shelf, {"boost": changed(share=0.5)})
    assert shelf.running()["boost"] == BOOST
    later = changed(share=0.5, epoch=2)
    assert publish(shelf, {"boost": later}) == {"boost": "epoch 1 -> 2"}
    assert shelf.running()["boost"] == later
    assert publish(shelf, {}) == {
        "boost": "removed; comes back with an epoch above 2 only"
    }
    assert shelf.running() == {}


def test_an_epoch_that_was_used_is_refused() -> None:
    """Removed, or counted; nothing is written, and nobody is asked in vain."""
    shelf, held = Shelf(), changed(epoch=3)
    publish(shelf, {"boost": held})
    publish(shelf, {})
    for epoch in (1, 3):
        with pytest.raises(ExperimentError, match="above 3, as that one was removed"):
            publish(shelf, {"boost": changed(epoch=epoch)})
    assert shelf.running() == {}

    other = {"boost": changed(epoch=4, share=0.5)}
    for last, why in (
        ({9: changed(epoch=9)}, "above 9, as lists of that one were counted already"),
        ({4: changed(epoch=4)}, "above 4, as lists .* under other settings"),
        ({4: None}, "above 4, as lists .* under other settings"),
    ):
        with pytest.raises(ExperimentError, match=why):
            publish(shelf, other, partial(dict, boost=last))
    assert shelf.running() == {}
    again = {"boost": changed(epoch=4)}
    counted = {"boost": {4: changed(epoch=4), 2: BOOST}}
    assert publish(shelf, again, lambda: counted) == {"boost": "new"}
    assert publish(shelf, again, pytest.fail) == {"boost": "unchanged"}
    publish(shelf, {})
    with pytest.raises(ExperimentError, match="above 4, as that one was removed"):
        publish(shelf, again, lambda: counted)


def test_the_share_is_kept_and_sticks_to_the_session() -> None:
    """A quarter of ten thousand; the same at every server."""
    running = Running("boost", BOOST)
    taken = [running.includes(f"s{i}", 0) for i in range(10_000)]
    again = [Running("boost", BOOST).includes(f"s{i}", 0) for i in range(10_000)]
    other = [Running("other", BOOST).includes(f"s{i}", 0) for i in range(10_000)]

    assert 0.23 < sum(taken) / 10_000 < 0.27
    assert taken == again
    assert 500 < sum(a and b for a, b in zip(taken, other, strict=True)) < 750


def test_time_decides_too() -> None:
    """From start to before end."""
    running = Running("b", changed(share=1.0, start_ms=10, end_ms=20))

    assert [running.includes("s", at) for at in (9, 10, 19, 20)] == [
        False,
        True,
        True,
        False,
    ]


def test_a_client_follows_and_keeps_the_last_good_ones() -> None:
    """Nonsense in the store changes nothing but the count of failures."""
    shelf = Shelf()
    publish(shelf, {"boost": changed(share=1.0)})
    client = Experiments(shelf)

    assert client.refresh()
    assert client.of("boost", unit="s1", now_ms=0) is not None
    assert client.of("else", unit="s1", now_ms=0) is None
    publish(shelf, {"boost": changed(share=1.0), "else": changed(share=1.0)})
    shelf.put_documents({RUNNING: {"boost": b"{"}})
    assert not client.refresh()
    assert client.failures == 1
    assert client.trouble.startswith("'boost': ")
    for name in ("boost", "else"):
        assert client.of(name, unit="s1", now_ms=0) is not None


def test_what_the_store_lost_goes_on_and_what_was_removed_ends() -> None:
    """The epochs of removals tell the two apart; both are forgotten together."""
    shelf = Shelf()
    publish(shelf, {"boost": changed(share=1.0, epoch=3)})
    client = Experiments(shelf)
    assert client.refresh()

    def runs() -> bool:
        return client.of("boost", unit="s", now_ms=0) is not None

    older = put_documents_of(changed(share=1.0, epoch=2))
    for lost in ({}, {REMOVED: {"boost": b"2"}}, older):
        shelf.held = lost
        assert not client.refresh()
        assert "epoch 3 or later, or as removed" in client.trouble
        assert "epoch 3 goes on" in client.trouble
        assert runs()
    put_records(shelf, shelf.topic)
    assert client.refresh()
    assert client.trouble == ""
    publish(shelf, {})
    assert shelf.held[REMOVED] == {"boost": b"3"}
    assert client.refresh()
    assert not runs()
    shelf.held = {}
    assert client.refresh()
    assert not runs()


def test_what_was_removed_stays_so_where_the_store_grows_older() -> None:
    """As a replica that takes over may be; a later epoch runs."""
    shelf = Shelf()
    publish(shelf, {"boost": changed(share=1.0, epoch=3)})
    older = dict(shelf.held)
    client = Experiments(shelf)
    assert client.refresh()
    publish(shelf, {})
    assert client.refresh()
    shelf.held = older
    assert not client.refresh()
    assert "must not be in the store in epoch 3, as epoch 3 was" in client.trouble
    assert client.of("boost", unit="s", now_ms=0) is None
    publish(shelf, {"boost": changed(share=1.0, epoch=4)})
    assert client.refresh()
    again = client.of("boost", unit="s", now_ms=0)
    assert again is not None
    assert again.settings.epoch == 4


def put_documents_of(settings: ExperimentSettings) -> dict[str, dict[str, bytes]]:
    """What a store holds where only this one runs."""
    shelf = Shelf()
    put_records(shelf, {"boost": running(settings)})
    return shelf.held


def test_a_removal_that_was_half_written_counts() -> None:
    """As an older release wrote the epoch first."""
    shelf = Shelf()
    publish(shelf, {"boost": changed(share=1.0, epoch=3)})
    shelf.held[REMOVED] = {"boost": b"3"}
    assert shelf.running() == {}
    shelf.held[REMOVED] = {"boost": b"2"}
    assert list(shelf.running()) == ["boost"]


def test_records_of_experiments_come_back_or_are_refused() -> None:
    """With what is wrong with them."""
    for record in (running(BOOST), ExperimentRecord(7)):
        assert decode_record(encode_record("boost", record)) == record
    assert encode_record("boost", ExperimentRecord(7)) == b'{"epoch":7,"schema":1}'
    with pytest.raises(ValueError, match="must have schema 1; got 2"):
        decode_record(b'{"epoch":7,"schema":2}')
    for epochs in (b'"epoch":0', b'"epoch":2,"settings":{"rankers":{}}'):
        with pytest.raises(ValueError, match="must name its own epoch"):
            decode_record(b'{%s,"schema":1}' % epochs)
    for value in (b"", b"[]", b'{"epoch":"7","schema":1}', b"\xff"):
        with pytest.raises(ValueError):  # noqa: PT011  msgspec's words
            decode_record(value)


def test_what_fits_no_record_is_not_published() -> None:
    """Only settings can cause that; nothing is written."""
    shelf = Shelf()
    room = LARGEST[EXPERIMENTS] - len("x") - len(encode_record("", running(BOOST)))
    just = changed(rankers={"old": "search" + "m" * room, "new": ""})
    assert publish(shelf, {"x": just}) == {"x": "new"}
    with pytest.raises(
        ValueError, match=r"experiments\.xy must take at most 1,048,576"
    ):
        publish(shelf, {"x": just, "xy": just})
    assert list(shelf.topic) == ["x"]


def test_the_event_holds_what_every_method_needs() -> None:
    """Lists, teams, seed and experiment, as ingestion reads them."""
    running = Running("boost", changed(method="team-draft", epoch=3))
    lists = {"old": ["a", "b"], "new": ["b", "c"]}
    drawn = running.combine(lists, query_id="Shoes", impression_id="i1")
    raw = running.query_event(drawn, at_ms=7, session="s1")
    event = msgspec.json.decode(raw, type=QueryEvent)

    assert event.rankings == {"new": ["b", "c"], "old": ["a", "b"]}
    assert event.assignments is not None
    assert len(event.assignments) == len(event.shown) == 3
    assert event.experiment is not None
    assert (event.experiment.id, event.experiment.epoch) == ("boost", 3)
    assert event.policy == "multileave"
    assert event.query_id == "Shoes"
    assert (event.impression_id, event.seed) == ("i1", draw_seed("boost", 3, "i1"))
    with pytest.raises(ValueError, match="rankings must be those of"):
        running.combine({"old": ["a"], "newer": ["b"]}, query_id="q")


def test_the_draw_follows_from_the_impression_and_cannot_be_chosen() -> None:
    """The same again for the same one, others for others; nothing else can be logged.

    By hand: BLAKE2b of eight bytes of "boost", 1 and "i1", without its highest bit.
    """
    running = Running("boost", changed(method="team-draft", length=8))
    items = [f"d{i}" for i in range(8)]
    lists = {"old": items, "new": items[::-1]}
    first = running.combine(lists, query_id="q", impression_id="i1")
    digest = hashlib.blake2b(b"boost\x1f1\x1fi1", digest_size=8).digest()

    assert running.combine(lists, query_id="q", impression_id="i1") == first
    assert first.seed == int.from_bytes(digest, "big") >> 1
    fresh = [running.combine(lists, query_id="q") for _ in range(50)]
    assert len({each.seed for each in fresh}) == 50
    assert len({tuple(each.shown) for each in fresh}) > 5
    other = Running("boost", changed(method="team-draft", length=8, epoch=2))
    assert other.combine(lists, query_id="q", impression_id="i1").seed != first.seed
    with pytest.raises(ValueError, match="leave it out"):
        running.query_event(first, at_ms=1, seed=1)
    with pytest.raises(ValueError, match="must not be empty"):
        running.combine(lists, query_id="q", impression_id="")
    for field in ({"impression_id": "i2"}, {"query_id": "shoes"}):
        with pytest.raises(ValueError, match="must be those of the drawn list"):
            running.query_event(first, at_ms=1, **field)


def test_settings_say_what_an_experiment_lacks() -> None:
    """Fewer than two rankers, or an unknown field."""
    assert Settings().experiments == {}
    with pytest.raises(SettingsError, match="two or more"):
        load_settings(environment={"RANKSTREAM_EXPERIMENTS__X__RANKERS": '{a = ""}'})
    with pytest.raises(SettingsError, match="did you mean rankers"):
        load_settings(environment={"RANKSTREAM_EXPERIMENTS__X__RANKER": "1"})


def test_methods_that_are_not_fair_on_the_lists_are_refused() -> None:
    """Where settings are read, and before anything reaches a client."""
    also = {
        "RANKSTREAM_EXPERIMENTS__X__RANKERS": '{a = "", b = ""}',
        "RANKSTREAM_EXPERIMENTS__X__ALSO": "{probabilistic = {}}",
    }
    with pytest.raises(SettingsError, match=r"experiments\.x: also must name"):
        load_settings(environment=also)
    shelf = Shelf()
    with pytest.raises(ValueError, match="also must name"):
        publish(shelf, {"x": changed(also={"team-draft": {}})})
    assert shelf.held == {}


def test_exposures_of_unequal_lists_of_one_ranker_each_are_not_logged() -> None:
    """A shorter list has no ranks for what the longer one would have shown."""
    running = Running("x", changed(method="ab", length=3))
    items = ["a", "b", "c", "d", "e"]
    for new, is_logged in ((["c"], False), (["c", "d", "e", "a"], True)):
        for number in range(4):
            drawn = running.combine(
                {"old": items[:3], "new": new}, query_id="q", impression_id=f"i{number}"
            )
            raw = running.query_event(drawn, at_ms=1, candidates=items)
            event = msgspec.json.decode(raw, type=QueryEvent)
            assert (event.policy == "logged") == is_logged
            assert (event.exposures is not None) == is_logged


def test_what_clients_cannot_draw_is_not_published() -> None:
    """They would find out with the first list; settings may hold it, to be folded."""
    settings = load_settings(
        environment={
            "RANKSTREAM_EXPERIMENTS__X__RANKERS": '{a = "", b = ""}',
            "RANKSTREAM_EXPERIMENTS__X__METHOD": "optimized",
        }
    )
    shelf = Shelf()
    with pytest.raises(
        ValueError,
        match=r"method 'optimized' cannot be drawn by services; choose one of \[",
    ):
        publish(shelf, settings.experiments)
    assert shelf.held == {}


def test_methods_of_two_rankers_are_refused_for_three_when_settings_are_read() -> None:
    """With the rankers that were named."""
    environment = {
        "RANKSTREAM_EXPERIMENTS__X__RANKERS": '{a = "", b = "", c = ""}',
        "RANKSTREAM_EXPERIMENTS__X__METHOD": "balanced",
    }
    with pytest.raises(SettingsError, match=r"x\.rankers must be two for balanced"):
        load_settings(environment=environment)
