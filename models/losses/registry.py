"""Losses of rankings by name: what each bounds, and what it needs.

All take the scores of a query's items, their weights (clicks over propensities, or
gains of labels), which weights are known, and how many ranks count; all give a value,
of which less is better, and its slopes by the scores.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, Protocol

from models.arrays import Flags, Floats
from models.losses import arp, dcg, lambda_loss, lambda_rank, precision
from models.losses import policy_gradient as expected
from models.losses import proximal as clipped
from models.losses.compiled_loss import CompiledLoss
from models.losses.loss_value import LossValue

CUTOFF = "cutoff"
GENERATOR = "generator"
PARENT = "parent"
"""What losses need: the ranks that count, draws for long lists, and expected weights of
items' ranks under the policy that training begins with."""

DEFAULT = "truncated-lambda"


class Loss(Protocol):
    """The signature of all losses; see `models.losses.loss_value.loss_value`."""

    def __call__(
        self, scores: Floats, weights: Floats, where: Flags, cutoff: int
    ) -> LossValue:
        """Value and slopes of one query."""


class Compiles(Protocol):
    """Makes a loss for kernels."""

    def __call__(self, cutoff: int, n_items: int) -> CompiledLoss:
        """For queries of at most so many items."""


class Entry(NamedTuple):
    """A loss by name.

    Parameters
    ----------
    loss
        See `Loss`.
    compiles
        See `compiled_loss`.
    needs
        Some of `CUTOFF`, `GENERATOR` and `PARENT`.
    bounds
        In a sentence.
    """

    loss: Loss
    compiles: Compiles
    needs: frozenset[str]
    bounds: str


def _entry(loss: Loss, compiles: Compiles, needs: str, bounds: str) -> Entry:
    return Entry(loss, compiles, frozenset(needs.split()), bounds)


LOSSES: Mapping[str, Entry] = MappingProxyType(
    {
        "truncated-lambda": _entry(
            lambda_loss.truncated_lambda,
            lambda_loss.compiled_truncated_lambda,
            "cutoff",
            "nothing that is known: a heuristic for DCG@k",
        ),
        "lambda-loss-at-k": _entry(
            lambda_loss.lambda_loss_at_k,
            lambda_loss.compiled_lambda_loss_at_k,
            "cutoff",
            "DCG@k that discounts take, up to what pairs have in common",
        ),
        "lambda-loss": _entry(
            lambda_loss.lambda_loss,
            lambda_loss.compiled_lambda_loss,
            "",
            "DCG that discounts take, up to what pairs have in common",
        ),
        "lambda-rank": _entry(
            lambda_rank.lambda_rank,
            lambda_rank.compiled_lambda_rank,
            "cutoff",
            "DCG@k that is lost to the best order",
        ),
        "arp-linear": _entry(
            arp.arp_linear,
            partial(arp.compiled_arp, is_logistic=False),
            "",
            "the average relevant position, by a hinge",
        ),
        "arp-logistic": _entry(
            arp.arp_logistic,
            partial(arp.compiled_arp, is_logistic=True),
            "",
            "the average relevant position, by a logistic function",
        ),
        "dcg-linear": _entry(
            dcg.dcg_linear,
            partial(dcg.compiled_dcg, is_logistic=False, is_cut=False),
            "",
            "minus DCG, by a hinge",
        ),
        "dcg-logistic": _entry(
            dcg.dcg_logistic,
            partial(dcg.compiled_dcg, is_logistic=True, is_cut=False),
            "",
            "minus DCG, by a logistic function",
        ),
        "dcg-at-k-linear": _entry(
            dcg.dcg_at_k_linear,
            partial(dcg.compiled_dcg, is_logistic=False, is_cut=True),
            "cutoff",
            "minus DCG@k, by a hinge; slopes are those of dcg-linear",
        ),
        "dcg-at-k-logistic": _entry(
            dcg.dcg_at_k_logistic,
            partial(dcg.compiled_dcg, is_logistic=True, is_cut=True),
            "cutoff",
            "minus DCG@k, by a logistic function; slopes are those of dcg-logistic",
        ),
        "precision-at-k-linear": _entry(
            precision.precision_at_k_linear,
            partial(precision.compiled_precision, is_logistic=False),
            "cutoff",
            "minus Precision@k, by a hinge",
        ),
        "precision-at-k-logistic": _entry(
            precision.precision_at_k_logistic,
            partial(precision.compiled_precision, is_logistic=True),
            "cutoff",
            "minus Precision@k, by a logistic function",
        ),
        "policy-gradient": _entry(
            expected.policy_gradient,
            expected.compiled_policy_gradient,
            "cutoff generator",
            "is minus the expected DCG@k, or other worths of ranks, of Plackett-Luce "
            "lists",
        ),
        "proximal": _entry(
            clipped.proximal,
            clipped.compiled_proximal,
            "cutoff parent",
            "is minus the expected DCG@k, of which an item counts up to a multiple of "
            "its weight under the parent",
        ),
    }
)


def loss_of(name: str) -> Entry:
    """The entry of a name.

    Raises
    ------
    ValueError
        Where there is none.
    """
    if name not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}; got {name!r}")
    return LOSSES[name]


def compiled_loss(
    name: str,
    cutoff: int,
    n_items: int,
    *,
    worths: Floats | None = None,
    n_samples: int = expected.N_SAMPLES,
    ratio: float | None = None,
) -> CompiledLoss:
    """A loss for kernels: `models.losses.compiled_loss.add_query_loss` takes it.

    Parameters
    ----------
    cutoff
        Ranks that count, at least 1.
    n_items
        Of the longest query.
    worths : [n_ranks]
        What a relevant item is worth by rank, for losses of expected worth alone; those
        of DCG if not given.
    n_samples
        Lists that the policy gradient draws of a long query; others draw none.
    ratio
        Of the proximal loss alone; 1.25 if not given.

    Raises
    ------
    ValueError
        Where there is no such loss, a number is below 1, or worths or a ratio are given
        to a loss that takes none.
    """
    entry = loss_of(name)
    if PARENT in entry.needs:
        return clipped.compiled_proximal(
            cutoff, n_items, worths=worths,
            ratio=clipped.RATIO if ratio is None else ratio,
        )  # fmt: skip
    if ratio is not None:
        raise ValueError(f"ratio must go to proximal; got loss {name!r}: leave it out")
    if GENERATOR in entry.needs:
        return expected.compiled_policy_gradient(
            cutoff, n_items, worths=worths, n_samples=n_samples
        )
    if worths is not None:
        raise ValueError(
            "worths of ranks must go to policy-gradient or proximal; got loss "
            f"{name!r}: leave them out"
        )
    return entry.compiles(cutoff, n_items)
