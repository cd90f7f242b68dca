"""Logs of simulated users, whose taste and habits are known."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from models.click_models.registry import NAMES, click_model_of
from producers.formats.letor import LetorData
from producers.simulation import Plan, Progress, Sink
from producers.simulation import simulate as shown_to_users
from producers.stop_signal import Stop
from rankstream.lab.simulation.queries import n_grades_of
from rankstream.notebook.counted import Counted
from rankstream.notebook.graded import graded_queries
from rankstream.notebook.sources import Table
from rankstream.operations.folded_log import FoldedLog, started_log
from rankstream.operations.recorded_log import Lines
from rankstream.ranker import Ranker
from rankstream.settings import ModelSettings, Settings
from rankstream.wire.envelope import Snapshot, encode_snapshot
from rankstream.wire.nearest_name import meant
from streams.local import local_settings
from streams.training.recorded_inputs import first_version

if TYPE_CHECKING:
    from rankstream.notebook.ranker import ClickRanker

START_MS = 1_577_836_800_000
"""2020-01-01, when the first list is shown: the same seed gives the same log."""

STEP_MS = 1_000

MODEL = "simulated"


@dataclass(frozen=True)
class SimulatedUsers:
    """Users who search queries, one list after another; see `simulate`.

    Parameters
    ----------
    queries
        With documents, features and grades.
    snapshot
        What ranks; None: nothing, so that all lists are equally likely.
    """

    queries: LetorData
    users: str
    lists: int
    cutoff: int
    seed: int
    policy: str
    snapshot: Snapshot | None

    @property
    def name(self) -> str:
        """What it is, in a few words."""
        return f"simulated users, {self.users}"

    def folded(self, settings: Settings, features: Table, lines: Lines) -> FoldedLog:
        """Show the lists, and fold what came of them; they have features already."""
        if features is not None:
            raise ValueError(
                "features must not be given beside those of the simulated queries"
            )
        folded = started_log(
            msgspec.structs.replace(
                local_settings(settings), models={}, experiments={}, curves={}
            )
        )
        pipeline = folded.replay.pipeline
        pipeline.start()
        self._show(pipeline, lines)
        pipeline.end()
        pipeline.flush()
        return folded

    def _show(self, sink: Sink, lines: Lines) -> None:
        snapshot = self.snapshot or _first(self.queries.features.shape[1])
        envelope = encode_snapshot(snapshot)
        ranker = Ranker(snapshot.model, source=lambda: envelope)
        plan = Plan(
            self.lists, START_MS, STEP_MS,
            cutoff=self.cutoff, policy=self.policy, learns_online=False,
        )  # fmt: skip
        users = click_model_of(self.users, n_grades_of(self.queries))
        stop = Stop()
        with lines("shown", total=self.lists, unit="lists") as line:

            def look(progress: Progress) -> None:
                line.show(progress.shown)

            shown_to_users(
                self.queries, users, ranker, sink, plan,
                rng=np.random.default_rng(self.seed),
                on_progress=look, is_stopped=lambda: stop.asked,
            )  # fmt: skip


def simulated_on(counted: Counted, users: str, **options: Any) -> SimulatedUsers:
    """Users who search the queries of a log, and like what its users liked."""
    known: dict[str, Any] = {
        "lists": 10_000, "cutoff": 10, "seed": 1, "ranker": None,
        "policy": "plackett-luce",
    }  # fmt: skip
    for name in options:
        if name not in known:
            raise ValueError(
                f"options of a simulation must be some of {', '.join(known)}; got "
                f"{name!r:.60}: {meant(name, known)}"
            )
    return users_of(graded_queries(counted), users, **(known | options))


def users_of(  # noqa: PLR0913  all that a simulation depends on
    queries: LetorData,
    users: str,
    lists: int,
    cutoff: int,
    seed: int,
    ranker: "ClickRanker | None",
    policy: str,
) -> SimulatedUsers:
    """Users who search these queries; see `rankstream.simulate`.

    Raises
    ------
    ValueError
        Where there are no such users, or a number is none that there can be.
    """
    if users not in NAMES:
        raise ValueError(
            f"users must be some of {', '.join(NAMES)}; got {users!r:.60}: "
            f"{meant(users, NAMES)}"
        )
    if lists < 1 or cutoff < 1:
        raise ValueError(f"lists and cutoff must be 1 or more; got {lists}, {cutoff}")
    snapshot = None if ranker is None else ranker.snapshot_
    return SimulatedUsers(queries, users, lists, cutoff, seed, policy, snapshot)


def _first(n_features: int) -> Snapshot:
    """What ranks all documents alike, and has their features logged."""
    return first_version(MODEL, ModelSettings(features=n_features, log_candidates=True))
