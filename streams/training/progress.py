"""Progress of a training, in words."""

import math
from typing import NamedTuple

STAGES = {
    "curve": "estimating where users look",
    "bounding": "computing how far it can fall",
    "judging": "estimating its clicks per list",
}
"""Stages whose name does not say it."""


class TrainingProgress(NamedTuple):
    """How far a training is.

    Parameters
    ----------
    stage
        `reading`, `curve`, `epoch`, `round`, `bounding` or `judging`.
    number
        Queries that were read; the number of the epoch or the round; else 0.
    loss, held_out_dcg
        Of the epoch or round; NaN where what is trained is no ranking.
    most
        Epochs or rounds that there will be at most; else 0.
    """

    stage: str
    number: int = 0
    loss: float | None = None
    held_out_dcg: float | None = None
    most: int = 0

    def told(self) -> str:
        """The same in words.

        Examples
        --------
        >>> TrainingProgress("epoch", 3, 0.5, 1.25, 50).told()
        'epoch 3 of at most 50, loss 0.5, held-out DCG 1.25'
        >>> TrainingProgress("reading", 2_000).told()
        'reading, 2,000 queries so far'
        >>> TrainingProgress("judging").told()
        'estimating its clicks per list'
        """
        if self.loss is not None:
            of = f"{self.stage} {self.number} of at most {self.most}"
            of += f", loss {self.loss:.6g}"
            dcg = self.held_out_dcg
            if dcg is None or math.isnan(dcg):
                return of
            return f"{of}, held-out DCG {dcg:.6g}"
        so_far = f", {self.number:,} queries so far" if self.number else ""
        return STAGES.get(self.stage, self.stage) + so_far
