"""Which epochs of an experiment were used up: they never come back.

Lists of an epoch stay in the log, and its sums go on counting. So a number must not
be given to something else, also where the experiment was removed meanwhile or Redis
was emptied.
"""

from collections.abc import Mapping

from rankstream.settings import ExperimentSettings

Counted = Mapping[str, Mapping[int, ExperimentSettings | None]]
"""By experiment and epoch, the settings that its sums are kept under; None where they
cannot be read."""


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
