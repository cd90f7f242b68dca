"""Trainings on lists of which nobody knows how they came about.

They were refused, as no item had support; now clicks are corrected at the ranks where
items stood, and the run says so. What is trained on known policies stays as it was.
"""

import msgspec
import numpy as np
import pytest

from models.estimators.choice import OF_KNOWN, OF_UNKNOWN
from rankstream.wire.envelope import encode_snapshot
from rankstream.wire.models.training import (
    ASKED,
    RunRecord,
    decode_record,
    encode_record,
)
from streams.statistics.reader import Statistics
from streams.training.inputs import TrainingRefused
from streams.training.trained_snapshot import Outcome
from streams.training.verification import made_again
from tests.streams.training.shop import (
    EXAMINATION,
    Shop,
    model_of,
    queries_of,
    settings_of,
)

N_LISTS = 1_500


def forget(event):
    """The list without a word on how it was drawn."""
    event.pop("policy")
    event.pop("scores")


def shop_of(change, data=None, **plan) -> Shop:
    """A site that showed lists of one model."""
    plan = {"examination": EXAMINATION.tolist(), **plan}
    shop = Shop(settings_of({"m": model_of(**plan)}), data=data)
    shop.show(N_LISTS, np.random.default_rng(1), change=change)
    shop.pipeline.end()
    return shop


@pytest.fixture(scope="module")
def plain() -> tuple[Shop, Outcome]:
    """One whose lists say nothing, and what was trained on it."""
    shop = shop_of(forget)
    parent = shop.snapshot()
    found = shop.trainer.train("m", ASKED)
    assert shop.ndcg(found.snapshot) > shop.ndcg(parent) + 0.05
    return shop, found


def test_a_plain_log_trains_a_ranker_that_is_better(plain) -> None:
    """Whose run says by which estimator, of how much."""
    shop, (snapshot, run) = plain
    assert run.estimator == OF_UNKNOWN
    assert run.sizes.n_left_out == 0
    assert run.sizes.n_clicks > 100
    assert snapshot.groups == run.groups
    assert decode_record("run", encode_record(run)) == run
    cells = [
        cell
        for chunk in Statistics(shop.trainer.statistics().items()).columns()
        for cell in chunk.cells.tolist()
    ]
    assert sum(cell[2] for cell in cells) == N_LISTS


def test_it_is_made_again_from_the_log(plain) -> None:
    """Bit for bit."""
    shop, (snapshot, run) = plain
    fresh = Shop(shop.settings).snapshot()
    again = made_again(shop.settings, run, fresh, lambda: shop.log)
    assert encode_snapshot(again.snapshot) == encode_snapshot(snapshot)
    assert again.run == run


def test_where_some_policies_are_known_the_others_are_left_out() -> None:
    """As before, so that runs of before are made again as they were."""
    n = 0

    def forget_some(event):
        nonlocal n
        n += 1
        if n % 100 == 0:
            forget(event)

    run = shop_of(forget_some).trainer.train("m", ASKED).run
    assert run.estimator == OF_KNOWN
    assert 0 < run.sizes.n_left_out < N_LISTS


def test_where_known_lists_are_not_apart_the_run_says_how_many() -> None:
    """In each group of a scope some say nothing: then all are as they were shown."""
    n = 0

    def forget_each_second(event):
        nonlocal n
        n += 1
        if n % 2:
            forget(event)

    shop = shop_of(forget_each_second, queries_of(n_queries=8), held_out=0.5)
    run = shop.trainer.train("m", ASKED).run
    chunks = [*Statistics(shop.trainer.statistics().items()).columns()]
    assert not any(each.has_policies().any() for each in chunks)
    assert run.estimator == OF_UNKNOWN
    assert (run.n_beside, run.n_lists) == (N_LISTS // 2, N_LISTS)
    assert decode_record("run", encode_record(run)) == run


def test_too_little_support_is_told_with_what_was_left_out() -> None:
    """Of half of the lists that say nothing, and the others beside them."""
    n = 0

    def forget_each_second(event):
        nonlocal n
        n += 1
        if n % 2:
            forget(event)

    shop = shop_of(forget_each_second)
    with pytest.raises(TrainingRefused, match=r"1,\d+ lists are left out: .* or wait"):
        shop.trainer.train("m", ASKED)


def test_a_run_of_before_had_the_estimator_of_known_policies(plain) -> None:
    """Its record ends before the name."""
    whole = msgspec.msgpack.decode(encode_record(plain[1].run))
    end = whole.index(OF_UNKNOWN)
    before: RunRecord = decode_record("run", msgspec.msgpack.encode(whole[:end]))
    assert before.estimator == OF_KNOWN
