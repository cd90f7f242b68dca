"""How a bandit shows the candidates of a query, in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rankstream.configuration.bandits import CASCADE, HOTFIX, PIE
from rankstream.operations.answers.as_builtins import Answer
from rankstream.wire.decision_shards import DecisionError
from rankstream.wire.decisions import Decision

VALUES: Mapping[str, str] = {
    PIE: "clicks where examined",
    CASCADE: "upper index",
    HOTFIX: "preferred",
}
"""What each bandit orders items by, or learns of them."""


@dataclass(frozen=True)
class BanditSet(Answer):
    """What a bandit knows of the candidates of a query.

    Parameters
    ----------
    lists
        Its own, of which this is made.
    values
        Of each item, as `streams.decisions.bandit_policies.BanditList` says.
    n_ranks, share
        Lists of so many ranks try another item at the last one so often; 0 where
        nothing is tried.
    tried
        The items that are, each as often as another; those that are tied with the last
        rank are there only where they were not drawn for it.
    """

    lists: int
    values: dict[str, float]
    n_ranks: int
    share: float
    tried: list[str]

    @classmethod
    def of(cls, decision: Decision) -> "BanditSet":
        """That of a decision of a bandit.

        Raises
        ------
        DecisionError
            Where it does not tell a value of each item.
        """
        items, slot = decision.items, decision.slot
        if len(decision.values) != len(items):
            raise DecisionError(
                "a decision of a bandit must have a value of each of its items; "
                f"got {len(decision.values)} of {len(items)}"
            )
        values = dict(zip(items, decision.values, strict=True))
        if slot is None:
            return cls(decision.lists, values, 0, 0.0, [])
        end = 0
        for size in decision.blocks:
            first, end = end, end + size
            if end >= slot.n_ranks:
                break
        tied = decision.order[first:end] if end > slot.n_ranks else []
        tried = [items[number] for number in (*tied, *slot.tried)]
        return cls(decision.lists, values, slot.n_ranks, slot.share, tried)


def remark_on_bandit(
    policy: str, order: Sequence[Sequence[str]], own: BanditSet
) -> str:
    """What it tries yet, or has learned, in words.

    Parameters
    ----------
    order
        Items in blocks of those that are tied, best first.
    """
    if policy == HOTFIX:
        top = sorted(order[0], key=lambda item: -own.values[item])
        return (
            f"shuffled while it learns, which is shown to nobody; so far it would put "
            f"{', '.join(top[:5])}{' ...' if len(top) > 5 else ''} first"
        )
    if policy == CASCADE:
        return "the largest upper index goes first: what was seldom seen, or is good"
    if not own.tried:
        return "the last rank tries nothing: no other item may be as good as its own"
    return (
        f"rank {own.n_ranks} of lists of {own.n_ranks} tries, with a chance of "
        f"{own.share:g}, what may be as good as its own item: {', '.join(own.tried)}"
    )
