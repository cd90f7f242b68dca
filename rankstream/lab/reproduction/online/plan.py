"""Which learners run under which users, with what settings; and one of these runs."""

import zlib
from dataclasses import asdict, dataclass

import numpy as np

from models.click_models.registry import click_model_of
from models.learners.coltr import ColtrConfig
from models.learners.duel_learner import DuelConfig
from models.learners.pairwise import PairwiseConfig
from models.learners.parameters import LearnerConfig
from models.learners.pdgd import PdgdConfig
from models.learners.pl_rank import PlRankConfig
from models.rankers.registry import ranker_of
from rankstream.lab.closed_loops.performance import Conventions, Judge, discounted_sum
from rankstream.lab.closed_loops.registry import loop_of
from rankstream.lab.reproduction.data import world_of
from rankstream.lab.reproduction.engine import Job, Result, Setup, checkpoints_of

EXACT, PUBLISHED = "exact", "published"

LEARNERS_TABLE, LONG_RUN, LAG_TABLE = "learners", "long-run", "lags"
CANDIDATES_TABLE = "candidates"

IMPRESSIONS = {
    LEARNERS_TABLE: 10_000,
    LONG_RUN: 100_000,
    LAG_TABLE: 50_000,
    CANDIDATES_TABLE: 10_000,
}
"""Of a run, by table, where nothing else is asked for."""

DECAY = 0.9999977
"""Of the learning rate by update, in the published code and in no text."""

N_SAMPLES = 10_000
"""Assignments that the published code samples for one comparison."""

HIDDEN = (64,)

BASELINES = (
    "pdgd-linear", "pdgd-neural", "dbgd-linear", "dbgd-neural", "mgd-linear",
    "pairwise-linear",
)  # fmt: skip
"""Learners of the tables of the thesis' chapter 5."""

NOISES = ("perfect", "navigational", "informational")

LONG_RUNS = (
    ("pdgd-linear", "perfect"),
    ("pdgd-linear", "almost_random"),
    ("pdgd-linear", "almost_random_by_rank"),
    ("dbgd-oracle", "perfect"),
    ("dbgd-long", "perfect"),
    ("dbgd-long", "almost_random"),
    ("dbgd-long", "almost_random_by_rank"),
)
"""Learners and users of the thesis' chapter 6.

By rank: they look at rank r by chance 1 / r.
"""

SCORING_ALL = ("pdgd-linear", "coltr-linear", "pl-rank-linear")
"""PDGD, and learners that score all candidates again at each update."""

KNOWN = {"perfect": (1.0,) * 10, "almost_random_by_rank": ()}
"""Users of whom it is known at which ranks they look, as PL-Rank is told it."""

LAGS = (0, 100, 1_000, 10_000)
"""Impressions that a served ranker lacks, where the effect of that is asked for."""

BEHIND = "pdgd-linear-behind-"

GRADES = (2, 3, 5)
"""Numbers of grades for which there are tables of users."""

LAST = 1_000
"""Lists whose mean NDCG says what users see now."""


@dataclass(frozen=True)
class Cell:
    """One entry of a table: a learner under its users.

    `form` is "exact", or "published" for what the published code did.
    """

    form: str
    learner: str
    users: str
    n_impressions: int

    def key(self) -> str:
        """What tells it from all others: names, and its learner's settings."""
        settings = repr(config_of(self, 1, seed=0)).encode()
        parts = [*asdict(self).values(), f"{zlib.crc32(settings):08x}"]
        return "/".join(map(str, parts))


def cells_of(table: str, form: str, n_impressions: int) -> list[Cell]:
    """The entries of a table."""
    if table == LONG_RUN:
        return [Cell(form, *pair, n_impressions) for pair in LONG_RUNS]
    if table == LAG_TABLE:
        return [
            Cell(form, f"{BEHIND}{lag}", users, n_impressions)
            for users in NOISES
            for lag in LAGS
        ]
    is_known = table == CANDIDATES_TABLE
    return [
        Cell(form, learner, users, n_impressions)
        for learner in (SCORING_ALL if is_known else BASELINES)
        for users in (KNOWN if is_known else NOISES)
    ]


def lag_of(cell: Cell) -> int:
    """Impressions that a cell's served ranker lacks."""
    return int(cell.learner.removeprefix(BEHIND)) if BEHIND in cell.learner else 0


def config_of(cell: Cell, n_features: int, *, seed: int) -> LearnerConfig:
    """The settings of a cell's learner."""
    is_published = cell.form == PUBLISHED
    decay = DECAY if is_published else 1.0
    is_neural = cell.learner.endswith("neural")
    kind, hidden = ("neural", HIDDEN) if is_neural else ("linear", ())
    if cell.learner.startswith("pdgd"):
        return PdgdConfig(
            n_features, kind, hidden, learning_rate=0.1, decay=decay, seed=seed
        )
    if cell.learner.startswith("pairwise"):
        return PairwiseConfig(
            n_features, kind, hidden, decay=decay, worst_first=is_published
        )
    if cell.learner.startswith("coltr"):
        return ColtrConfig(n_features, kind, hidden, decay=decay, seed=seed)
    if cell.learner.startswith("pl-rank"):
        return PlRankConfig(
            n_features,
            kind,
            hidden,
            decay=decay,
            seed=seed,
            examination=KNOWN.get(cell.users, ()),
        )
    return _duel_config(cell, n_features, kind, hidden, decay=decay, seed=seed)


def _duel_config(
    cell: Cell,
    n_features: int,
    kind: str,
    hidden: tuple[int, ...],
    *,
    decay: float,
    seed: int,
) -> DuelConfig:
    """Those of DBGD and MGD."""
    is_published = cell.form == PUBLISHED
    is_mgd = cell.learner.startswith("mgd")
    is_long = cell.learner in ("dbgd-oracle", "dbgd-long")
    return DuelConfig(
        n_features,
        kind,
        hidden,
        learning_rate=0.001 if is_long else 0.01,
        # The published code builds MGD's model without handing the decay on.
        decay=1.0 if is_mgd else decay,
        seed=seed,
        n_candidates=49 if is_mgd else 1,
        comparison="oracle" if cell.learner == "dbgd-oracle" else "probabilistic",
        n_samples=N_SAMPLES if is_published else 0,
        own_ties=is_published,
    )


def n_grades_of(largest_label: int) -> int:
    """The smallest tables of users that know all labels.

    Raises
    ------
    ValueError
        For a label beyond all of them.
    """
    for n_grades in GRADES:
        if largest_label < n_grades:
            return n_grades
    raise ValueError(
        f"labels must be grades 0 to {GRADES[-1] - 1}; got {largest_label}"
    )


def live_once(setup: Setup, job: Job[Cell]) -> Result:
    """One run: what was learned and shown by each checkpoint."""
    conventions = setup.conventions or Conventions()
    train, test = (
        world_of(setup.place, job.fold, split, setup.normalisation)
        for split in ("train", "test")
    )
    cell = job.cell
    # Runs of all cells that share fold and number share their seed: they are paired.
    streams = np.random.SeedSequence([setup.seed, job.fold, job.run]).spawn(3)
    loop_rng, tie_rng, init_rng = map(np.random.default_rng, streams)
    config = config_of(
        cell, train.features.shape[1], seed=int(init_rng.integers(2**31))
    )
    users = click_model_of(
        cell.users, setup.grades, stop_requires_click=cell.form != PUBLISHED
    )
    loop = loop_of(
        config,
        train,
        users,
        lag=lag_of(cell),
        cutoff=conventions.cutoff,
        rng=loop_rng,
    )
    ranker = ranker_of(config.kind, config.n_features, config.hidden)
    shown_judge, judge = Judge(train, conventions), Judge(test, conventions)
    wide = test.features.astype(np.float64)
    offline, online, recent, cumulative, before = [], [], [], 0.0, 0
    for checkpoint in checkpoints_of(cell.n_impressions):
        values = shown_judge.shown(loop.run(checkpoint - before))
        cumulative += discounted_sum(values, already=before)
        before = checkpoint
        recent.append(float(values[-LAST:].mean()))
        scores = ranker.score(loop.parameters, wide)
        offline.append(judge.held_out(scores, rng=tie_rng))
        online.append(cumulative)
    return {
        "offline": offline,
        "online": online,
        "recent": recent,
        "updates": int(loop.updates),
    }
