"""The curves of bias that versions of models are valued under."""

from collections.abc import Callable, Container, Iterator, Mapping

from models.estimators.bias_curve import position_curve
from models.estimators.choice import NO_CURVE
from models.estimators.splits import Shares
from rankstream.settings import Settings
from rankstream.wire.envelope import Snapshot
from streams.estimation.curve_replicates import (
    CurveReplicates,
    published_replicates,
    replicated_curve,
)
from streams.statistics.columns import Columns
from streams.statistics.reader import Statistics
from streams.training.curves.known_curve import GIVEN


class ServedCurves:
    """The curve of each model: of its settings, else the newest, else what clicks tell.

    Parameters
    ----------
    published
        The newest version of each curve that has one.
    check
        Is called again and again while one is fitted; what it raises ends all.
    online
        Interventions whose lists a model that learns online may have made.
    """

    def __init__(
        self,
        settings: Settings,
        statistics: Statistics,
        published: Mapping[str, Snapshot],
        check: Callable[[], object] = lambda: None,
        online: Container[str] = (),
    ) -> None:
        self._settings = settings
        self._statistics = statistics
        self._published = published
        self._check = check
        self._online = online
        self._fitted: dict[str, CurveReplicates | str] = {}

    def of(self, model: str) -> CurveReplicates | str:
        """The curve of a model, or why there is none.

        What is fitted is fitted once for all models.

        Raises
        ------
        SnapshotError
            Where what was published is no curve.
        """
        own = self._settings.models[model]
        if own.training.examination:
            where = f"{GIVEN} by models.{model}.training"
            return CurveReplicates(position_curve(own.training.examination), where)
        name = self._settings.curve_for(own)
        if name not in self._fitted:
            self._fitted[name] = self._fit(name)
        return self._fitted[name]

    def _fit(self, name: str) -> CurveReplicates | str:
        if not name:
            counts = self._statistics.counted
            shares = Shares(*self._settings.statistics.split_shares)
            n_groups = counts[0].groups if counts else 1
            found = replicated_curve(
                self._columns, n_groups, shares, online=self._online
            )
            return found or NO_CURVE
        if name not in self._published:
            return f"{name}, the model of its curve, has no version yet"
        return published_replicates(
            self._settings,
            self._published[name],
            self._statistics,
            lambda _: self._check(),
            self._online,
        )

    def _columns(self) -> Iterator[Columns]:
        for chunk in self._statistics.columns():
            self._check()
            yield chunk
