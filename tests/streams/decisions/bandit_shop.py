"""A shop in process that serves a bandit: it shows lists, counts them, and looks."""

from typing import Any

import msgspec
import numpy as np

from models.arrays import Floats, Integers
from rankstream.configuration.bandits import BanditSettings
from rankstream.ranker import Ranker
from rankstream.settings import (
    ModelSettings,
    Settings,
    StatisticsSettings,
    TimeSettings,
    TrainingSettings,
)
from rankstream.wire.decision_shards import digest_of, pack_shards
from rankstream.wire.decisions import (
    Decision,
    Manifest,
    decode_key,
    encode_manifest,
    entry_of,
    named_shards,
)
from rankstream.wire.topics import CANDIDATES, CLICKS, QUERIES
from streams.decisions.bandit_rewrite import BanditInputs, bandit_rewrite
from streams.decisions.rewrite import Rewrite
from streams.local import LocalPipeline, local_settings
from streams.statistics.reader import Statistics
from streams.training.feature_records import FeatureRecords
from tests.decision_factory import Written
from tests.held_decisions import Held
from tests.snapshot_factory import snapshot

EXAMINATION = np.array([1.0, 0.8, 0.6])
START_MS, STEP_MS = 1_700_000_000_000, 400
NAME = "best"


def settings_of(plan: BanditSettings) -> Settings:
    """A trained model `m` of three features, and a bandit."""
    training = TrainingSettings(examination=EXAMINATION.tolist())
    model = ModelSettings(features=3, versions="trained", training=training)
    whole = Settings(
        models={"m": model},
        bandits={NAME: plan},
        statistics=StatisticsSettings(groups=4),
        time=TimeSettings(disorder_ms=100, click_window_ms=200, remember_ms=200),
    )
    return local_settings(whole)


class BanditShop:
    """Users of some queries, who like items of each by planted rates.

    Parameters
    ----------
    rates : [n_queries, n_items]
        P(click | examined).

    Attributes
    ----------
    regret
        Clicks that the best lists would have had more, in expectation.
    sent
        Raw events of lists, oldest first.
    records
        Of the statistics, as they were last asked for.
    """

    def __init__(self, plan: BanditSettings, rates: Floats, *, cutoff: int = 3) -> None:
        self.settings = settings_of(plan)
        self.pipeline = LocalPipeline(
            self.settings, now=lambda: self.now_ms, on_output=self._take
        )
        self.sent: list[dict[str, Any]] = []
        self.pipeline.start()
        self.rates, self.cutoff = rates, cutoff
        self.items = [f"d{number:02}" for number in range(rates.shape[1])]
        self.store = Held(rule=NAME)
        self.served = snapshot()
        self.ranker = Ranker("m", store=self.store, decisions=NAME)
        self.rewrites: list[Rewrite] = []
        self.regret = 0.0
        self.records: dict[bytes, bytes] = {}
        self._candidates: list[tuple[bytes, bytes | None]] = []

    def _take(self, output: Any) -> None:
        if output.topic == CANDIDATES and output.key:
            self._candidates.append((output.key, output.value))

    @property
    def now_ms(self) -> int:
        """When the next list is shown."""
        return START_MS + len(self.sent) * STEP_MS

    @property
    def manifest(self) -> Manifest:
        """Of the newest rewrite."""
        return self.rewrites[-1].manifest

    def decisions(self) -> dict[str, Decision]:
        """Of the newest rewrite, by query."""
        newest = self.rewrites[-1].decisions
        return {decode_key(key).query: each for key, each in newest.items()}

    def statistics(self) -> Statistics:
        """All that is counted so far."""
        self.pipeline.flush()
        for each in self.pipeline.statistics():
            if each.value is None:
                self.records.pop(each.key, None)
            else:
                self.records[each.key] = each.value
        return Statistics(self.records.items())

    def look(self) -> None:
        """Rewrite, and serve that, through its bytes."""
        features = FeatureRecords(self._candidates, self.served.features_hash, 3)
        before = self.rewrites[-1].manifest if self.rewrites else None
        inputs = BanditInputs(self.statistics(), self.served, features, None, before)
        number = len(self.rewrites) + 1
        made = bandit_rewrite(
            NAME, self.settings, inputs, number=number, at_ms=self.now_ms
        )
        self.rewrites.append(made)
        shards = pack_shards(entry_of(q, x) for q, x in self.decisions().items())
        assert made.manifest.shards == [digest_of(each) for each in shards]
        value = encode_manifest(made.manifest)
        self.store.put(Written(made.manifest, value, dict(named_shards(shards)), []))
        self.ranker.refresh()
        assert self.ranker.rewrite == number

    def show(self, n_lists: int, rng: np.random.Generator) -> None:
        """Show so many lists more, of all queries in turn."""
        n_queries, n_items = self.rates.shape
        own = np.random.default_rng(2)
        # Services have candidates in no order.
        mixed, features = own.permutation(n_items), own.random((n_items, 3))
        items = [self.items[number] for number in mixed.tolist()]
        for _ in range(n_lists):
            number = len(self.sent)
            query, at_ms = number % n_queries, self.now_ms
            given: dict[str, Any] = {"query_id": f"q{query}", "items": items}
            ranking = self.ranker.rank(
                features, cutoff=self.cutoff, seed=int(rng.integers(2**62)), **given
            )
            name = f"i{number}"
            event = self.ranker.query_event(
                ranking, at_ms=at_ms, impression_id=name, user=f"u{number}", **given
            )
            self.sent.append(msgspec.json.decode(event))
            self.pipeline.send(QUERIES, event)
            clicked = self._clicked(query, mixed[ranking.order], rng)
            self.sent[-1]["clicked"] = clicked.tolist()
            for row in np.flatnonzero(clicked).tolist():
                click = self.ranker.click_event(
                    name, at_ms=at_ms + 5, query_id=f"q{query}", position=row + 1
                )
                self.pipeline.send(CLICKS, click)

    def _clicked(
        self, query: int, order: Integers, rng: np.random.Generator
    ) -> Integers:
        rates, looked = self.rates[query], EXAMINATION[: len(order)]
        best = np.sort(rates)[::-1][: len(order)]
        self.regret += float((best - rates[order]) @ looked)
        return np.asarray(rng.random(len(order)) < rates[order] * looked, np.int64)
