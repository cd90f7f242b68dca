import base64
import sys
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from rankstream.ranker import NoSnapshot, Ranker
from rankstream.ranking.scoring import draw_list
from rankstream.settings import load_settings
from rankstream.snapshots import Pointer, SnapshotError, features_hash
from rankstream.wire.events import ClickEvent, QueryEvent
from rankstream.wire.routing import route_of_impression, route_of_query
from rankstream.wire.topics import CLICKS, QUERIES
from streams.ingest.validation import EventValidator
from streams.local import LocalPipeline, local_settings
from tests.served import PATIENCE_S, until
from tests.snapshot_factory import envelope

FEATURES = np.random.default_rng(5).random((6, 3)).astype(np.float32)
ITEMS = [f"item {row}" for row in range(6)]


def singles(*numbers: float) -> npt.NDArray[np.float32]:
    """As a snapshot holds them."""
    return np.array(numbers, "<f4")


class Shelf:
    """A source of envelopes that a test puts there."""

    def __init__(self, newest: bytes | None = None) -> None:
        self.newest = newest

    def __call__(self) -> bytes | None:
        """The newest envelope."""
        return self.newest


def ranker_of(newest: bytes | None = None) -> tuple[Ranker, Shelf]:
    """A ranker and the shelf that it reads."""
    shelf = Shelf(newest)
    return Ranker("m", source=shelf), shelf


def test_a_ranker_needs_a_snapshot_first() -> None:
    """Before the first snapshot there is nothing to rank with, and it says so."""
    ranker, shelf = ranker_of()
    assert not ranker.refresh()
    assert (ranker.version, ranker.pointer, ranker.age_s) == (-1, None, float("inf"))
    assert not ranker.wait(0.0)
    with pytest.raises(NoSnapshot):
        ranker.rank(FEATURES)
    with pytest.raises(NoSnapshot):
        ranker.load()
    shelf.newest = envelope(0)
    assert ranker.wait(PATIENCE_S)
    assert ranker.version == 0
    assert ranker.age_s < 60.0


def test_versions_go_forwards_only_but_for_rollbacks() -> None:
    """An older version is not taken; an older one in a later epoch is."""
    ranker, shelf = ranker_of(envelope(5))
    taken = []
    for version, epoch in ((5, 0), (4, 0), (6, 0), (2, 1), (9, 0), (3, 1)):
        shelf.newest = envelope(version, epoch=epoch)
        ranker.refresh()
        taken.append(ranker.pointer)
    assert taken == [(0, 5), (0, 5), (0, 6), (1, 2), (1, 2), (1, 3)]
    assert ranker.pointer == Pointer(1, 3)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda good: good[:-1], "length"),
        (lambda good: good[:-1] + b"\0", "checksum"),
        (lambda _: b"", "truncated"),
        (lambda _: envelope(2, model="n"), "model"),
        (lambda _: envelope(2, weights=np.full(3, np.nan, "<f4").tobytes()), "weights"),
        (lambda _: envelope(2, n_features=4), "features"),
    ],
)
def test_the_last_good_snapshot_is_kept(
    damage: Callable[[bytes], bytes], reason: str
) -> None:
    """Whatever is wrong with the next version, the last good one is served."""
    shelf = Shelf(envelope(1))
    ranker = Ranker("m", source=shelf, n_features=3)
    assert ranker.refresh()
    shelf.newest = damage(envelope(2))
    assert not ranker.refresh()
    assert ranker.failures == {reason: 1}
    assert ranker.trouble.startswith(reason)
    assert ranker.rank(FEATURES).version == 1
    with pytest.raises(SnapshotError):
        ranker.load()
    shelf.newest = envelope(3)
    assert ranker.refresh()
    assert ranker.version == 3


def test_lists_are_logged_under_the_name_of_what_was_deployed() -> None:
    """What is learned online names its model only; a service may name another."""
    ranker, shelf = ranker_of(envelope(1))
    ranker.refresh()

    def logged(**fields: Any) -> QueryEvent:
        ranking = ranker.rank(FEATURES, seed=4)
        event = ranker.query_event(
            ranking, query_id="q", items=ITEMS, at_ms=5, **fields
        )
        return msgspec.json.decode(event, type=QueryEvent)

    assert logged().intervention is None
    shelf.newest = envelope(1, epoch=1, intervention="m@1.1")
    ranker.refresh()
    assert (logged().model, logged().intervention) == ("m", "m@1.1")
    assert logged(intervention="other").intervention == "other"


def test_features_are_shifted_and_scaled_before_a_query_is_normalised() -> None:
    """By (x - shift) * scale; either alone will do, and both must be finite."""
    shift, scale = singles(3, 0, 1e6), singles(0.5, 2, 1)
    fields = {"weights": singles(1, 2, 3).tobytes()}
    far = FEATURES + singles(0, 0, 1e6)
    moved = (far.astype(np.float64) - shift) * scale
    for chosen, expected in (
        ({"shift": shift.tobytes(), "scale": scale.tobytes()}, moved),
        ({"shift": shift.tobytes()}, far.astype(np.float64) - shift),
        ({"scale": scale.tobytes()}, far.astype(np.float64) * scale),
    ):
        ranker, _ = ranker_of(envelope(1, **fields, **chosen))
        ranker.refresh()
        ranking = ranker.rank(far, seed=1)
        assert np.allclose(ranking.features, expected, rtol=1e-6)
        assert np.allclose(ranking.scores, expected @ [1, 2, 3], rtol=1e-5)
    standard, _ = ranker_of(envelope(1, normalisation="standard", **chosen))
    standard.refresh()
    assert np.allclose(standard.rank(FEATURES).features.std(axis=0), 1.0)
    for name in ("shift", "scale"):
        damaged = {name: singles(1, np.nan, 1).tobytes()}
        broken, _ = ranker_of(envelope(1, **damaged))
        assert not broken.refresh()
        assert broken.trouble == f"weights: {name} of 0.1 must be finite"


def test_another_list_of_features_is_refused_where_their_number_is_the_same() -> None:
    """By the service's own names, else by those of the first snapshot."""
    names = ["bm25", "age", "ctr"]
    named = {"feature_names": names, "features_hash": features_hash(names)}
    other = {"feature_names": names[::-1], "features_hash": features_hash(names[::-1])}
    ranker = Ranker("m", source=Shelf(envelope(1, **other)), feature_names=names)
    assert not ranker.refresh()
    assert "another list of 3, beginning ctr, age, bm25: let" in ranker.trouble
    for given in (None, 3):
        shelf = Shelf(envelope(1, **named))
        ranker = Ranker("m", source=shelf, n_features=given)
        assert ranker.refresh()
        for later in (envelope(2, **other), envelope(2)):
            shelf.newest = later
            assert not ranker.refresh()
            assert ranker.trouble.startswith("features: features must be those that")
        shelf.newest = envelope(3, **named)
        assert ranker.refresh()
    with pytest.raises(ValueError, match="n_features or feature_names, and not both"):
        Ranker("m", source=shelf, n_features=3, feature_names=names)


def candidates_in(event: bytes) -> tuple[str | None, list[float] | None]:
    """Hash and features of the candidates that an event brings."""
    found = msgspec.json.decode(event, type=QueryEvent)
    if not isinstance(found.candidate_features, str):
        return found.features_hash, None
    raw = base64.b64decode(found.candidate_features)
    return found.features_hash, np.frombuffer(raw, "<f4").tolist()


def test_a_model_that_has_candidates_logged_does_it_once_an_hour() -> None:
    """As the service gave them, whatever the model makes of them; then without."""
    fields = {"log_candidates": True, "normalisation": "min-max"}
    fields |= {"shift": singles(1, 1, 1).tobytes()}
    ranker, shelf = ranker_of(envelope(1, **fields))
    ranker.refresh()
    given = (features_hash(3).hex(), FEATURES.ravel().tolist())
    nothing = (None, None)

    def logged(query: str, at_ms: int, **more: Any) -> Any:
        ranking = ranker.rank(FEATURES)
        items = {"items": ITEMS} | more
        event = ranker.query_event(ranking, query_id=query, at_ms=at_ms, **items)
        return candidates_in(event)

    assert logged("a", 5) == given
    assert logged("a", 6) == nothing
    assert logged("b", 6) == given
    assert logged("a", 7, items=[f"other {row}" for row in range(6)]) == given
    assert logged("a", 3_600_005) == given
    assert logged("a", 3_600_006, log_candidates=True) == given
    shelf.newest = envelope(2)
    ranker.refresh()
    assert logged("c", 8) == nothing
    scored = logged("c", 8, log_candidates=True)
    assert scored == (None, FEATURES.ravel().tolist())


def test_features_that_fit_no_event_are_left_out_and_counted() -> None:
    """The list itself is sent, and ingestion takes it."""
    n_features = 700
    ranker, _ = ranker_of(
        envelope(1, n_features=n_features, log_candidates=True, normalisation="none")
    )
    ranker.refresh()
    items = [f"item {row}" for row in range(2_500)]
    ranking = ranker.rank(np.ones((len(items), n_features), np.float32), cutoff=3)
    event = ranker.query_event(ranking, query_id="q", items=items, at_ms=5)
    assert candidates_in(event) == (None, None)
    assert ranker.candidates_left_out == 1
    EventValidator(max_documents=10_000, ahead_ms=0).query(event, 5)


def test_no_list_mixes_two_versions() -> None:
    """Scores and version of a list belong together while versions are taken."""
    ranker, shelf = ranker_of(envelope(1))
    ranker.refresh()
    done = threading.Event()

    def publish() -> None:
        for version in range(2, 1_500):
            shelf.newest = envelope(version)
            ranker.refresh()
        done.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        writer = threading.Thread(target=publish)
        writer.start()
        versions = []
        while not done.is_set():
            ranking = ranker.rank(np.ones((1, 3)))
            versions.append(ranking.version)
            assert ranking.scores.tolist() == [3.0 * ranking.version]
        writer.join()
    finally:
        sys.setswitchinterval(interval)
    assert versions == sorted(versions)
    assert len(set(versions)) > 3


def test_following_takes_new_versions_by_itself() -> None:
    """A followed source needs no call to be read."""
    ranker, shelf = ranker_of(envelope(1))
    ranker.follow()
    ranker.follow()
    shelf.newest = envelope(2)
    until(lambda: ranker.version == 2)
    ranker.close()


def test_the_query_event_says_how_the_list_came_to_be() -> None:
    """Candidates, scores, seed and policy of the event draw the shown list again."""
    ranker, _ = ranker_of(envelope(7, normalisation="min-max"))
    ranker.refresh()
    for policy in ("plackett-luce", "tail-shuffle", "deterministic"):
        ranking = ranker.rank(FEATURES, cutoff=4, policy=policy)
        raw = ranker.query_event(
            ranking, query_id="Running  Shoes", items=ITEMS, at_ms=9, session="s"
        )
        event = msgspec.json.decode(raw, type=QueryEvent)
        scores = np.frombuffer(base64.b64decode(str(event.scores)), "<f4")
        order = draw_list(scores, cutoff=4, policy=event.policy, seed=event.seed)
        assert event.candidates == ITEMS
        assert event.shown == [ITEMS[row] for row in order]
        rows = np.frombuffer(base64.b64decode(str(event.features)), "<f4")
        np.testing.assert_array_equal(rows.reshape(4, 3), ranking.features[order])
        assert (event.model, event.version, event.session) == ("m", 7, "s")
        assert event.intervention is None
        route = route_of_impression(event.impression_id)
        assert route == route_of_query("running shoes")


def test_events_of_the_ranker_pass_ingestion() -> None:
    """Its events are applied; none is a dead letter."""
    pipeline = LocalPipeline(local_settings(load_settings(None, {})), now=lambda: 1_000)
    ranker, _ = ranker_of(envelope(7))
    ranker.refresh()
    for number in range(20):
        ranking = ranker.rank(FEATURES, cutoff=4, seed=number)
        event = ranker.query_event(
            ranking, query_id="q", items=ITEMS, at_ms=1_000 + number, intervention="x"
        )
        impression_id = msgspec.json.decode(event, type=QueryEvent).impression_id
        pipeline.send(QUERIES, event)
        click = ranker.click_event(impression_id, at_ms=1_500, position=2)
        assert msgspec.json.decode(click, type=ClickEvent).position == 2
        pipeline.send(CLICKS, click)
    pipeline.end()
    counts = pipeline.counters()
    assert (counts["applied_impressions"], counts["applied_clicks"]) == (20, 20)
    assert counts["ingestion_dead_letter"] == counts["dead_letter"] == 0


@pytest.mark.parametrize(
    ("features", "fact"),
    [
        (np.zeros((0, 3)), "at least one document"),
        (np.zeros((2, 4)), r"documents by 3, as model 'm' has them in version \d"),
        (np.zeros(3), r"documents by 3, .* got shape \(3,\): give it 3 numbers"),
        (np.array([[1.0, 1, 0], [1, np.nan, 0]]), "finite.* model 'm'; got row 1"),
        (np.full((2, 3), 3e38), "scores must be finite"),
    ],
)
def test_features_that_cannot_be_ranked_are_refused(
    features: np.ndarray, fact: str
) -> None:
    """A wrong call is told what is wrong with it."""
    ranker, _ = ranker_of(envelope(7))
    ranker.refresh()
    with pytest.raises(ValueError, match=fact):
        ranker.rank(features)


def test_wrong_use_is_refused() -> None:
    """A ranker reads one place, and an event names every candidate."""
    with pytest.raises(ValueError, match="a store or a source"):
        Ranker("m")
    ranker, _ = ranker_of(envelope(7))
    ranker.refresh()
    ranking = ranker.rank(FEATURES)
    with pytest.raises(ValueError, match="5 for 6 documents"):
        ranker.query_event(ranking, query_id="q", items=ITEMS[:5], at_ms=1)
