"""Curves that models are: of whom, by which estimator, and refused in words."""

from functools import cache

import msgspec
import numpy as np
import pytest

from rankstream.ranking.checked_weights import checked_weights
from rankstream.wire.envelope import (
    LARGEST_NUMBER,
    SnapshotError,
    decode_snapshot,
    deployed,
    encode_snapshot,
)
from rankstream.wire.models.curves import (
    ROWS,
    PublishedCurve,
    curve_rows,
    encode_published,
    published,
)
from rankstream.wire.models.training import decode_record, encode_record
from streams.statistics.reader import Statistics
from streams.training.curves.curve_snapshot import fit_curve
from streams.training.curves.known_curve import published_curve
from streams.training.inputs import TrainingRefused
from tests.planted_bias import with_examination
from tests.streams.training.test_item_tables import cut
from tests.streams.training.trusting_lists import (
    GROUPS,
    N_ITEMS,
    PLANTED,
    curve_model,
    records_of,
    settings_with,
    statistics_of,
    trusting_lists,
)


@cache
def trusting():
    """What the fold writes of 12,000 lists."""
    return records_of(trusting_lists(12_000))


def fitted(records=None, parent=None, epoch=None, **model):
    """A curve of these records."""
    settings = settings_with(c=curve_model(**model))
    statistics = Statistics(trusting() if records is None else records)
    return fit_curve("c", settings, statistics, parent, reason="asked", epoch=epoch)


def of_clicks(rates, n_lists=4_000, groups=GROUPS):
    """Records of lists that are always the same, clicked at these rates."""
    planted = with_examination(N_ITEMS)._replace(
        alpha=np.zeros(N_ITEMS), beta=np.array(rates)
    )
    log = trusting_lists(n_lists, planted=planted, apart=1e6)
    return records_of(log, groups)


def test_trust_bias_that_was_planted_is_inside_its_intervals() -> None:
    """By a fit on the validation groups, where plain position bias is far off."""
    run = fitted().run
    for name, true in (("alpha", PLANTED.ratios), ("beta", PLANTED.offsets)):
        found, low, high = (getattr(run, name + end) for end in ("", "_low", "_high"))
        assert np.all((np.array(low) <= true) & (true <= np.array(high)))
        np.testing.assert_allclose(found, true, atol=0.1)
    assert run.reasons == [""] * N_ITEMS
    assert (run.groups, run.source) == (
        [2, 3],
        "estimated from clicks of the validation groups, 2 to 3",
    )
    assert run.n_turns > 0
    assert run.log_likelihood < 0.0
    plain = fitted(estimator="position").run
    assert np.abs(np.array(plain.alpha) - PLANTED.ratios)[1:].min() > 0.1
    assert (plain.beta, plain.n_turns, plain.log_likelihood) == ([0.0] * 4, 0, None)


def test_a_record_says_what_it_rests_on() -> None:
    """Rows that are not zero, of documents shown at several ranks, and their sums."""
    found = fitted()
    rows = 0
    sums = np.zeros(2, np.int64)
    for chunk in Statistics(trusting()).columns():
        is_some = np.isin(chunk.group, (2, 3)) & (chunk.shown > 0)
        keys = np.column_stack((chunk.scope, chunk.item, chunk.rank))[is_some]
        names = {(chunk.names[a].query, b, c) for a, b, c in keys.tolist()}
        rows += len(names)
        sums += [chunk.shown[is_some].sum(), chunk.by_class[0, is_some].sum()]
    run = found.run
    assert (run.n_rows, run.n_shown, run.n_clicked) == (rows, *sums)
    assert run.version == 12_000 == sum(n for _, n in run.counts)
    assert run.intervention == found.snapshot.intervention == "c@0.12000"


def test_snapshot_record_and_json_say_the_same() -> None:
    """To the last bit, and NaN where nothing is known."""
    found = fitted(ranks=6)
    snapshot = decode_snapshot(encode_snapshot(found.snapshot))
    rows = curve_rows(snapshot)
    again = decode_record("curve", encode_record(found.run))
    assert encode_record(again) == encode_record(found.run)
    for row, name in zip(rows, ROWS, strict=True):
        np.testing.assert_array_equal(row, getattr(again, name))
    assert np.isnan(rows[:, 4:]).all()
    assert again.reasons[4:] == ["not shown"] * 2
    told = msgspec.json.decode(encode_published(published(again)), type=PublishedCurve)
    assert told.ranks[1].alpha == rows[0, 1]
    assert told.ranks[1].alpha_interval == (rows[1, 1], rows[2, 1])
    assert (told.ranks[5].alpha, told.ranks[5].beta_interval) == (None, None)
    assert msgspec.json.decode(encode_published(told))["type"] == "curve"
    known = published_curve(snapshot)
    np.testing.assert_array_equal(known.curve.alpha, rows[0, :4])
    np.testing.assert_array_equal(known.curve.beta, rows[3, :4])
    assert (known.source, known.groups) == ("c@0.12000", (2, 3))


def test_an_anchor_makes_a_curve_absolute() -> None:
    """That of the users is in the intervals, which are no narrower than in ratios."""
    alpha, beta = float(PLANTED.alpha[0]), float(PLANTED.beta[0])
    run = fitted(anchor=[alpha, beta]).run
    assert not run.is_ratio_only
    for name, true in (("alpha", PLANTED.alpha), ("beta", PLANTED.beta)):
        low, high = (np.array(getattr(run, name + end)) for end in ("_low", "_high"))
        assert np.all((low <= true) & (true <= high))
    assert (run.alpha[0], run.beta[0]) == pytest.approx((alpha, beta))
    with pytest.raises(TrainingRefused, match="take an anchor in the range"):
        fitted(anchor=[0.9, 0.0])


def test_the_order_of_partitions_and_cuts_of_chunks_change_no_byte() -> None:
    """Nor the order of records: statistics are the last values of keys."""
    whole = fitted()
    shuffled = [*trusting()]
    np.random.default_rng(5).shuffle(shuffled)
    again = fitted(shuffled)
    assert encode_snapshot(again.snapshot) == encode_snapshot(whole.snapshot)
    assert encode_record(again.run) == encode_record(whole.run)

    class Cut(Statistics):
        """The same, in the smallest chunks."""

        def columns(self, *arguments, **options):
            chunks = super().columns(*arguments, **options)
            return cut(chunks, np.random.default_rng(6))

    settings = settings_with(c=curve_model())
    third = fit_curve("c", settings, Cut(trusting()), None, reason="asked")
    assert encode_record(third.run) == encode_record(whole.run)


def test_intervals_of_a_bootstrap_are_drawn_by_the_seed() -> None:
    """Harvested curves have no other; the same seed draws the same queries."""
    one, same, other = (
        fitted(estimator="pivot", bootstrap=20, seed=seed).run for seed in (1, 1, 2)
    )
    assert encode_record(one) == encode_record(same)
    assert one.alpha == other.alpha
    assert one.alpha_low != other.alpha_low
    assert one.options["seed"] == 1


def test_harvesting_compares_ranks_within_one_intervention() -> None:
    """Items that each intervention shows at one rank tell it nothing."""
    log = [
        x
        for name, seed in (("v0", 1), ("v1", 2))
        for x in trusting_lists(2_000, seed, apart=1e6, interventions=[name])
    ]
    statistics = statistics_of(log)
    settings = settings_with(c=curve_model("pivot", bootstrap=5))
    with pytest.raises(TrainingRefused, match="ranks 2 to 4: not connected"):
        fit_curve("c", settings, statistics, None, reason="asked")
    position = settings_with(c=curve_model("position"))
    assert fit_curve("c", position, statistics, None, reason="asked").run.alpha[1] > 0


def test_learns_from_leaves_out_other_lists() -> None:
    """Of all lists where none are named; a curve is of users, not of a ranker."""
    all_lists = fitted(estimator="position").run
    some = fitted(estimator="position", learns_from=["v0"]).run
    assert some.n_shown < 0.6 * all_lists.n_shown
    with pytest.raises(TrainingRefused, match="nothing was shown at two ranks"):
        fitted(learns_from=["nobody"])


def test_few_groups_are_taken_together() -> None:
    """And where the validation groups do not tell it, those of training too."""
    run = fit_curve(
        "c",
        settings_with(c=curve_model("position")),
        statistics_of(trusting_lists(2_000), groups=4),
        None,
        reason="asked",
    ).run
    assert run.groups == [0, 1, 2, 3]
    assert run.source == "estimated from all clicks, as 4 groups cannot be split"


def test_what_cannot_be_told_is_refused_rank_by_rank() -> None:
    """Lists that are always the same, or that nobody clicks, or that nobody showed."""
    with pytest.raises(
        TrainingRefused,
        match=r"from items that were clicked, seen at several ranks; .* at ranks 1 to "
        "4: not connected with rank 1: wait for lists that differ",
    ):
        fitted(of_clicks([0.5] * 4), estimator="position")
    with pytest.raises(TrainingRefused, match="no clicks"):
        fitted(of_clicks([0.0] * 4), estimator="position")
    with pytest.raises(TrainingRefused, match="no two items that differ lead"):
        fitted(of_clicks([0.5] * 4))
    with pytest.raises(TrainingRefused, match="none are counted: wait"):
        fitted([])


def test_versions_follow_each_other() -> None:
    """In the next epoch where nothing was counted since; never from a ranker."""
    first = fitted(estimator="position").snapshot
    second = fitted(estimator="position", parent=first)
    assert second.run.intervention == "c@1.12000"
    assert (second.snapshot.parent, second.snapshot.updates) == (12_000, 2)
    assert second.run.parent.version == 12_000
    np.testing.assert_array_equal(
        curve_rows(second.snapshot), curve_rows(first), strict=True
    )
    with pytest.raises(
        TrainingRefused, match=r"must come after the one before, 0\.12000"
    ):
        fitted(parent=first, epoch=0)
    with pytest.raises(TrainingRefused, match=r"at most 999,999,999,999,999; got 1000"):
        fitted(parent=first, epoch=LARGEST_NUMBER + 1)
    ranker = msgspec.structs.replace(
        first, kind="linear", n_features=1, weights=bytes(4), features_hash=b""
    )
    with pytest.raises(TrainingRefused, match="must be a curve; it is linear"):
        fitted(parent=ranker)


def test_nobody_ranks_by_a_curve() -> None:
    """Nor takes a ranker for one; envelopes of other sizes are refused."""
    snapshot = fitted(estimator="position").snapshot
    with pytest.raises(SnapshotError, match=r"must rank; version 0\.12000") as found:
        checked_weights(snapshot, None)
    assert found.value.reason == "kind"
    ranker = msgspec.structs.replace(snapshot, kind="linear")
    with pytest.raises(SnapshotError, match="must be of the kind 'curve'"):
        curve_rows(ranker)
    short = msgspec.structs.replace(snapshot, weights=snapshot.weights[:-8])
    with pytest.raises(SnapshotError, match="weights must be 192 bytes; got 184"):
        decode_snapshot(encode_snapshot(short))
    nothing = msgspec.structs.replace(
        snapshot, weights=np.full((6, N_ITEMS), np.nan).tobytes()
    )
    with pytest.raises(SnapshotError, match="must be a curve that corrects"):
        published_curve(nothing)
    put_back = deployed(snapshot, 3)
    assert published_curve(put_back).source == "c@3.12000"
