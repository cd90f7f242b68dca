"""Values of what is served, between trainings: when, and that they are right."""

import asyncio
import logging
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from models.estimators.bias_curve import position_curve
from models.estimators.choice import asked_for
from models.estimators.policy_reward import click_weights_of
from rankstream.configuration.curves import PositionCurve
from rankstream.ranking.scoring import normalised, scores_of
from rankstream.snapshots import (
    Pointer,
    Snapshot,
    StoreUnavailable,
    decode_snapshot,
)
from rankstream.wire.models.curves import curve_weights
from rankstream.wire.models.model_evaluations import UNKNOWN, ModelValues, decode_values
from rankstream.wire.topics import CANDIDATES, EVALUATIONS, SNAPSHOTS, STATISTICS
from streams.estimation.curve_replicates import CurveReplicates
from streams.estimation.evaluation import evaluated
from streams.estimation.policy_rows import CHOSEN
from streams.estimation.question import Question
from streams.estimation.served_curves import ServedCurves
from streams.estimation.served_values import OTHER_FEATURES, Served, values_of
from streams.estimation.targets import SnapshotTarget
from streams.kafka.clients import Cluster
from streams.kafka.training import valuation, valuations
from streams.kafka.training.valuations import Load, Valuations
from streams.statistics import keys
from streams.statistics.reader import Statistics
from streams.training.feature_records import FeatureRecords
from streams.training.inputs import Inputs
from tests.clicked_lists import (
    CUTOFF,
    EXAMINATION,
    features_of,
    relevance_of,
)
from tests.fakes.clients import FakeClients
from tests.placed_list import placement_probabilities
from tests.snapshot_factory import snapshot
from tests.streams.roles.trainer_world import (
    MODEL,
    PLAN,
    World,
    settings_with,
    turned,
)

N_QUERIES = 40


def never() -> bool:
    """Nothing goes first."""
    return False


def nowhere(model: str, at: Pointer) -> Snapshot:
    """Redis is away."""
    raise StoreUnavailable(f"Redis must answer; {model}@{at} was asked for")


@cache
def trained() -> World:
    """After an intervention, with lists of what it published; not to be changed."""
    world = World(settings_with(after=[400]))
    world.grow(700)
    asyncio.run(turned(world, world.trainer()))
    every = msgspec.structs.replace(world.settings.train, value_every_s=600.0)
    world.settings = msgspec.structs.replace(world.settings, train=every)
    return world


class Between:
    """Valuations of a world, by a clock that stands still between looks."""

    def __init__(
        self, world: World, monkeypatch: pytest.MonkeyPatch, load: Load = nowhere
    ) -> None:
        self.world = world
        self.now_s = 1_000.0
        self.stop = asyncio.Event()
        clock = SimpleNamespace(monotonic=lambda: self.now_s)
        monkeypatch.setattr(valuations, "time", clock)
        cluster = Cluster("", {}, {}, FakeClients(world.kafka))
        self.valuations = Valuations(world.settings, cluster, load)

    def turn(self, gives_way: Callable[[], bool] = never) -> list[ModelValues]:
        """What a turn writes."""
        n_before = len(self.written())
        for key, value in self.world.read(SNAPSHOTS):
            self.valuations.take_snapshot(key, value)
        asyncio.run(self.valuations.turn(self.stop, self.counted(), gives_way))
        return self.written()[n_before:]

    def counted(self) -> dict[int, keys.Counted]:
        """What the statistics hold."""
        found = dict(self.world.read(STATISTICS)).get(keys.counted_key(0))
        return {} if found is None else {0: keys.decode_counted(found)}

    def written(self) -> list[ModelValues]:
        """All so far."""
        pairs = self.world.read(EVALUATIONS)
        assert {key for key, _ in pairs} <= {b"m/values", b"n/values"}
        return [decode_values(value or b"") for _, value in pairs]


def worth(snapshot: Snapshot) -> float:
    """Clicks per list of a version, as the users are made."""
    weights, total = np.frombuffer(snapshot.weights, "<f4"), 0.0
    for query in range(N_QUERIES):
        features = features_of(query).astype(np.float32)
        scores = scores_of(normalised(features, snapshot.normalisation), weights, [])
        placed = placement_probabilities(scores.astype(float), CUTOFF)
        total += float(relevance_of(query) @ placed @ np.array(EXAMINATION))
    return total / N_QUERIES


def test_values_are_those_of_evaluate_and_cover_the_truth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of what is served, of what it came from, and of what was logged."""
    world = trained().copied()
    (found,) = Between(world, monkeypatch).turn()
    newest, first = decode_snapshot(world.trained()[-1]), dict(world.read(SNAPSHOTS))
    versions = {
        newest.intervention: newest,
        "m@0.0": decode_snapshot(first[b"m/0.0"] or b""),
    }
    statistics = Statistics(world.read(STATISTICS))
    features = FeatureRecords(world.read(CANDIDATES), newest.features_hash, 3)
    groups = tuple(sorted({*range(20)} - {*newest.groups}))
    question = Question(
        asked_for("intervention-aware"),
        CurveReplicates(position_curve(EXAMINATION), "given"),
        click_weights_of,
        20,
        groups,
    )
    same = evaluated(
        statistics.columns(marks_mixed=True),
        {name: SnapshotTarget(x, features) for name, x in versions.items()},
        question,
    )
    assert same.comparison is not None
    assert found.estimator == question.estimator
    assert found.curve == "given by models.m.training"
    assert found.groups == list(groups)
    coverage = same.coverage
    assert (found.lists, found.clicks, found.queries) == (
        coverage.n_lists, coverage.n_clicks, coverage.n_queries,
    )  # fmt: skip
    assert found.lists == found.lists_all > 50
    assert [x.policy for x in found.policies] == ["logged", *versions]
    assert [x.value for x in found.policies] == list(same.comparison.rewards.values)
    assert [x.difference for x in found.policies[1:]] == list(
        same.comparison.differences.values[1:]
    )
    assert found.policies[0].difference is None
    for one, version in zip(found.policies[1:], versions.values(), strict=True):
        low, high = one.interval
        assert low is not None
        assert high is not None
        assert low < worth(version) < high
        assert one.why == ""
        assert one.unseen is not None
        assert one.unseen < 0.2
    assert "chosen from clicks of" in found.remarks[0]
    assert found.remarks[1].startswith("by intervention-aware: policies are known")
    assert found.at_ms > 1_700_000_000_000


def test_values_say_why_something_is_not_known() -> None:
    """No curve, other features, or clicks that a version was chosen from."""
    world = trained()
    newest = decode_snapshot(world.trained()[-1])
    features = FeatureRecords(world.read(CANDIDATES), newest.features_hash, 3)
    log = Inputs(Statistics(world.read(STATISTICS)), features)
    served = Served(newest, None, {}, frozenset(), {})
    curve = CurveReplicates(position_curve(EXAMINATION), "given")

    untold = values_of(served, log, "nobody knows")
    assert [(x.policy, x.value, x.why) for x in untold.policies] == [
        ("logged", None, "nobody knows"),
        (newest.intervention, None, "nobody knows"),
    ]
    assert (untold.curve, untold.lists) == ("", 0)

    other = msgspec.structs.replace(newest, features_hash=b"8 others")
    (logged, lacking) = values_of(served._replace(newest=other), log, curve).policies
    assert (lacking.value, lacking.why) == (None, OTHER_FEATURES)
    assert logged.value is not None

    online = msgspec.structs.replace(newest, groups=[])
    for one in values_of(served._replace(newest=online), log, curve).policies:
        assert one.value is not None
        assert (one.interval, one.difference_interval) == (UNKNOWN, UNKNOWN)
        assert one.why == CHOSEN


def test_the_curve_is_that_of_the_settings_else_the_newest_one() -> None:
    """Fitted once for all models; where there is none yet, that is said."""
    world = trained()
    statistics = Statistics(world.read(STATISTICS))
    plain = msgspec.structs.replace(
        MODEL, training=msgspec.structs.replace(PLAN, examination=[])
    )
    models = {"m": MODEL, "n": plain, "o": plain}
    bias = PositionCurve(ranks=3)
    settings = msgspec.structs.replace(world.settings, models=models)
    with_bias = msgspec.structs.replace(settings, curves={"bias": bias})

    clicks = ServedCurves(settings, statistics, {})
    given, estimated = clicks.of("m"), clicks.of("n")
    assert isinstance(given, CurveReplicates)
    assert given.source == "given by models.m.training"
    assert isinstance(estimated, CurveReplicates)
    assert estimated.source.startswith("estimated from clicks")
    assert clicks.of("o") is estimated

    awaited = ServedCurves(with_bias, statistics, {}).of("n")
    assert awaited == "bias, the model of its curve, has no version yet"
    rows = np.repeat([[1.0, 0.7, 0.5], [0.0, 0.0, 0.0]], 3, axis=0)
    published = snapshot(
        700, model="bias", kind="curve", intervention="bias@0.700", n_features=3,
        weights=curve_weights(list(rows)), groups=[13, 14, 15],
    )  # fmt: skip
    newest = ServedCurves(with_bias, statistics, {"bias": published}).of("n")
    assert isinstance(newest, CurveReplicates)
    assert newest.source == "bias@0.700"
    assert newest.curve.alpha.tolist() == [1.0, 0.7, 0.5]


def test_only_what_changed_is_valued_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists or a version; and not before it is time."""
    world = World(trained().settings)
    between = Between(world, monkeypatch)
    assert between.turn() == []
    world.grow(200)
    (first,) = between.turn()
    assert [x.policy for x in first.policies] == ["logged", "m@0.0"]
    between.now_s += 10_000.0
    assert between.turn() == []
    world.grow(200)
    (second,) = between.turn()
    assert second.lists > first.lists
    world.grow(200)
    between.now_s += 599.0
    assert between.turn() == []
    between.now_s += 1.0
    assert len(between.turn()) == 1


def test_it_takes_a_tenth_of_the_time_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a valuation lasts, and also where it gave way."""
    world = World(trained().settings)
    between = Between(world, monkeypatch)

    def slow(*arguments: Any) -> ModelValues:
        between.now_s += 100.0
        return values_of(*arguments)

    monkeypatch.setattr(valuation, "values_of", slow)
    world.grow(200)
    assert len(between.turn()) == 1
    world.grow(200)
    between.now_s += 899.0
    assert between.turn() == []
    between.now_s += 2.0
    assert len(between.turn()) == 1


def test_what_is_due_goes_first_and_a_stop_ends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is written then; it begins anew once it may."""
    world = trained().copied()
    between = Between(world, monkeypatch)
    assert between.turn(lambda: True) == []
    monkeypatch.setattr(valuation, "LOOK_S", 0.0)
    asked = iter([False])
    assert between.turn(lambda: next(asked, True)) == []
    between.now_s += 1.0
    assert len(between.turn()) == 1

    stopped = Between(world, monkeypatch)

    def stopping(*arguments: Any) -> ModelValues:
        stopped.stop.set()
        return values_of(*arguments)

    monkeypatch.setattr(valuation, "values_of", stopping)
    assert stopped.turn() == []
    assert stopped.valuations.counters() == {"values_written": 0, "values_refused": 0}


def test_a_parent_that_the_topic_has_no_more_comes_from_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where nobody has it that is said, and the others are valued all the same."""
    whole = trained().copied()
    first = decode_snapshot(dict(whole.read(SNAPSHOTS))[b"m/0.0"] or b"")
    (expected,) = Between(whole.copied(), monkeypatch).turn()
    records = [x for x in whole.read(SNAPSHOTS) if x[0] != b"m/0.0"]

    def without() -> World:
        world = trained().copied()
        world.kafka.delete(SNAPSHOTS)
        world.kafka.create(SNAPSHOTS, 1)
        world.write(SNAPSHOTS, *records)
        return world

    asked: list[tuple[str, Pointer]] = []

    def load(model: str, at: Pointer) -> Snapshot:
        asked.append((model, at))
        return first

    assert Between(without(), monkeypatch, load).turn() == [expected]
    assert asked == [("m", Pointer(0, 0))]
    (lacking,) = Between(without(), monkeypatch).turn()
    assert lacking.policies[1].value is not None
    assert lacking.policies[2].value is None
    assert lacking.policies[2].why.startswith("Redis must answer")


def test_what_cannot_be_valued_is_said_once_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever it is: of one model the others are valued."""
    world = trained().copied()
    between = Between(world, monkeypatch)

    def spoilt(*_: Any) -> ModelValues:
        raise ValueError(f"the log must be whole; got {between.now_s} of it")

    monkeypatch.setattr(valuation, "values_of", spoilt)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert between.turn() == []
            between.now_s += 1_000.0
    said = [x for x in caplog.records if "event=values-refused" in x.getMessage()]
    assert len(said) == 1
    assert between.valuations.counters()["values_refused"] == 3
    monkeypatch.setattr(valuation, "values_of", values_of)
    assert len(between.turn()) == 1


def test_too_much_memory_is_a_refusal(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """At its next word."""
    world = trained().copied()
    few = msgspec.structs.replace(world.settings.train, memory_mb=64)
    world.settings = msgspec.structs.replace(world.settings, train=few)
    held = []

    def greedy(*arguments: Any) -> ModelValues:
        held.append(np.ones(100 << 17))
        return values_of(*arguments)

    monkeypatch.setattr(valuation, "values_of", greedy)
    with caplog.at_level(logging.WARNING):
        assert Between(world, monkeypatch).turn() == []
    assert "a valuation must fit train.memory_mb, 64 MiB; it took" in caplog.text


def test_the_role_values_what_it_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the turn that trained it, or the next one."""
    monkeypatch.setattr(valuations, "store_of", lambda *_, **__: pytest.fail("asked"))
    world = trained().copied()
    asyncio.run(turned(world, world.trainer(), 2))
    (value,) = [value for _, value in world.read(EVALUATIONS)]
    assert decode_values(value or b"").model == "m"
