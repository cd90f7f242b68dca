"""What a recount must know of the settings, and what it keeps of an impression."""

from typing import NamedTuple

from rankstream.settings import Settings


class Rules(NamedTuple):
    """Times in milliseconds, the limits of the statistics, and what they keep apart.

    `classes` are names of reward classes by number, `actions` the class of each action
    that is none of the first.
    """

    disorder_ms: int
    window_ms: int
    remember_ms: int
    keep_ms: int
    candidate_sets: int
    interventions: int
    exposure_rows: int
    clicks: int
    click_bytes: int
    n_targets: int
    groups: int
    classes: tuple[str, ...]
    reward: str
    actions: dict[str, str]


def rules_of(settings: Settings) -> Rules:
    """The rules that the settings state."""
    time, limits, kept = settings.time, settings.limits, settings.statistics
    others = sorted(set(kept.actions.values()) - {"click"})
    return Rules(
        time.disorder_ms,
        time.click_window_ms,
        time.remember_ms,
        time.keep_ms,
        limits.candidate_sets,
        limits.interventions,
        limits.exposure_rows,
        limits.clicks,
        limits.click_bytes,
        settings.kafka.learner_partitions,
        kept.groups,
        ("click", *others),
        kept.reward,
        dict(kept.actions),
    )


class Split(NamedTuple):
    """A partition of the log that was divided behind an offset; see `children`.

    Parameters
    ----------
    offset
        The last record before it.
    n_before, n_after
        Partitions of the log before and after it.
    """

    offset: int
    n_before: int
    n_after: int

    def children(self, number: int) -> range:
        """The new partitions that some queries of a partition go to."""
        return range(number + self.n_before, self.n_after, self.n_before)


class Closed(NamedTuple):
    """A closed impression as its statistics need it.

    `n_left` is how often eras had left before it closed, `material` what the
    exposures follow from, `ranks` the distinct ranks that the reward was at, sorted,
    `rewards` those of other classes: number of the class, rank.
    """

    n_left: int
    at_ms: int
    group: int
    policy: int
    is_open_set: bool
    intervention: str
    candidates: bytes
    material: bytes
    shown: bytes
    ranks: tuple[int, ...]
    rewards: tuple[tuple[int, int], ...]
