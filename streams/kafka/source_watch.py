"""Whether the topics of a process are still those that they were when it started.

A topic that is deleted and created again begins at offset 0, where a stage takes its
records for those that it has folded already. Partitions that are added are read by
nobody, and clients route to them. Clients notice neither, so a process asks again and
again. What it folded until it noticed stays in a state that no later start goes on
from: the resume position has the old id and number.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, NamedTuple, Protocol

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from rankstream.settings import Settings
from rankstream.wire.topics import full_name
from streams.kafka.broker_away import BrokerAway
from streams.kafka.committed_reader import Waiting
from streams.kafka.state.resume_position import StateRefused
from streams.kafka.token_file import blocking
from streams.topology import topics_of

EVERY_S = 2.0

REQUEST_MS = 5_000
"""A stop may wait for so long where the broker is away."""

RECONNECT_S = 30.0
"""Between attempts to connect; each that fails leaves a thread of the client."""


class Seen(NamedTuple):
    """What a topic is, by a broker's answer; "" and 0 where nothing is known yet."""

    topic_id: str
    n_partitions: int


class Describe(Protocol):
    """Asks the cluster; blocks."""

    def __call__(self, names: Collection[str]) -> Mapping[str, Seen]:
        """What is known of topics, by full name; without those that are not there.

        Raises
        ------
        BrokerAway
            Where nobody answers.
        """

    def close(self) -> None:
        """Let go of the connection."""


class SourceWatch:
    """Compares topics with what they were.

    Parameters
    ----------
    known
        What each must be, by full name. What is not known is taken from the first
        answer.
    """

    def __init__(self, known: Mapping[str, Seen], describe: Describe) -> None:
        self._known = dict(known)
        self._describe = describe
        self._waiting = Waiting("what the topics are")
        self._asking = asyncio.Lock()

    async def run(self) -> None:
        """Look again and again, also while the broker is away.

        Raises
        ------
        StateRefused
            As `check` does.
        """
        try:
            while True:
                # At once, so that a connection is there when partitions are opened.
                await self.check()
                await asyncio.sleep(EVERY_S)
        finally:
            self._describe.close()

    async def check(self) -> None:
        """Look now.

        Raises
        ------
        StateRefused
            Where a topic is not what it was, and still is not at a second look: a
            broker that has just started answers from what it knew.
        """
        suspected = await self.changes()
        if not suspected:
            return
        await asyncio.sleep(EVERY_S)
        changes = await self.changes()
        for name in suspected.keys() & changes.keys():
            raise changes[name]

    async def changes(self) -> dict[str, StateRefused]:
        """What is not as it was, by topic; nothing while the broker is away."""
        try:
            async with self._asking:
                found = await asyncio.to_thread(self._describe, list(self._known))
        except BrokerAway as error:
            self._waiting.say(error)
            return {}
        missing = self._known.keys() - found.keys()
        if missing:
            names = ", ".join(sorted(missing))
            self._waiting.say(BrokerAway(f"the cluster has no topic {names}"))
        else:
            self._waiting.over()
        changes = {}
        for name, seen in found.items():
            known = self._known[name]
            self._known[name] = Seen(
                known.topic_id or seen.topic_id,
                known.n_partitions or seen.n_partitions,
            )
            change = change_of(name, self._known[name], seen)
            if change is not None:
                changes[name] = change
        return changes


def change_of(name: str, known: Seen, seen: Seen) -> StateRefused | None:
    """Why a topic cannot be gone on with; None where it is what it was.

    Examples
    --------
    >>> change_of("events", Seen("a", 4), Seen("a", 4))
    >>> print(change_of("events", Seen("a", 4), Seen("a", 8)))
    ... # doctest: +NORMALIZE_WHITESPACE
    the topic events must keep its 4 partitions; it has 8 by now: records are routed
    by that number; use a new --namespace
    """
    if seen.topic_id != known.topic_id:
        return StateRefused(
            f"the topic {name} must be the one that it was when the worker started; "
            f"its id is {seen.topic_id}, not {known.topic_id}: it was created anew; "
            "use a new --namespace"
        )
    # Fewer are what a broker knew before: their number never falls.
    if seen.n_partitions > known.n_partitions:
        return StateRefused(
            f"the topic {name} must keep its {known.n_partitions} partitions; it has "
            f"{seen.n_partitions} by now: records are routed by that number; use a new "
            "--namespace"
        )
    return None


def known_topics(
    settings: Settings, topic_ids: Mapping[str, str], topics: Collection[str]
) -> dict[str, Seen]:
    """What topics must be, by full name, as they were checked at the start.

    Parameters
    ----------
    topic_ids
        Their ids, by name without namespace.
    topics
        Which are meant, likewise.
    """
    widths = {topic.name: topic.partitions for topic in topics_of(settings.kafka)}
    return {
        full_name(settings.namespace, name): Seen(
            topic_ids.get(name, ""), widths.get(name, 0)
        )
        for name in topics
    }


async def watching(
    watch: SourceWatch, work: Awaitable[None], stop: asyncio.Event
) -> None:
    """Do the work of a role without stages, and watch its topics beside it.

    Parameters
    ----------
    stop
        Set where a topic is not what it was; the work then ends by itself.

    Raises
    ------
    StateRefused
        Where a topic is not what it was.
    Exception
        Whatever the work failed with.
    """
    working = asyncio.ensure_future(work)
    looking = asyncio.create_task(watch.run())
    ended: set[asyncio.Future[None]] = set()
    try:
        ended, _ = await asyncio.wait(
            {working, looking}, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        is_asked = stop.is_set()
        stop.set()
        looking.cancel()
        worked, looked = await asyncio.gather(working, looking, return_exceptions=True)
    for error in (looked, worked):
        if isinstance(error, Exception):
            raise error
    for named, task, error in (("watch", looking, looked), ("work", working, worked)):
        if task in ended and task.cancelled() and not is_asked:
            # A client may let a cancellation of its own out.
            raise RuntimeError(
                f"the {named} of a role was cancelled, though nobody asked"
            ) from error


class ClusterTopics:
    """What the brokers say of topics: aiokafka's clients do not hear of ids.

    Parameters
    ----------
    client
        The options of an aiokafka client.
    """

    def __init__(
        self,
        client: Mapping[str, Any],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = blocking(client)
        self._now_s = now_s
        self._admin: KafkaAdminClient | None = None
        self._tried_s = -RECONNECT_S

    def __call__(self, names: Collection[str]) -> Mapping[str, Seen]:
        """As `Describe` says."""
        try:
            topics = self._connected().describe_topics(list(names))
        except (KafkaError, OSError) as error:
            raise BrokerAway(f"{type(error).__name__}: {error}") from error
        return {
            topic["name"]: Seen(str(topic["topic_id"]), len(topic["partitions"]))
            for topic in topics
            if not topic["error_code"]
        }

    def close(self) -> None:
        """Let go of the connection."""
        admin, self._admin = self._admin, None
        if admin is not None:
            with contextlib.suppress(KafkaError, OSError):
                admin.close()

    def _connected(self) -> KafkaAdminClient:
        if self._admin is None:
            if self._now_s() - self._tried_s < RECONNECT_S:
                raise BrokerAway("the next attempt to connect comes within a minute")
            self._tried_s = self._now_s()
            self._admin = KafkaAdminClient(
                **self._options,
                request_timeout_ms=REQUEST_MS,
                bootstrap_timeout_ms=REQUEST_MS,
            )
        return self._admin
