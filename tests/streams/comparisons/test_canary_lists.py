"""Lists and clicks of both arms of canaries, by stage and group of sessions."""

from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.settings import ModelSettings, Settings, StatisticsSettings
from rankstream.wire.events import ClickMark, Interaction
from streams.comparisons import canary_lists
from streams.comparisons.canary_lists import (
    CanaryLists,
    StageSums,
    encoded,
    merged,
    stage_key,
    tag_of,
)
from streams.comparisons.preference_fold import PreferencesFold
from streams.native.closed_impressions import closed_of
from tests.event_factory import START_MS, impression
from tests.streams.comparisons.compared_lists import as_changes, state_of

SETTINGS = Settings(
    models={"m": ModelSettings(features=2, versions="promoted")},
    statistics=StatisticsSettings(actions={"buy": "purchase", "look": "click"}),
)
CLASSES = ("click", "purchase")
EXTRAS: list[dict[str, Any]] = [
    {}, {"session": "s"}, {"session": "s", "canary": "m@3.10/1"},
    {"session": "s", "canary": "m@3.10/2"}, {"canary": "m@3.10/1"},
    {"user": "u", "canary": "m@3.10/1"}, {"session": "s", "canary": "other@3.10/1"},
    {"session": "s", "canary": "m"}, {"session": "s", "canary": ""},
    {"session": "s", "canary": 7}, {"session": "s", "canary": None},
    {"session": "s", "attributes": {"canary": "m@3.10/1"}},
]  # fmt: skip
COUNTED = {"m@3.10/1", "m@3.10/2"}


def some_lists(n: int, seed: int = 0) -> list[Interaction]:
    """Of both arms and of others; clicks come twice, and are of several actions."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        extra = EXTRAS[rng.integers(len(EXTRAS))]
        one = impression(
            f"i{i}",
            START_MS + i,
            model=str(rng.choice(["m", "m", "m", "another"])),
            intervention=str(rng.choice(["m@3.10", "m@2.5", "m"])),
            unit=int(rng.integers(2**64, dtype=np.uint64)),
            extra=msgspec.msgpack.encode(extra) if extra else b"",
        )
        clicks = [
            ClickMark(
                int(rng.integers(0, 5)),
                START_MS + i,
                str(rng.choice(["buy", "x", "look"])),
            )
            for _ in range(rng.integers(0, 4))
        ]
        found.append(Interaction(one, clicks))
    return found


def by_hand(lists: list[Interaction]) -> dict[str, np.ndarray[Any, Any]]:
    """The sums, list by list: lists, lists without a click, clicks by class."""
    found: dict[str, np.ndarray[Any, Any]] = {}
    for each in lists:
        one = each.impression
        extra = msgspec.msgpack.decode(one.extra) if one.extra else {}
        tag = extra.get("canary")
        if tag not in COUNTED or not extra.get("session") or one.model != "m":
            continue
        arm = int(one.intervention == "m@3.10")
        group = found.setdefault(tag, np.zeros((100, 2, 4), np.int64))[one.unit % 100]
        n_ranks = len(one.shown) // 2
        clicked = {
            (mark.position, "purchase" if mark.action == "buy" else "click")
            for mark in each.clicks
            if 1 <= mark.position <= n_ranks
        }
        n_clicks = sum(name == "click" for _, name in clicked)
        n_purchases = len(clicked) - n_clicks
        group[arm] += (1, n_clicks == 0, n_clicks, n_purchases)
    return found


def counted(lists: list[Interaction], size: int = 50) -> CanaryLists:
    """What is kept of them."""
    kept = CanaryLists(["m"], SETTINGS.statistics, 0)
    for start in range(0, len(lists), size):
        kept.take(closed_of(lists[start : start + size]))
    return kept


def read(kept: CanaryLists) -> dict[str, StageSums]:
    """All stages, by what was written."""
    values = {each.key: each.value for each in kept.changes()}
    tags = {tag_of(key) for key in values}
    return {tag: merged(values, tag) for tag in tags}  # type: ignore[arg-type, misc]


def test_sums_are_those_by_hand() -> None:
    """Of lists with a session and a stage of the model, and of no others."""
    lists = some_lists(3_000)
    found, expected = read(counted(lists)), by_hand(lists)
    assert found.keys() == expected.keys() == COUNTED
    for tag, stage in found.items():
        assert stage.names == CLASSES
        assert np.array_equal(stage.sums, expected[tag])
        assert (stage.sums[..., :3].sum(axis=(0, 1)) > 0).all()


def test_partitions_add_up() -> None:
    """To the sums of all; those of other classes of actions do not."""
    lists = some_lists(800)
    values: dict[bytes, Any] = {}
    for partition, part in enumerate((lists[:300], lists[300:])):
        kept = CanaryLists(["m"], SETTINGS.statistics, partition)
        kept.take(closed_of(part))
        values |= {each.key: each.value for each in kept.changes()}
    for tag, expected in by_hand(lists).items():
        found = merged(values, tag)
        assert found is not None
        assert np.array_equal(found.sums, expected)
    values[stage_key("m@3.10/1", 7)] = encoded(
        StageSums(("click",), np.zeros((100, 2, 3), np.int64))
    )
    with pytest.raises(ValueError, match="same classes of actions in all partitions"):
        merged(values, "m@3.10/1")
    assert merged(values, "m@3.10/9") is None


def test_a_fold_goes_on_from_what_it_wrote() -> None:
    """Whatever else it counts; the fingerprint is that of one without a break."""
    lists = some_lists(1_000)

    def new() -> PreferencesFold:
        return PreferencesFold(
            {}, 0, canaries=CanaryLists(["m"], SETTINGS.statistics, 0)
        )

    whole, first, second = new(), new(), new()
    whole.take(closed_of(lists))
    first.take(closed_of(lists[:400]))
    state = state_of(first)
    second.restore(as_changes(state))
    assert second.fingerprint() == first.fingerprint()
    second.take(closed_of(lists[400:]))
    assert second.fingerprint() == whole.fingerprint()
    assert state | state_of(second) == state_of(whole)
    assert whole.counters()["canary_lists"] == sum(
        int(each[..., 0].sum()) for each in by_hand(lists).values()
    )


def test_stages_that_never_were_push_out_only_those_with_fewer_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Anybody may send names; what is pushed out leaves the topic too."""
    monkeypatch.setattr(canary_lists, "MOST_STAGES", 3)
    kept = CanaryLists(["m"], SETTINGS.statistics, 0)

    def send(tag: str, n: int) -> None:
        extra = msgspec.msgpack.encode({"session": "s", "canary": tag})
        one = impression("i", START_MS, model="m", intervention="m", extra=extra)
        kept.take(closed_of([Interaction(one, [])] * n))

    send("m@3.10/1", 5)
    for number in range(10):
        send(f"m@9.{number}/1", 2)
    values = {each.key: each.value for each in kept.changes()}
    known = {tag_of(key) for key, value in values.items() if value is not None}
    assert known == {"m@3.10/1", "m@9.8/1", "m@9.9/1"}
    send("m@9.10/1", 1)
    gone = [tag_of(each.key) for each in kept.changes() if each.value is None]
    assert gone == ["m@9.8/1"]
    assert kept.n_lists() == 5 + 2 + 1


def test_earlier_stages_of_the_same_canary_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are judged together, however few lists they have."""
    monkeypatch.setattr(canary_lists, "MOST_STAGES", 3)
    kept = CanaryLists(["m"], SETTINGS.statistics, 0)
    for tag, n in (("m@3.1/1", 9), ("m@4.1/1", 5), ("m@5.1/1", 1), ("m@5.1/2", 1)):
        extra = msgspec.msgpack.encode({"session": "s", "canary": tag})
        one = impression("i", START_MS, model="m", intervention="m", extra=extra)
        kept.take(closed_of([Interaction(one, [])] * n))
    known = {tag_of(x.key) for x in kept.changes() if x.value is not None}
    assert known == {"m@3.1/1", "m@5.1/1", "m@5.1/2"}


def test_sums_by_other_classes_are_written_anew() -> None:
    """By name; classes that are counted no more leave, others begin at nothing."""
    sums = np.arange(100 * 2 * 4).reshape(100, 2, 4).astype(np.int64)
    kept = CanaryLists(["m"], SETTINGS.statistics, 0)
    kept.restore("m@3.10/1", encoded(StageSums(("gone", "click"), sums)))
    (change,) = kept.changes()
    found = merged({change.key: change.value or b""}, "m@3.10/1")
    assert found is not None
    assert found.names == CLASSES
    assert np.array_equal(found.sums[..., :2], sums[..., :2])
    assert np.array_equal(found.sums[..., 2], sums[..., 3])
    assert not found.sums[..., 3].any()
