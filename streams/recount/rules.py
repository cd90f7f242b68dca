"""What a recount must know of the settings, and what it keeps of an impression."""

from typing import NamedTuple

from rankstream.settings import Settings


class Rules(NamedTuple):
    """Times in milliseconds, and the limits of the statistics."""

    disorder_ms: int
    window_ms: int
    remember_ms: int
    keep_ms: int
    candidate_sets: int
    interventions: int
    exposure_rows: int
    list_masks: int
    clicks: int
    click_bytes: int
    n_targets: int


def rules_of(settings: Settings) -> Rules:
    """The rules that the settings state."""
    time, limits = settings.time, settings.limits
    return Rules(
        time.disorder_ms,
        time.click_window_ms,
        time.remember_ms,
        time.keep_ms,
        limits.candidate_sets,
        limits.interventions,
        limits.exposure_rows,
        0,
        limits.clicks,
        limits.click_bytes,
        settings.kafka.learner_partitions,
    )


class Closed(NamedTuple):
    """A closed impression as its statistics need it.

    `era` is the number of days that the watermark had entered before, `material` what
    the exposures follow from, `ranks` the distinct clicked ranks, sorted.
    """

    era: int
    at_ms: int
    group: int
    policy: int
    is_open_set: bool
    intervention: str
    candidates: bytes
    material: bytes
    shown: bytes
    ranks: tuple[int, ...]
