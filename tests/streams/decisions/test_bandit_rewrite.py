"""Rewrites of a bandit: its one name, what it keeps, and what it cannot do."""

from typing import Any

import msgspec
import numpy as np
import pytest

from models.counts.definition import ClosedImpression
from models.counts.placements import DETERMINISTIC
from rankstream.configuration.bandits import BanditSettings
from rankstream.configuration.curves import PositionCurve
from rankstream.settings import ModelSettings, Settings
from rankstream.snapshots import Snapshot, rolled_back
from rankstream.wire.models.deployments import decode_deployment
from rankstream.wire.topics import SNAPSHOTS
from streams.decisions.bandit_rewrite import BanditInputs, bandit_rewrite
from streams.decisions.inputs import DecisionsRefused
from streams.decisions.rewrite import Rewrite, withdrawn
from streams.statistics.reader import Statistics
from streams.training.feature_records import FeatureRecords
from tests.curve_factory import curve_snapshot
from tests.models.counts.scope_values import ScopeValue
from tests.streams.decisions.bandit_shop import EXAMINATION, NAME, BanditShop
from tests.streams.statistics.statistics_records import scope_records

PIE = BanditSettings(model="m", length=3)


@pytest.fixture(scope="module")
def shop() -> BanditShop:
    """Three queries of five items, each with lists; the last one's come last."""
    rng = np.random.default_rng(8)
    shop = BanditShop(PIE, rng.random((3, 5)))
    for _ in range(2):
        shop.look()
        shop.show(90, rng)
    shop.pipeline.end()
    return shop


def rewritten(
    shop: BanditShop,
    plan: BanditSettings = PIE,
    settings: Settings | None = None,
    **given: Any,
) -> Rewrite:
    """The third rewrite of a shop's lists; `given` are other inputs."""
    changed = settings or shop.settings
    changed = msgspec.structs.replace(changed, bandits={NAME: plan})
    inputs = BanditInputs(shop.statistics(), shop.served, None, None, None)
    return bandit_rewrite(NAME, changed, inputs._replace(**given), number=3, at_ms=7)


def test_its_name_is_that_of_its_first_rewrite(shop: BanditShop) -> None:
    """That is noted as what knows the clicks of all groups; later ones note nothing."""
    first = rewritten(shop)
    assert first.manifest.intervention == f"{NAME}@3.180"
    (note,) = [x for x in first.outputs({}) if x.topic == SNAPSHOTS]
    assert decode_deployment(note.value or b"").groups == [0, 1, 2, 3]
    before = shop.rewrites[0].manifest
    again = rewritten(shop, before=before)
    assert again.manifest.intervention == before.intervention == f"{NAME}@1.0"
    assert again.manifest.n_counted == 180
    assert not [x for x in again.outputs({}) if x.topic == SNAPSHOTS]
    assert again.decisions == first.decisions


def test_another_policy_and_another_epoch_have_another_name(shop: BanditShop) -> None:
    """So have another model, and what comes after it was withdrawn.

    A later version of an epoch has not.
    """
    before = shop.rewrites[0].manifest
    later = msgspec.structs.replace(shop.served, version=5)
    assert rewritten(shop, before=before, served=later).manifest.intervention == (
        before.intervention
    )
    rolled = rolled_back(shop.served, 1)
    others = [
        rewritten(shop, before=before, served=rolled),
        rewritten(shop, before=before, plan=BanditSettings(model="m", length=2)),
        rewritten(shop, before=withdrawn(before, 2, 1).manifest),
        rewritten(shop, before=msgspec.structs.replace(before, bandit="")),
        rewritten(shop, before=msgspec.structs.replace(before, model="other")),
    ]
    assert {each.manifest.intervention for each in others} == {f"{NAME}@3.180"}
    assert others[0].manifest.stands_on == "1.1"


def test_only_the_newest_sets_stay(shop: BanditShop) -> None:
    """Those of most lists, of one era; the others are counted."""
    made = rewritten(shop, msgspec.structs.replace(PIE, queries=1))
    assert (made.manifest.n_decisions, made.manifest.n_left_out) == (1, 2)
    assert len(made.decisions) == 1


def test_nothing_is_counted_yet(shop: BanditShop) -> None:
    """The first rewrite decides nothing, so that lists begin to bear its name."""
    inputs = BanditInputs(Statistics([]), shop.served, None, None, None)
    made = bandit_rewrite(NAME, shop.settings, inputs, number=1, at_ms=7)
    assert (made.manifest.intervention, made.decisions) == (f"{NAME}@1.0", {})
    assert made.manifest.shards == [b""] * 256


def test_a_set_of_refused_lists_has_no_decision(shop: BanditShop) -> None:
    """It is counted, and the model goes on to serve it."""
    name = shop.statistics().scopes()[0]._replace(query="q9", candidate_set=b"s" * 16)
    shown = ClosedImpression(0, [0, 1], {0: [1]}, DETERMINISTIC, b"", None)
    capped = ScopeValue(("a", "b"), is_capped=True).take([shown] * 5)
    records = [*shop.records.items(), *scope_records(name, capped, {})]
    made = rewritten(shop, statistics=Statistics(records))
    assert made.decisions == rewritten(shop).decisions
    assert [*made.manifest.refused.values()] == [5]
    assert "beyond the limits" in next(iter(made.manifest.refused))


def curved() -> Settings:
    """A model without a curve of its own, beside one that is fitted."""
    model = ModelSettings(features=3, versions="trained")
    return Settings(models={"m": model}, curves={"eyes": PositionCurve(ranks=3)})


def test_a_curve_that_was_fitted_is_taken(shop: BanditShop) -> None:
    """Ratios to rank 1 give the same lists as what they are ratios of."""
    given = rewritten(shop)
    alpha = EXAMINATION / EXAMINATION[0]
    fitted = rewritten(shop, settings=curved(), curve=curve_snapshot(alpha.tolist()))
    assert fitted.decisions == given.decisions
    # The first rank need not be the one that is examined most.
    rising = [curve_snapshot(x) for x in ([1.0, 1.25, 0.5], [0.8, 1.0, 0.4])]
    ratios, shares = (rewritten(shop, settings=curved(), curve=x) for x in rising)
    assert ratios.decisions == shares.decisions != given.decisions
    # Where no rank is surely examined, chances are taken as they are.
    half = curve_snapshot((EXAMINATION / 2.0).tolist())
    halved = rewritten(shop, settings=curved(), curve=half).decisions
    for key, each in given.decisions.items():
        assert halved[key].values == pytest.approx([2.0 * x for x in each.values])


@pytest.mark.parametrize(
    ("curve", "said"),
    [
        (None, "'eyes', the curve of its model, has no version yet"),
        (curve_snapshot([1.0, 0.5]), "'eyes@0.100' has 2: set"),
        (curve_snapshot([1.0, 0.5, 0.3], [0.0, 0.1, 0.0]), "has trust bias"),
        (curve_snapshot([1.0]), "alpha must be known at 2 ranks or more"),
    ],
)
def test_what_tells_too_little_of_ranks_is_refused(
    shop: BanditShop, curve: Snapshot | None, said: str
) -> None:
    """In words, with the name of the bandit."""
    with pytest.raises(DecisionsRefused, match=f"'{NAME}' .*{said}"):
        rewritten(shop, settings=curved(), curve=curve)


def test_policies_tell_what_they_order_by(shop: BanditShop) -> None:
    """Hotfix shuffles all that there are, or the first ones where it knows them."""
    cascade = rewritten(shop, BanditSettings(model="m", policy="cascade"))
    hotfix = rewritten(shop, BanditSettings(model="m", policy="hotfix"))
    few = BanditSettings(model="m", policy="hotfix", top=2)
    features = FeatureRecords((), shop.served.features_hash, 3)
    assert rewritten(shop, few, features=features).decisions == {}
    for made, policy in ((cascade, "cascade"), (hotfix, "hotfix")):
        assert made.manifest.bandit.startswith(policy)
        for each in made.decisions.values():
            assert (each.policy, each.slot, each.lists) == (policy, None, 60)
            assert len(each.values) == len(each.items) == 5
    assert {tuple(x.blocks) for x in hotfix.decisions.values()} == {(5,)}
    assert all(0.0 < min(x.values) < 1.0 for x in cascade.decisions.values())
