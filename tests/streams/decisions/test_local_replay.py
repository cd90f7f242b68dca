"""Decisions of a pipeline in process: exact to its interactions, without a leak."""

import msgspec
import numpy as np
import pytest

from models.counts.definition import ClosedImpression
from models.decisions.click_sums import differences_of
from models.decisions.meta_policy import SPECIALISED, Rule
from models.decisions.over_all_queries import Lack, OverAll
from models.decisions.tied_orders import expected_weights
from models.estimators.bias_curve import position_curve
from models.estimators.policy_reward import dcg_weights
from models.estimators.splits import split_groups
from models.plackett_luce.placement import placement_batch
from rankstream.wire.events import PLACKETT_LUCE, decode_interaction_record
from rankstream.wire.topics import CANDIDATES, CLICKS, INTERACTIONS, QUERIES
from streams.decisions.decide import Judgements, decide, specialised_orders
from streams.decisions.declared_policies import DeclaredPolicy, snapshot_policy
from streams.decisions.evidence import evidence_of
from streams.statistics.reader import Statistics
from streams.training.feature_records import FeatureRecords
from tests.streams.decisions.raw_sums import raw_sums
from tests.streams.training.shop import (
    EXAMINATION,
    N_FEATURES,
    Shop,
    model_of,
    queries_of,
    settings_of,
)

GROUPS, N_LISTS = 10, 900
SPLITS = split_groups(GROUPS)
CURVE = position_curve(EXAMINATION)
WEIGHTS = dcg_weights(len(EXAMINATION)).relevant

MODELS = {
    "search": model_of(examination=EXAMINATION.tolist()),
    "shadow": model_of(
        learns_from=["search"],
        least_support=0.0,
        examination=EXAMINATION.tolist(),
        most_unsupported=1.0,
    ),
}


class RecordedShop(Shop):
    """Keeps what it sends."""

    def __init__(self):
        data = queries_of(n_queries=15, n_documents=5)
        settings = settings_of(MODELS, groups=GROUPS)
        super().__init__(settings, shown="search", data=data)
        self.sent: list[tuple[str, bytes]] = []
        self._send = self.pipeline.send
        self.pipeline.send = self._keep  # type: ignore[method-assign]

    def _keep(
        self,
        topic: str,
        value: bytes,
        key: bytes | None = None,
        headers: tuple[tuple[str, bytes], ...] = (),
    ) -> None:
        self.sent.append((topic, value))
        self._send(topic, value, key, headers)

    def trained(self):
        """Ends, with a model that was trained from its lists."""
        self.pipeline.end()
        self.trainer.train("shadow")
        return self


@pytest.fixture(scope="module")
def shop():
    """Lists of a model that knows nothing."""
    shown = RecordedShop()
    shown.show(N_LISTS, np.random.default_rng(4))
    return shown.trained()


def interactions(shop):
    """All that the fold closed and counted."""
    return [
        one
        for output in shop.outputs
        if output.topic == INTERACTIONS
        for one in decode_interaction_record(output.value).interactions
    ]


def closed_impression(one):
    """As the definition of counts takes it; items in the order of their ids."""
    shown = np.frombuffer(one.impression.shown, "<u2").tolist()
    scores = np.frombuffer(one.impression.scores, "<f4").astype(np.float64)
    assert one.impression.policy == PLACKETT_LUCE
    return ClosedImpression(
        one.impression.unit % GROUPS,
        shown,
        {0: [mark.position for mark in one.clicks]},
        PLACKETT_LUCE,
        b"",
        placement_batch(scores[None], len(shown))[0],
    )


def evidence_from(shop):
    """What its statistics tell."""
    statistics = Statistics(shop.trainer.statistics().items())
    return evidence_of(statistics, SPLITS, CURVE, WEIGHTS)


def policy_of(shop, model, evidence, temperature):
    """A model's newest version."""
    snapshot = shop.snapshot(model)
    records = [
        (output.key, output.value)
        for output in shop.outputs
        if output.topic == CANDIDATES and output.key
    ]
    features = FeatureRecords(records, snapshot.features_hash, N_FEATURES)
    return snapshot_policy(snapshot, features, evidence.sets, WEIGHTS, temperature)


def test_decisions_rest_on_what_the_pipeline_joined(shop):
    """Sums of the trained policy over the logging one are those of raw lists."""
    evidence = evidence_from(shop)
    assert not evidence.refused
    general = policy_of(shop, "shadow", evidence, 0.0)
    logging = policy_of(shop, "search", evidence, 1.0)
    assert general.groups is not None
    assert not general.groups & {*SPLITS.selection}
    never = Judgements(
        lambda _, starts: np.zeros(len(starts) - 1, bool),
        lambda _: OverAll((Lack.BOUND,), -np.inf, np.inf),
    )
    found = decide(evidence, general, logging, never)
    assert found.is_ranked.all()
    own = expected_weights(found.orders[SPECIALISED], WEIGHTS)
    lists = interactions(shop)
    assert len(lists) == N_LISTS
    pairs = (own, general.weights), (own, logging.weights)
    for (first, second), told in zip(
        pairs, (found.over_general, found.over_logging), strict=True
    ):
        for number, query in enumerate(evidence.sets.queries):
            items = slice(*evidence.sets.starts[number : number + 2].tolist())
            raw = [
                closed_impression(one)
                for one in lists
                if one.impression.query_id == query
                and one.impression.unit % GROUPS in SPLITS.selection
            ]
            difference = (first - second)[items]
            sums, unsupported = raw_sums(raw, len(difference), CURVE, difference)
            assert unsupported == told.differences.unsupported[number] == 0
            rows = slice(*told.differences.starts[number : number + 2].tolist())
            by_group = {group: sums for (group, _), sums in sums.items()}
            assert len(by_group) == len(sums) == rows.stop - rows.start
            for group, *numbers in np.array(
                [column[rows] for column in told.differences.sums]
            ).T.tolist():
                assert numbers == pytest.approx(by_group[int(group)], rel=1e-6)
    # The logging policy is the one that logged, drawn at its temperature.
    as_logged = decide(evidence, general, DeclaredPolicy(None), never, Rule.CLOSED)
    for one, other in zip(
        as_logged.over_logging.differences.sums,
        found.over_logging.differences.sums,
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def flipped_shop(shop, groups):
    """The same lists; users of some groups click on what they did not, and only that.

    A list's clicks follow it at once, in both shops.
    """
    other = RecordedShop()
    lists = {one.impression.impression_id: one.impression for one in interactions(shop)}
    clicked: dict[str, set[str]] = {}
    for topic, value in shop.sent:
        if topic == CLICKS:
            click = msgspec.json.decode(value)
            clicked.setdefault(click["impression_id"], set()).add(click["position"])
    for topic, value in shop.sent:
        fields = msgspec.json.decode(value)
        name = fields["impression_id"]
        is_flipped = lists[name].unit % GROUPS in groups
        if topic == QUERIES or not is_flipped:
            other.pipeline.send(topic, value)
        if topic == QUERIES and is_flipped:
            ranks = range(1, len(lists[name].shown) // 2 + 1)
            for rank in {*ranks} - clicked.get(name, set()):
                click = {
                    "impression_id": name,
                    "query_id": fields["query_id"],
                    "position": rank,
                    "at_ms": fields["at_ms"] + 10,
                }
                other.pipeline.send(CLICKS, msgspec.json.encode(click))
    return other.trained()


def test_clicks_of_selection_groups_reach_no_policy_of_the_pipeline(shop):
    """All of them flipped: the trained snapshot and all orders keep their bytes."""
    other = flipped_shop(shop, SPLITS.selection)
    evidence, flipped = evidence_from(shop), evidence_from(other)
    assert not np.array_equal(evidence.selection.clicks, flipped.selection.clicks)
    own, of_flipped = (
        msgspec.structs.replace(each.snapshot("shadow"), created_ms=0)
        for each in (shop, other)  # one more click may be the last event
    )
    assert own == of_flipped
    for one, each in zip(
        specialised_orders(evidence), specialised_orders(flipped), strict=True
    ):
        np.testing.assert_array_equal(one, each)


def test_clicks_of_training_groups_reach_no_evidence_of_the_pipeline(shop):
    """Which keeps its bits where policies are fixed; they themselves do change."""
    other = flipped_shop(shop, SPLITS.training)
    evidence, flipped = evidence_from(shop), evidence_from(other)
    assert shop.snapshot("shadow").weights != other.snapshot("shadow").weights
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, evidence.sets.starts[-1]))
    sums = [
        differences_of(own.policies, own.selection, own.sets.starts, first, second).sums
        for own in (evidence, flipped)
    ]
    for one, each in zip(*sums, strict=True):
        np.testing.assert_array_equal(one, each)
