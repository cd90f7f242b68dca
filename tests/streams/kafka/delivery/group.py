"""A consumer group: who has which partitions, one generation after another.

All partitions are revoked at every rebalance, as Faust does it. A member that does
not answer holds a rebalance up until its session ends.
"""

import itertools
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple, Protocol

from streams.kafka.group.membership import Membership
from streams.kafka.partitions.process import TopicPartition


class Revoked(NamedTuple):
    """All partitions are; the member is to say when it has finished with them."""

    rebalance: int


class Assigned(NamedTuple):
    """These partitions are the member's."""

    rebalance: int
    places: list[TopicPartition]
    member: Membership


class Lost(NamedTuple):
    """The session has ended: the member is one no longer, and may join again."""


News = Revoked | Assigned | Lost


class Member(Protocol):
    """Whoever may be assigned partitions."""

    name: str
    instance: str
    is_alive: bool

    def hear(self, news: News) -> None:
        """Be told; it may be long before it is heard."""


class Group:
    """The members of a group.

    Parameters
    ----------
    tell
        Is told of each generation, and of who is in it, as a broker knows it. One
        begins when all members have joined, whoever hears of it.

    Attributes
    ----------
    n_rebalances
        Those that have begun.
    """

    def __init__(
        self,
        places: Sequence[TopicPartition],
        rng: Random,
        tell: Callable[[int, set[str]], None],
    ) -> None:
        self.n_rebalances = self.generation = 0
        self.members: list[Member] = []
        self._places = list(places)
        self._rng = rng
        self._unready: set[str] = set()
        self._tell = tell
        self._ids: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._assigned: dict[str, list[TopicPartition]] = {}

    def join(self, member: Member) -> None:
        """Become a member, by a new id; in the place of who is the same instance.

        That one's partitions stay where they are, and so does the generation.
        """
        if member in self.members:
            return
        self._ids[member.name] = f"{member.name}-{next(self._numbers)}"
        former = next((e for e in self.members if e.instance == member.instance), None)
        if former is None or not member.instance:
            self.members.append(member)
            self.rebalance()
            return
        self.members[self.members.index(former)] = member
        former.hear(Lost())
        if self._unready:
            self.rebalance()
            return
        self._assigned[member.name] = self._assigned.pop(former.name)
        self._tell_all()
        member.hear(self._assignment_of(member))

    def knows(self, member: Member, member_id: str) -> bool:
        """Whether a member is one, by an id that it has not lost."""
        return member in self.members and self._ids[member.name] == member_id

    def leave(self, member: Member) -> None:
        """Be one no longer."""
        if member in self.members:
            self.members.remove(member)
            if not self.members:
                self.generation += 1
            self._tell_all()
            self.rebalance()

    def expel(self, member: Member) -> None:
        """End a session."""
        member.hear(Lost())
        self.leave(member)

    def rebalance(self) -> None:
        """Take all partitions back, to assign them anew."""
        self.n_rebalances += 1
        self._unready = {each.name for each in self.members}
        for each in self.members:
            each.hear(Revoked(self.n_rebalances))

    def ready(self, member: Member, rebalance: int) -> None:
        """Hear that a member has finished with what it had."""
        if rebalance != self.n_rebalances or member not in self.members:
            return
        self._unready.discard(member.name)
        if self._unready:
            return
        self.generation += 1
        self._tell_all()
        self._rng.shuffle(self._places)
        n_members = len(self.members)
        for number, each in enumerate(self.members):
            self._assigned[each.name] = self._places[number::n_members]
            each.hear(self._assignment_of(each))

    @property
    def unready(self) -> list[Member]:
        """Those whom a rebalance waits for."""
        return [each for each in self.members if each.name in self._unready]

    def _assignment_of(self, member: Member) -> Assigned:
        places = self._assigned[member.name]
        as_whom = Membership(
            self.generation, self._ids[member.name], member.instance, frozenset(places)
        )
        return Assigned(self.n_rebalances, places, as_whom)

    def _tell_all(self) -> None:
        self._tell(self.generation, {self._ids[each.name] for each in self.members})
