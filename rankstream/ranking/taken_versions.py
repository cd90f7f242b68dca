"""What a ranker serves: a version, the canary beside it, and decisions on top."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from rankstream.ranking.checked_weights import GivenFeatures, checked_weights
from rankstream.ranking.decided import Decided
from rankstream.ranking.served_model import ServedModel
from rankstream.wire.decision_shards import DecisionError, DecisionShard
from rankstream.wire.decisions import Manifest, default_snapshot
from rankstream.wire.envelope import (
    Snapshot,
    SnapshotError,
    features_hash,
    pointer_of,
)
from rankstream.wire.models.canaries import is_in_canary
from rankstream.wire.models.canary_snapshots import KnownCanary, opened_canary


class ServedCanary(NamedTuple):
    """A canary in force: of which sessions, and what their events name it."""

    served: ServedModel
    intervention: str
    share: float
    tag: str


class Serving(NamedTuple):
    """What is served, replaced as one: no list mixes two moments.

    `decided` is None where no decisions are in force.
    """

    served: ServedModel
    canary: ServedCanary | None
    decided: Decided | None = None

    def of(self, session: str | None) -> tuple[ServedModel, str]:
        """What a session is served, and the tag of the canary in force, if any.

        Whose session is not known gets what is served, and no tag: no arm has its list.
        A list with a tag takes no decision: both arms are plain versions, or a canary
        would be compared with decisions.
        """
        served, canary = self.served, self.canary
        if canary is None or not session:
            return served, ""
        if is_in_canary(session, canary.intervention, canary.share):
            return canary.served, canary.tag
        return served, canary.tag


class TakenVersions:
    """Takes what is good of what a ranker is given, and keeps the last good one.

    Parameters
    ----------
    n_features, feature_names
        As `rankstream.ranker.Ranker` has them.

    Attributes
    ----------
    serving
        None before the first snapshot.
    known_canary
        What the record of the canary in force is known again by.
    """

    def __init__(
        self, model: str, n_features: int | None, feature_names: Sequence[str] | None
    ) -> None:
        if n_features is not None and feature_names is not None:
            raise ValueError(
                "a ranker must be given n_features or feature_names, and not both"
            )
        self._model = model
        self._features: GivenFeatures | None = None
        if n_features is not None:
            self._features = GivenFeatures(n_features)
        if feature_names is not None:
            names = list(feature_names)
            self._features = GivenFeatures(len(names), features_hash(names))
        self.serving: Serving | None = None
        self._rewrite: Decided | None = None
        self.known_canary = KnownCanary()

    def take(
        self, snapshot: Snapshot | None, canary: bytes | None = None
    ) -> tuple[bool, SnapshotError | None]:
        """Whether a newer version is served now, and why the canary is not.

        Parameters
        ----------
        snapshot
            None where it is not another; an older one is passed over.
        canary
            The record of the canary; None where it is not another, empty for none.

        Raises
        ------
        SnapshotError
            Where the snapshot cannot be served; then nothing was taken.
        """
        served, kept, _ = self.serving or (None, None, None)
        is_newer = snapshot is not None and (
            served is None or pointer_of(snapshot) > served.pointer
        )
        if snapshot is not None and is_newer:
            served = _served(snapshot, self._wanted())
        if served is None:
            return False, None
        known, trouble = self.known_canary, None
        if canary is not None:
            kept, known = None, KnownCanary()
        if canary:
            try:
                kept, known = self._canary(canary, served)
            except SnapshotError as error:
                trouble = error
        self.serving = Serving(served, kept, self._in_force(served))
        self.known_canary = known
        return is_newer, trouble

    def take_decisions(
        self, manifest: Manifest, shards: Sequence[DecisionShard]
    ) -> None:
        """Serve a rewrite from now on, as far as it stands on what is served.

        Parameters
        ----------
        shards
            All of them, by number.

        Raises
        ------
        DecisionError
            Where its default cannot be served; then nothing was taken.
        """
        if self.serving is None:
            return
        served, canary, _ = self.serving
        snapshot, default = default_snapshot(manifest), None
        if snapshot is not None:
            try:
                default = _served(snapshot, _features_of(served))
            except SnapshotError as error:
                raise DecisionError(
                    f"the default of rewrite {manifest.number} of {manifest.name!r} "
                    f"must be served by what is there; {manifest.default!r} cannot: "
                    f"{error}"
                ) from error
        self._rewrite = Decided(manifest, shards, default)
        self.serving = Serving(served, canary, self._in_force(served))

    def _in_force(self, served: ServedModel) -> Decided | None:
        """The last rewrite, unless it was withdrawn or stands on another epoch.

        So a rollback is one at once, and takes the decisions along.
        """
        rewrite = self._rewrite
        if rewrite is None or not rewrite.manifest.intervention:
            return None
        is_same = rewrite.manifest.pointer.epoch == served.pointer.epoch
        return rewrite if is_same else None

    def _canary(
        self, value: bytes, served: ServedModel
    ) -> tuple[ServedCanary, KnownCanary]:
        canary, snapshot, known = opened_canary(value, self._model)
        try:
            made = _served(snapshot, _features_of(served))
        except SnapshotError as error:
            raise SnapshotError(
                "canary",
                f"a canary must be served by what is there; {canary.intervention!r} "
                f"cannot: {error}",
            ) from error
        return (
            ServedCanary(made, canary.intervention, canary.share, canary.tag),
            known,
        )

    def _wanted(self) -> GivenFeatures | None:
        wanted = self._features
        if self.serving is not None and (wanted is None or wanted.list_hash is None):
            # The service gives what the first snapshot needed.
            wanted = _features_of(self.serving.served)
        return wanted


def _features_of(served: ServedModel) -> GivenFeatures:
    return GivenFeatures(served.snapshot.n_features, served.snapshot.features_hash)


def _served(snapshot: Snapshot, wanted: GivenFeatures | None) -> ServedModel:
    checked = checked_weights(snapshot, wanted)
    return ServedModel(snapshot, checked, pointer_of(snapshot), time.monotonic())
