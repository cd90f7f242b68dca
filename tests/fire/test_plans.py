"""The words in which a plan is told, and how fast its time passes."""

import itertools

import pytest

from tests.fire.events import FASTER, LEAST_STEP_MS, WHOLE_MS, step_of
from tests.fire.plans import FIXED, OTHERS, Fault, fault_of, plan_of, seconds_of

FAULTS = [
    "kill:fold",
    "kill:ingest@restoring",
    "kill:fold@ending",
    "kill:publish@publishing",
    "kill:train",
    "kill:train@training",
    "kill:all",
    "stop:all",
    "broker:30",
    "broker:70@kill",
    "leader:2.5",
    "coordinator:10",
    "redis:30",
    "second:join",
    "second:kill",
    "first:leave",
    "pause:fold",
]


@pytest.mark.parametrize("text", FAULTS)
def test_a_fault_says_what_it_was_read_from(text: str) -> None:
    """So reports name what a plan may be made of."""
    assert str(fault_of(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "kill", "kill:nobody", "kill:train@restoring", "stop:fold"),
        *("kill:train@begun", "kill:all@ended", "kill:fold@never"),
        *("broker", "broker:-1", "broker:30@restoring", "leader:", "leader:ten"),
        *(
            "leader:10@kill",
            "coordinator:ten",
            "redis:30@kill",
            "first:kill",
            "second:stop",
            "upgrade",
        ),
    ],
)
def test_what_is_no_fault_is_refused(text: str) -> None:
    """With what was said."""
    with pytest.raises(ValueError, match="a fault must be one that --help names"):
        fault_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "second:leave",
        "second:join,second:join",
        "second:join,second:leave,pause:fold",
        "first:join",
        "first:leave",
        "second:join,first:leave,second:leave",
        "second:join,first:leave,kill:fold",
        "second:join,first:leave,stop:all",
        "second:join,first:leave,pause:fold",
        "second:join,first:leave,first:leave",
    ],
)
def test_nobody_is_struck_who_is_not_there(text: str) -> None:
    """And there is always a worker."""
    with pytest.raises(ValueError, match="must join before it is struck"):
        plan_of(text, 0, 1)


@pytest.mark.parametrize(
    ("name", "n_kills", "seed"),
    [*itertools.product([*OTHERS, *FIXED, "phases"], [0, 4, 20], [1, 2])],
)
def test_named_plans_are_of_faults_in_an_order_that_can_be(
    name: str, n_kills: int, seed: int
) -> None:
    """As if somebody had typed each of their faults."""
    plan = plan_of(name, n_kills, seed)
    if plan:
        assert plan_of(",".join(map(str, plan)), 0, seed) == plan
    n_found = sum(fault.kind == "kill" for fault in plan)
    assert n_found == (0 if name in FIXED else n_kills)


def test_a_plan_lasts_as_long_as_its_faults() -> None:
    """Those that say so."""
    assert seconds_of(plan_of("outages", 0, 1)) == 280
    assert seconds_of([Fault("leader", "10"), Fault("kill", "fold")]) == 10


@pytest.mark.parametrize("rate", [5.0, 15.0, 50.0, 5_000.0])
def test_event_time_passes_faster_than_the_clock_where_few_are_sent(
    rate: float,
) -> None:
    """An hour of them closes windows early on; without a rate steps are as before."""
    step_ms = step_of(round(3_600 * rate), rate)
    assert step_ms * rate / 1_000 >= FASTER
    assert step_of(4_500) == WHOLE_MS // 4_500
    assert step_of(10**6) == step_of(10**6, 5_000.0) == LEAST_STEP_MS
