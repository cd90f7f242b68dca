"""Runs of policies that bounds choose: their figures, their pairs, what they learn of.

Queries are few and short, so that specialisation soon knows all of them.
"""

from pathlib import Path

import numpy as np
import pytest

from rankstream.lab.reproduction.data import prepare
from rankstream.lab.reproduction.engine import Job, Setup
from rankstream.lab.reproduction.genspec.plan import (
    ALL_LISTS,
    GENERAL,
    LOGGING,
    META,
    POLICIES,
    SPECIAL,
    Cell,
)
from rankstream.lab.reproduction.genspec.runs import (
    HARMED,
    SPECIALISED,
    TRAIN,
    UNSEEN,
    _Scene,
    live_once,
    named,
)
from tests.rankstream.lab.reproduction.test_reproduce import parts_folder


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """One fold of eight queries in each split."""
    place = tmp_path_factory.mktemp("place")
    prepare(parts_folder(place / "data"), 1, place, normalisation="min-max")
    return Setup(place, "min-max", 1, 1)


def test_a_run_has_all_figures(setup: Setup) -> None:
    """Of all policies after each number of lists; the same again from its seed."""
    job = Job(Cell(0.2, 3_000), 1, 0)
    found = live_once(setup, job)
    counts = job.cell.counts()

    assert counts == [1, 3, 10, 30, 100, 300, 1_000, 3_000]
    for name in POLICIES:
        for figure in (TRAIN, UNSEEN, HARMED):
            assert len(found[named(figure, name)]) == len(counts)
    for name in META:
        assert len(found[named(SPECIALISED, name)]) == len(counts)
    assert len(found) == 3 * len(POLICIES) + len(META)
    assert live_once(setup, job) == found

    assert len({*found[named(TRAIN, LOGGING)]}) == 1
    assert not any(found[named(HARMED, LOGGING)])
    for name in (SPECIAL, ALL_LISTS):
        assert found[named(TRAIN, name)][-1] > 0.97
        assert len({*found[named(UNSEEN, name)]}) == 1
    general, logged = (found[named(UNSEEN, name)] for name in (GENERAL, LOGGING))
    for name in META:
        for at, value in enumerate(found[named(UNSEEN, name)]):
            assert value in (general[at], logged[at])
    assert found[named(UNSEEN, "SEA, 0.95")][0] == logged[0] != general[0]
    specialised = found[named(SPECIALISED, "no bounds")]
    assert 0.0 <= min(specialised) < max(specialised) <= 1.0


def test_runs_of_one_number_are_paired(setup: Setup) -> None:
    """Both kinds of users have the logging policy, and the same lists decide."""
    clear, noisy = (live_once(setup, Job(Cell(slope, 30), 1, 0)) for slope in (0.2, 0))
    other = live_once(setup, Job(Cell(0.2, 30), 1, 1))
    logging = named(TRAIN, LOGGING)

    assert clear[logging] == noisy[logging]
    assert clear[logging] != other[logging]
    assert clear[named(TRAIN, SPECIAL)] != noisy[named(TRAIN, SPECIAL)]
    decide = [
        next(_Scene(setup, Job(Cell(slope, 30), 1, run)).lived()).clicks.selection_lists
        for slope, run in ((0.2, 0), (0, 0), (0.2, 1))
    ]
    assert decide[0].tolist() == decide[1].tolist() != decide[2].tolist()


def test_policies_do_not_learn_from_lists_that_decide(setup: Setup) -> None:
    """Without clicks of these they are the same bits, and nothing is proven."""
    scene = _Scene(setup, Job(Cell(0.2, 300), 1, 0))
    first, *_, moment = scene.lived()
    nothing = [np.zeros_like(each) for each in moment.clicks.pairs]
    without = moment._replace(clicks=moment.clicks._replace(pairs=nothing))
    found, other = dict(scene.judged(moment)), dict(scene.judged(without))
    np.testing.assert_array_equal(scene._general(moment), scene._general(without))
    for name in (LOGGING, GENERAL, SPECIAL):
        for figure in (TRAIN, UNSEEN, HARMED):
            assert found[named(figure, name)] == other[named(figure, name)]
    for name in META:
        assert other[named(TRAIN, name)] == found[named(TRAIN, LOGGING)]
    assert found[named(TRAIN, "any time, 0.5")] != found[named(TRAIN, LOGGING)]
    of_first = dict(scene.judged(first))
    assert of_first[named(TRAIN, ALL_LISTS)] != of_first[named(TRAIN, SPECIAL)]


def test_what_harms_is_less_reward_than_was_logged(setup: Setup) -> None:
    """Of queries with something relevant; the list turned around harms all of them."""
    scene = _Scene(setup, Job(Cell(0.2, 10), 1, 0))
    shown = scene._wanted.copy()
    assert scene._harmed(shown, shown) == 0.0
    assert scene._harmed(shown - 0.01 * scene._wanted, shown) == 1.0
    assert scene._harmed(shown + 0.01 * scene._wanted, shown) == 0.0


def test_runs_of_other_folds_have_other_queries(setup: Setup, tmp_path: Path) -> None:
    """And a logging policy of their own."""
    prepare(parts_folder(tmp_path / "data"), 2, setup.place, normalisation="min-max")
    one, other = (
        live_once(setup, Job(Cell(0.2, 10), fold, 0))[named(TRAIN, LOGGING)]
        for fold in (1, 2)
    )
    assert one != other
