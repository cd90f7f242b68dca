"""Plain lists, credited in C, against the comparison itself: every bit of the state."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.ranking.combining import combine, draw_seed
from rankstream.settings import ExperimentSettings
from rankstream.wire.events import MULTILEAVE, ClickMark, Impression, Interaction
from streams.comparisons.plain_lists import PlainLists
from streams.comparisons.preference_fold import PreferencesFold
from streams.native.closed_impressions import closed_of
from tests.event_factory import START_MS, impression
from tests.streams.comparisons.compared_lists import as_changes, state_of

Change = Callable[[dict[str, Any], list[str]], object]
ITEMS = sorted(f"document {i}" * (i % 3 + 1) for i in range(30))
LENGTH = 8


def drawn(
    i: int, settings: ExperimentSettings, rng: np.random.Generator, change: Change
) -> Interaction:
    """A list of the experiment, after a change of what is logged; and clicks on it."""
    n_left = int(rng.integers(3, 12))
    found = combine(
        settings.method,
        {
            name: [ITEMS[d] for d in rng.permutation(14)[:n_left]]
            for name in settings.rankers
        },
        LENGTH,
        seed=i,
        options=settings.options,
    )
    extra: dict[str, Any] = {
        "experiment": {"id": "boost", "epoch": 3, "method": settings.method},
        "rankings": found.rankings,
        "user": f"u{i // 3}",
        "attributes": {"experiment": "none"},
    }
    if found.assignments is not None:
        extra["assignments"] = found.assignments
    shown = list(found.shown)
    change(extra, shown)
    one = impression(
        f"i{i}", START_MS + int(rng.integers(1_000)), items=ITEMS, shown=shown,
        policy=MULTILEAVE, extra=msgspec.msgpack.encode(extra),
    )  # fmt: skip
    if i % 2:
        one = msgspec.structs.replace(one, seed=draw_seed("boost", 3, f"i{i}"))
    return clicked(one, rng)


def clicked(one: Impression, rng: np.random.Generator) -> Interaction:
    """Clicks on some places, on the first of them twice."""
    places = np.flatnonzero(rng.random(len(one.shown) // 2) < rng.random() * 0.6) + 1
    marks = [ClickMark(int(place), one.at_ms + 1, "click") for place in places]
    return Interaction(one, marks + marks[:1])


def unchanged(extra: dict[str, Any], shown: list[str]) -> None:
    """As it was drawn."""


def lists_of_one(extra: dict[str, Any], shown: list[str]) -> None:
    """All rankers but one agree, and theirs is shown."""
    first = next(iter(extra["rankings"].values()))
    extra["rankings"] = dict.fromkeys(extra["rankings"], first)
    extra["rankings"]["r1"] = first[::-1]
    shown[:] = first[:LENGTH]


def a_place_too_high(extra: dict[str, Any], shown: list[str]) -> None:
    """One document stands right above its best rank, where there is such a one."""
    lists = list(extra["rankings"].values())
    shown[:] = lists[0][:LENGTH]
    for place in range(len(shown) - 1, 0, -1):
        if all(shown[place] not in each[:place] for each in lists):
            shown[place - 1 : place + 1] = shown[place], shown[place - 1]
            return


def all_of_one_team(extra: dict[str, Any], shown: list[str]) -> None:
    """A ranker took every turn."""
    shown[:] = extra["rankings"]["r1"][:LENGTH]
    extra["assignments"] = [1] * len(shown)


CHANGES: dict[str, Change] = {
    "cut short": lambda _, shown: shown.__delitem__(slice(2, None)),
    "empty": lambda _, shown: shown.clear(),
    "another order": lambda _, shown: shown.reverse(),
    "foreign": lambda _, shown: shown.__setitem__(1, ITEMS[29]),
    "all but one agree": lists_of_one,
    "a place too high": a_place_too_high,
    "all of one team": all_of_one_team,
    "silent": lambda extra, _: extra["rankings"].__setitem__("r1", []),
    "unknown item": lambda extra, _: extra["rankings"]["r1"].append("nobody's"),
    "repeated": lambda extra, _: extra["rankings"]["r0"].append(ITEMS[20]),
    "twice": lambda extra, _: extra["rankings"].__setitem__("r2", [ITEMS[0]] * 2),
    "rankers missing": lambda extra, _: extra["rankings"].pop("r0"),
    "another ranker": lambda extra, _: extra["rankings"].__setitem__("x", []),
    "another order of rankers": lambda extra, _: extra["rankings"].__setitem__(
        "r0", extra["rankings"].pop("r0")
    ),
    "nobody's rankings": lambda extra, _: extra.__setitem__("rankings", None),
    "no experiment": lambda extra, _: extra.__setitem__("experiment", None),
    "not named": lambda extra, _: extra.pop("experiment"),
    "another epoch": lambda extra, _: extra["experiment"].__setitem__("epoch", 2),
    "another method": lambda extra, _: extra["experiment"].__setitem__("method", "ab"),
    "of a session": lambda extra, _: extra.__setitem__("session", "s"),
    "of nobody": lambda extra, _: extra.pop("user"),
    "teams of one": lambda extra, shown: extra.__setitem__(
        "assignments", [1] * len(shown)
    ),
    "no teams": lambda extra, _: extra.__setitem__("assignments", None),
    "too few teams": lambda extra, _: extra.__setitem__("assignments", [0]),
}

EXPERIMENTS = {
    "ten rankers": ExperimentSettings(
        rankers={f"r{i}": "" for i in range(10)}, epoch=3, length=LENGTH
    ),
    "light pairs": ExperimentSettings(
        rankers={f"r{i}": "" for i in range(5)}, epoch=3, length=10,
        options={"largest_weight": 3.0},
    ),
    "teams": ExperimentSettings(
        rankers={f"r{i}": "" for i in range(3)}, epoch=3, length=LENGTH,
        method="team-draft",
    ),
    "two teams, for a while": ExperimentSettings(
        rankers={"r0": "", "r1": "", "r2": ""}, epoch=3, length=LENGTH,
        method="team-draft", start_ms=START_MS + 100, end_ms=START_MS + 900,
    ),
}  # fmt: skip


def folded(settings: ExperimentSettings, log: list[Interaction]) -> dict[bytes, bytes]:
    """The state after a log, with a checkpoint in its middle."""
    fold = PreferencesFold({"boost": settings}, 0)
    fold.take(closed_of(log[: len(log) // 2]))
    later = PreferencesFold({"boost": settings}, 0)
    later.restore(as_changes(state_of(fold)))
    later.take(closed_of(log[len(log) // 2 :]))
    return state_of(later)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_state_is_that_of_the_comparison(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of lists as they are drawn, and of all that may be wrong with one."""
    settings, rng = EXPERIMENTS[name], np.random.default_rng(4)
    changes = [unchanged] * len(CHANGES) * 3 + list(CHANGES.values()) * 4
    order = rng.permutation(len(changes)).tolist()
    log = [drawn(i, settings, rng, changes[which]) for i, which in enumerate(order)]
    found = folded(settings, log)
    monkeypatch.setattr(PlainLists, "take", lambda _self, _closed, first: first)

    assert folded(settings, log) == found


@pytest.mark.parametrize("name", ["ten rankers", "light pairs", "teams"])
def test_lists_as_they_are_drawn_are_plain(name: str) -> None:
    """All of a log are credited in one call."""
    settings, rng = EXPERIMENTS[name], np.random.default_rng(5)
    log = [drawn(i, settings, rng, unchanged) for i in range(200)]
    fold = PreferencesFold({"boost": settings}, 0)
    plain = PlainLists(fold.comparisons())

    assert plain.take(closed_of(log), 0) == len(log)
    assert plain.pass_on() == len(log)
    assert plain.pass_on() == 0
    assert fold.comparisons()[0].totals[0] == len(log)


@pytest.mark.parametrize("n_bytes", [1, 100, 127, 128, 129, 300])
def test_seeds_are_told_from_foreign_ones_however_long_ids_are(n_bytes: int) -> None:
    """Half of the lists have a seed of their id."""
    settings, rng = EXPERIMENTS["teams"], np.random.default_rng(6)
    log, name = [], "n" * n_bytes
    for i in range(4):
        one = drawn(i, settings, rng, unchanged)
        seed = draw_seed("boost", 3, name) ^ (i % 2)
        named = msgspec.structs.replace(one.impression, impression_id=name, seed=seed)
        log.append(msgspec.structs.replace(one, impression=named))
    fold = PreferencesFold({"boost": settings}, 0)
    plain = PlainLists(fold.comparisons())

    assert plain.take(closed_of(log), 0) == len(log)
    plain.pass_on()
    assert fold.comparisons()[0].n_foreign_seeds == len(log) // 2


@pytest.mark.parametrize("field", ["experiment", "assignments", "user"])
@pytest.mark.parametrize("name", ["ten rankers", "teams"])
def test_of_a_field_that_comes_twice_the_last_holds(
    name: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a decoder reads it; nothing of ours writes it."""
    settings, rng = EXPERIMENTS[name], np.random.default_rng(8)
    log = []
    for i in range(4):
        one = drawn(i, settings, rng, unchanged)
        packed = one.impression.extra
        twice = bytes([packed[0] + 1]) + packed[1:] + msgspec.msgpack.encode(field)
        forged = msgspec.structs.replace(one.impression, extra=twice + b"\xc0")
        log.append(msgspec.structs.replace(one, impression=forged))
    found = folded(settings, log)
    monkeypatch.setattr(PlainLists, "take", lambda _self, _closed, first: first)

    assert folded(settings, log) == found


UNREADABLE = {
    "a session that is a number": lambda extra, _: extra.__setitem__("session", 7),
    "a binary session": lambda extra, _: extra.__setitem__("session", b"s1"),
    "a user that is a list": lambda extra, _: extra.__setitem__("user", ["u1"]),
    "a name that is binary": lambda extra, _: extra.__setitem__(b"user", "u1"),
    "rankings of numbers": lambda extra, _: extra.__setitem__("rankings", {"r0": [1]}),
    "teams of text": lambda extra, _: extra.__setitem__("assignments", ["r0"]),
}
"""What ingestion never writes, and a forged record may hold."""


@pytest.mark.parametrize("what", UNREADABLE)
@pytest.mark.parametrize("name", ["ten rankers", "teams"])
def test_what_cannot_be_read_is_refused_and_stops_nothing(
    name: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In C and without it alike; and the next list is credited."""
    settings, rng = EXPERIMENTS[name], np.random.default_rng(9)
    forged = drawn(0, settings, rng, UNREADABLE[what])
    log = [forged, drawn(1, settings, rng, unchanged)]
    fold = PreferencesFold({"boost": settings}, 0)
    fold.take(closed_of(log))
    (found,) = fold.comparisons()
    is_whose = what != "a name that is binary"
    counted = fold.counters()

    assert counted["compared_impressions"] == 2
    assert counted["compared_credited"] == 1
    assert found.refusals == ({"unreadable": 1} if is_whose else {})
    assert counted["compared_unknown"] == int(not is_whose)
    monkeypatch.setattr(PlainLists, "take", lambda _self, _closed, first: first)
    alone = PreferencesFold({"boost": settings}, 0)
    alone.take(closed_of(log))
    assert state_of(alone) == state_of(fold)


def test_what_cannot_be_read_is_of_an_unknown_experiment_where_none_is_known() -> None:
    """It is counted alike, whoever reads it."""
    settings, rng = EXPERIMENTS["teams"], np.random.default_rng(9)
    log = [drawn(i, settings, rng, each) for i, each in enumerate(UNREADABLE.values())]
    fold = PreferencesFold({}, 0)
    fold.take(closed_of(log))

    assert fold.counters()["compared_unknown"] == len(log)
    assert fold.counters()["compared_impressions"] == len(log)


def test_lists_in_lists_without_end_stop_nothing() -> None:
    """Where a decoder gives up; ingestion takes 16 levels."""
    settings, rng = EXPERIMENTS["teams"], np.random.default_rng(9)
    one = drawn(0, settings, rng, CHANGES["no teams"])
    deep = msgspec.msgpack.encode("deep") + b"\x91" * 100_000 + b"\xc0"
    packed = one.impression.extra
    extra = bytes([packed[0] + 1]) + packed[1:] + deep
    forged = msgspec.structs.replace(one.impression, extra=extra)
    fold = PreferencesFold({"boost": settings}, 0)
    fold.take(closed_of([msgspec.structs.replace(one, impression=forged)]))

    assert fold.counters()["compared_unknown"] == 1


def test_candidates_that_are_none_are_refused() -> None:
    """A list of no items, and bytes that are no list: in a process that may die."""
    settings, rng = EXPERIMENTS["teams"], np.random.default_rng(10)
    log = [drawn(i, settings, rng, unchanged) for i in range(3)]
    for i, candidates in enumerate((b"\x90", b"\xc1")):
        one = msgspec.structs.replace(log[i].impression, candidates=candidates)
        log[i] = msgspec.structs.replace(log[i], impression=one)
    program = (
        "import sys, msgspec\n"
        "from rankstream.wire.events import Interaction\n"
        "from tests.streams.comparisons.test_plain_lists import EXPERIMENTS\n"
        "from streams.comparisons.preference_fold import PreferencesFold\n"
        "from streams.native.closed_impressions import closed_of\n"
        "packed = sys.stdin.buffer.read()\n"
        "log = msgspec.msgpack.decode(packed, type=list[Interaction])\n"
        "fold = PreferencesFold({'boost': EXPERIMENTS['teams']}, 0)\n"
        "fold.take(closed_of(log))\n"
        "(found,) = fold.comparisons()\n"
        "assert found.refusals == {'unknown-items': 1, 'unreadable': 1}\n"
        "assert found.totals[0] == 1\n"
    )
    done = in_a_process(program, log)
    assert done.returncode == 0, done.stderr.decode()


def test_large_lists_and_names_are_not_plain() -> None:
    """What the core has no room for is credited as ever."""
    rankers = {f"r{i}": "" for i in range(6)}
    many = ExperimentSettings(rankers={f"r{i}": "" for i in range(65)}, epoch=3)
    some = ExperimentSettings(rankers=rankers, epoch=3, length=33)
    for name, settings in (("boost", many), ("boost", some), ("b" * 130, some)):
        rng = np.random.default_rng(6)
        log = [drawn(i, settings, rng, unchanged) for i in range(3)]
        fold = PreferencesFold({name: settings}, 0)
        assert PlainLists(fold.comparisons()).take(closed_of(log), 0) == 0
        fold.take(closed_of(log))
        counted = fold.counters()
        assert counted["compared_impressions"] == 3
        assert counted["compared_credited"] == (3 if name == "boost" else 0)


def test_folds_without_experiments_load_no_comparison() -> None:
    """Nor what compiles, however many lists of unknown experiments come."""
    settings, rng = EXPERIMENTS["teams"], np.random.default_rng(7)
    log = [drawn(i, settings, rng, unchanged) for i in range(2)]
    program = (
        "import sys, msgspec\n"
        "from rankstream.wire.events import Interaction\n"
        "from streams.comparisons.preference_fold import PreferencesFold\n"
        "from streams.native.closed_impressions import closed_of\n"
        "packed = sys.stdin.buffer.read()\n"
        "log = msgspec.msgpack.decode(packed, type=list[Interaction])\n"
        "fold = PreferencesFold({}, 0)\n"
        "fold.take(closed_of(log))\n"
        "assert fold.counters()['compared_unknown'] == 2\n"
        "assert not [each for each in sys.modules if 'interleaving' in each]\n"
        "assert 'streams.comparisons.comparison' not in sys.modules\n"
    )
    done = in_a_process(program, log)
    assert done.returncode == 0, done.stderr.decode()


def in_a_process(
    program: str, log: list[Interaction]
) -> "subprocess.CompletedProcess[bytes]":
    """Run a program that reads the log from its standard input."""
    return subprocess.run(
        [sys.executable, "-c", program],
        input=msgspec.msgpack.encode(log),
        cwd=Path(__file__).parents[3],
        capture_output=True,
        check=False,
    )
