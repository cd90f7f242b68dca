"""Clicks per list of interventions, from sums to the records of `evaluations`."""

import asyncio
from collections import Counter

import msgspec
import numpy as np
import pytest

from rankstream.settings import Settings
from rankstream.wire.events import decode_interaction_record
from rankstream.wire.models.model_evaluations import decode_rates, encode_rates
from rankstream.wire.topics import INTERACTIONS
from streams.comparisons.intervention_lists import empty, merged
from streams.comparisons.intervention_rates import MOST_TOLD, rate_of, rates_of
from streams.comparisons.preference_fold import PreferencesFold
from streams.fold.join import OUTCOMES
from streams.kafka.committed_reader import CommittedBatch
from streams.kafka.reader_role import FollowedPartition
from streams.native.closed_impressions import closed_of
from streams.native.intervention_lists import Sums
from streams.partition_fold import preferences_among, trained_rules
from streams.roles import evaluator as module
from streams.roles.evaluator import Evaluator
from tests.streams.comparisons.compared_lists import EXPERIMENTS, some_interactions
from tests.streams.training.shop import Shop, model_of, settings_of


def sums_of(lists: int, clicks: int, *, groups: int = 100, without: int = 0) -> Sums:
    """So many lists and clicks in each of the first groups."""
    found = empty()
    found.groups[:groups] = lists, clicks
    found.without_session[0] = without
    return found


@pytest.mark.parametrize(
    ("sums", "why"),
    [
        (empty(), "No list yet."),
        (sums_of(5, 2, groups=20), "Sessions fill 20.0 groups of 100 evenly"),
        (sums_of(50, 20, without=4_000), "4,000 of 5,000 lists name neither"),
        (sums_of(1, 1), "100 lists are too few where 1,000,000 are planned."),
    ],
)
def test_where_nothing_can_be_said_the_reason_is(sums: Sums, why: str) -> None:
    """No interval, but what was counted."""
    planned = 1_000_000 if "planned" in why else 10_000
    found = rate_of("m@0.1", sums, 0.05, planned)
    assert found.to_come == (None, None)
    assert found.why.startswith(why)
    assert found.lists == sums.groups[:, 0].sum()


def test_rates_come_with_their_interval() -> None:
    """Around the mean, never below 0; they survive their JSON."""
    rng = np.random.default_rng(1)
    sums = sums_of(100, 0)
    sums.groups[:, 1] = rng.poisson(50, 100)
    rates = rates_of({"b@0.9": sums, "b@0.10": sums, "a@1.2": sums, "b": sums})
    assert [each.model for each in rates] == ["a", "b"]
    names = [each.intervention for each in rates[1].interventions]
    assert names == ["b", "b@0.9", "b@0.10"]
    (found,) = rates[0].interventions
    low, high = found.to_come
    assert found.why == ""
    assert low is not None
    assert high is not None
    assert 0.0 < low < (found.mean or 0.0) < high
    assert decode_rates(encode_rates(rates[1])) == rates[1]


def test_made_up_versions_hide_none_that_is_shown() -> None:
    """Of more than a record holds, those with the most lists are told, in order."""
    sums = {f"m@{n}.5": sums_of(1, 0) for n in range(7, MOST_TOLD + 9)}
    shown = {"m@0.9": sums_of(2, 1), "m": sums_of(1, 0), "m@6.1": sums_of(3, 0)}
    (rates,) = rates_of(sums | shown)
    names = [each.intervention for each in rates.interventions]
    assert names[:4] == ["m", "m@0.9", "m@6.1", "m@12.5"]
    assert len(names) == MOST_TOLD


def test_only_the_newest_of_equal_ones_are_told() -> None:
    """A record has bounds."""
    (rates,) = rates_of({f"m@{n}.5": sums_of(1, 0) for n in range(MOST_TOLD + 3)})
    assert len(rates.interventions) == MOST_TOLD
    assert rates.interventions[-1].intervention == f"m@{MOST_TOLD + 2}.5"


def trained_shop() -> tuple[Shop, dict[bytes, bytes]]:
    """Lists of three policies in two partitions, and the records of `preferences`."""
    model = model_of(after=[300, 600], least_support=1.0)
    settings = settings_of({"m": model}, partitions=2)
    shop = Shop(settings)
    shop.show(900, np.random.default_rng(0))
    shop.end()
    values: dict[bytes, bytes] = {}
    for fold in shop.pipeline.folds:
        changes = preferences_among(fold.consumers).interventions
        assert changes is not None
        # The trainer has asked for what changed; a new writer writes everything.
        changes._written.clear()
        values |= {key: value for _, key, value in changes.changes() if value}
    return shop, values


def evaluated(
    settings: Settings, values: dict[bytes, bytes]
) -> list[tuple[bytes, bytes]]:
    """What the evaluator writes, the second time nothing."""
    evaluator = Evaluator(settings)
    batch = CommittedBatch([*values.items()], at_end=True)
    evaluator.take(FollowedPartition("preferences"), batch)
    written = evaluator.verdicts(evaluator.values())
    assert evaluator.verdicts(evaluator.values()) == []
    return written


def test_what_interventions_earned_is_what_their_lists_did() -> None:
    """A loop that trains itself: counts of each are those of the log, and are told."""
    shop, values = trained_shop()
    lists, clicks = Counter[str](), Counter[str]()
    for output in shop.outputs:
        if output.topic == INTERACTIONS:
            for one in decode_interaction_record(output.value or b"").interactions:
                name = one.impression.intervention
                lists[name] += 1
                clicks[name] += len({mark.position for mark in one.clicks})
    names = ["m", *(run.intervention for run in shop.trainer.runs)]
    assert len(names) == 3
    sums = merged(values)
    assert {name: one.groups.sum(axis=0).tolist() for name, one in sums.items()} == {
        name: [lists[name], clicks[name]] for name in names
    }
    assert sum(lists.values()) == 900

    ((key, value),) = evaluated(shop.settings, values)
    assert key == b"m/interventions"
    rates = decode_rates(value)
    assert [each.intervention for each in rates.interventions] == names
    assert [each.lists for each in rates.interventions] == [lists[n] for n in names]
    for each in rates.interventions:
        assert each.mean == pytest.approx(clicks[each.intervention] / each.lists)


def test_sums_that_cannot_be_read_stop_no_verdict() -> None:
    """They are of another release: said once, and nothing is told of them."""
    _, values = trained_shop()
    key = next(iter(values))
    broken = values | {key: b"\x93\x09" + values[key][2:]}
    assert evaluated(Settings(), broken) == []
    assert len(evaluated(Settings(), values)) == 1
    assert msgspec.msgpack.decode(values[key])[0] == 1


class Taking:
    """A producer that keeps keys of what it is given."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []

    async def send_and_wait(self, topic: str, value: bytes, key: bytes) -> None:
        """Take it."""
        del topic, value
        self.keys.append(key)


def test_clicks_per_list_are_no_lines_of_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They move at every turn while lists are shown; verdicts on experiments do."""
    monkeypatch.setattr(module, "EVERY_S", 0.01)
    settings = Settings(models={"m": model_of(after=[300])})
    fold = PreferencesFold(EXPERIMENTS, 0, trained_rules(settings))
    fold.take(closed_of(some_interactions(5)))
    changes = fold.changes(dict.fromkeys(OUTCOMES, 1))
    batch = CommittedBatch([(x.key, x.value) for x in changes], at_end=True)
    evaluator, producer = Evaluator(settings), Taking()
    evaluator.take(FollowedPartition("preferences"), batch)
    monkeypatch.setattr(evaluator, "_producer", producer)
    with caplog.at_level("INFO", logger="rankstream.evaluator"):
        asyncio.run(evaluator.turn(asyncio.Event()))
    assert producer.keys == [b"boost", b"m/interventions"]
    assert [x.getMessage() for x in caplog.records] == [
        "event=verdict experiment=boost"
    ]
