"""`intervene --verify`: it compares with what is really kept."""

from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pytest

from rankstream.operations.answers.models import verification
from rankstream.operations.answers.models.verification import Verification, verified
from rankstream.snapshots import Pointer, Snapshot, decode_snapshot, encode_snapshot
from rankstream.wire.models.snapshot_names import sha256_of
from rankstream.wire.models.training import RunRecord, encode_record, training_key
from rankstream.wire.topics import SNAPSHOTS, TRAINING
from tests.streams.training.shop import EXAMINATION, Shop, model_of, settings_of


class Kept(NamedTuple):
    """A record as a reader gives it."""

    key: bytes
    value: bytes


class Site:
    """A model that was trained twice, and what topics and Redis keep of it."""

    def __init__(self) -> None:
        model = model_of(
            after=[300, 500],
            least_support=1.0,
            epochs=3,
            examination=EXAMINATION.tolist(),
        )
        self.shop = Shop(settings_of({"m": model}))
        rng = np.random.default_rng(1)
        self.versions = [self.shop.pipeline.snapshots[b"m"]]
        while len(self.versions) < 3:
            self.shop.show(50, rng)
            if self.shop.pipeline.snapshots[b"m"] != self.versions[-1]:
                self.versions.append(self.shop.pipeline.snapshots[b"m"])
        self.runs = self.shop.trainer.runs
        self.snapshots: list[Kept] = []
        self.redis: dict[Pointer, bytes] = {}

    def keep(self, snapshots: list[Kept], redis: list[bytes]) -> None:
        """Version 0 and these records, and these envelopes in Redis."""
        self.snapshots = [Kept(b"m/0.0", self.versions[0]), *snapshots]
        self.redis = {}
        for envelope in redis:
            one = decode_snapshot(envelope)
            self.redis[Pointer(one.epoch, one.version)] = envelope

    def read(self, _: object, topic: str) -> list[Kept]:
        """Of `read_records`."""
        if topic == SNAPSHOTS:
            return self.snapshots
        assert topic == TRAINING
        return [
            Kept(training_key("run", run.intervention), encode_record(run))
            for run in self.runs
        ]

    def verdict(self, number: int = 0) -> Verification:
        """Of the first training, or of a later one."""
        run = self.runs[number]
        return verified(self.shop.settings, "m", run.intervention, Path("x"))


@pytest.fixture(scope="module")
def made() -> Site:
    """Made once."""
    return Site()


@pytest.fixture
def site(made: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """With its topics, its dump and its Redis in memory."""
    monkeypatch.setattr(verification, "read_records", made.read)
    monkeypatch.setattr(verification, "read_dump", lambda _: made.shop.log)
    monkeypatch.setattr(
        verification._History, "_in_redis", lambda _, at: made.redis.get(at)
    )
    return made


def negated(envelope: bytes) -> bytes:
    """The same version with other weights."""
    one: Snapshot = decode_snapshot(envelope)
    weights = -np.frombuffer(one.weights, "<f4")
    return encode_snapshot(msgspec.structs.replace(one, weights=weights.tobytes()))


def test_what_is_published_is_equal_and_kept(site: Site) -> None:
    """In the topic, under either key, or in Redis."""
    envelope = site.versions[1]
    own = site.runs[0].intervention.replace("@", "/").encode()
    for snapshots, redis in (
        ([Kept(b"m", envelope)], []),
        ([Kept(own, envelope)], []),
        ([], [envelope]),
    ):
        site.keep(snapshots, redis)
        verdict = site.verdict()
        assert verdict.is_equal
        assert verdict.is_kept
        assert verdict.told().endswith(sha256_of(envelope).hex()[:16])


@pytest.mark.parametrize("place", ["m", "own", "Redis", "both"])
def test_another_snapshot_under_the_name_is_not_equal(site: Site, place: str) -> None:
    """Whatever the run says, and though the right one is kept elsewhere."""
    good, bad = site.versions[1], negated(site.versions[1])
    own = site.runs[0].intervention.replace("@", "/").encode()
    in_topic = {"m": [Kept(b"m", bad)], "own": [Kept(own, bad)]}.get(
        place, [Kept(b"m", bad if place == "both" else good)]
    )
    site.keep(in_topic, [bad if place in ("Redis", "both") else good])
    verdict = site.verdict()
    assert not verdict.is_equal
    assert verdict.published == sha256_of(bad)
    said = verdict.told()
    assert "NOT equal" in said
    assert "weights differ by" in said
    assert ("Redis: weights" in said) is (place == "Redis")


def test_what_is_damaged_is_not_equal(site: Site) -> None:
    """It is kept under the name, and cannot be read."""
    own = site.runs[0].intervention.replace("@", "/").encode()
    site.keep([Kept(own, site.versions[1][:-1])], [])
    assert "it cannot be read" in site.verdict().told()


def test_where_nothing_is_kept_the_digest_of_the_run_is_compared(site: Site) -> None:
    """And that is said; other models and other versions are nothing of it."""
    others = [Kept(b"mm", site.versions[1]), Kept(b"m", site.versions[2])]
    site.keep(others, [])
    verdict = site.verdict()
    assert verdict.is_equal
    assert not verdict.is_kept
    assert "neither `snapshots` nor Redis" in verdict.told()
    run = site.runs[0]
    site.runs[0] = msgspec.structs.replace(run, sha256=bytes(32))
    try:
        wrong = site.verdict()
        site.keep([Kept(b"m", site.versions[1])], [])
        of_run = site.verdict()
    finally:
        site.runs[0] = run
    assert not wrong.is_equal
    assert "neither `snapshots`" in wrong.told()
    assert "the run has another digest" in of_run.told()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seed", 7),
        ("groups", [0]),
        ("reward", 99.0),
        ("temperature", 3.0),
        ("best_epoch", 1_000),
        ("created_ms", 1),
        ("curve", None),
    ],
)
def test_a_run_that_says_what_its_training_did_not_is_not_equal(
    site: Site, field: str, value: object
) -> None:
    """Also where the snapshot has each byte; who asked for it nobody can tell."""
    site.keep([Kept(b"m", site.versions[1])], [])
    run = site.runs[0]
    if field == "curve":
        value = msgspec.structs.replace(run.curve, alpha=[9.0])
    try:
        site.runs[0] = msgspec.structs.replace(run, **{field: value})
        wrong = site.verdict()
        site.runs[0] = msgspec.structs.replace(run, request="by hand")
        right = site.verdict()
    finally:
        site.runs[0] = run
    assert right.is_equal
    assert not wrong.is_equal
    assert f"{field} of the run was" in wrong.told()


@pytest.mark.parametrize("where", ["topic", "Redis", "nowhere"])
def test_a_parent_that_is_not_the_one_of_the_run_is_not_begun_from(
    site: Site, where: str
) -> None:
    """Its digest tells: it is looked for elsewhere, and made again if it is gone."""
    parent, bad = site.versions[1], negated(site.versions[1])
    latest = Kept(b"m", site.versions[2])
    own = site.runs[0].intervention.replace("@", "/").encode()
    in_topic = parent if where == "topic" else bad
    in_redis = parent if where == "Redis" else bad
    site.keep([Kept(own, in_topic), latest], [in_redis])
    assert site.verdict(1).is_equal


def test_a_run_that_cannot_be_read_is_refused_in_words(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names the record."""
    bad = Kept(b"m@0.7/run", b"\x93\x01x")
    monkeypatch.setattr(verification, "read_records", lambda *_: [bad])
    with pytest.raises(ValueError, match=r"a run in training must be readable.*m@0\.7"):
        site.verdict()


def test_a_site_has_two_runs(made: Site) -> None:
    """The second began from what came of the first."""
    first, second = made.runs
    assert isinstance(first, RunRecord)
    assert second.parent.sha256 == first.sha256 == sha256_of(made.versions[1])
