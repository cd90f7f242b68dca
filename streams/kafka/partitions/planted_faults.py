"""Faults that a test plants, to show that it would notice them."""

import os

SKIP_RESUME_POSITION = "no-resume-position"
"""Start before the checkpoint, and fold again what the state holds already."""

REPEATED_RECORDS = 1_000

VARIABLE = "RANKSTREAM_FAULTS"


def is_planted(fault: str, stage: str) -> bool:
    """Whether a fault is wanted in a stage: `fault`, or `fault:beginning-of-stage`."""
    planted = os.environ.get(VARIABLE, "").split(",")
    return any(
        name == fault and stage.startswith(prefix)
        for name, _, prefix in (each.partition(":") for each in planted)
    )
