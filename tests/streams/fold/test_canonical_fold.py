"""The fold is a function of its log: commits and restarts change no byte."""

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream.settings import Settings, TimeSettings
from rankstream.wire.events import (
    ACTIVE,
    ENDED,
    Element,
    EventRecord,
    Frontier,
    Interaction,
    decode_interaction_record,
    encode_record,
)
from streams.fold.canonical_fold import CanonicalFold, LogBroken
from streams.fold.segments import ELEMENTS_AT_ONCE, first_referred
from streams.partition_fold import partition_fold
from streams.stage import Change, Output, SourceRecord, referred
from tests.event_factory import START_MS, click, impression

DAY_MS = 86_400_000
SETTINGS = Settings(
    time=TimeSettings(
        click_window_ms=1_000, disorder_ms=100, remember_ms=500, keep_ms=2 * DAY_MS
    )
)

TIMES = st.one_of(
    st.integers(0, 3_000), st.integers(0, 8).map(lambda day: day * DAY_MS)
)
ELEMENTS = st.one_of(
    st.builds(
        lambda n, at: impression(
            f"i{n}", START_MS + at, query_id=f"q{n % 3}", model=f"m{n % 2}"
        ),
        st.integers(0, 9),
        TIMES,
    ),
    st.builds(
        lambda n, at, p: click(f"i{n}", START_MS + at, position=p),
        st.integers(0, 9),
        TIMES,
        st.integers(1, 4),
    ),
    st.builds(lambda at: Frontier(0, 1, START_MS + at, ACTIVE), TIMES),
)
THE_END = Frontier(0, 1, START_MS + 30 * DAY_MS, ENDED)


@dataclass
class Run:
    """A fold with everything that it wrote."""

    stage: CanonicalFold = field(default_factory=lambda: partition_fold(0, SETTINGS))
    outputs: list[Output] = field(default_factory=list)
    state: dict[tuple[str, bytes], bytes] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)
    sequence: int = 0

    def take(self, elements: list[Element]) -> None:
        """Fold one record."""
        self.sequence += 1
        value = encode_record([1, 0, self.sequence, elements])
        record = SourceRecord("events", 0, self.sequence, 0, None, value, ())
        self.stage.fold(record)
        self.log.append(referred("events", self.sequence, value))

    def commit(self) -> None:
        """Take the outputs."""
        self.outputs += self.stage.outputs()

    def checkpoint(self) -> None:
        """Write the state."""
        for change in self.stage.changes():
            if change.value is None:
                self.state.pop((change.topic, change.key), None)
            else:
                self.state[change.topic, change.key] = change.value

    def restart(self) -> None:
        """Go on from the written state alone."""
        self.commit()
        self.checkpoint()
        before = self.stage.fingerprint()
        self.stage = partition_fold(0, SETTINGS)
        self.restore()
        assert self.stage.fingerprint() == before

    def restore(self) -> None:
        """Take back the written state, with what it refers to."""
        first = first_referred(self.state)
        assert first is None or first >= 1
        log = self.log[len(self.log) if first is None else first - 1 :]
        state = [Change(*place, value) for place, value in self.state.items()]
        self.stage.restore([*state, *log])

    def interactions(self) -> list[tuple[int, int, Interaction]]:
        """Partition, number and content of every interaction."""
        found = []
        for output in self.outputs:
            if output.topic == "interactions" and output.value:
                record = decode_interaction_record(output.value)
                for row, interaction in enumerate(record.interactions):
                    number = record.first_sequence + row
                    found.append((output.partition, number, interaction))
        return sorted(found, key=lambda entry: entry[:2])

    def result(self) -> list[object]:
        """Everything that must not depend on checkpoints."""
        self.commit()
        self.checkpoint()
        aside = [out for out in self.outputs if out.topic != "interactions"]
        aside.sort(key=lambda out: out.topic)  # each topic has an order of its own
        statistics = {k: v for k, v in self.state.items() if k[0] == "statistics"}
        return [self.interactions(), aside, statistics, self.stage.counters()]


@given(
    st.lists(ELEMENTS, max_size=60),
    st.lists(st.integers(0, 60), max_size=8),
    st.sets(st.integers(0, 60), max_size=4),
    st.sets(st.integers(0, 60), max_size=4),
)
def test_checkpoints_commits_and_restarts_change_nothing(
    elements: list[Element],
    ends: list[int],
    commits: set[int],
    restarts: set[int],
) -> None:
    """One record without a stop, or many with stops between: the same bytes."""
    whole = Run()
    whole.take([*elements, THE_END])

    stopped = Run()
    bounds = sorted({0, len(elements), *(e for e in ends if e < len(elements))})
    for start, end in pairwise(bounds):
        stopped.take(elements[start:end])
        if start in commits:
            stopped.commit()
        if start in restarts:
            stopped.restart()
    stopped.take([THE_END])

    assert stopped.result() == whole.result()


@given(st.lists(ELEMENTS, max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_folding_again_from_an_older_checkpoint_gives_the_same_state(
    elements: list[Element], checkpoint_at: int, position_at: int
) -> None:
    """A restart restores the last checkpoint and folds on, outputs dropped."""
    checkpoint_at, position_at = sorted((checkpoint_at, position_at))
    live = Run()
    for element in elements[:checkpoint_at]:
        live.take([element])
    live.commit()
    live.checkpoint()
    resumed = Run(state=dict(live.state), log=list(live.log), sequence=live.sequence)
    resumed.restore()
    for element in elements[checkpoint_at:position_at]:
        live.take([element])
        resumed.take([element])
    live.commit()
    resumed.stage.outputs()
    resumed.outputs = list(live.outputs)

    assert resumed.stage.fingerprint() == live.stage.fingerprint()

    for run in (live, resumed):
        run.take([*elements[position_at:], THE_END])
    assert resumed.result() == live.result()


def test_interactions_of_each_pair_are_numbered_without_a_gap() -> None:
    """From 1, for every partition of the target."""
    run = Run()
    run.take(
        [
            impression(f"i{n}", START_MS + n, query_id=f"q{n}", model=f"m{n % 5}")
            for n in range(50)
        ]
    )
    run.take([THE_END])
    run.commit()

    numbers: dict[int, list[int]] = {}
    for partition, number, _ in run.interactions():
        numbers.setdefault(partition, []).append(number)

    assert sum(map(len, numbers.values())) == 50
    for sequence in numbers.values():
        assert sequence == list(range(1, len(sequence) + 1))


@pytest.mark.parametrize("sequence", [1, 3])
def test_a_missing_or_repeated_record_of_the_log_is_refused(sequence: int) -> None:
    """The fold proves that its log is whole."""
    run = Run()
    run.take([impression()])
    run.sequence = sequence - 1

    with pytest.raises(LogBroken, match=f"got {sequence} after 1 of source 0"):
        run.take([impression()])


def test_an_unreadable_record_of_the_log_is_refused() -> None:
    """Only our own stages write there."""
    with pytest.raises(LogBroken, match="readable"):
        partition_fold(0, SETTINGS).fold(
            SourceRecord("events", 0, 3, 0, None, b"\x00", ())
        )


def test_segments_leave_by_tombstone_when_time_has_passed_them() -> None:
    """The state of an idle partition is small, whatever passed through it."""
    run = Run()
    for n in range(200):
        run.take([impression(f"i{n}", START_MS + 10 * n)])
        run.take([Frontier(0, 1, START_MS + 10 * n, ACTIVE)])
        if n % 10 == 0:
            run.checkpoint()
    run.take([THE_END])
    run.checkpoint()
    run.checkpoint()

    assert [key for topic, key in run.state if topic == "fold-state"] == [b"state"]


def test_a_segment_stays_until_the_last_of_it_is_over() -> None:
    """What comes late of one checkpoint closes after a restart as without one."""
    elements: list[Element] = [
        impression("early", START_MS),
        impression("late", START_MS + 5_000),
        click("late", START_MS + 5_001, position=2),
    ]
    between = Frontier(0, 1, START_MS + 4_000, ACTIVE)
    whole, stopped = Run(), Run()
    whole.take([*elements, between, THE_END])
    stopped.take(elements)
    stopped.checkpoint()
    stopped.take([between])
    stopped.restart()
    stopped.take([THE_END])

    assert stopped.result() == whole.result()
    ended = [(one.impression.impression_id, len(one.clicks))
             for _, _, one in stopped.interactions()]  # fmt: skip
    assert sorted(ended) == [("early", 0), ("late", 1)]


def test_what_is_remembered_comes_back_however_much_it_is() -> None:
    """More than lie in one record of the state: none of it is counted again."""
    shown: list[Element] = [
        impression(f"i{n}", START_MS) for n in range(ELEMENTS_AT_ONCE + 7)
    ]
    run = Run()
    run.take([*shown, Frontier(0, 1, START_MS + 1_200, ACTIVE)])
    run.restart()
    run.take([*shown, THE_END])
    run.commit()

    assert len(run.interactions()) == len(shown)


def test_a_click_on_nothing_becomes_a_dead_letter_of_its_topic() -> None:
    """With the bytes that the client sent, to the place it came from."""
    run = Run()
    run.take([impression(), click(position=9, raw=b"raw", origin=("clicks", 2, 5, 1))])
    run.commit()

    letters = [out for out in run.outputs if out.topic == "clicks.dlq"]

    assert [(letter.partition, letter.value) for letter in letters] == [(2, b"raw")]


def test_the_record_type_itself_reads_what_is_written() -> None:
    """A record of the log as one struct."""
    record = EventRecord(1, 0, 1, [impression(), click()])

    assert encode_record(record) == encode_record([1, 0, 1, [impression(), click()]])


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (click(identity=impression().identity), "another identity"),
        (impression("far", (1 << 63) - 1), "possible time"),
        (Frontier(0, 1, 1 << 62, ACTIVE), "must be a time"),
    ],
    ids=["identity", "time", "frontier"],
)
def test_elements_that_no_stage_writes_are_refused_in_words(
    broken: Element, told: str
) -> None:
    """With the place; a worker ends with the status that is not tried again."""
    value = encode_record([1, 0, 1, [impression(), broken]])
    with pytest.raises(LogBroken, match=told) as refused:
        partition_fold(0, SETTINGS).fold(
            SourceRecord("events", 0, 7, 0, None, value, ())
        )
    assert "in events[0]@7" in str(refused.value)
