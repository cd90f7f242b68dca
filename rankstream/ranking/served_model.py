"""A snapshot as a service ranks with it."""

import secrets
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rankstream.ranking.checked_weights import CheckedWeights
from rankstream.ranking.multileaving import Multileaved, Multileaving, compare
from rankstream.ranking.ranked_list import Ranking
from rankstream.ranking.scoring import draw_list, normalised, shifted
from rankstream.ranking.tied_list import TiedList
from rankstream.wire.envelope import Pointer, Snapshot

Floats = npt.NDArray[np.float32]


class ServedModel(NamedTuple):
    """A version that is served, as one: no list mixes two versions."""

    snapshot: Snapshot
    checked: CheckedWeights
    pointer: Pointer
    taken_s: float

    def rank(  # noqa: PLR0913  all that a list follows from
        self,
        features: npt.ArrayLike,
        *,
        cutoff: int,
        policy: str,
        seed: int | None,
        multileaving: Multileaving,
        session: str = "",
        canary: str = "",
        intervention: str | None = None,
        decided: TiedList | None = None,
    ) -> Ranking:
        """Rank the candidates of one query; see `rankstream.ranker.Ranker.rank`.

        Parameters
        ----------
        features : [n_documents, n_features]
        session, canary
            To be logged: whose list it is, and the tag of the canary in force.
        intervention
            To be logged instead of the version's own.
        decided
            The list is drawn by it, whatever the policy; scores count for nothing.

        Raises
        ------
        ValueError
            Where features do not fit the model, or are not finite, or others are
            decided on.
        """
        snapshot = self.snapshot
        raw = self._checked_features(features)
        with np.errstate(over="ignore", invalid="ignore"):  # the check is below
            moved = shifted(raw, self.checked.shift, self.checked.scale)
            scaled = normalised(moved, snapshot.normalisation)
            scores = self.checked.scores(scaled, snapshot)
        if not np.isfinite(scores).all():
            raise ValueError(
                f"scores must be finite; version {self.pointer} of {snapshot.model!r} "
                "and these features give others"
            )
        drawn = secrets.randbits(63) if seed is None else seed
        made: Multileaved | None = None
        if decided is not None:
            _check_decided(decided, len(scores))
            order, policy = decided.drawn(cutoff=cutoff, seed=drawn)
        elif policy == "multileave":
            self._check_has_neighbours()
            made = compare(
                scaled, self.checked.weights, snapshot.hidden, snapshot.kind,
                settings=multileaving, cutoff=cutoff, seed=drawn,
            )  # fmt: skip
            order = made.order
        else:
            order = draw_list(scores, cutoff=cutoff, policy=policy, seed=drawn)
        lacks = self.checked.trees is not None and bool(np.isnan(raw).any())
        return Ranking(
            order, scores, scaled, policy, drawn, snapshot.model, snapshot.version,
            made, snapshot.intervention if intervention is None else intervention,
            raw if snapshot.log_candidates and not lacks else None,
            snapshot.features_hash, session, canary, decided, lacks,
        )  # fmt: skip

    def _checked_features(self, features: npt.ArrayLike) -> Floats:
        with np.errstate(over="ignore"):
            values = np.asarray(features, np.float32)
        n_features, model = self.snapshot.n_features, self.snapshot.model
        if values.ndim != 2 or values.shape[1] != n_features:
            raise ValueError(
                f"features must be documents by {n_features}, as model {model!r} has "
                f"them in version {self.pointer}; got shape {values.shape}: give it "
                f"{n_features} numbers of each document"
            )
        is_known = np.isfinite(values)
        if self.checked.trees is not None:
            # Each node says where what is missing goes.
            is_known |= np.isnan(values)
        is_finite = is_known.all(axis=1)
        if not len(values) or not is_finite.all():
            got = f"row {is_finite.argmin()} with others" if len(values) else "none"
            raise ValueError(
                f"features must be finite, of at least one document, for model "
                f"{model!r}; got {got}: leave the document out, or give it a number"
            )
        return values

    def _check_has_neighbours(self) -> None:
        if self.checked.trees is not None:
            raise ValueError(
                "policy must be another than 'multileave' for a model of trees, as no "
                f"candidates lie near it; {self.snapshot.model!r} is one: compare it "
                "by an experiment"
            )


def _check_decided(decided: TiedList, n_documents: int) -> None:
    if len(decided.rows) != n_documents:
        raise ValueError(
            "items must name every document; got "
            f"{len(decided.rows)} for {n_documents} documents"
        )
