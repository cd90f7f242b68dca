"""How much each figure of `bench pipeline` takes, and what of it may be chosen."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Sizes(NamedTuple):
    """How long each part is; `repeats` is how often a throughput is measured.

    `rival`, `fold`, `placed`, `ingestion` and `roles` are the lengths of the first
    logs: others follow until what is measured lasts `least_s`. So is `input`, of the
    runs beside Kafka Streams, which has `threads`. `turns` and `trickle_turns` are the
    repeats there; `rates` are events a second, `widths` numbers of partitions, and
    events come for `settle_s` seconds before `trickle_s` are measured.
    """

    rival: int
    fold: int
    placed: int
    ingestion: int
    least_s: float
    local: int
    compared: int
    state: int
    memory: int
    queries: int
    paced_s: float
    restart_s: float
    roles: int
    repeats: int
    input: int
    turns: int
    trickle_turns: int
    rates: tuple[int, ...]
    widths: tuple[int, ...]
    threads: int
    settle_s: float
    trickle_s: float


FULL = Sizes(
    rival=20_000, fold=400_000, placed=60_000, ingestion=150_000, least_s=20.0,
    local=1_000_000, compared=20_000, state=400_000, memory=200_000, queries=2_000,
    paced_s=60.0, restart_s=600.0, roles=60_000, repeats=3,
    input=200_000, turns=2, trickle_turns=1, rates=(200, 2_000), widths=(4, 16),
    threads=2, settle_s=25.0, trickle_s=30.0,
)  # fmt: skip
QUICK = Sizes(
    rival=10_000, fold=30_000, placed=10_000, ingestion=20_000, least_s=0.1,
    local=20_000, compared=1_000, state=10_000, memory=10_000, queries=50, paced_s=5.0,
    restart_s=15.0, roles=3_000, repeats=1,
    input=60_000, turns=1, trickle_turns=1, rates=(200,), widths=(4,),
    threads=2, settle_s=3.0, trickle_s=3.0,
)  # fmt: skip


OPTIONS = {
    "events": ("input",),
    "seconds": ("least_s", "trickle_s"),
    "repeats": ("turns", "trickle_turns"),
    "rates": ("rates",),
    "partitions": ("widths",),
    "threads": ("threads",),
}
"""Sizes that an option says."""


def sized(sizes: Sizes, options: Mapping[str, float | Sequence[int]]) -> Sizes:
    """The sizes with those that options say.

    Raises
    ------
    ValueError
        Where one is not over 0.
    """
    changed: dict[str, Any] = {}
    for name, given in options.items():
        each = tuple(given) if isinstance(given, Sequence) else (given,)
        if not all(value > 0 for value in each):
            raise ValueError(f"--{name} must be over 0; got {min(each):g}")
        value = each if isinstance(given, Sequence) else given
        changed |= dict.fromkeys(OPTIONS[name], value)
    return sizes._replace(**changed)
