"""What a simulation showed, policy by policy, and what is printed of it."""

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from rich.table import Table

from producers.simulation import Progress
from rankstream.lab.simulation.interventions import Interventions
from rankstream.operations.commands.intervene.tables import print_curve
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.words import loss_line, plain, visible
from rankstream.ranker import Ranker
from rankstream.snapshots import Snapshot
from rankstream.wire.models.curves import CurveRecord, published
from rankstream.wire.models.training import RunRecord

SPARE = "least exposure", "from list", "epoch"
"""Columns that may go where there is no room."""

LATELY = 1_000
"""Lists that NDCG of the logging policy is of, while it is shown."""


class Policy(NamedTuple):
    """What one version showed.

    Parameters
    ----------
    intervention
        Its name; that of the model before anything was trained.
    first
        Lists that were shown before its first.
    n_shown, n_clicks
        Its lists, and their clicks.
    ndcg_shown
        Mean NDCG of its lists, 0 where nothing is relevant; None without any.
    ndcg_test
        NDCG of its order, test split.
    """

    intervention: str
    first: int
    n_shown: int
    n_clicks: int
    ndcg_shown: float | None
    ndcg_test: float

    @property
    def clicks_per_list(self) -> float | None:
        """None without lists."""
        return self.n_clicks / self.n_shown if self.n_shown else None


class ServedPolicies:
    """Follows which version a ranker serves.

    Parameters
    ----------
    ndcg_of
        NDCG of a snapshot, test split.
    """

    def __init__(self, ranker: Ranker, ndcg_of: Callable[[Snapshot], float]) -> None:
        self._ranker = ranker
        self._ndcg_of = ndcg_of
        self._ended: list[Policy] = []
        self._begin(Progress())

    def _begin(self, progress: Progress) -> None:
        self._at = self._ranker.pointer
        snapshot = self._ranker.snapshot
        self._name = snapshot.intervention or snapshot.model
        self._first, self._clicks_before = progress.shown, progress.clicks
        self._ndcg = self._ndcg_of(snapshot)

    def follow(self, progress: Progress) -> Policy | None:
        """The policy that was served until now, where another one follows it."""
        if self._ranker.pointer == self._at:
            return None
        ended = self._current(progress)
        self._ended.append(ended)
        self._begin(progress)
        return ended

    def _current(self, progress: Progress) -> Policy:
        shown = progress.shown_ndcg[self._first :]
        return Policy(
            self._name,
            self._first,
            len(shown),
            progress.clicks - self._clicks_before,
            float(np.mean(shown)) if shown else None,
            self._ndcg,
        )

    def policies(self, progress: Progress) -> list[Policy]:
        """All of them, in their order, with the one that is served."""
        return [*self._ended, self._current(progress)]

    def note(self, progress: Progress) -> str:
        """NDCG of the lists that the policy showed lately, and of its order."""
        shown = progress.shown_ndcg[self._first :][-LATELY:]
        lately = f"{np.mean(shown):.3f}" if shown else "-"
        return f"{visible(self._name)}: NDCG {lately} shown, {self._ndcg:.3f} test"


def told(policy: Policy) -> str:
    """A policy that ended, in a line."""
    last = policy.first + policy.n_shown
    if policy.ndcg_shown is None:
        return f"{visible(policy.intervention)}: served for no list"
    return (
        f"{visible(policy.intervention)}: lists {policy.first + 1:,} to {last:,}, "
        f"NDCG {policy.ndcg_shown:.4f} shown, {policy.ndcg_test:.4f} test split, "
        f"{policy.clicks_per_list:.3f} clicks per list"
    )


def as_builtins(policy: Policy, run: RunRecord | None) -> dict[str, Any]:
    """A policy with its names; what is known of its training too."""
    found: dict[str, Any] = {
        **policy._asdict(),
        "clicks_per_list": policy.clicks_per_list,
    }
    if run is not None:
        found |= {
            "reason": run.reason,
            "counted": run.version,
            "best_epoch": run.best_epoch,
            "temperature": run.temperature,
            "least_exposure": run.least_exposure,
            "reward": run.reward,
            "reward_reason": run.reward_reason,
            "curve": run.curve.source,
            "curve_warning": run.curve.warning,
            "loss": run.loss,
            "loss_chosen": loss_line(run) if run.losses else "",
        }
    return {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in found.items()
    }


def policies_table(rows: list[dict[str, Any]]) -> Table:
    """Policies as people read them, one a row; `rows` of `as_builtins`."""
    caption = [
        "epoch: the best on held-out queries, 0 where the parent's order stayed",
        "estimated: clicks per list, from selection groups, before it was served",
        *(
            f"  {plain(row['intervention'])}: {plain(row[why])}"
            for why in ("reward_reason", "curve_warning", "loss_chosen")
            for row in rows
            if row.get(why)
        ),
    ]
    table = Table(title="policies that were served", caption="\n".join(caption))
    table.add_column("intervention")
    for heading in (
        "epoch", "from list", "lists", "NDCG shown", "NDCG test", "clicks per list",
        "estimated", "least exposure",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            plain(row["intervention"]),
            str(row.get("best_epoch", "-")),
            f"{row['first'] + 1:,}",
            f"{row['n_shown']:,}",
            *(
                _number(row.get(name))
                for name in (
                    "ndcg_shown", "ndcg_test", "clicks_per_list", "reward",
                    "least_exposure",
                )
            ),
        )  # fmt: skip
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def result_of(
    progress: Progress, learned: Snapshot, ndcg: float, seconds: float
) -> dict[str, Any]:
    """Figures of a simulation.

    Parameters
    ----------
    learned
        What is served at the end.
    ndcg
        That of its order, test split.
    """
    lags = progress.behind
    behind = (
        {
            "behind_mean": round(float(np.mean(lags)), 1),
            "behind_largest": int(max(lags)),
        }
        if lags
        else {}
    )
    return {
        "impressions": progress.shown,
        "clicks": progress.clicks,
        "seconds": round(seconds, 2),
        "version": learned.version,
        "versions_served": len(progress.versions),
        **behind,
        "ndcg_learned": round(ndcg, 4),
        "ndcg_shown_last_1000": round(progress.recent(), 4),
        "ndcg_shown_discounted": round(progress.discounted(), 1),
    }


def interventions_of(
    found: Interventions, served: ServedPolicies, progress: Progress
) -> dict[str, Any]:
    """What each policy showed, with how it was trained, and curves of bias."""
    curves = [msgspec.to_builtins(published(each)) for each in found.curves()]
    return {
        **({"curves": curves} if curves else {}),
        "interventions": [
            as_builtins(each, found.run_of(each.intervention))
            for each in served.policies(progress)
        ],
        "refused": found.refusal(),
    }


def print_result(
    result: dict[str, Any], curves: Sequence[CurveRecord], *, as_json: bool
) -> None:
    """Print it as tables, with the last fit of each curve, or as one JSON object."""
    if as_json:
        json.dump(result, sys.stdout)
        sys.stdout.write("\n")
        return
    console = wide_console()
    console.print(_figures_table(result))
    for each in {each.model: each for each in curves}.values():
        print_curve(each)
    if "interventions" in result:
        print_fitted(console, policies_table(result["interventions"]), SPARE)
        if result["refused"]:
            sys.stderr.write(f"the last training was refused: {result['refused']}\n")


def _figures_table(result: dict[str, Any]) -> Table:
    table = Table(title="simulated", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    labels = {
        "impressions": "lists shown",
        "clicks": "clicks",
        "seconds": "seconds",
        "version": "version learned",
        "versions_served": "versions served",
        "behind_mean": "lists behind, mean",
        "behind_largest": "lists behind, largest",
        "ndcg_learned": "NDCG of the learned ranker, test split",
        "ndcg_shown_last_1000": "NDCG of the last 1,000 lists shown",
        "ndcg_shown_discounted": "discounted sum of shown NDCG",
    }
    for name, label in labels.items():
        if name in result:
            table.add_row(label, f"{result[name]:,}")
    return table
