"""A ranker with decisions: what is served, what is logged, and what it goes on with."""

import base64
import sys
import threading
from array import array
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.ranker import Ranker, Ranking
from rankstream.redis_store.decision_scripts import HeldDecisions
from rankstream.snapshots import StoreUnavailable
from rankstream.wire.decision_shards import N_SHARDS, hash_of_items, load_shard
from rankstream.wire.decisions import Decision
from rankstream.wire.events import LOGGED, Impression, QueryEvent
from rankstream.wire.segments import query_in_segment
from streams.ingest.validation import EventValidator
from tests.canary_factory import canary_record
from tests.decision_factory import ITEMS, decision, rewrite
from tests.held_decisions import Held
from tests.snapshot_factory import envelope

FEATURES = np.random.default_rng(5).random((6, 3)).astype(np.float32)
MIXED = [ITEMS[row] for row in (3, 0, 5, 1, 4, 2)]
"""The candidates as a service has them: in no order."""

TIED = decision(order=[2, 0, 1, 3, 4, 5], blocks=[1, 3, 2])


def following(
    decisions: Mapping[str, Decision] | None = None, **fields: Any
) -> tuple[Ranker, Held]:
    """A ranker that has taken a rewrite, and what it reads."""
    held = Held(rewrite(1, decisions, **fields))
    ranker = Ranker("m", store=held, decisions="rule")
    ranker.load()
    return ranker, held


def plain() -> Ranker:
    """The same model without decisions."""
    ranker = Ranker("m", store=Held())
    ranker.load()
    return ranker


def rank(ranker: Ranker, query: str = "q", **options: Any) -> Ranking:
    """A list for a query."""
    given: dict[str, Any] = {"cutoff": 4, "seed": 3, "query_id": query, "items": MIXED}
    return ranker.rank(FEATURES, **(given | options))


def event_of(ranker: Ranker, ranking: Ranking, query: str = "q") -> QueryEvent:
    """What is logged of a list; ingestion must take it."""
    raw = ranker.query_event(ranking, query_id=query, items=MIXED, at_ms=5)
    EventValidator(max_documents=100, ahead_ms=0).query(raw, 5)
    return msgspec.json.decode(raw, type=QueryEvent)


def test_a_decision_is_served_and_logged_as_it_was_made() -> None:
    """In its order, whatever the policy and the order in which candidates come."""
    ranker, _ = following()
    assert ranker.rewrite == 1
    for policy in ("plackett-luce", "deterministic", "tail-shuffle"):
        ranking = rank(ranker, " Q ", policy=policy)
        event = event_of(ranker, ranking)
        assert event.shown == ITEMS[:1:-1]
        assert (event.policy, event.exposures) == ("deterministic", None)
        assert (event.intervention, event.model, event.version) == ("rule@1", "m", 1)
        assert event.scores is None
    assert len(rank(ranker, cutoff=10).order) == 6


def test_ties_are_drawn_and_logged_with_their_probabilities() -> None:
    """Of candidates by ranks; a tie below the list is none."""
    ranker, _ = following({"q": TIED})
    shown = set()
    for seed in range(40):
        event = event_of(ranker, rank(ranker, seed=seed, cutoff=3))
        assert event.policy == "logged"
        shown.add(tuple(event.shown))
        exposures = np.frombuffer(base64.b64decode(str(event.exposures)), "<f4")
        for row, item in zip(exposures.reshape(6, 3), MIXED, strict=True):
            third = np.float32(1 / 3)
            tied = [0, third, third] if item in ITEMS[:2] + ITEMS[3:4] else [0] * 3
            assert row.tolist() == ([1, 0, 0] if item == ITEMS[2] else tied)
    assert len(shown) == 6
    assert {each[0] for each in shown} == {ITEMS[2]}
    event = event_of(ranker, rank(ranker, cutoff=1))
    assert (event.policy, event.shown) == ("deterministic", [ITEMS[2]])


def test_lists_without_a_decision_are_as_before_but_for_the_intervention() -> None:
    """Another query, and another set of candidates of a query that has a decision."""
    ranker, _ = following()
    other = [*MIXED[:5], "another"]
    for query, items in (("other", MIXED), ("q", other), ("q", other[::-1])):
        made = rank(ranker, query, items=items)
        expected = plain().rank(FEATURES, cutoff=4, seed=3)
        assert made.order.tolist() == expected.order.tolist()
        assert (made.policy, made.decided) == ("plackett-luce", None)
        assert made.intervention == "rule@1"
        assert event_of(ranker, made, query).scores is not None
    fewer = ranker.rank(FEATURES[:5], query_id="q", items=MIXED[:5])
    assert (fewer.decided, len(fewer.order)) == (None, 5)


def test_before_the_first_rewrite_nothing_differs() -> None:
    """It is told that there is none, as there is none of a misspelt name."""
    ranker = Ranker("m", store=Held(), decisions="rule")
    assert ranker.refresh()
    expected = rank(plain())
    made = rank(ranker)
    assert made.order.tolist() == expected.order.tolist()
    assert (made.intervention, ranker.rewrite) == ("", 0)
    assert ranker.failures == {"decisions": 1}
    assert "'rule'; it holds none yet, or by that name" in ranker.trouble


def test_only_what_changed_is_fetched() -> None:
    """And nothing where nothing did."""
    many = {f"q {number}": decision() for number in range(2_000)}
    ranker, held = following(many)
    assert len(held.asked) == len({*held.asked}) > 200
    held.asked.clear()
    ranker.refresh()
    assert held.asked == []
    many["q 7"] = TIED
    held.put(rewrite(2, many))
    ranker.refresh()
    assert (len(held.asked), ranker.rewrite) == (1, 2)
    assert rank(ranker, "q 7").policy == "logged"
    assert rank(ranker, "q 8").policy == "deterministic"


def damage_of_shard(held: Held, damage: Callable[[bytes], bytes]) -> None:
    """Change the newest shard."""
    digest = next(reversed(held.shards))
    held.shards[digest] = damage(held.shards[digest])


FAULTS: dict[str, Callable[[Held], object]] = {
    "a missing shard": lambda held: held.shards.clear(),
    "a damaged shard": lambda held: damage_of_shard(held, lambda each: each[:-1]),
    "another byte": lambda held: damage_of_shard(held, lambda each: each[:-1] + b"\7"),
    "no manifest": lambda held: held_again(held, b""),
    "another manifest": lambda held: held_again(held, rewrite(3).value),
    "another model's": lambda held: held.put(rewrite(2, model="n", default="n@0.1")),
    "another rule's": lambda held: held.put(rewrite(2, name="other")),
    "a default with other features": lambda held: held.put(
        rewrite(2, envelope=envelope(4, model="g", n_features=4), default="g@0.4")
    ),
    "emptied": lambda held: setattr(held, "held", None),
}


def held_again(held: Held, value: bytes) -> None:
    """The same pointer to another manifest."""
    assert held.held is not None
    held.held = HeldDecisions(held.held.place, value)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_last_good_rewrite_is_kept(fault: Callable[[Held], object]) -> None:
    """Whole, whatever is wrong with the next one; and the next good one is taken."""
    ranker, held = following()
    held.put(rewrite(2, {"q": TIED, "r": TIED}))
    fault(held)
    assert not ranker.refresh()
    assert ranker.failures == {"decisions": 1}
    assert ranker.trouble.startswith("decisions: ")
    assert ranker.rewrite == 1
    assert rank(ranker).intervention == "rule@1"
    assert rank(ranker).policy == "deterministic"
    assert rank(ranker, "r").decided is None
    held.put(rewrite(4, {"q": TIED}))
    ranker.refresh()
    assert (ranker.rewrite, ranker.trouble) == (4, "")
    assert rank(ranker).policy == "logged"


def test_a_silent_store_is_told_of_and_the_last_rewrite_kept() -> None:
    """As with snapshots."""
    ranker, held = following()
    held.is_away = True
    assert not ranker.refresh()
    assert (ranker.failures, ranker.rewrite) == ({"unavailable": 1}, 1)
    with pytest.raises(StoreUnavailable):
        ranker.load()


def test_a_ranker_never_goes_back_to_an_earlier_rewrite() -> None:
    """A replica that lags, or what was put back, does not undo what was served."""
    ranker, held = following()
    held.put(rewrite(5, {"q": TIED}))
    ranker.refresh()
    held.put(rewrite(4))
    ranker.refresh()
    assert (ranker.rewrite, rank(ranker).policy) == (5, "logged")


def test_a_rollback_takes_decisions_along_at_once() -> None:
    """Until a rewrite stands on the epoch that is served."""
    ranker, held = following()
    held.serve(1, epoch=1)
    ranker.refresh()
    assert ranker.rewrite == 0
    made = rank(ranker)
    assert (made.decided, made.intervention) == (None, "")
    held.put(rewrite(2, stands_on="1.1", default="m@1.1"))
    ranker.refresh()
    assert (ranker.rewrite, rank(ranker).intervention) == (2, "rule@2")
    # One that stands on what this ranker does not serve yet waits for it.
    held.put(rewrite(3, stands_on="2.0", default="m@2.0"))
    ranker.refresh()
    assert ranker.rewrite == 0
    held.serve(0, epoch=2)
    ranker.refresh()
    assert ranker.rewrite == 3
    # A version that was learned meanwhile is no other deployment.
    held.serve(9, epoch=2)
    ranker.refresh()
    assert (ranker.rewrite, rank(ranker).version) == (3, 9)


def test_a_rule_that_was_withdrawn_leaves_lists_as_without_it() -> None:
    """By a rewrite without an intervention."""
    ranker, held = following()
    held.put(rewrite(2, {}, intervention=""))
    ranker.refresh()
    assert (ranker.rewrite, ranker.failures) == (0, {})
    made = rank(ranker)
    assert (made.intervention, made.decided) == ("", None)


def test_a_rewrite_may_bring_its_own_default() -> None:
    """It makes all lists without a decision, and is logged as what made them."""
    own = envelope(4, model="general", weights=b"\0" * 8 + b"\0\0\x80?")
    ranker, _ = following(default="general@0.4", envelope=own)
    made = rank(ranker, "other", policy="deterministic")
    assert made.order.tolist() == np.argsort(-FEATURES[:, 2])[:4].tolist()
    assert (made.model, made.version, made.intervention) == ("general", 4, "rule@1")
    assert event_of(ranker, rank(ranker)).shown == ITEMS[:1:-1]


def test_a_canary_in_force_wins() -> None:
    """Both arms are plain versions; who names no session is in neither arm."""
    ranker, held = following()
    held.canary = canary_record(share=0.5)
    ranker.refresh()
    made = [rank(ranker, session=f"s{number}") for number in range(40)]
    assert {each.version for each in made} == {1, 9}
    assert not any(each.decided for each in made)
    assert {each.intervention for each in made} == {"", "m@0.9"}
    assert {each.canary for each in made} == {"m@0.9/1"}
    assert rank(ranker).decided
    held.canary = b""
    ranker.refresh()
    ended = rank(ranker, session="s1")
    assert (bool(ended.decided), ended.canary, ended.session) == (True, "", "s1")


def test_misuse_is_refused_with_the_remedy() -> None:
    """At the first list, also where nothing was decided for it."""
    ranker, _ = following()
    lacking: list[dict[str, Any]] = [{"query_id": None}, {"items": None}]
    for options in lacking:
        with pytest.raises(ValueError, match=r"got no .*, with decisions 'rule': give"):
            rank(ranker, **options)
    with pytest.raises(ValueError, match="policy must not be multileave"):
        rank(ranker, policy="multileave")
    with pytest.raises(ValueError, match="items must name every document; got 6 for 5"):
        ranker.rank(FEATURES[:5], query_id="q", items=MIXED)
    with pytest.raises(ValueError, match="cutoff must be at least 1; got 0"):
        rank(ranker, cutoff=0)
    with pytest.raises(ValueError, match="decisions must come from a store"):
        Ranker("m", source=lambda: None, decisions="rule")


def test_no_list_mixes_two_rewrites() -> None:
    """Order, default and intervention of a list belong together."""
    both = [
        [
            rewrite(
                number,
                {"q": decision(order=[0, 1, 2, 3, 4, 5] if number % 2 else TIED.order)},
                **({"envelope": envelope(7), "default": "m@0.7"} if number % 2 else {}),
            )
            for number in range(start, 800, 2)
        ]
        for start in (1, 2)
    ]
    held = Held()
    ranker = Ranker("m", store=held, decisions="rule")
    ranker.load()
    done = threading.Event()

    def publish() -> None:
        for odd, even in zip(*both, strict=False):
            for each in (odd, even):
                held.put(each)
                ranker.refresh()
        done.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    numbers = []
    try:
        writer = threading.Thread(target=publish)
        writer.start()
        while not done.is_set():
            made = rank(ranker)
            number = int(made.intervention.rpartition("@")[2] or 0)
            if number:
                numbers.append(number)
                first = MIXED[made.order[0]]
                is_odd = bool(number % 2)
                assert (first, made.version) == (
                    (ITEMS[0], 7) if is_odd else (ITEMS[2], 1)
                )
        writer.join()
    finally:
        sys.setswitchinterval(interval)
    assert numbers == sorted(numbers)
    assert len({*numbers}) > 3
    assert ranker.failures == {"decisions": 1}  # before the first


def test_the_log_holds_decided_lists_as_they_were_drawn() -> None:
    """Ingestion permutes the exposures with the candidates."""
    ranker, _ = following({"q": TIED})
    raw = ranker.query_event(rank(ranker), query_id="q", items=MIXED, at_ms=5)
    impression = EventValidator(max_documents=9, ahead_ms=0).query(raw, 5).event
    assert (impression.policy, impression.intervention) == (LOGGED, "rule@1")  # type: ignore[union-attr]


def test_an_order_of_other_candidates_is_none() -> None:
    """Whatever their hash: a list is of the candidates that were given."""
    ranker, _ = following()
    assert rank(ranker).policy == "deterministic"
    short = {"q": decision(items=ITEMS[:3], order=[2, 1, 0])}
    shards = dict(rewrite(1, short).shards)
    made = rewrite(1, {"q": decision()})
    for digest, packed in shards.items():
        shard = load_shard(packed, digest)
        hashes = array("Q", [hash_of_items(ITEMS)])
        ranker._taken.take_decisions(
            made.manifest, [shard._replace(hashes=hashes)] * N_SHARDS
        )
    assert rank(ranker).policy == "plackett-luce"


def test_shards_of_the_rewrite_before_are_let_go() -> None:
    """So that what a service holds does not grow."""
    ranker, held = following()
    before = {*ranker._decisions._shards}  # type: ignore[union-attr]
    held.put(rewrite(2, {"other": decision(2)}))
    ranker.refresh()
    now = {*ranker._decisions._shards}  # type: ignore[union-attr]
    assert ranker.rewrite == 2
    assert before & now == {b""}


def test_decisions_are_those_of_the_segment() -> None:
    """Named as ingestion names it; without one it says so, as no event would count."""
    named = query_in_segment("q", "NL")
    held = Held(rewrite(1, {named: TIED}))
    ranker = Ranker("m", store=held, decisions="rule", segment="country")
    ranker.load()
    served = {
        country: [*rank(ranker, "Q", attributes={"country": country}).order]
        for country in ("nl", "de")
    }
    assert served["nl"] == [*rank(following({"q": TIED})[0], "Q").order]
    assert served["de"] == [*rank(following({})[0], "Q").order] != served["nl"]
    for attributes in (None, {"country": 3}):
        with pytest.raises(ValueError, match=r"ingestion\.segment"):
            rank(ranker, attributes=attributes)
    ranking = rank(ranker, attributes={"country": "nl"})
    with pytest.raises(ValueError, match=r"ingestion\.segment"):
        ranker.query_event(ranking, query_id="q", items=MIXED, at_ms=1)
    raw = ranker.query_event(
        ranking, query_id="q", items=MIXED, at_ms=1, attributes={"country": "nl"}
    )
    validator = EventValidator(max_documents=9, ahead_ms=0, segment="country")
    impression = validator.query(raw, 5).event
    assert isinstance(impression, Impression)
    assert impression.query_id == named
