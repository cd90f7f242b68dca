"""The curve that trainings estimate: in bounded memory, of the same queries always."""

from functools import cache

import numpy as np
import pytest

from models.bias.examination import estimate_examination
from models.bias.position_alone import TrustTest
from models.estimators.splits import Shares
from rankstream.settings import LimitSettings, StatisticsSettings
from rankstream.wire.events import DETERMINISTIC, ClickMark, Interaction
from streams.fold.statistics_fold import StatisticsFold
from streams.native.closed_impressions import closed_of
from streams.statistics.reader import Statistics
from streams.training.curves import curve_views as module
from streams.training.curves import estimated_curve as curve_module
from streams.training.curves.estimated_curve import CHOSEN, bias_told, estimated_curve
from tests.event_factory import impression
from tests.streams.training.test_item_tables import cut

GROUPS = 6
LOOKED = np.array([1.0, 0.5, 0.3])


@cache
def statistics_of(
    n_lists, n_queries, seed, clicking=tuple(range(GROUPS)), groups=GROUPS, name="v{}"
):
    """Lists in any order, of users who look down them; some groups click."""
    rng, log = np.random.default_rng(seed), []
    liked = rng.uniform(0.2, 0.9, (n_queries, 3))
    for number in range(n_lists):
        query, order = int(rng.integers(n_queries)), rng.permutation(3)
        likes = rng.random(3) < liked[query, order]
        clicked = np.flatnonzero(likes & (rng.random(3) < LOOKED)).tolist()
        clicked = clicked if number % groups in clicking else []
        one = impression(
            query_id=f"q{query}",
            items=["a", "b", "c"],
            shown=["abc"[x] for x in order],
            unit=number,
            policy=DETERMINISTIC,
            intervention=name.format(number % 2),
        )
        log.append(
            Interaction(one, [ClickMark(row + 1, 1, "click") for row in clicked])
        )
    fold = StatisticsFold(LimitSettings(), StatisticsSettings(groups=groups), 10_000, 0)
    fold.take(closed_of(log))
    return Statistics((key, value) for _, key, value in fold.changes({}))


def statistics():
    """Of many lists."""
    return statistics_of(20_000, 150, 1)


def plainly():
    """The estimate from a table of all documents of the validation groups."""
    rows = []
    numbers: dict[tuple[str, str], int] = {}
    for chunk in statistics().columns():
        for i in np.flatnonzero(np.isin(chunk.group, (2, 3))).tolist():
            name = chunk.names[chunk.scope[i]]
            place = name.query, chunk.items[chunk.scope[i]][chunk.item[i]]
            number = numbers.setdefault(place, len(numbers))
            counts = int(chunk.shown[i]), int(chunk.by_class[0, i])
            rows.append((number, int(chunk.rank[i]), *counts))
    table = np.array([row for row in rows if row[2]])
    return estimate_examination(*table.T, n_ranks=10).ratios[:3]


def alpha_of(found):
    """Of a curve that is there."""
    assert found.curve is not None
    return found.curve.alpha


def test_it_is_the_estimate_from_all_documents():
    """Those that were left out on the way say nothing."""
    found = estimated_curve(statistics().columns(), GROUPS, Shares())
    assert alpha_of(found) == pytest.approx(plainly(), rel=1e-9)
    assert alpha_of(found) == pytest.approx(LOOKED, abs=0.04)
    assert found.groups == (2, 3)
    assert found.source.endswith("of the validation groups, 2 to 3")


def test_chunks_do_not_change_a_bit(monkeypatch):
    """Nor does when memory was full, nor how many queries there are."""
    whole = estimated_curve(statistics().columns(), GROUPS, Shares())
    for most, told in ((1 << 19, ""), (700, ", of one in 2 queries")):
        monkeypatch.setattr(module, "MOST_ROWS", most)
        found = [
            estimated_curve(
                cut(statistics().columns(), np.random.default_rng(seed)),
                GROUPS,
                Shares(),
            )
            for seed in range(3)
        ]
        alphas = {alpha_of(each).tobytes() for each in found}
        assert len(alphas) == 1
        assert alpha_of(found[0]) == pytest.approx(LOOKED, abs=0.06)
        assert found[0].source == whole.source + told
        assert (alphas == {alpha_of(whole).tobytes()}) == (not told)


def test_ranks_at_which_a_document_was_only_expected_take_no_room(monkeypatch):
    """It was shown at one rank alone, so it tells nothing: no sample is drawn."""

    def at_first_rank_only(chunk):
        is_odd = np.array([int(each.query[1:]) % 2 for each in chunk.names], bool)
        is_seen = ~is_odd[chunk.scope] | (chunk.rank == 1)
        return chunk._replace(
            shown=chunk.shown * is_seen, by_class=chunk.by_class * is_seen
        )

    monkeypatch.setattr(module, "MOST_ROWS", 700)
    chunks = map(at_first_rank_only, statistics().columns())
    found = estimated_curve(chunks, GROUPS, Shares())
    assert found.source.endswith("of the validation groups, 2 to 3")
    assert alpha_of(found) == pytest.approx(LOOKED, abs=0.06)


def test_where_validation_groups_do_not_click_those_of_training_do_too():
    """It says so, and whose clicks these are: whoever judges must not be of them."""
    statistics = statistics_of(4_000, 20, 3, clicking=(0, 1, 4, 5))
    found = estimated_curve(statistics.columns(), GROUPS, Shares())
    assert found.source == (
        "estimated from clicks of the training and validation groups, as those of the "
        "validation groups do not tell it"
    )
    assert found.groups == (0, 1, 2, 3)
    assert alpha_of(found) == pytest.approx(LOOKED, abs=0.06)


@pytest.mark.parametrize(
    ("clicking", "groups", "is_said"),
    [(range(GROUPS), GROUPS, False), ((0, 1), GROUPS, True), (range(5), 5, True)],
)
def test_it_is_said_where_policies_were_chosen_from_the_same_clicks(
    clicking, groups, is_said
):
    """Trainings take those of training groups, so validation groups are safe."""
    for name, is_chosen in (("m@1.2{}", True), ("v{}", False)):
        statistics = statistics_of(4_000, 20, 3, clicking, groups, name)
        found = estimated_curve(statistics.columns(), groups, Shares())
        assert found.source.endswith(CHOSEN) == (is_said and is_chosen)


def test_selection_groups_never_tell_a_curve():
    """Not what it is, and not whether there is one."""
    same = statistics_of(4_000, 20, 3, clicking=(0, 1))
    for clicking in ((0, 1), (0, 1, 4, 5)):
        statistics = statistics_of(4_000, 20, 3, clicking=clicking)
        found = estimated_curve(statistics.columns(), GROUPS, Shares())
        same_curve = estimated_curve(same.columns(), GROUPS, Shares())
        assert alpha_of(found).tolist() == alpha_of(same_curve).tolist()
    alone = statistics_of(4_000, 20, 3, clicking=(4, 5))
    assert estimated_curve(alone.columns(), GROUPS, Shares()).curve is None


def test_ranks_that_are_not_well_known_are_said():
    """As the monitor says it of its own curve; not where each is known."""
    assert estimated_curve(statistics().columns(), GROUPS, Shares()).warning == ""
    few = statistics_of(900, 150, 1)
    assert estimated_curve(few.columns(), GROUPS, Shares()).warning == (
        "examination is not well known at ranks 2 to 3: documents were shown too seldom"
    )


def test_too_few_groups_are_taken_together():
    """They cannot be split."""
    statistics = statistics_of(4_000, 20, 3, groups=5)
    found = estimated_curve(statistics.columns(), 5, Shares())
    assert found.source == "estimated from all clicks, as 5 groups cannot be split"
    assert found.groups == (0, 1, 2, 3, 4)
    assert alpha_of(found) == pytest.approx(LOOKED, abs=0.06)


def as_told(monkeypatch, source="of the validation groups", **how):
    """What is said, and lists by item that were tested, if any were."""
    tested = []

    def test(views, rng, *, n_ranks):
        del rng, n_ranks
        tested.append(int(views.shown.sum()))
        return TrustTest(np.nan, 0, np.nan, 1.0, "it was tested")

    monkeypatch.setattr(curve_module, "trust_test", test)
    given = how.pop("given", None) or statistics()
    return bias_told(given.columns(), (2, 3), source, **how), tested


def test_policies_that_were_chosen_from_the_clicks_are_not_tested(monkeypatch):
    """A test would see the choice, and call it trust."""
    said, tested = as_told(monkeypatch, f"{CHOSEN}, all groups")
    assert said.endswith(curve_module.CHOSEN_FROM_CLICKS)
    assert tested == []
    assert bias_told(statistics().columns(), (), "") == ""


def test_all_items_are_tested_of_the_lists_that_the_curve_is_from(monkeypatch):
    """Those without a click too: they had no luck, which tells of their ranks."""
    clicked = statistics_of(600, 60, 5, clicking=(2,))
    said, tested = as_told(monkeypatch, given=clicked)
    assert said.endswith("it was tested")
    shown: dict[tuple[str, int], list[int]] = {}
    for chunk in clicked.columns():
        for i in np.flatnonzero(np.isin(chunk.group, (2, 3))).tolist():
            item = chunk.names[chunk.scope[i]].query, int(chunk.item[i])
            own = shown.setdefault(item, [0, 0])
            own[0] += int(chunk.shown[i])
            own[1] += int(chunk.by_class[0, i])
    assert sum(n for n, clicks in shown.values() if clicks) < tested[0]
    _, of_one = as_told(monkeypatch, given=clicked, takes=lambda x: x == "v0")
    assert 0 < of_one[0] < tested[0]
