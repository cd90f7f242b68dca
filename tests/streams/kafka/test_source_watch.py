"""Topics that change under a running process."""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Mapping
from typing import Any

import pytest

from rankstream.settings import KafkaSettings, Settings
from streams.kafka import source_watch
from streams.kafka.broker_away import BrokerAway
from streams.kafka.source_watch import (
    RECONNECT_S,
    ClusterTopics,
    Seen,
    SourceWatch,
    known_topics,
    watching,
)
from streams.kafka.state.resume_position import StateRefused

KNOWN = {"queries": Seen("a", 4), "events": Seen("b", 4)}
ANEW = {"queries": Seen("c", 4), "events": Seen("b", 4)}


class Answers:
    """A cluster that answers as it is told; the last answer stays."""

    def __init__(self, *answers: Mapping[str, Seen] | Exception) -> None:
        self.left = list(answers)
        self.n_asked = 0
        self.is_closed = False

    def __call__(self, names: Collection[str]) -> Mapping[str, Seen]:
        """The next answer."""
        self.n_asked += 1
        assert self.n_asked < 1_000, "the watch must have ended"
        answer = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(answer, Exception):
            raise answer
        return {name: answer[name] for name in names if name in answer}

    def close(self) -> None:
        """Hear that nobody asks any more."""
        self.is_closed = True


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_watch, "EVERY_S", 0.0)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's body."""
    asyncio.run(work)


async def ends(answers: Answers, known: Mapping[str, Seen] = KNOWN) -> str:
    """Why a watch ends."""
    with pytest.raises(StateRefused) as refusal:
        await SourceWatch(known, answers).run()
    assert answers.is_closed
    return str(refusal.value)


async def goes_on(answers: Answers, n_asked: int = 20) -> None:
    """Nothing ends the watch while it asks so often."""
    looking = asyncio.create_task(SourceWatch(KNOWN, answers).run())
    while answers.n_asked < n_asked and not looking.done():
        await asyncio.sleep(0)
    assert not looking.done()
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    assert answers.is_closed


def test_a_topic_that_is_created_anew_ends_it() -> None:
    """With both ids, and what to do."""

    async def body() -> None:
        told = await ends(Answers(KNOWN, KNOWN, ANEW))
        assert told == (
            "the topic queries must be the one that it was when the worker started; "
            "its id is c, not a: it was created anew; use a new --namespace"
        )

    run(body())


def test_partitions_that_are_added_end_it() -> None:
    """With both numbers."""

    async def body() -> None:
        told = await ends(Answers(KNOWN, KNOWN | {"events": Seen("b", 8)}))
        assert "events must keep its 4 partitions; it has 8 by now" in told
        assert "use a new --namespace" in told

    run(body())


def test_what_was_unknown_is_what_the_first_answer_says() -> None:
    """A topic need not be one of the pipeline's."""

    async def body() -> None:
        unknown = {"queries": Seen("", 0)}
        told = await ends(Answers(KNOWN, ANEW), unknown)
        assert "its id is c, not a" in told

    run(body())


@pytest.mark.parametrize(
    "answer",
    [
        BrokerAway("nobody is there"),
        {"events": Seen("b", 4)},
        {"events": Seen("b", 4), "queries": Seen("a", 3)},
    ],
    ids=["broker away", "topic missing", "fewer partitions"],
)
def test_what_a_broker_may_say_that_has_just_started_ends_nothing(
    answer: Mapping[str, Seen] | Exception,
) -> None:
    """It may not know what happened last."""
    run(goes_on(Answers(answer)))


def test_a_change_that_is_gone_at_the_next_look_ends_nothing() -> None:
    """One broker may answer from what it knew before."""

    async def body() -> None:
        await goes_on(Answers(*[ANEW, KNOWN] * 20), 40)

    run(body())


def test_a_missing_topic_is_waited_for_and_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It ends nothing: what comes in its place does."""
    caplog.set_level(logging.INFO)
    run(goes_on(Answers({"events": Seen("b", 4)})))
    told = [line for line in caplog.messages if "no topic queries" in line]
    assert len(told) == 1


def test_whoever_finds_something_wrong_asks_at_once() -> None:
    """A reader that found nothing at its offset; who was assigned partitions."""

    async def body() -> None:
        watch = SourceWatch(KNOWN, Answers(ANEW))
        with pytest.raises(StateRefused, match="created anew"):
            await watch.check()
        await SourceWatch(KNOWN, Answers(KNOWN)).check()
        await SourceWatch(KNOWN, Answers(BrokerAway("gone"))).check()

    run(body())


@pytest.mark.parametrize("is_changed", [True, False])
def test_a_role_without_stages_ends_with_its_topics(is_changed: bool) -> None:
    """Its work is told to stop; and the watch ends with the work."""

    async def body() -> None:
        stop, ended = asyncio.Event(), asyncio.Event()
        answers = Answers(ANEW if is_changed else KNOWN)

        async def work() -> None:
            await stop.wait()
            ended.set()

        watched = watching(SourceWatch(KNOWN, answers), work(), stop)
        if is_changed:
            with pytest.raises(StateRefused, match="created anew"):
                await watched
        else:
            asyncio.get_running_loop().call_soon(stop.set)
            await watched
        assert ended.is_set()
        assert answers.is_closed

    run(body())


def test_work_that_fails_is_not_hidden() -> None:
    """As without a watch."""

    async def body() -> None:
        async def work() -> None:
            raise KeyError("x")

        with pytest.raises(KeyError):
            await watching(SourceWatch(KNOWN, Answers(KNOWN)), work(), asyncio.Event())

    run(body())


def test_work_that_is_cancelled_has_failed() -> None:
    """A client may let out a cancellation of its own; nobody asked for an end."""

    async def body() -> None:
        async def work() -> None:
            raise asyncio.CancelledError

        with pytest.raises(RuntimeError, match="was cancelled, though nobody asked"):
            await watching(SourceWatch(KNOWN, Answers(KNOWN)), work(), asyncio.Event())

    run(body())


def test_what_topics_must_be_is_what_was_checked_at_the_start() -> None:
    """Ids as they were read, partitions as the settings say."""
    settings = Settings(namespace="shop", kafka=KafkaSettings(partitions=7))
    known = known_topics(settings, {"events": "b"}, ["events", "snapshots", "toy"])
    assert known == {
        "shop.events": Seen("b", 7),
        "shop.snapshots": Seen("", 1),
        "shop.toy": Seen("", 0),
    }


def test_a_cluster_that_is_away_is_asked_again_later_only() -> None:
    """Each attempt that fails leaves a thread of the client behind."""
    now_s = [0.0]
    topics = ClusterTopics({"bootstrap_servers": "not a host"}, lambda: now_s[0])
    for now_s[0], is_tried in ((0.0, True), (1.0, False), (RECONNECT_S, True)):
        with pytest.raises(BrokerAway) as told:
            topics(["queries"])
        assert ("within a minute" in str(told.value)) is not is_tried
    topics.close()
