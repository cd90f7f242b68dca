"""How a version of a model goes out: to a share of sessions first."""

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Annotated

import msgspec

from rankstream.configuration.section import Fault, NotNegative, Positive, Section
from rankstream.wire.models.canaries import WITHOUT_CLICK, CanaryRules

SHARES = (0.01, 0.05, 0.25, 0.5)

Error = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class CanarySettings(Section, frozen=True):
    """By which shares of sessions a version goes out, and by what it is judged.

    It is withdrawn where it is worse for sure, in clicks or in one of the `guardrails`
    (`without click`, or classes of `statistics.actions`), which happens to one that is
    no worse with probability `alpha` at most, all looks together. The share rises where
    the interval lies above -`margin` clicks per list and `least` lists of the canary
    were shown by the share. It ends without a verdict after `planned` lists of its own.
    """

    shares: list[float] = msgspec.field(default_factory=lambda: [*SHARES])
    planned: Positive = 20_000
    least: Positive = 500
    alpha: Error = 0.05
    margin: NotNegative = 0.05
    guardrails: list[str] = []

    def rules(self) -> CanaryRules:
        """As its record has them."""
        return CanaryRules(
            self.shares, self.planned, self.least, self.alpha, self.margin,
            self.guardrails,
        )  # fmt: skip


def canary_faults(
    place: str, canary: CanarySettings, classes: Collection[str]
) -> Iterator[Fault]:
    """Each setting of a canary that cannot be so.

    Parameters
    ----------
    classes
        Names of the classes of actions.
    """
    shares, setting = canary.shares, f"{place}.shares"
    is_rising = all(a < b for a, b in pairwise(shares))
    if not shares or not is_rising or not 0.0 < shares[0] <= shares[-1] < 1.0:
        yield (
            setting,
            f"{setting} must be shares of sessions, each above 0, below 1 and larger "
            f"than the one before; got {shares}",
        )
    if canary.least > canary.planned:
        yield (
            f"{place}.least",
            f"{place}.least must be at most {place}.planned, {canary.planned}, as a "
            f"canary ends there; got {canary.least}",
        )
    known = [WITHOUT_CLICK, *classes]
    unknown = sorted(set(canary.guardrails) - set(known))
    if unknown or len(set(canary.guardrails)) < len(canary.guardrails):
        setting = f"{place}.guardrails"
        yield (
            setting,
            f"{setting} must be among {known}, each once; got {canary.guardrails}",
        )
