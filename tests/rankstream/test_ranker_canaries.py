"""A ranker with a canary: who is served it, what is logged, and what it refuses."""

import sys
import threading
from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.ranker import Ranker, Ranking
from rankstream.redis_store.redis_scripts import Newest
from rankstream.settings import load_settings
from rankstream.snapshots import Pointer, SnapshotStore
from rankstream.wire.events import QueryEvent
from rankstream.wire.models.canaries import FIELD, is_in_canary
from rankstream.wire.models.canary_snapshots import KnownCanary
from rankstream.wire.topics import QUERIES
from streams.local import LocalPipeline, local_settings
from tests.canary_factory import canary, canary_record
from tests.snapshot_factory import envelope

FEATURES = np.random.default_rng(5).random((6, 3)).astype(np.float32)
ITEMS = [f"item {row}" for row in range(6)]
SESSIONS = [f"s{number}" for number in range(200)]


class Held(SnapshotStore):
    """A store that holds what a test put there, and tells what it sent."""

    def __init__(self, version: int = 1, canary: bytes = b"") -> None:
        self.pointer, self.envelope = Pointer(0, version), envelope(version)
        self.canary = canary
        self.sent: list[tuple[bool, bool]] = []

    def newest(
        self,
        model: str,  # noqa: ARG002  there is one
        known: Pointer | None = None,
        known_canary: KnownCanary = KnownCanary(),  # noqa: B008
    ) -> Newest | None:
        """What Redis would answer."""
        head, length = known_canary
        is_known = length == len(self.canary) > 0 and self.canary.startswith(head)
        found = Newest(
            self.pointer,
            None if known == self.pointer else self.envelope,
            None if is_known else self.canary,
        )
        self.sent.append((found.envelope is not None, bool(found.canary)))
        return found

    def promote(self, version: int) -> None:
        """The canary becomes what is served, in one step."""
        name = f"m@0.{version}"
        self.pointer = Pointer(0, version)
        self.envelope, self.canary = envelope(version, intervention=name), b""


def following(canary: bytes = b"") -> tuple[Ranker, Held]:
    """A ranker of version 1, and what it reads."""
    held = Held(canary=canary)
    ranker = Ranker("m", store=held)
    ranker.load()
    return ranker, held


def event_of(ranker: Ranker, ranking: Ranking, **fields: Any) -> QueryEvent:
    """What is logged of a list."""
    raw = ranker.query_event(ranking, query_id="q", items=ITEMS, at_ms=5, **fields)
    return msgspec.json.decode(raw, type=QueryEvent)


def test_sessions_of_the_share_are_served_the_canary() -> None:
    """All others, and whoever names no session, are served what was served."""
    ranker, _ = following(canary_record(share=0.25))
    assert ranker.canary == "m@0.9/1"
    versions = []
    for session in SESSIONS:
        ranking = ranker.rank(FEATURES, session=session)
        is_in = is_in_canary(session, "m@0.9", 0.25)
        assert (ranking.version, ranking.intervention) == (
            (9, "m@0.9") if is_in else (1, "")
        )
        assert (ranking.session, ranking.canary) == (session, "m@0.9/1")
        versions.append(ranking.version)
    assert set(versions) == {1, 9}
    for nobody in ("", None):
        ranking = ranker.rank(FEATURES, session=nobody)
        assert (ranking.version, ranking.session, ranking.canary) == (1, "", "")


def test_both_arms_log_the_session_and_the_stage() -> None:
    """Lists without a session, or without a canary, name no stage."""
    ranker, held = following(canary_record(stage=3))
    arms = set()
    for session in SESSIONS[:20]:
        ranking = ranker.rank(FEATURES, session=session)
        for given in ({}, {"session": session}):
            event = event_of(ranker, ranking, **given)
            assert (event.session, event.canary) == (session, "m@0.9/3")
        arms.add((event.version, event.intervention))
    assert arms == {(1, None), (9, "m@0.9")}
    unnamed = event_of(ranker, ranker.rank(FEATURES), session="late")
    assert (unnamed.session, unnamed.canary, unnamed.version) == ("late", None, 1)
    held.canary = b""
    ranker.refresh()
    plain = event_of(ranker, ranker.rank(FEATURES, session="s"))
    assert (plain.session, plain.canary) == ("s", None)


@pytest.mark.parametrize("other", ["b", "", None])
def test_another_session_than_the_ranking_s_is_refused(other: str | None) -> None:
    """Its arm would be another's, with a canary or without."""
    for record in (b"", canary_record()):
        ranker, _ = following(record)
        ranking = ranker.rank(FEATURES, session="a")
        with pytest.raises(ValueError, match="for 'a': give it to `rank` alone"):
            event_of(ranker, ranking, session=other)


def test_a_stage_that_follows_takes_the_place_of_the_last() -> None:
    """A larger share, another version, none: each is taken as it comes."""
    ranker, held = following(canary_record(share=0.01))
    for record, tag in (
        (canary_record(share=0.5, stage=2), "m@0.9/2"),
        (canary_record(version=12), "m@0.12/1"),
        (b"", ""),
        (canary_record(version=12, share=0.99), "m@0.12/1"),
        # The same name with another share: begun once more.
        (canary_record(version=12, share=0.01), "m@0.12/1"),
    ):
        held.canary = record
        ranker.refresh()
        assert (ranker.canary, ranker.version) == (tag, 1)
        share = msgspec.msgpack.decode(record)[3] if record else 0.0
        name = tag.partition("/")[0]
        for session in SESSIONS[:50]:
            is_canary = ranker.rank(FEATURES, session=session).version != 1
            assert is_canary == (bool(tag) and is_in_canary(session, name, share))
    assert ranker.failures == {}


def test_what_is_known_is_not_sent_again() -> None:
    """Neither the snapshot nor the canary; one that was refused is looked at again."""
    ranker, held = following(canary_record())
    for record in (canary_record(stage=2), b"\x90", b""):
        held.canary = record
        ranker.refresh()
        ranker.refresh()
    of_canary = [sent[1] for sent in held.sent]
    assert of_canary == [True, True, False, True, True, False, False]
    assert [sent[0] for sent in held.sent] == [True] + [False] * 6


def second(**fields: Any) -> bytes:
    """The record of a second stage, which is another than the first one's."""
    return canary_record(**({"stage": 2} | fields))


BAD: dict[str, bytes] = {
    "no record": b"garbage",
    "another schema": second(schema=2),
    "cut": second()[:-3],
    "a damaged snapshot": second(envelope=envelope(9)[:-1] + b"\0"),
    "of another model": second(model="n"),
    "a snapshot of another model": second(
        envelope=envelope(9, model="n", intervention="m@0.9")
    ),
    "a snapshot of another version": second(envelope=envelope(8)),
    "another list of features": second(features_hash=b"12345678"),
    "another number of features": second(n_features=4),
    "weights that are none": second(weights=np.full(3, np.nan, "<f4").tobytes()),
    "a share of 0": second(share=0.0),
    "a share of 1": second(share=1.0),
    "a share of no number": second(share=float("nan")),
}


@pytest.mark.parametrize("record", BAD.values(), ids=BAD)
def test_a_canary_that_cannot_be_served_is_not(record: bytes) -> None:
    """It is counted; the served version goes on, and so does the next good canary."""
    ranker, held = following(canary_record())
    held.pointer, held.envelope, held.canary = Pointer(0, 2), envelope(2), record
    assert ranker.refresh()
    assert (ranker.failures, ranker.canary) == ({"canary": 1}, "")
    assert ranker.trouble.startswith("canary: a canary ")
    for session in SESSIONS[:20]:
        ranking = ranker.rank(FEATURES, session=session)
        assert (ranking.version, ranking.canary) == (2, "")
    fresh = Ranker("m", store=held)
    fresh.load()
    assert (fresh.version, fresh.canary, fresh.failures) == (2, "", {"canary": 1})
    held.canary = canary_record(stage=2)
    ranker.refresh()
    assert (ranker.canary, ranker.trouble) == ("m@0.9/2", "")


def test_a_promotion_that_is_damaged_leaves_both_as_they_are() -> None:
    """Sessions of the canary keep it until what was promoted can be served."""
    ranker, held = following(canary_record())
    held.promote(9)
    held.envelope, good = held.envelope[:-1], held.envelope
    ranker.refresh()
    assert (ranker.failures, ranker.canary) == ({"length": 1}, "m@0.9/1")
    held.envelope = good
    assert ranker.refresh()
    assert (ranker.version, ranker.canary) == (9, "")


def test_no_list_mixes_two_moments() -> None:
    """While canaries are promoted: of a session the versions only rise."""
    ranker, held = following(canary_record(version=2))
    inside = next(each for each in SESSIONS if is_in_canary(each, "m@0.2", 0.01))
    done = threading.Event()

    def publish() -> None:
        for version in range(2, 400):
            held.canary = canary_record(version=version, share=0.01)
            ranker.refresh()
            held.promote(version)
            ranker.refresh()
        done.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        writer = threading.Thread(target=publish)
        writer.start()
        seen = []
        while not done.is_set():
            ranking = ranker.rank(np.ones((1, 3)), session=inside)
            name = f"m@0.{ranking.version}"
            assert ranking.scores.tolist() == [3.0 * ranking.version]
            assert ranking.intervention in (name, "")
            if ranking.canary:
                of = ranking.canary.rpartition("/")[0]
                number = int(of.rpartition(".")[2])
                assert ranking.version in (number, number - 1)
                assert (of == name) == is_in_canary(inside, of, 0.01)
            seen.append(ranking.version)
        writer.join()
    finally:
        sys.setswitchinterval(interval)
    assert seen == sorted(seen)
    assert ranker.failures == {}


def test_the_stage_reaches_whoever_folds_what_was_ingested() -> None:
    """As the field `canary` of what only later stages read."""
    pipeline = LocalPipeline(local_settings(load_settings(None, {})), now=lambda: 1_000)
    ranker, _ = following(canary_record())
    for session in SESSIONS[:20]:
        ranking = ranker.rank(FEATURES, session=session)
        pipeline.send(
            QUERIES,
            ranker.query_event(ranking, query_id="q", items=ITEMS, at_ms=1_000),
        )
    pipeline.end()
    counts = pipeline.counters()
    assert counts["applied_impressions"] == 20
    assert counts["ingestion_dead_letter"] == counts["dead_letter"] == 0
    assert FIELD in QueryEvent.__struct_fields__
    assert canary().tag == "m@0.9/1"
