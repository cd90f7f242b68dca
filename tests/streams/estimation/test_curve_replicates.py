"""The curve and its fits without each group."""

import numpy as np
import pytest

from models.estimators.bias_curve import position_curve
from models.estimators.splits import Shares
from streams.estimation import curve_replicates as module
from streams.estimation.curve_replicates import (
    NO_FIT,
    CurveReplicates,
    replicated_curve,
)
from streams.training.curves.estimated_curve import curve_of_groups, estimated_curve
from tests.streams.training.curves.test_estimated_curve import (
    GROUPS,
    LOOKED,
    statistics_of,
)


def statistics():
    """Of many lists."""
    return statistics_of(12_000, 60, 1)


def replicated(given=None, groups=GROUPS):
    """Of its columns."""
    return replicated_curve((given or statistics()).columns, groups, Shares())


def test_it_is_the_curve_of_trainings():
    """Each fit is that of the other groups, near the truth like the first one."""
    found, plain = (
        replicated(),
        estimated_curve(statistics().columns(), GROUPS, Shares()),
    )
    assert found is not None
    assert plain.curve is not None
    assert found.curve.alpha.tolist() == plain.curve.alpha.tolist()
    assert found.source == plain.source
    assert {*found.without} == {*plain.groups} == {2, 3}
    for group, fitted in found.without.items():
        (other,) = {2, 3} - {group}
        alone = curve_of_groups(statistics().columns(), [other])
        assert alone is not None
        assert fitted.alpha.tolist() == alone.alpha.tolist()
        assert fitted.alpha == pytest.approx(LOOKED, abs=0.08)
        assert found.without_group(group) is fitted
    assert found.without_group(0) is found.without_group(None) is found.curve


def test_all_fits_end_where_the_first_does(monkeypatch):
    """Rewards of fewer ranks are other rewards."""
    short = iter([position_curve([1.0, 0.5]), position_curve([1.0, 0.6, 0.3])])
    monkeypatch.setattr(module, "curve_of_groups", lambda *_: next(short))
    found = replicated()
    assert found is not None
    assert [each.n_ranks for each in found.without.values()] == [2, 2]
    assert found.curve.n_ranks == 2
    assert found.source.endswith("to rank 2, beyond which one group tells it alone")


def test_where_one_group_tells_it_alone_there_are_no_errors(monkeypatch):
    """And it is said."""
    monkeypatch.setattr(module, "curve_of_groups", lambda *_: None)
    found = replicated()
    assert found is not None
    assert (found.reason, found.without) == (NO_FIT, {})
    assert found.curve.n_ranks == 3


def test_without_clicks_there_is_no_curve():
    """Nor of nothing at all."""
    assert replicated(statistics_of(300, 3, 1, clicking=())) is None
    assert replicated_curve(lambda: (), 1, Shares()) is None


def test_it_tells_how_many_fits_are_done():
    """What that raises ends all."""
    told: list[int] = []
    replicated_curve(statistics().columns, GROUPS, Shares(), told.append)
    assert told == [1, 2, 3]
    given = CurveReplicates(position_curve([1.0, 0.5]), "given")
    assert np.all(given.without_group(7).alpha == [1.0, 0.5])
