"""A list that a ranker made, and what has to be logged about how it came to be."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rankstream.ranking.multileaving import Multileaved
from rankstream.ranking.tied_list import TiedList
from rankstream.wire.events import LOGGED, POLICIES

Floats = npt.NDArray[np.float32]

_to_json = msgspec.json.Encoder().encode


class Ranking(msgspec.Struct, frozen=True):
    """A list, and what has to be logged about how it came to be.

    `order` holds rows of the candidates in displayed order, `scores` [n_documents]
    those of the policy, `features` [n_documents, n_features] as they were scored.
    `multileaved` is there where rankers were compared. `intervention` is empty where
    the list is logged under the name of the model. `raw` [n_documents, n_features] are
    the features as they were given, of the list with the hash `features_hash`, where
    the model has them logged. `session` is whose list it is, where that was said;
    `canary` then names the stage of the canary in force, whichever version it is by.
    `decided` is what the list was drawn by where that was decided; scores say nothing
    of it then, and are not logged. Where it `lacks_features` none are logged, as events
    cannot say that one is missing.
    """

    order: npt.NDArray[np.int64]
    scores: Floats
    features: Floats
    policy: str
    seed: int
    model: str
    version: int
    multileaved: Multileaved | None = None
    intervention: str = ""
    raw: Floats | None = None
    features_hash: bytes = b""
    session: str = ""
    canary: str = ""
    decided: TiedList | None = None
    lacks_features: bool = False

    def check_event(self, items: Sequence[str], fields: Mapping[str, Any]) -> None:
        """Refuse what an event of this list cannot say.

        Raises
        ------
        ValueError
            Where items and ranked documents differ in number, or the session is not
            that which the list was ranked for.
        """
        if len(items) != len(self.scores):
            raise ValueError(
                "items must name every ranked document; got "
                f"{len(items)} for {len(self.scores)} documents"
            )
        session = fields.get("session", self.session)
        if self.session and session != self.session:
            raise ValueError(
                "session must be that which the list was ranked for; got "
                f"{session!r} for {self.session!r}: give it to `rank` alone"
            )

    def event(
        self,
        head: dict[str, Any],
        items: Sequence[str],
        fields: Mapping[str, Any],
        *,
        log_candidates: bool,
    ) -> bytes:
        """The query event: its head, how the list came to be, and further fields."""
        logged = self._logged(items, log_candidates=log_candidates)
        return _to_json({**head, **logged, **fields})

    def _logged(self, items: Sequence[str], *, log_candidates: bool) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "model": self.model,
            "version": self.version,
            "seed": self.seed,
            "policy": self.policy,
            "shown": [items[row] for row in self.order],
            "candidates": list(items),
        }
        if not self.lacks_features:
            fields["features"] = _base64(self.features[self.order])
            if log_candidates:
                fields |= self._of_candidates()
        if self.decided is None:
            fields["scores"] = _base64(self.scores)
        elif self.policy == POLICIES[LOGGED]:
            fields["exposures"] = _base64(self.decided.exposures(len(self.order)))
        names = {
            "session": self.session,
            "canary": self.canary,
            "intervention": self.intervention,
        }
        fields |= {field: name for field, name in names.items() if name}
        if self.multileaved is not None:
            ranks = self.multileaved.ranks.astype("<u2").tobytes()
            fields["ranks"] = base64.b64encode(ranks).decode("ascii")
            if len(self.multileaved.teams):
                fields["assignments"] = self.multileaved.teams.tolist()
        return fields

    def _of_candidates(self) -> dict[str, str]:
        """Features of all candidates, as they were given where that is known."""
        if self.raw is None:
            return {"candidate_features": _base64(self.features)}
        return {
            "candidate_features": _base64(self.raw),
            "features_hash": self.features_hash.hex(),
        }


def _base64(values: Floats) -> str:
    return base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")
