"""A ranker that learns from a log, with the methods that scikit-learn has."""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import msgspec
import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Integers
from rankstream.notebook.fitting import TrainingResult, fitted_on, training_result
from rankstream.notebook.frames import is_frame
from rankstream.operations.answers.folders import SNAPSHOT_ENDING, snapshot_in, writing
from rankstream.ranking.checked_weights import checked_weights
from rankstream.ranking.scoring import scores_of
from rankstream.wire.envelope import Snapshot, encode_snapshot
from rankstream.wire.nearest_name import meant
from streams.training.gathering import Scaling

if TYPE_CHECKING:
    from rankstream.notebook.log import Log


class ClickRanker:
    """A ranker of documents by their features, trained on clicks corrected for bias.

    None of a parameter leaves the choice to what was logged.

    Parameters
    ----------
    kind
        `linear`, `neural` (sigmoid), `neural-tanh` or `neural-relu`.
    hidden
        Sizes of the hidden layers; (10,) where a neural one is asked for without.
    loss
        One of those in `docs/losses.md`.
    estimator
        Of the values of items, one of those in `docs/estimators.md`.
    examination
        P(looked at) by rank, where it is known; None: as clicks tell it.
    cutoff
        Ranks that count.
    epochs, batch, learning_rate
        Of the descent.
    seed
        Of all that is drawn.
    name
        Of the model: its lists are logged under it.

    Attributes
    ----------
    snapshot_
        What services serve; there after `fit`, like the others.
    feature_names_in_ : [n_features_in_]
        In the order of the columns of features.
    coef_ : [n_features_in_]
        Weights of features, of a linear one.
    """

    def __init__(  # noqa: PLR0913  scikit-learn has each parameter by itself
        self,
        *,
        kind: str = "linear",
        hidden: Sequence[int] | None = None,
        loss: str | None = None,
        estimator: str | None = None,
        examination: Sequence[float] | None = None,
        cutoff: int | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        learning_rate: float | None = None,
        seed: int = 0,
        name: str = "ranker",
    ) -> None:
        self.kind = kind
        self.hidden = hidden
        self.loss = loss
        self.estimator = estimator
        self.examination = examination
        self.cutoff = cutoff
        self.epochs = epochs
        self.batch = batch
        self.learning_rate = learning_rate
        self.seed = seed
        self.name = name

    def fit(self, log: "Log") -> Self:
        """Learn from a log that has features.

        Raises
        ------
        ValueError
            Where a parameter cannot be so, or the log does not tell enough; it says
            what is missing.
        """
        if not hasattr(log, "counted"):
            raise ValueError(
                f"fit takes a log; got a {type(log).__name__}: "
                "fit(rankstream.read(clicks, features=products))"
            )
        found = fitted_on(log.counted, self.get_params(), is_shown=log.progress)
        self.snapshot_ = found.trained.outcome.snapshot
        self._training = training_result(found)
        return self

    def predict(self, X: Any, groups: Any = None) -> Floats:  # noqa: N803  scikit-learn's
        """Scores of documents: within a query the higher goes first; [n].

        Parameters
        ----------
        X : [n, n_features]
            An array, or a DataFrame that has columns of the features' names.
        groups : [n]
            The query of each row, as features are normalised within it; None: all are
            candidates of one query.

        Raises
        ------
        ValueError
            Before `fit`, and where features are others, or not finite; it says which
            column, and which row.
        """
        snapshot = self._fitted()
        features = self._features(X)
        if not len(features):
            return np.zeros(0)
        _check_finite(features, self.feature_names_in_.tolist())
        rows_of_queries = _rows_by_query(groups, len(features))
        weights = checked_weights(snapshot, None)
        scaling = Scaling(weights, snapshot.normalisation)
        scores = np.zeros(len(features))
        for query, rows in rows_of_queries.items():
            scaled = scaling.of(query, features[rows])
            scores[rows] = scores_of(
                scaled, weights.weights, snapshot.hidden, snapshot.kind
            )
        return scores

    @property
    def coef_(self) -> Floats:
        """Weights of normalised features; [n_features_in_].

        Raises
        ------
        AttributeError
            Where it is not linear.
        """
        snapshot = self._fitted()
        if snapshot.kind != "linear":
            raise AttributeError(f"a ranker must be linear; got {snapshot.kind!r}")
        return checked_weights(snapshot, None).weights.astype(np.float64)

    @property
    def n_features_in_(self) -> int:
        """How many features it ranks by."""
        return self._fitted().n_features

    @property
    def feature_names_in_(self) -> npt.NDArray[np.object_]:
        """Their names; `f1`, `f2` ... where only their number is known."""
        snapshot = self._fitted()
        numbered = [f"f{number + 1}" for number in range(snapshot.n_features)]
        return np.array(snapshot.feature_names or numbered, object)

    def training(self) -> TrainingResult:
        """How it was trained, epoch by epoch, and from what.

        Raises
        ------
        ValueError
            Where it was not trained here, but loaded.
        """
        self._fitted()
        if getattr(self, "_training", None) is None:
            raise ValueError(
                "a ranker must be trained here to tell how; this one was loaded: the "
                "folder that `rankstream train --out` wrote has its records"
            )
        return self._training

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; there are none within others."""
        del deep
        return {name: getattr(self, name) for name in _parameters()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters; what was learned stays until `fit`.

        Raises
        ------
        ValueError
            Where there is none of a name.
        """
        known = _parameters()
        for name, value in params.items():
            if name not in known:
                raise ValueError(
                    f"parameters must be some of {', '.join(known)}; got {name!r:.60}: "
                    f"{meant(name, known)}"
                )
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Whether it has learned, as `check_is_fitted` of scikit-learn asks."""
        return getattr(self, "snapshot_", None) is not None

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn must know: it takes a log, and no target beside."""
        from sklearn.utils import Tags, TargetTags  # noqa: PLC0415  it asks for them

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def clone(self) -> Self:
        """One of the same parameters that has learned nothing."""
        return type(self)(**self.get_params())

    def save(self, path: Path | str) -> Path:
        """Write the snapshot, which rankers, `rankstream rank` and `load` read.

        Parameters
        ----------
        path
            A file `*.snapshot`.

        Raises
        ------
        ValueError
            Before `fit`, or where the file has another ending.
        RuntimeError
            Where it cannot be written.
        """
        file = Path(path)
        if file.suffix != SNAPSHOT_ENDING:
            raise ValueError(
                f"a snapshot must lie in a file *{SNAPSHOT_ENDING}; got {file.name!r}"
            )
        envelope = encode_snapshot(self._fitted())
        partial = file.with_name(f".{file.name}.part")
        with writing(file):
            partial.write_bytes(envelope)
            partial.replace(file)
        return file

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse to be pickled: who loads a pickle runs what is in it."""
        del protocol
        raise TypeError(
            "a ranker must be stored as a snapshot, as a pickle runs code of whoever "
            'wrote it: ranker.save("ranker.snapshot"), and '
            'rankstream.load("ranker.snapshot")'
        )

    def __repr__(self) -> str:
        default = _parameters()
        told = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value != default[name]
        ]
        return f"{type(self).__name__}({', '.join(told)})"

    def _fitted(self) -> Snapshot:
        found: Snapshot | None = getattr(self, "snapshot_", None)
        if found is None:
            raise ValueError(
                "a ranker must be fitted first; this one is not: call fit(log), or "
                "take what log.train() gives"
            )
        return found

    def _features(self, given: Any) -> npt.NDArray[np.float32]:
        names = self.feature_names_in_.tolist()
        if is_frame(given):
            import pyarrow as pa  # noqa: PLC0415  arrays need none

            table = pa.table(given)
            missing = [name for name in names if name not in table.column_names]
            if missing:
                raise ValueError(
                    f"a DataFrame must have the columns {', '.join(names):.300}; "
                    f"{missing[0]!r:.60} is missing: "
                    f"{meant(missing[0], table.column_names)}"
                )
            columns = [table[name].to_numpy() for name in names]
            return np.stack(columns, axis=1).astype(np.float32)
        found = np.asarray(given, np.float32)
        if found.ndim != 2 or found.shape[1] != len(names):
            raise ValueError(
                f"features must be of shape [n, {len(names)}]; got {list(found.shape)}"
            )
        return found


def load(path: Path | str) -> ClickRanker:
    """A ranker from its snapshot, or from the folder of `rankstream train --out`.

    Raises
    ------
    ValueError
        Where there is no snapshot of a ranker; it says where to look.
    """
    snapshot = snapshot_in(Path(path))
    checked_weights(snapshot, None)
    found = ClickRanker(
        kind=snapshot.kind, hidden=tuple(snapshot.hidden) or None, name=snapshot.model
    )
    found.snapshot_ = msgspec.structs.replace(snapshot)
    return found


def _parameters() -> dict[str, Any]:
    """Parameters and their defaults, in their order."""
    told = inspect.signature(ClickRanker.__init__).parameters
    return {name: each.default for name, each in told.items() if name != "self"}


def _check_finite(features: npt.NDArray[np.float32], names: Sequence[str]) -> None:
    """Refuse features that are no numbers, [n, n_features]."""
    wrong = np.argwhere(~np.isfinite(features))
    if len(wrong):
        row, column = wrong[0].tolist()
        n_rows = len(np.unique(wrong[:, 0]))
        raise ValueError(
            f"features must be finite; column {names[column]!r:.60} holds "
            f"{features[row, column]} in row {row:,}, the first of {n_rows:,} such "
            "rows, counted from 0: fill it, or drop the row"
        )


def _rows_by_query(groups: Any, n_rows: int) -> dict[str, Integers]:
    """Numbers of the rows of each query."""
    if groups is None:
        return {"": np.arange(n_rows)}
    names = [str(each) for each in np.asarray(groups).tolist()]
    if len(names) != n_rows:
        raise ValueError(
            f"groups must name the query of each of {n_rows:,} rows; got {len(names):,}"
        )
    found: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        found.setdefault(name, []).append(row)
    return {name: np.array(rows) for name, rows in found.items()}
