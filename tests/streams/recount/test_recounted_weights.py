"""What corrects clicks, from columns and from a recount that shares no code."""

import pytest

from models.estimators.bias_curve import BiasCurve
from models.estimators.intervention_aware import item_sums
from rankstream.operations.recount import stored_statistics
from streams.recount.weights import CURVES, ItemWeights, weights_of
from tests.streams.recount.recounted import Folded, random_log, small_log


def test_weights_agree_under_every_curve(monkeypatch):
    """Several interventions and eras; and they were compared, not left out."""
    compared: list[tuple[str, ItemWeights]] = []

    def noted(scopes, curve):
        found = weights_of(scopes, curve)
        compared.extend((curve, one) for one in found.values() if one.alpha > 0)
        return found

    monkeypatch.setattr("streams.recount.recount.weights_of", noted)
    for seed in (2, 3, 4):
        verdict = Folded(random_log(seed)).verdict()
        assert verdict.is_clean, verdict.as_dict()
    assert {curve for curve, _ in compared} == CURVES.keys()
    assert len(compared) > 50
    assert any(one.slack for _, one in compared)
    assert any(not one.slack and one.alpha % 1 for _, one in compared)


def broken(monkeypatch, change):
    """The verdict where the readers' sums are others."""
    monkeypatch.setattr(
        stored_statistics, "item_sums", lambda *given: change(item_sums(*given))
    )
    return Folded(small_log()).verdict()


@pytest.mark.parametrize("field", ["impressions", "alpha", "beta", "clicked"])
def test_each_field_is_compared(field, monkeypatch):
    """One that is a billionth larger, or one more, is wrong."""
    by = 1 if field in ("impressions", "clicked") else 0
    verdict = broken(
        monkeypatch,
        lambda sums: sums._replace(
            **{field: getattr(sums, field) * (1 + 1e-6) + by},
        ),
    )
    assert verdict.wrong
    assert not verdict.lost + verdict.double + verdict.extra
    assert "under" in verdict.differences[0]


def test_another_curve_is_seen(monkeypatch):
    """As where who reads takes the curve of before."""

    def before(log, impressions, curve):
        other = BiasCurve(curve.alpha[::-1].copy(), curve.beta * 0)
        return item_sums(log, impressions, other)

    monkeypatch.setattr(stored_statistics, "item_sums", before)
    assert Folded(small_log()).verdict().wrong


def test_fields_without_exposure_have_no_weight():
    """Nothing is divided by nothing."""
    assert "weight" not in ItemWeights(3, 0, 0.0, 0.0).fields()
    assert ItemWeights(400, 3, 40.0, 1.0).fields()["weight"] == 10.0
