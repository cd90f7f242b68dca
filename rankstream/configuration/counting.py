"""Event time, limits, and what statistics keep apart or leave out."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from rankstream.configuration.section import Fault, Positive, Section
from rankstream.wire.bounds import (
    CLICK_OVERHEAD_BYTES,
    MAX_CLICK_BYTES,
    MAX_CLICKS_BYTES,
)

CLICK = "click"
"""The class of every action that the settings do not map."""

MOST_CLASSES = 4
"""Of rewards, `CLICK` among them."""

SPLIT_SHARES = (0.65, 0.15, 0.20)
"""Of the groups: training, validation, selection."""

LEAST_TO_SPLIT = 6
"""Groups, two for each split."""


class TimeSettings(Section, frozen=True):
    """Event time, in milliseconds. See `docs/settings.md` for the meaning."""

    disorder_ms: Positive = 30_000
    click_window_ms: Positive = 300_000
    remember_ms: Positive = 300_000
    ahead_ms: Positive = 300_000
    idle_ms: Positive = 10_000
    lead_ms: Positive = 60_000
    keep_ms: Positive = 90 * 86_400_000


class LimitSettings(Section, frozen=True):
    """What ingestion accepts and what statistics keep apart."""

    documents: Positive = 10_000
    clicks: Positive = 1_000
    click_bytes: Positive = 1 << 20
    candidate_sets: Positive = 64
    interventions: Positive = 256
    exposure_rows: Positive = 16
    lists: Positive = 64


class StatisticsSettings(Section, frozen=True):
    """What statistics keep apart: groups of users, and classes of what they did.

    `actions` maps actions of click events to classes; `reward` names the class that
    clicks are counted of, wherever a click is spoken of. `split_shares` are those of
    the groups that go into training, validation and selection.
    """

    groups: Annotated[int, msgspec.Meta(ge=2, le=256)] = 20
    reward: str = CLICK
    actions: dict[str, str] = {}
    split_shares: list[float] = msgspec.field(default_factory=lambda: [*SPLIT_SHARES])

    def classes(self) -> tuple[str, ...]:
        """Names of the classes, by number: `CLICK`, then the others sorted."""
        return CLICK, *sorted(set(self.actions.values()) - {CLICK})


class IngestionSettings(Section, frozen=True):
    """What ingestion makes of lists; it stands in the log.

    `segment` names the attribute of query events that becomes part of the query; empty
    where none does.
    """

    segment: str = ""


class ExcludeSettings(Section, frozen=True):
    """Whose lists and clicks enter no sum and no learner; decided by ingestion.

    `users` are ids of users. A session, else user, that is shown more than
    `lists_per_minute` lists of one partition of `queries` in a minute is a robot for so
    many `minutes`; 0 means that nobody is.
    """

    users: list[str] = []
    lists_per_minute: Annotated[int, msgspec.Meta(ge=0)] = 0
    minutes: Positive = 60


def ingestion_faults(ingestion: IngestionSettings) -> Iterator[Fault]:
    """Each setting of `[ingestion]` that cannot be so."""
    segment = ingestion.segment
    if segment and (segment.strip() != segment or not segment.isprintable()):
        yield (
            "ingestion.segment",
            "ingestion.segment must name an attribute, without spaces around it and "
            f"in visible characters; got {segment!r}",
        )


def time_faults(time: TimeSettings) -> Iterator[Fault]:
    """Each setting of `[time]` that cannot be so."""
    if time.remember_ms < time.disorder_ms:
        # A click waits no longer when its impression is forgotten.
        yield (
            "time.remember_ms",
            "time.remember_ms must be time.disorder_ms or more; "
            f"got {time.remember_ms}, which is less than {time.disorder_ms}",
        )
    if time.keep_ms < time.click_window_ms:
        # An era would leave before its last lists are counted.
        yield (
            "time.keep_ms",
            "time.keep_ms must be time.click_window_ms or more; "
            f"got {time.keep_ms}, which is less than {time.click_window_ms}",
        )


def limits_faults(limits: LimitSettings) -> Iterator[Fault]:
    """Each setting of `[limits]` that cannot be so."""
    least = MAX_CLICK_BYTES + CLICK_OVERHEAD_BYTES
    if not least <= limits.click_bytes <= MAX_CLICKS_BYTES:
        # Any click that is taken fits; a list and its clicks leave as one record.
        yield (
            "limits.click_bytes",
            f"limits.click_bytes must be {least} to {MAX_CLICKS_BYTES}; "
            f"got {limits.click_bytes}",
        )


def statistics_faults(statistics: StatisticsSettings) -> Iterator[Fault]:
    """Each setting of `[statistics]` that cannot be so."""
    click, *others = classes = statistics.classes()
    if len(classes) > MOST_CLASSES:
        yield (
            "statistics.actions",
            f"statistics.actions must name {MOST_CLASSES - 1} classes at most beside "
            f"{click!r}; got {others}",
        )
    if "" in others:
        action = next(key for key, name in statistics.actions.items() if not name)
        yield (
            "statistics.actions",
            f"statistics.actions must name a class for each action; got '' for "
            f"{action!r}",
        )
    if statistics.reward not in classes:
        yield (
            "statistics.reward",
            f"statistics.reward must be {click!r} or a class of statistics.actions, "
            f"one of {[click, *others]}; got {statistics.reward!r}",
        )
    yield from _of_splits(statistics)


def _of_splits(statistics: StatisticsSettings) -> Iterator[Fault]:
    setting, shares = "statistics.split_shares", statistics.split_shares
    is_split = len(shares) == len(SPLIT_SHARES) and all(share > 0 for share in shares)
    # Not a number is no sum of 1 either.
    if not (is_split and abs(sum(shares) - 1.0) <= 1e-9):
        yield (
            setting,
            f"{setting} must be three numbers above 0 with a sum of 1, for training, "
            f"validation and selection; got {shares}",
        )
    elif statistics.groups < LEAST_TO_SPLIT and shares != [*SPLIT_SHARES]:
        yield (
            setting,
            f"{setting} must be left out with statistics.groups below "
            f"{LEAST_TO_SPLIT}, as each split has two groups; got {shares} for "
            f"{statistics.groups}",
        )
