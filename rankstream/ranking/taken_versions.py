"""What a ranker serves: the version that is served, and the canary beside it."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from rankstream.ranking.checked_weights import GivenFeatures, checked_weights
from rankstream.ranking.served_model import ServedModel
from rankstream.wire.canaries import is_in_canary
from rankstream.wire.canary_snapshots import KnownCanary, opened_canary
from rankstream.wire.envelope import (
    Snapshot,
    SnapshotError,
    features_hash,
    pointer_of,
)


class ServedCanary(NamedTuple):
    """A canary in force: of which sessions, and what their events name it."""

    served: ServedModel
    intervention: str
    share: float
    tag: str


class Serving(NamedTuple):
    """What is served, replaced as one: no list mixes two moments."""

    served: ServedModel
    canary: ServedCanary | None

    def of(self, session: str | None) -> tuple[ServedModel, str]:
        """What a session is served, and the tag of the canary in force, if any.

        Whose session is not known gets what is served, and no tag: no arm has its list.
        """
        served, canary = self
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
        served, kept = self.serving or (None, None)
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
        self.serving, self.known_canary = Serving(served, kept), known
        return is_newer, trouble

    def _canary(
        self, value: bytes, served: ServedModel
    ) -> tuple[ServedCanary, KnownCanary]:
        canary, snapshot, known = opened_canary(value, self._model)
        given = GivenFeatures(served.snapshot.n_features, served.snapshot.features_hash)
        try:
            made = _served(snapshot, given)
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
            first = self.serving.served.snapshot
            wanted = GivenFeatures(first.n_features, first.features_hash)
        return wanted


def _served(snapshot: Snapshot, wanted: GivenFeatures | None) -> ServedModel:
    checked = checked_weights(snapshot, wanted)
    return ServedModel(snapshot, checked, pointer_of(snapshot), time.monotonic())
