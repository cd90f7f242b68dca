"""A process's place in a consumer group, from one assignment to the next."""

from typing import NamedTuple


class Membership(NamedTuple):
    """One assignment of a group, as one of its members was given it.

    The broker takes the offsets of a member only in the generation that it is in. So a
    transaction with offsets in it is fenced by the group: who was voted out can commit
    none (KIP-447).

    Parameters
    ----------
    generation
        Counts the assignments of the group, by 1 each, whoever took part in them.
    member_id
        The broker's name of the member.
    instance_id
        Its own name, where it has one; "" where not.
    places
        Topics and partitions, by their full names, that are the member's.
    """

    generation: int
    member_id: str
    instance_id: str
    places: frozenset[tuple[str, int]]

    def follows(self, earlier: "Membership | None") -> bool:
        """Whether nobody else can have been assigned anything in between.

        Who joins once more is another member. Another one may have had its place in the
        same generation, by the same name of an instance, and a group that was deleted
        counts from 1 again.
        """
        if earlier is None or self.member_id != earlier.member_id:
            return False
        return 0 <= self.generation - earlier.generation <= 1
