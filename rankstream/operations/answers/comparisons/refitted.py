"""A difference in clicks under the newest curve, with the error that the curve has."""

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.evaluation.conclusion import clustered_half_widths
from models.evaluation.refitted_difference import (
    CreditedDifference,
    RefittedDifference,
    refitted_difference,
)
from models.evaluation.sums import SCALE
from rankstream.operations.answers.as_builtins import Answer, types_of
from rankstream.ranking.logging_options import LoggingOptions
from rankstream.ranking.methods import LOGGING_POLICY
from rankstream.settings import ModelSettings, Settings
from rankstream.wire.envelope import Snapshot
from streams.comparisons.comparison import Comparison
from streams.comparisons.health import ALPHA
from streams.estimation.curve_replicates import CurveReplicates, published_replicates
from streams.statistics.reader import Statistics


@dataclass(frozen=True)
class Refitted(Answer):
    """What lists of logging policies say under the newest curve.

    Parameters
    ----------
    a, b
        The rankers; the difference is of clicks per list of a, less those of b.
    curve
        Which one.
    n_refits
        Without one group each.
    found
        The difference.
    """

    experiment: str
    epoch: int
    a: str
    b: str
    curve: str
    n_refits: int
    found: RefittedDifference

    def said(self) -> str:
        """One sentence."""
        found = self.found
        return (
            f"under {self.curve} {self.a} has {found.mean:+.4f} clicks per list more "
            f"than {self.b} ({found.low:+.4f} .. {found.high:+.4f}), "
            f"{found.moved:+.4f} of it because lists were credited by another curve; "
            "the interval is for one look, and asymptotic in sessions and in clicks "
            f"of the curve, which errs by {found.curve_error:.4f} (refits without each "
            f"of {self.n_refits} groups)"
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it."""
        own = {name: getattr(self, name) for name in ("experiment", "epoch", "a", "b")}
        of_curve = {"curve": self.curve, "n_refits": self.n_refits}
        return own | of_curve | self.found._asdict()

    @classmethod
    def gives(cls) -> dict[str, Any]:
        """As `to_dict`."""
        of = {name: kind for name, kind in super().gives().items() if name != "found"}
        return of | types_of(RefittedDifference)


def curve_of_policies(settings: Settings, comparison: Comparison) -> str:
    """The name of the curve that policies of an experiment are trained by.

    Raises
    ------
    ValueError
        Where it has no such policies, or P(looked at | rank) are given.
    """
    model = _model_of(settings, comparison)
    found = settings.curve_for(model)
    if not found:
        raise ValueError(
            f"--refit must be asked where a curve was estimated; the settings give "
            f"`examination` of {comparison.name!r}, so that there is nothing to refit"
        )
    return found


def refitted(
    settings: Settings,
    comparison: Comparison,
    statistics: Statistics,
    published: Snapshot,
    online: Container[str] = (),
) -> Refitted:
    """The difference of an experiment under a published curve.

    Parameters
    ----------
    published
        The newest version of the curve that `curve_of_policies` names.
    online
        Interventions whose lists a model that learns online may have made.

    Raises
    ------
    ValueError
        Where the curve is from users who judge, cannot be refitted, or does not say
        who looks at all ranks.
    """
    options = LoggingOptions.of(comparison.settings)
    curve = published_replicates(settings, published, statistics, online=online)
    slopes = comparison.slopes[LOGGING_POLICY]
    _check(comparison.name, options, curve, len(slopes))
    sums, n_ranks = comparison.sums[LOGGING_POLICY], len(slopes)
    n = max(1, int(sums.impressions.sum()))
    found = refitted_difference(
        CreditedDifference(
            float(sums.mean()[0]),
            float(clustered_half_widths(sums, ALPHA)[0]),
            np.array(options.examination[:n_ranks]),
            slopes / SCALE / n,
        ),
        curve.curve.alpha[:n_ranks],
        [each.alpha[:n_ranks] for each in curve.without.values()],
        ALPHA,
    )
    a, b = comparison.rankers
    epoch = comparison.settings.epoch
    return Refitted(
        comparison.name, epoch, a, b, curve.source, len(curve.without), found
    )


def _model_of(settings: Settings, comparison: Comparison) -> ModelSettings:
    named = comparison.settings.options.get("model")
    model = settings.models.get(named) if isinstance(named, str) else None
    if comparison.settings.method != LOGGING_POLICY or model is None:
        raise ValueError(
            f"--refit must be asked of an experiment of the method {LOGGING_POLICY!r} "
            f"whose model the settings have; {comparison.name!r} is of "
            f"{comparison.settings.method!r}, and its model {named!r}"
        )
    return model


def _check(
    name: str, options: LoggingOptions, curve: CurveReplicates, n_ranks: int
) -> None:
    """That the curve's error comes beside that of the users who judge."""
    first = options.groups - options.selection if options.groups else 0
    both = sorted(group for group in curve.groups if group >= first)
    if both:
        raise ValueError(
            f"the curve of {name!r} must be from groups of users that do not judge; "
            f"{curve.source} is from {both[:5]} too: fit it on others "
            "(`statistics.split_shares`), or give `examination`"
        )
    if curve.reason or len(curve.without) < 2:
        why = curve.reason or "it is from one group alone"
        raise ValueError(
            f"the curve of {name!r} must be one that can be refitted without each "
            f"group; of {curve.source} {why}: give `examination`"
        )
    if curve.curve.has_trust_bias or curve.curve.n_ranks < n_ranks:
        got = "trust bias" if curve.curve.has_trust_bias else f"{curve.curve.n_ranks}"
        raise ValueError(
            f"the curve of {name!r} must be of position bias alone, of {n_ranks} ranks "
            f"that all refits know; {curve.source} has {got}: wait for more clicks, or "
            "give `examination`"
        )
