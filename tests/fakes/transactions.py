"""The coordinator of transactions: who may write, and how a transaction ends.

States and errors are those of a broker towards a client of aiokafka 0.14, which speaks
the first version of the protocol. A transaction that ends is decided at once and seen
later: its markers are written one by one, and until the last of them every request of
that transactional id is told to come again.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from aiokafka import TopicPartition
from aiokafka.errors import (
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    UnknownError,
    UnknownTopicOrPartitionError,
)

from streams.kafka.group.member_offsets import VotedOut
from streams.kafka.group.membership import Membership
from tests.fakes.partition_log import PartitionLog, Writer
from tests.fakes.points import owner

Offsets = dict[TopicPartition, int]


class Phase(Enum):
    """Where a transactional id is."""

    EMPTY = "empty"
    ONGOING = "ongoing"
    ENDING = "ending"
    ENDED = "ended"


@dataclass
class Transaction:
    """What is known of a transactional id."""

    producer_id: int
    epoch: int = 0
    phase: Phase = Phase.EMPTY
    is_commit: bool = False
    places: set[TopicPartition] = field(default_factory=set)
    offsets: dict[str, Offsets] = field(default_factory=dict)
    taken: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    taker: str = ""

    @property
    def writer(self) -> Writer:
        """As partitions know it."""
        return Writer(self.producer_id, self.epoch)


class Transactions:
    """Transactional ids of a cluster.

    Parameters
    ----------
    find
        Gives the log of a partition, None where there is none.
    groups
        Offsets of consumer groups, which a commit writes to.
    members
        Generation of each group, and the ids of its members; a test says it.
    is_eager
        Write all markers as soon as a transaction ends.

    Attributes
    ----------
    is_group_first
        Whether offsets of a group count before the markers of partitions are written.
    unanswered
        Ids whose next transaction that ends is answered with an error all the same.
    """

    def __init__(
        self,
        find: Callable[[TopicPartition], PartitionLog | None],
        groups: dict[str, Offsets],
        *,
        is_eager: bool = True,
    ) -> None:
        self.is_eager = is_eager
        self.is_group_first = False
        self.unanswered: set[str] = set()
        self._find = find
        self._groups = groups
        self._known: dict[str, Transaction] = {}
        self._numbers = itertools.count(1)
        self._applied: dict[tuple[str, TopicPartition], int] = {}
        self._hung: set[tuple[int, str, TopicPartition]] = set()
        self.members: dict[str, tuple[int, set[str]]] = {}

    def initialise(self, name: str) -> Writer:
        """A new life for a producer; whatever it had open is aborted first.

        Raises
        ------
        ConcurrentTransactions
            While markers of its last transaction are missing.
        """
        known = self._known.get(name)
        if known is None:
            self._known[name] = Transaction(len(self._known) + 1)
            return self._known[name].writer
        if known.phase is Phase.ONGOING:
            self.expire(name)
        if known.phase is Phase.ENDING:
            raise ConcurrentTransactions
        known.epoch += 1
        known.phase, known.taker = Phase.EMPTY, owner()
        return known.writer

    def expire(self, name: str) -> None:
        """Abort what is open and shut its producer out, as a timeout does."""
        known = self._known[name]
        if known.phase is Phase.ONGOING:
            known.epoch += 1
            known.taker = owner()
            self._decide(known, is_commit=False)

    def add_places(self, name: str, by: Writer, places: set[TopicPartition]) -> None:
        """Let a transaction write to partitions.

        Raises
        ------
        KafkaError
            Where another life of the producer has begun, a partition is missing, or
            markers of the last transaction are.
        """
        known = self._open(name, by)
        if any(self._find(place) is None for place in places):
            raise UnknownTopicOrPartitionError
        known.phase = Phase.ONGOING
        known.places |= places

    def add_group(self, name: str, by: Writer, group: str) -> None:
        """Let a transaction commit offsets of a group; errors as of `add_places`."""
        known = self._open(name, by)
        known.phase = Phase.ONGOING
        known.offsets.setdefault(group, {})

    def commit_offsets(
        self,
        name: str,
        by: Writer,
        group: str,
        offsets: Offsets,
        member: Membership | None = None,
    ) -> None:
        """Offsets that count when the transaction has been committed.

        Raises
        ------
        VotedOut
            Where the group knows no such member, or is in another generation.
        """
        known = self._checked(name, by)
        if member is not None:
            generation, ids = self.members.get(group, (0, set()))
            if member.generation != generation or member.member_id not in ids:
                raise VotedOut(member.member_id)
        if any(self._find(place) is None for place in offsets):
            raise UnknownTopicOrPartitionError
        known.offsets.setdefault(group, {}).update(offsets)
        for place in offsets:
            known.taken[group, place] = next(self._numbers)

    def set_offset(self, group: str, place: TopicPartition, offset: int) -> None:
        """An offset that is committed without a transaction."""
        self._apply(group, place, offset, next(self._numbers))

    def _apply(
        self, group: str, place: TopicPartition, offset: int, number: int
    ) -> None:
        """What was taken last counts, whichever transaction ends last."""
        if number > self._applied.get((group, place), 0):
            self._applied[group, place] = number
            self._groups.setdefault(group, {})[place] = offset

    def may_move(self, group: str, place: TopicPartition) -> bool:
        """Whether a transaction that has not ended could move a group's offset."""
        hung = {(of, at) for _, of, at in self._hung}
        return (group, place) in hung or any(
            place in known.offsets.get(group, {})
            for known in self._known.values()
            if known.phase in {Phase.ONGOING, Phase.ENDING}
        )

    def check_ongoing(self, name: str, by: Writer, place: TopicPartition) -> None:
        """What a partition asks before a transaction's first batch.

        Raises
        ------
        InvalidTxnState
            Where the transaction does not have this partition.
        """
        known = self._checked(name, by)
        if known.phase is not Phase.ONGOING or place not in known.places:
            raise InvalidTxnState

    def end(self, name: str, by: Writer, *, is_commit: bool) -> None:
        """Decide a transaction; asked again, it says what was decided.

        Raises
        ------
        KafkaError
            Where another life of the producer has begun, there is no transaction or
            it ended otherwise, or its markers are being written. One that is not
            answered may have ended.
        """
        known = self._checked(name, by)
        if known.phase is Phase.ONGOING:
            self._decide(known, is_commit=is_commit)
            if name in self.unanswered:
                self.unanswered.remove(name)
                raise UnknownError
        elif known.phase is Phase.EMPTY or known.is_commit != is_commit:
            raise InvalidTxnState
        elif known.phase is Phase.ENDING:
            raise ConcurrentTransactions

    def taker_of(self, name: str) -> str:
        """Whose task began the last life of an id; nobody's where it expired."""
        return self._known[name].taker

    def writer_of(self, name: str) -> Writer:
        """The life of a producer that may write now."""
        return self._known[name].writer

    @property
    def names(self) -> list[str]:
        """All transactional ids."""
        return list(self._known)

    @property
    def ongoing(self) -> list[str]:
        """Transactional ids with an open transaction."""
        return [
            name for name, known in self._known.items() if known.phase is Phase.ONGOING
        ]

    @property
    def ending(self) -> list[str]:
        """Transactional ids whose markers are missing somewhere."""
        return [
            name for name, known in self._known.items() if known.phase is Phase.ENDING
        ]

    def write_marker(self, name: str) -> None:
        """Write the next marker of a transaction that ends; a group has one, too."""
        known = self._known[name]
        if self.is_group_first and known.offsets:
            self._end_offsets(known)
            if known.places:
                return
        if known.places:
            place = min(known.places)
            known.places.remove(place)
            log = self._find(place)
            if log is not None:  # a topic that was deleted needs none
                log.mark(known.writer, is_commit=known.is_commit)
        if not known.places:
            self._end_offsets(known)
            known.phase = Phase.ENDED

    def hang_position(self, name: str, group: str, place: TopicPartition) -> None:
        """Keep a position open although the transaction of an id is over.

        The next end of one of that id that has positions of the group ends it.
        """
        self._hung.add((self._known[name].producer_id, group, place))

    def _end_offsets(self, known: Transaction) -> None:
        self._hung = {
            each
            for each in self._hung
            if each[0] != known.producer_id or each[1] not in known.offsets
        }
        if known.is_commit:
            for group, offsets in known.offsets.items():
                for place, offset in offsets.items():
                    self._apply(group, place, offset, known.taken[group, place])
        known.offsets.clear()
        known.taken.clear()

    def _decide(self, known: Transaction, *, is_commit: bool) -> None:
        known.phase, known.is_commit = Phase.ENDING, is_commit
        if self.is_eager:
            for name in self.ending:
                while self._known[name].phase is Phase.ENDING:
                    self.write_marker(name)

    def _open(self, name: str, by: Writer) -> Transaction:
        known = self._checked(name, by)
        if known.phase is Phase.ENDING:
            raise ConcurrentTransactions
        return known

    def _checked(self, name: str, by: Writer) -> Transaction:
        known = self._known.get(name)
        if known is None or known.producer_id != by.producer_id:
            raise InvalidProducerIdMapping
        if known.epoch != by.epoch:
            raise InvalidProducerEpoch
        return known
