"""What must be so for a model to be trained, and what to do where it is not."""

from collections.abc import Iterable
from importlib.util import find_spec
from typing import NamedTuple

from models.estimators.choice import APART
from models.estimators.splits import Shares, Splits, split_groups
from rankstream.configuration.models import FIXED, ModelSettings
from rankstream.configuration.training import LOGGING_LOSS
from rankstream.ranking.checked_weights import CheckedWeights, checked_weights
from rankstream.wire.envelope import (
    LARGEST_NUMBER,
    Pointer,
    Snapshot,
    SnapshotError,
    pointer_of,
)
from streams.training.gathering import Gathered
from streams.training.inputs import Inputs, TrainingRefused, list_hash
from streams.training.item_tables import TRAINED_ON


class Checks(NamedTuple):
    """Checks of one training; each raises `TrainingRefused`.

    Parameters
    ----------
    name, model
        What is trained.
    inputs
        What it is trained from.
    parent
        What it goes on from.
    """

    name: str
    model: ModelSettings
    inputs: Inputs
    parent: Snapshot

    def weights_of_parent(self) -> CheckedWeights:
        """The parent's weights, where it is a ranker that can be trained here."""
        model, parent = self.model, self.parent
        if model.grows_trees and find_spec("lightgbm") is None:
            raise TrainingRefused(
                f"{self.name!r} may be of trees, which LightGBM grows; it is not "
                "installed: pip install 'rankstream[trees]' where models are trained"
            )
        how = parent.normalisation
        if model.normalisation == FIXED and how == "none" and parent.scale:
            how = FIXED
        expected = [
            (x.features, list_hash(x), x.kind, x.hidden, x.normalisation)
            for x in model.forms
        ]
        got = (
            parent.n_features, parent.features_hash, parent.kind, parent.hidden,
            how,
        )  # fmt: skip
        if got not in expected:
            raise TrainingRefused(
                f"version {pointer_of(parent)} of {self.name!r}, the parent, must be "
                f"of the model's list of features and form, "
                f"{' or '.join(map(_told, expected))}; it is of "
                f"{_told(got)}: restore models.{self.name}, or name the new model "
                "differently"
            )
        try:
            return checked_weights(parent, None)
        except SnapshotError as error:
            raise TrainingRefused(
                f"the parent of {self.name!r} must have finite weights; {error}: "
                "roll back to a version that has"
            ) from error

    def splits(self, shares: Shares) -> Splits:
        """Splits of the groups, where something was counted in enough of them."""
        if not sum(self.inputs.counts.values()):
            raise TrainingRefused(
                f"{self.name!r} must have interactions to be trained from; none are "
                "counted: wait until click windows close"
            )
        if not len(self.inputs.features):
            raise TrainingRefused(self.no_features())
        try:
            return split_groups(self.inputs.statistics.counted[0].groups, shares)
        except ValueError as error:
            raise TrainingRefused(
                f"{self.name!r} cannot be trained: {error}"
            ) from error

    def pointer(self, epoch: int | None) -> Pointer:
        """Where the new version stands; see `train_model` for `epoch`."""
        version, parent = sum(self.inputs.counts.values()), self.parent
        if epoch is None:
            epoch = parent.epoch + (parent.version >= version)
        pointer = Pointer(epoch, version)
        check_pointer(self.name, pointer)
        if pointer <= pointer_of(parent):
            raise TrainingRefused(
                f"a version of {self.name!r} must come after its parent, "
                f"{pointer_of(parent)}; got {pointer}: train in epoch "
                f"{parent.epoch + 1}"
            )
        return pointer

    def judges(self, splits: Splits, groups: Iterable[int]) -> None:
        """That who judges lists of a policy taught it nothing, by a curve neither.

        Parameters
        ----------
        groups
            Whose clicks the curve and the parent are from.
        """
        both = sorted({*groups} & {*splits.selection})
        if self.model.training.loss == LOGGING_LOSS and both:
            raise TrainingRefused(
                f"policies of {self.name!r} must be judged by clicks that they do not "
                f"come from; the curve or the parent is from selection groups "
                f"{both[:5]} too: take a curve of the other groups, or a model anew"
            )

    def lists(self, n_seen: int) -> None:
        """That there are lists that the model learns from."""
        if not n_seen:
            raise TrainingRefused(
                f"{self.name!r} must have lists to be trained from; none of "
                f"{self.sources()} are counted: serve it, or name another in "
                f"models.{self.name}.learns_from"
            )

    def gathered(self, gathered: Gathered) -> None:
        """That there are queries with features, and items to tell, on both sides."""
        if gathered.n_queries == gathered.n_without_features:
            raise TrainingRefused(self.no_features())
        held_out = f"models.{self.name}.training.held_out"
        for file, told, remedy in (
            (gathered.training, "to learn from", f"lower {held_out}"),
            (gathered.held_out, "held out, to tell where to stop", f"raise {held_out}"),
        ):
            if not file.n_impressions[TRAINED_ON]:
                share = self.model.training.held_out
                raise TrainingRefused(
                    f"{self.name!r} must have queries {told}; none has features and "
                    f"lists of the training groups: wait for more, or {remedy}, "
                    f"{share:g}"
                )
            self._support(told, file.largest_support, gathered.n_left_out)

    def _support(self, told: str, largest: float, n_left_out: int) -> None:
        """That some item of these queries has the support that is asked for."""
        least = self.model.training.least_support
        if largest >= least and largest > 0.0:
            return
        remedy = "wait for more lists"
        if largest > 0.0:
            lower = 1.0 if largest >= 1.0 else float(f"{largest / 2.0:.1g}")
            setting = f"models.{self.name}.training.least_support"
            remedy += f", or lower {setting}, to {lower:g} say"
        left = ""
        if n_left_out:
            left = (
                f", as {n_left_out:,} lists are left out: in their group of a scope "
                "are some of unknown policies"
            )
            remedy = f"{APART}, or {remedy}"
        raise TrainingRefused(
            f"{self.name!r} must have items of least_support, {least:g} expected "
            f"looks, in queries {told}; the largest support there is {largest:.3g}"
            f"{left}: "
            f"{remedy}"
        )

    def no_features(self) -> str:
        """What to say where no query has features."""
        others = self.inputs.features.n_others
        more = f"; {others:,} records are of other lists of features" if others else ""
        return (
            f"{self.name!r} must have features to be trained from; none of its list of "
            f"{self.model.features} lie in `candidates` for lists of "
            f"{self.sources()}{more}: rank with `rankstream.ranker`, or log "
            "`candidate_features` and `features_hash` with the lists"
        )

    def sources(self) -> str:
        """Whose lists it learns from."""
        names = self.model.sources_of(self.name)
        return ", ".join(repr(name) if name else "no model" for name in names)


def check_pointer(name: str, pointer: Pointer) -> None:
    """Refuse a version that no pointer could name, as nobody would serve it.

    Raises
    ------
    TrainingRefused
    """
    if max(pointer) > LARGEST_NUMBER:
        raise TrainingRefused(
            f"epoch and version of {name!r} must be at most {LARGEST_NUMBER:,}; got "
            f"{pointer}: something else wrote the version before, so begin anew under "
            "another name"
        )


def _told(form: tuple[int, bytes, str, list[int], str]) -> str:
    n_features, digest, kind, hidden, normalisation = form
    layers = f" {hidden}" if hidden else ""
    return f"{n_features} features ({digest.hex()}), {kind}{layers}, {normalisation}"
