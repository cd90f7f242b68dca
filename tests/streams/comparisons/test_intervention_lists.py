"""Lists and clicks of interventions: as by hand, exactly, and nobody else's state."""

from collections import Counter
from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.settings import (
    LimitSettings,
    ModelSettings,
    Settings,
    StatisticsSettings,
)
from rankstream.wire.events import ClickMark, Interaction
from streams.comparisons.intervention_lists import (
    InterventionLists,
    merged,
    name_of,
)
from streams.comparisons.preference_fold import PreferencesFold, read_records
from streams.native.closed_impressions import closed_of
from streams.native.intervention_lists import Rules, Sums, Table
from streams.partition_fold import trained_rules
from tests.event_factory import START_MS, impression
from tests.streams.comparisons.compared_lists import (
    EXPERIMENTS,
    as_changes,
    some_interactions,
    state_of,
)

SETTINGS = Settings(
    models={
        "m": ModelSettings(features=2, versions="trained"),
        "online": ModelSettings(features=2),
    },
    statistics=StatisticsSettings(actions={"buy": "purchase", "look": "click"}),
)
NAMES = [
    "m",
    "m@0.10",
    "m@0.10",
    "m@1.10",
    "m@x",
    "m@0.010",
    "m@01.10",
    "m@",
    "mx",
    "",
    "online@1.3",
    "mm@0.1",
    "other",
]
COUNTED = {"m", "m@0.10", "m@1.10"}
EXTRAS: list[dict[str, Any]] = [
    {}, {"session": "s1"}, {"user": "u"}, {"session": ""},
    {"session": None, "user": "u"}, {"rankings": {"a": ["x"]}},
    {"attributes": {"user": "no"}},
    {"rankings": {f"r{i}": ["x"] for i in range(16)}, "session": "s1"},
    {"attributes": {str(i): i for i in range(70_000)}, "user": "u"},
    {"attributes": {"x": msgspec.msgpack.Ext(1, b"abc")}, "session": "s1"},
    {"assignments": [1] * 70_000, "session": "s" * 70_000},
]  # fmt: skip


def some_lists(n: int, seed: int = 0) -> list[Interaction]:
    """Of many interventions; clicks come twice, are of other actions, or nowhere."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        extra = EXTRAS[rng.integers(len(EXTRAS))]
        one = impression(
            f"i{i}",
            START_MS + i,
            intervention=str(rng.choice(NAMES)),
            unit=int(rng.integers(2**64, dtype=np.uint64)),
            extra=msgspec.msgpack.encode(extra) if extra else b"",
        )
        marks = [
            ClickMark(
                int(rank), START_MS + i, str(rng.choice(["click", "buy", "look"]))
            )
            for rank in rng.integers(0, len(one.shown) // 2 + 2, rng.integers(4))
        ]
        found.append(Interaction(one, marks))
    return found


def by_hand(log: list[Interaction], reward: str = "click") -> dict[str, Counter[Any]]:
    """Lists, clicks by group, and lists without a session, of `m`."""
    counted: dict[str, Counter[Any]] = {}
    classes = {"click": "click", "look": "click", "buy": "purchase"}
    for one in log:
        shown = one.impression
        if shown.intervention not in COUNTED:
            continue
        counts = counted.setdefault(shown.intervention, Counter())
        group = shown.unit % 100
        extra = msgspec.msgpack.decode(shown.extra) if shown.extra else {}
        ranks = {
            mark.position
            for mark in one.clicks
            if classes[mark.action] == reward
            and 1 <= mark.position <= len(shown.shown) / 2
        }
        counts["lists", group] += 1
        counts["clicks", group] += len(ranks)
        counts["without"] += not (extra.get("session") or extra.get("user"))
    return {name: +counts for name, counts in counted.items()}


def as_counts(sums: Sums) -> Counter[Any]:
    """The same of sums."""
    counts: Counter[Any] = Counter({"without": int(sums.without_session[0])})
    for group, (lists, clicks) in enumerate(sums.groups.tolist()):
        counts["lists", group], counts["clicks", group] = lists, clicks
    return +counts


def fold_of(settings: Settings = SETTINGS, partition: int = 0) -> PreferencesFold:
    """A fold that counts interventions, and compares."""
    return PreferencesFold(EXPERIMENTS, partition, trained_rules(settings))


def lists_of(fold: PreferencesFold) -> InterventionLists:
    """What it counts of interventions."""
    assert fold.interventions is not None
    return fold.interventions


def counts_of(fold: PreferencesFold) -> dict[str, Counter[Any]]:
    """By intervention."""
    return {name: as_counts(one) for name, one in lists_of(fold).sums().items()}


@pytest.mark.parametrize("reward", ["click", "purchase"])
def test_lists_and_clicks_are_those_of_the_log(reward: str) -> None:
    """However it is cut into batches; in C, and where it must be, in Python."""
    statistics = msgspec.structs.replace(SETTINGS.statistics, reward=reward)
    settings = msgspec.structs.replace(SETTINGS, statistics=statistics)
    log = some_lists(600)
    whole, cut = fold_of(settings), fold_of(settings)
    whole.take(closed_of(log))
    for first in range(0, len(log), 7):
        cut.take(closed_of(log[first : first + 7]))

    assert counts_of(whole) == by_hand(log, reward)
    assert counts_of(cut) == counts_of(whole)
    assert cut.fingerprint() == whole.fingerprint()
    assert state_of(cut) == state_of(whole)


def test_what_c_counts_is_what_python_counts() -> None:
    """List by list: whatever C leaves alone is counted by the plain rules."""
    log = some_lists(300, seed=1)
    native, plain = lists_of(fold_of()), lists_of(fold_of())
    native.take(closed_of(log))
    for one in log:
        plain._take(one)

    assert {n: as_counts(s) for n, s in native.sums().items()} == {
        n: as_counts(s) for n, s in plain.sums().items()
    }


def test_known_interventions_are_not_decoded() -> None:
    """C goes through all lists in one call."""
    log = some_lists(300)
    table = Table(rules_of())
    assert table.take(closed_of(log), 0) == len(log)
    counted = {name: table.sums(row) for name, row in table.rows().items()}
    assert {name: as_counts(one) for name, one in counted.items()} == by_hand(log)


def rules_of() -> Rules:
    """Of the settings above."""
    actions = {"buy": False, "look": True}
    return Rules(["m"], 256, actions, counts_others=True)


def test_a_restarted_fold_goes_on_where_it_was() -> None:
    """Whole, or restored in the middle: equal state, equal fingerprint."""
    log = some_lists(400)
    whole, first = fold_of(), fold_of()
    whole.take(closed_of(log))
    first.take(closed_of(log[:150]))
    again = fold_of()
    again.restore(as_changes(state_of(first)))
    assert again.fingerprint() == first.fingerprint()
    assert list(again.changes({})) == []
    again.take(closed_of(log[150:]))

    assert counts_of(again) == counts_of(whole)
    assert again.fingerprint() == whole.fingerprint()
    assert state_of(again) == state_of(whole)


def test_only_what_changed_is_written() -> None:
    """A list of one intervention writes no other one."""
    fold = fold_of()
    fold.take(closed_of(some_lists(200)))
    assert len(state_of(fold)) == len(COUNTED)
    last = some_lists(1)[0]
    shown = msgspec.structs.replace(last.impression, intervention="m@1.10")
    fold.take(closed_of([Interaction(shown, last.clicks)]))

    assert [name_of(key) for key in state_of(fold)] == ["m@1.10"]


def test_state_of_others_is_what_it_was() -> None:
    """Without a trained model nothing is counted; with one, the rest stays as it is."""
    log = [
        Interaction(
            msgspec.structs.replace(one.impression, intervention="other"), one.clicks
        )
        for one in some_interactions(60)
    ]
    with_one, without = fold_of(), PreferencesFold(EXPERIMENTS, 0)
    for fold in (with_one, without):
        fold.take(closed_of(log))
    assert with_one.fingerprint() == without.fingerprint()
    assert (written := state_of(without)) == state_of(with_one)
    assert written

    lists = some_lists(50)
    online = Settings(models={"online": SETTINGS.models["online"]})
    assert trained_rules(online) is None
    for fold in (with_one, without):
        fold.take(closed_of(lists))
    (counts,) = state_of(without).items()
    added = state_of(with_one)
    assert counts in added.items()
    assert {name_of(key) for key in added} == {None, *COUNTED}
    assert without.counters().items() <= with_one.counters().items()


def test_a_fold_without_the_model_leaves_its_sums_alone() -> None:
    """Of a model that was taken out of the settings; comparisons read on."""
    fold = fold_of()
    fold.take(closed_of(some_lists(50) + some_interactions(10)))
    state = state_of(fold)
    other = PreferencesFold(EXPERIMENTS, 0)
    other.restore(as_changes(state))

    assert other.interventions is None
    assert [each.name for each in other.comparisons()] == ["boost"]
    assert not read_records(state).refused
    assert len(read_records(state).comparisons) == 1


def test_partitions_add_up() -> None:
    """Sums of all are those of one fold that takes everything."""
    log = some_lists(400)
    parts = [fold_of(partition=p) for p in range(3)]
    values: dict[bytes, bytes] = {}
    for p, fold in enumerate(parts):
        fold.take(closed_of(log[p::3]))
        values |= state_of(fold)

    assert {n: as_counts(s) for n, s in merged(values).items()} == by_hand(log)


def limited(most: int) -> Settings:
    """With so many interventions of a model."""
    limits = LimitSettings(interventions=most)
    return msgspec.structs.replace(SETTINGS, limits=limits)


def shown_as(*names: str) -> list[Interaction]:
    """A list of each of these interventions."""
    one = some_lists(1)[0].impression
    return [
        Interaction(msgspec.structs.replace(one, intervention=name), [])
        for name in names
    ]


def test_those_with_the_fewest_lists_leave_with_a_tombstone() -> None:
    """Whatever their versions are; what was counted of them is told."""
    fold = fold_of(limited(3))

    def show(*names: str) -> list[tuple[str | None, bool]]:
        fold.take(closed_of(shown_as(*names)))
        changes = [*fold.changes({})]
        return [(name_of(key), value is None) for _, key, value in changes]

    assert show("m") == [("m", False)]
    assert show("m@0.9", "m@0.9") == [("m@0.9", False)]
    assert show("m@1.2") == [("m@1.2", False)]
    assert show("m@0.10") == [("m@1.2", True), ("m@0.10", False), (None, False)]
    assert show("m@5.5") == [("m@0.10", True), ("m@5.5", False), (None, False)]
    assert show("m@05.5", "m@x") == []
    assert sorted(lists_of(fold).sums()) == ["m", "m@0.9", "m@5.5"]
    counters = fold.counters()
    assert counters["intervention_lists"] == 6
    assert counters["intervention_lists_uncounted"] == 2


def test_the_first_policy_always_has_room() -> None:
    """It comes in last, and stays where there is room for nothing else."""
    fold = fold_of(limited(1))
    fold.take(closed_of(shown_as("m@0.1", "m", "m@0.1", "m@0.2")))

    assert [*lists_of(fold).sums()] == ["m"]
    assert fold.counters()["intervention_lists_uncounted"] == 3


def test_made_up_versions_push_out_nobody_who_is_shown() -> None:
    """Neither those that are there, nor one that comes while they arrive."""
    fold = fold_of(limited(32))
    fold.take(closed_of(shown_as(*["m", "m", "m@0.1000", "m@0.1000"])))
    made_up = [f"m@900000000000000.{n}" for n in range(1_000)]
    fold.take(closed_of(shown_as(*made_up[:500])))
    fold.take(closed_of(shown_as("m@0.2000")))
    for name in made_up[500:]:
        fold.take(closed_of(shown_as(name, "m@0.2000")))

    counted = {
        name: sum(one.groups[:, 0]) for name, one in lists_of(fold).sums().items()
    }
    assert len(counted) == 32
    assert counted["m"] == counted["m@0.1000"] == 2
    assert counted["m@0.2000"] == 501
    assert fold.counters()["intervention_lists_uncounted"] == 1_000 - 29


def test_new_ones_that_come_together_are_kept() -> None:
    """Where all others have lists, neither pushes the other out."""
    fold = fold_of(limited(32))
    for version in range(40):
        fold.take(closed_of(shown_as(*[f"m@0.{version}"] * 5)))
    fold.take(closed_of(shown_as(*["m@1.1", "m@1.2"] * 10)))

    counted = lists_of(fold).sums()
    assert (
        sum(counted["m@1.1"].groups[:, 0]) == sum(counted["m@1.2"].groups[:, 0]) == 10
    )


def kept_of(names: list[str], most: int) -> tuple[Counter[str], int]:
    """The rule in plain words: lists of those that are kept, and of no others."""
    lists: Counter[str] = Counter()
    begun: dict[str, int] = {}
    lost = 0
    for name in names:
        if name not in lists and len(lists) == most:
            begins = max(begun.values(), default=-1) + 1
            leaving = [each for each in begun if begun[each] < begins - most // 16]
            if not leaving:
                lost += 1
                continue
            least = min(leaving, key=lambda each: (lists[each], begun[each]))
            lost += lists.pop(least)
            del begun[least]
            if name != "m":
                begun[name] = begins
        elif name not in lists and name != "m":
            begun[name] = max(begun.values(), default=-1) + 1
        lists[name] += 1
    return lists, lost


@pytest.mark.parametrize("most", [1, 2, 5, 40])
def test_what_is_kept_follows_from_the_order_alone(most: int) -> None:
    """As the rule says; also of a fold that is restored again and again."""
    rng = np.random.default_rng(most)
    shares = rng.permutation(np.arange(1, 61) ** -1.0)
    places = rng.choice(60, 2_000, p=shares / shares.sum())
    names = [f"m@{n % 3}.{n}" if n else "m" for n in places.tolist()]
    log = shown_as(*names)
    whole = fold_of(limited(most))
    state: dict[bytes, bytes] = {}
    whole.take(closed_of(log))
    for first in range(0, len(log), 300):
        part = fold_of(limited(most))
        part.restore(as_changes(state))
        part.take(closed_of(log[first : first + 300]))
        written = {key: value for _, key, value in part.changes({})}
        changed = {**state, **written}
        state = {key: value for key, value in changed.items() if value is not None}

    lists, lost = kept_of(names, most)
    counted = lists_of(whole).sums()
    assert {name: sum(one.groups[:, 0]) for name, one in counted.items()} == lists
    assert whole.counters()["intervention_lists_uncounted"] == lost
    assert state == state_of(whole)
    assert part.fingerprint() == whole.fingerprint()


def test_models_keep_their_own() -> None:
    """Versions of one take no room of another; names with an @ are read whole."""
    models = dict.fromkeys(("m", "m@0", "é"), SETTINGS.models["m"])
    settings = msgspec.structs.replace(limited(2), models=models)
    fold = fold_of(settings)
    fold.take(closed_of(shown_as("m@0", "m@0@0.1", "é@1.2", "m", "m@0.1", "m@@0.1")))
    fold.take(closed_of(shown_as(*(f"m@7.{n}" for n in range(9)))))

    assert sorted(lists_of(fold).sums()) == ["m", "m@0", "m@0@0.1", "m@7.8", "é@1.2"]


def test_the_longest_name_of_any_model_has_room() -> None:
    """Beside a model of a short name, with as many digits as there may be."""
    last = "9" * 15
    longest = f"{'long ' * 20}@{last}.{last}"
    models = dict.fromkeys(("m", "long " * 20), SETTINGS.models["m"])
    fold = fold_of(msgspec.structs.replace(SETTINGS, models=models))
    fold.take(closed_of(shown_as("m@0.1", longest)))

    assert sorted(lists_of(fold).sums()) == [longest, "m@0.1"]
    assert fold.counters()["intervention_lists_uncounted"] == 0


def test_sums_of_another_shape_never_reach_c() -> None:
    """It would write beside them."""
    short = Sums(np.zeros((99, 2), np.int64), np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="must be of shapes"):
        Table(rules_of()).put("m@0.1", short, 0)
