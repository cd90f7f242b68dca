"""The operator's side of experiments: what clients follow, and under which epochs.

An epoch that was used up never comes back: its lists stay in the log, and its sums go
on counting. So a number must not be given to something else, also where the experiment
was removed meanwhile or Redis was emptied.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rankstream.experiment_records import ExperimentRecord, encode_record, running
from rankstream.ranking.methods import DRAWN
from rankstream.ranking.scored_beside import scored_methods
from rankstream.settings import ExperimentSettings

Counted = Mapping[str, Mapping[int, ExperimentSettings | None]]
"""By experiment and epoch, the settings that its sums are kept under; None where they
cannot be read."""


class ExperimentError(RuntimeError):
    """A configuration cannot take the place of the one that is stored.

    Operator action: raise `epoch` of the experiment in the settings.
    """


class Publication(NamedTuple):
    """What becomes of each experiment, in words, and the record that each then has."""

    verdicts: dict[str, str]
    records: dict[str, ExperimentRecord]


def planned(
    stored: Mapping[str, ExperimentRecord],
    experiments: Mapping[str, ExperimentSettings],
    counted: Callable[[], Counted] = dict,
) -> Publication:
    """What publishing the configurations of the settings would do.

    Parameters
    ----------
    stored
        The last record of each experiment.
    counted
        Epochs that lists were counted under; asked only where something changes.

    Raises
    ------
    ExperimentError
        Where one differs from what is stored under the same epoch, or its epoch was
        used before.
    ValueError
        Where one is scored by a method that is not fair on its lists, its lists cannot
        be drawn by clients, or it is too large for a record.
    """
    verdicts = {
        name: _becomes(name, wanted, stored.get(name))
        for name, wanted in sorted(experiments.items())
    }
    changed = [name for name, what in verdicts.items() if what != "unchanged"]
    known = counted() if changed else {}
    for name in changed:
        wanted, removed = experiments[name], 0
        if name in stored and stored[name].settings is None:
            removed = stored[name].epoch
        why = why_used(wanted, removed, known.get(name, {}))
        if why:
            raise ExperimentError(
                f"experiments.{name} must have an epoch {why}; got {wanted.epoch}"
            )
    records = dict(stored)
    for name, record in sorted(stored.items()):
        if name not in experiments and record.settings is not None:
            verdicts[name] = (
                f"removed; comes back with an epoch above {record.epoch} only"
            )
            records[name] = ExperimentRecord(record.epoch)
    records |= {name: running(wanted) for name, wanted in experiments.items()}
    for name, record in records.items():
        encode_record(name, record)
    return Publication(verdicts, records)


def check_drawable(name: str, wanted: ExperimentSettings) -> None:
    """Refuse an experiment whose lists clients cannot draw.

    Raises
    ------
    ValueError
        With the methods that they can.
    """
    if wanted.method not in DRAWN:
        raise ValueError(
            f"experiments.{name}.method {wanted.method!r} cannot be drawn by services; "
            f"choose one of {sorted(DRAWN)}"
        )


def _becomes(
    name: str, wanted: ExperimentSettings, stored: ExperimentRecord | None
) -> str:
    """What becomes of an experiment beside what clients follow."""
    scored_methods(wanted)
    check_drawable(name, wanted)
    held = stored.settings if stored else None
    if held is None:
        return "new"
    if held == wanted:
        return "unchanged"
    if wanted.epoch <= held.epoch:
        raise ExperimentError(
            f"experiments.{name} must have an epoch above {held.epoch}, as it "
            f"differs from what runs; got {wanted.epoch}"
        )
    return f"epoch {held.epoch} -> {wanted.epoch}"


def why_used(
    wanted: ExperimentSettings,
    removed: int,
    counted: Mapping[int, ExperimentSettings | None],
) -> str:
    """Why the epoch of an experiment that clients do not follow yet is taken.

    Parameters
    ----------
    removed
        The largest epoch that was removed; 0 if none was.
    counted
        Epochs whose lists were counted. The last of them may be published again under
        the same settings, as after Redis was emptied.

    Returns
    -------
    str
        Empty where it is free.

    Examples
    --------
    >>> both = {"old": "", "new": ""}
    >>> why_used(ExperimentSettings(rankers=both, epoch=2), 2, {})
    'above 2, as that one was removed and epochs never come back'
    >>> why_used(ExperimentSettings(rankers=both, epoch=3), 2, {})
    ''
    """
    last = max(counted, default=0)
    if wanted.epoch <= removed and removed >= last:
        return f"above {removed}, as that one was removed and epochs never come back"
    if wanted.epoch < last:
        return f"above {last}, as lists of that one were counted already"
    if wanted.epoch == last and counted[last] != wanted:
        return f"above {last}, as lists of that one were counted under other settings"
    return ""
