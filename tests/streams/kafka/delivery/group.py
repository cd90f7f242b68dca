"""A consumer group: who has which partitions, one generation after another.

All partitions are revoked at every rebalance, as Faust does it. A member that does
not answer holds a rebalance up until its session ends.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple, Protocol

from streams.kafka.assignment import TopicPartition


class Revoked(NamedTuple):
    """All partitions are; the member is to say when it has finished with them."""

    generation: int


class Assigned(NamedTuple):
    """These partitions are the member's."""

    generation: int
    places: list[TopicPartition]


class Lost(NamedTuple):
    """The session has ended: the member is one no longer, and may join again."""


News = Revoked | Assigned | Lost


class Member(Protocol):
    """Whoever may be assigned partitions."""

    name: str
    is_alive: bool

    def hear(self, news: News) -> None:
        """Be told; it may be long before it is heard."""


class Group:
    """The members of a group."""

    def __init__(self, places: Sequence[TopicPartition], rng: Random) -> None:
        self.generation = 0
        self.members: list[Member] = []
        self._places = list(places)
        self._rng = rng
        self._unready: set[str] = set()

    def join(self, member: Member) -> None:
        """Become a member."""
        if member not in self.members:
            self.members.append(member)
            self.rebalance()

    def leave(self, member: Member) -> None:
        """Be one no longer."""
        if member in self.members:
            self.members.remove(member)
            self.rebalance()

    def expel(self, member: Member) -> None:
        """End a session."""
        member.hear(Lost())
        self.leave(member)

    def rebalance(self) -> None:
        """Take all partitions back, to assign them anew."""
        self.generation += 1
        self._unready = {each.name for each in self.members}
        for each in self.members:
            each.hear(Revoked(self.generation))

    def ready(self, member: Member, generation: int) -> None:
        """Hear that a member has finished with what it had."""
        if generation != self.generation or member not in self.members:
            return
        self._unready.discard(member.name)
        if self._unready:
            return
        self._rng.shuffle(self._places)
        n_members = len(self.members)
        for number, each in enumerate(self.members):
            each.hear(Assigned(generation, self._places[number::n_members]))
