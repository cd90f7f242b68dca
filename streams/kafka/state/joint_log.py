"""What a process commits of a role: all of its partitions, in one transaction.

A partition's id of transactions belongs to whoever has the partition. A process takes
the ids of all of its partitions, which ends what their former owners had begun, and
writes with one of them. So no two processes of a generation write with the same id,
and whoever was voted out can commit nothing: its id is another's, and so is its
generation, which the broker compares where positions are committed.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from aiokafka import TopicPartition

from streams.kafka.broker_away import BrokerAway
from streams.kafka.clients import Cluster
from streams.kafka.group.group_positions import PositionsHang
from streams.kafka.group.membership import Membership
from streams.kafka.state.open_records import have_stuck
from streams.kafka.state.transactions import Transactions
from streams.stage import Output
from streams.topology import StageKind, group_of, writer_of

TOGETHER_S = 0.02
"""Partitions that are opened within so long are asked for at once."""

AWAY_S = 1.0
"""Between two questions while no broker answers."""

T = TypeVar("T")

log = logging.getLogger("rankstream.commit")


class Part(NamedTuple):
    """What one partition writes.

    Parameters
    ----------
    place, next_offset
        What the group is to have committed by it.
    member
        As whom the partition's owner has it; None for whoever is no member, while
        no member is.
    """

    records: list[Output]
    place: TopicPartition
    next_offset: int | None
    member: Membership | None


class _Owned(NamedTuple):
    by: object
    timeout_ms: int


class JointLog:
    """The writer of a process of a role.

    Not for use after an error: whether what was written is committed is not known.

    Parameters
    ----------
    kinds
        The stages of the role, in the order in which they are written.
    """

    def __init__(self, cluster: Cluster, kinds: Sequence[StageKind]) -> None:
        self._cluster = cluster
        self._kinds = kinds
        self._owned: dict[str, _Owned] = {}
        self._writer: Transactions | None = None
        self._writes_as = ""
        self._parts: list[tuple[Part, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._turn, self._ending = asyncio.Lock(), asyncio.Lock()
        # Two lives of an id at once would shut each other out.
        self._lives: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._failure: Exception | None = None
        self._is_clean = False
        self._n_gathering = 0
        self._all_there = asyncio.Event()
        self._asked: set[TopicPartition] = set()
        self._asking: asyncio.Task[None] | None = None

    @property
    def _group(self) -> str:
        return group_of(self._cluster.namespace, self._kinds[0].role)

    async def take(self, name: str, by: object, timeout_ms: int) -> None:
        """Own an id, and end what its former owner had begun.

        Parameters
        ----------
        by
            Who gives it back: a partition may be opened again before an earlier
            attempt was given up.
        """
        self._owned.pop(name, None)
        await self._let_go(name)
        async with self._lives[name]:
            own = await self._fenced(name, timeout_ms)
            self._owned[name] = _Owned(by, timeout_ms)
            if self._writer is None:
                self._write_with(own, name)
                return
        await own.close()

    def owns(self, name: str, by: object) -> bool:
        """Whether an id is this process's, taken by this one."""
        return name in self._owned and self._owned[name].by is by

    async def give(self, name: str, by: object) -> None:
        """Own an id no more; what is being written with it is written first."""
        if not self.owns(name, by):
            return
        del self._owned[name]
        await self._let_go(name)

    async def _let_go(self, name: str) -> None:
        """Write with an id no more, once what is being written with it is."""
        if name == self._writes_as:
            await asyncio.shield(asyncio.ensure_future(self._close(name)))

    async def _close(self, name: str) -> None:
        async with self._turn:
            if name != self._writes_as or name in self._owned:
                return  # it was taken again meanwhile
            writer, self._writer, self._writes_as = self._writer, None, ""
            if writer is not None:
                await writer.close()

    def _write_with(self, own: Transactions, name: str) -> None:
        self._writer, self._writes_as, self._is_clean = own, name, False

    @contextlib.contextmanager
    def gathering(self) -> Iterator[None]:
        """What others write waits for what is gathered here, to be one with it."""
        self._n_gathering += 1
        self._all_there.clear()
        try:
            yield
        finally:
            self._n_gathering -= 1
            if not self._n_gathering:
                self._all_there.set()

    async def write(self, part: Part) -> None:
        """All of it or nothing, with what other partitions write at the same time.

        Raises
        ------
        VotedOut
            Where the group has gone on without the member; nothing is committed.
        KafkaError
            Whether it is committed is not known: whoever takes over and reads knows.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parts.append((part, future))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write_all())
        # Who stops waiting does not stop what is written.
        await asyncio.shield(future)

    async def written(self) -> None:
        """Wait until nothing is being written, whoever asked for it."""
        while self._writing is not None and not self._writing.done():
            await asyncio.wait({self._writing})

    async def decided(self, place: TopicPartition) -> None:
        """Wait until no transaction can move the group's position any more.

        One that its writer began to end before it was voted out is committed later.
        """
        self._asked.add(place)
        if self._asking is None or self._asking.done():
            self._asking = asyncio.ensure_future(self._ask())
        await asyncio.shield(self._asking)

    async def end_what_hangs(
        self,
        is_decided: Callable[[], Awaitable[bool]],
        timeout_ms: int,
        *,
        of_all: bool,
    ) -> None:
        """Abort what brokers keep open although its transaction has ended.

        Parameters
        ----------
        is_decided
            Whether nothing hangs any more; asked before each id.
        of_all
            Whether of ids of others, too, who then start again.
        """
        async with self._ending:  # two would fence each other
            names = await self._all_names() if of_all else list(self._owned)
            for name in names:
                if await is_decided():
                    return
                await self._as(name, timeout_ms, self._abort)

    async def _as(
        self,
        name: str,
        timeout_ms: int,
        work: Callable[[Transactions], Awaitable[None]],
    ) -> None:
        """Do it with an id, to its end: what it left open would hold readers up."""
        done = self._done_as(name, timeout_ms, work)
        await asyncio.shield(asyncio.ensure_future(done))

    async def _done_as(
        self,
        name: str,
        timeout_ms: int,
        work: Callable[[Transactions], Awaitable[None]],
    ) -> None:
        async with self._lives[name]:
            if name != self._writes_as:
                own = await self._fenced(name, timeout_ms)
                try:
                    await work(own)
                finally:
                    await own.close()
                return
        await self._with_writer(work)

    async def _fenced(self, name: str, timeout_ms: int) -> Transactions:
        own = Transactions(self._cluster, name)
        try:
            await own.fence(timeout_ms)
        except BaseException:  # a cancelled start must not leave its producer open
            await own.close()
            raise
        return own

    async def _all_names(self) -> list[str]:
        found = []
        for kind in self._kinds:
            places = await self._with_writer(
                lambda own, kind=kind: own.partitions_of([kind.source])  # type: ignore[misc]
            )
            found += [
                writer_of(kind.name, kind.source, str(place.partition))
                for place in places
            ]
        return found

    async def _abort(self, own: Transactions) -> None:
        """In all that the role writes to, states last: who starts next looks there."""
        outputs = {topic for kind in self._kinds for topic in kind.outputs}
        states = {topic for kind in self._kinds for topic in kind.state_topics}
        await own.abort(
            await own.partitions_of(sorted(outputs - states)),
            await own.partitions_of(sorted(states)),
        )

    async def _ask(self) -> None:
        await asyncio.sleep(TOGETHER_S)
        places, self._asked = sorted(self._asked), set()
        self._asking = None  # who comes from here on is asked for by another one
        loop = asyncio.get_running_loop()
        hangs_since_s: float | None = None
        while True:
            try:
                await self._cluster.clients.positions(
                    self._cluster.client, self._group, places
                )
            except BrokerAway as error:
                log.warning("event=waiting-for-positions reason=%s", error)
                await asyncio.sleep(AWAY_S)
            except PositionsHang:
                log.warning("event=positions-hang group=%s", self._group)
                now_s = loop.time()
                hangs_since_s = now_s if hangs_since_s is None else hangs_since_s
                await self._end_positions(places, now_s - hangs_since_s)
            else:
                return

    async def _end_positions(
        self, places: Sequence[TopicPartition], hang_for_s: float
    ) -> None:
        """Abort what hangs of them, which may be of any id that a process wrote with.

        Of ids of others only once the broker itself would have ended what is open.
        """
        timeout_ms = max((each.timeout_ms for each in self._owned.values()), default=0)
        async with self._ending:
            names = list(self._owned)
            if names and hang_for_s * 1_000 > timeout_ms:
                names = await self._all_names()
            for name in names:
                await self._as(
                    name,
                    timeout_ms,
                    lambda own: own.abort_positions(places, self._group),
                )

    async def _write_all(self) -> None:
        while self._parts:
            if self._n_gathering:
                await self._all_there.wait()
                continue
            # Who was assigned anew meanwhile does not commit for who was before.
            member = self._parts[0][0].member
            together = [each for each in self._parts if each[0].member == member]
            self._parts = [each for each in self._parts if each[0].member != member]
            failure: Exception | None = None
            try:
                await self._write([part for part, _ in together], member)
            except Exception as error:  # noqa: BLE001  for those who wait
                failure = error
            for _, future in together:
                _tell(future, failure)

    async def _write(self, parts: list[Part], member: Membership | None) -> None:
        # Lists first: a click that comes before its list has to wait for it.
        sources = [self._cluster.place(kind.source, 0).topic for kind in self._kinds]
        parts.sort(key=lambda part: sources.index(part.place.topic))
        records = [record for part in parts for record in part.records]
        positions = {
            part.place: part.next_offset
            for part in parts
            if part.next_offset is not None
        }
        await self._with_writer(
            lambda own: own.commit(records, positions or None, self._group, member)
        )

    async def _with_writer(self, work: Callable[[Transactions], Awaitable[T]]) -> T:
        """Do it to its end, whoever stops waiting: others write with the same id."""
        return await asyncio.shield(asyncio.ensure_future(self._done(work)))

    async def _done(self, work: Callable[[Transactions], Awaitable[T]]) -> T:
        async with self._turn:
            if self._failure is not None:
                raise self._failure
            own = await self._own_writer()
            try:
                if not self._is_clean:
                    await self._clean(own)
                return await work(own)
            except Exception as error:
                self._failure = error
                raise

    async def _clean(self, own: Transactions) -> None:
        """Abort what hangs of an id before anything is committed with it.

        Its next commit would include that, also in partitions of other processes.
        """
        states = {topic for kind in self._kinds for topic in kind.state_topics}
        places = await own.partitions_of(sorted(states))
        if await have_stuck(self._cluster, places):
            log.warning("event=ending-what-hangs id=%s", self._writes_as)
            await self._abort(own)
        self._is_clean = True

    async def _own_writer(self) -> Transactions:
        """The one with an id of ours; the last one's may have been given away."""
        while self._writer is None:
            name = next(iter(self._owned), "")
            if not name:
                raise ValueError("an id must be taken before anything is written")
            owned = self._owned[name]
            async with self._lives[name]:
                if self._has_gone(name, owned):
                    continue
                own = await self._fenced(name, owned.timeout_ms)
                if not self._has_gone(name, owned):
                    self._write_with(own, name)
                    return own
            await own.close()
        return self._writer

    def _has_gone(self, name: str, owned: _Owned) -> bool:
        """Whether it was given away meanwhile, or another one writes."""
        return self._writer is not None or self._owned.get(name) is not owned


def _tell(future: "asyncio.Future[None]", failure: Exception | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(None)
        return
    future.set_exception(failure)
    future.exception()  # nobody may be waiting
