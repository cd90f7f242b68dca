"""Which methods learn from how many interventions, under which production ranker."""

import zlib
from dataclasses import asdict, dataclass
from typing import Any

from models.learners.coltr import ColtrConfig
from models.learners.parameters import LearnerConfig
from models.learners.pdgd import PdgdConfig
from rankstream.lab.closed_loops.intervention_loop import spread_over
from rankstream.lab.closed_loops.policy_log import (
    AFFINE,
    AWARE,
    OBLIVIOUS,
    POLICY_AWARE,
)
from rankstream.lab.closed_loops.policy_training import (
    LAMBDA_LOSS,
    POLICY_GRADIENT,
    PolicyPlan,
)

TABLE = "interventions"

N_RUNS = 5
"""Of each fold, where nothing else is asked for."""

N_IMPRESSIONS = 100_000

CUTOFF = 5
"""Documents shown, and cutoff of NDCG."""

FIRST = 100
"""Impressions before the first intervention, and at the first checkpoint."""

PDGD, BIASED_PDGD, COLTR = "pdgd", "biased-pdgd", "coltr"

ONLINE = (PDGD, BIASED_PDGD, COLTR)
"""Methods that learn from one impression after another."""

CONTINUOUS = -1
"""Interventions of a learner that serves what it knows at every impression."""

COUNTS = (0, 5, 50, 100)

SHARP, SOFT, LONG, DECAY = "sharp", "soft", "long", "decay"

PARTS = (SHARP, SOFT, LONG, DECAY)
"""Of the table: what it asks for, by name."""

FIRST_CHANCE = {SHARP: 0.84, SOFT: 0.5, LONG: 0.84, DECAY: 0.84}
"""Of the document that is first most often, under the production ranker."""

MOST_RUNS = {DECAY: 2, COLTR: 1}
"""Of each fold, in parts and by methods whose runs take minutes."""

LONGER, LONGEST = 10, 30
"""Times as many impressions, in parts that ask what becomes of it later."""

HIDDEN = (32, 32)
"""Sigmoid units of the published rankers, where PDGD goes astray on old lists."""


@dataclass(frozen=True)
class Cell:
    """One entry of the table.

    Parameters
    ----------
    part
        One of `PARTS`; it says how sure the production ranker is.
    method
        An estimator, or one of `ONLINE`.
    n_interventions
        `CONTINUOUS` for one at each impression.
    loss
        That policies are trained by; empty for online methods.
    """

    part: str
    method: str
    n_interventions: int
    loss: str
    n_impressions: int

    @property
    def hidden(self) -> tuple[int, ...]:
        """Units of the ranker's hidden layers."""
        return HIDDEN if self.part == DECAY else ()

    @property
    def label(self) -> str:
        """What tables and pictures call it."""
        count = self.n_interventions
        named = "online" if count == CONTINUOUS else str(count)
        loss = ", LambdaLoss" if self.loss == LAMBDA_LOSS else ""
        return f"{self.method}{loss}, {named}"

    def key(self) -> str:
        """What tells it from all others: names, and the settings of learners."""
        settings: list[Any] = [plan_of(self), PRODUCTION, FIRST_CHANCE, self.hidden]
        if self.method in ONLINE:
            settings.append(learner_of(self, 1))
        digest = f"{zlib.crc32(repr(settings).encode()):08x}"
        return "/".join(map(str, (*asdict(self).values(), digest)))

    def interventions(self) -> list[int]:
        """Impressions after which the ranker is replaced."""
        if self.n_interventions == CONTINUOUS:
            return []
        return spread_over(self.n_interventions, FIRST, self.n_impressions)


PRODUCTION = PolicyPlan(
    optimiser="adam", learning_rate=0.01, epochs=100, n_samples=100, patience=5
)
"""How the production ranker is trained on labels."""


def plan_of(cell: Cell) -> PolicyPlan:
    """How policies of a cell are trained.

    Of .003, .01, .03, .1, .3 and 1 the step whose policies had the best NDCG by the
    labels of validation queries, in runs of other seeds. Estimates of reward on clicks
    would take the longest one: they take what is rare for good.
    """
    loss = cell.loss or POLICY_GRADIENT
    rate = 0.003 if loss == LAMBDA_LOSS else 0.3
    return PolicyPlan(loss, epochs=30, learning_rate=rate, patience=5)


def learner_of(cell: Cell, n_features: int) -> LearnerConfig:
    """The settings of an online method."""
    kind = "neural" if cell.hidden else "linear"
    if cell.method == COLTR:
        return ColtrConfig(n_features, kind, cell.hidden)
    is_online = cell.n_interventions == CONTINUOUS
    return PdgdConfig(
        n_features,
        kind,
        cell.hidden,
        # The rate of the published code for its nets; linear rankers take ten times it.
        learning_rate=0.01 if cell.hidden else 0.1,
        counterfactual=not is_online,
        biased=cell.method == BIASED_PDGD,
    )


def cells_of(part: str, n_impressions: int) -> list[Cell]:
    """The entries of one part; `n_impressions` are those of the first one."""
    if part == SHARP:
        return [
            *(
                Cell(part, method, count, POLICY_GRADIENT, n_impressions)
                for method in (AWARE, POLICY_AWARE, AFFINE)
                for count in COUNTS
            ),
            Cell(part, OBLIVIOUS, 50, POLICY_GRADIENT, n_impressions),
            *(
                Cell(part, AWARE, count, LAMBDA_LOSS, n_impressions)
                for count in (0, 50)
            ),
            Cell(part, PDGD, CONTINUOUS, "", n_impressions),
            Cell(part, PDGD, 100, "", n_impressions),
            Cell(part, PDGD, 0, "", n_impressions),
            Cell(part, BIASED_PDGD, CONTINUOUS, "", n_impressions),
            Cell(part, COLTR, CONTINUOUS, "", n_impressions),
        ]
    if part == SOFT:
        return [
            *(
                Cell(part, AWARE, count, POLICY_GRADIENT, n_impressions)
                for count in (0, 50)
            ),
            Cell(part, PDGD, CONTINUOUS, "", n_impressions),
        ]
    if part == LONG:
        n = LONGER * n_impressions
        return [Cell(part, AWARE, count, POLICY_GRADIENT, n) for count in (5, 50)]
    n = LONGEST * n_impressions
    return [Cell(part, PDGD, count, "", n) for count in (0, CONTINUOUS)]
