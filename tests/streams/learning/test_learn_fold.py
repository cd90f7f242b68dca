"""Every learner as a fold: what a ranker logs teaches it, to the same bits."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from models.learners.registry import LEARNERS, learner_of
from producers.formats.canonical_dump import Header, query_event, write_dump
from rankstream.operations.cli import main
from rankstream.ranker import Ranker
from rankstream.settings import ModelSettings, Settings, SettingsError
from rankstream.snapshots import decode_snapshot, features_hash
from rankstream.wire.events import (
    POLICIES,
    SCHEMA,
    ClickMark,
    Impression,
    Interaction,
    InteractionRecord,
)
from rankstream.wire.events import encode_record as encode
from streams.ingest.validation import EventValidator
from streams.learning.learn import InteractionsBroken, Learn
from streams.learning.learner_needs import (
    multileaving_of,
    needs_candidates,
    policy_for,
)
from streams.learning.model_fold import ModelChanged, ModelFold, example_of
from streams.local import read_changes
from streams.stage import SourceRecord

F = 4
NOW_MS = 1_700_000_000_000

OPTIONS: dict[str, dict[str, Any]] = {
    "mgd": {"n_candidates": 5},
    "pl-rank": {"n_samples": 5, "examination": [1.0, 0.6]},
    "coltr": {"n_candidates": 10},
}


def settings_of(learner: str, **changes: Any) -> Settings:
    """One model that learns so."""
    model = ModelSettings(
        features=F,
        learner=learner,
        options=changes.pop("options", OPTIONS.get(learner, {})),
        **changes,
    )
    return Settings(models={"m": model})


def record(interactions: list[Interaction], first: int) -> SourceRecord:
    """Interactions as their topic has them."""
    value = encode(InteractionRecord(SCHEMA, 0, first, interactions))
    return SourceRecord("interactions", 0, first, NOW_MS, None, value, ())


def fold_of(settings: Settings) -> Learn:
    """The fold, on the one partition that there is."""
    kafka = msgspec.structs.replace(settings.kafka, learner_partitions=1)
    return Learn(0, msgspec.structs.replace(settings, kafka=kafka))


def newest(fold: Learn) -> bytes:
    """The snapshot that the fold publishes next."""
    outputs = [output for output in fold.outputs() if output.value]
    assert outputs[-1].value is not None
    return outputs[-1].value


def lived(settings: Settings, n: int) -> tuple[list[Interaction], Learn]:
    """Interactions of users with a ranker that serves what the fold learned."""
    model, rng = settings.models["m"], np.random.default_rng(6)
    fold = fold_of(settings)
    shelf = [newest(fold)]
    ranker = Ranker("m", source=lambda: shelf[-1])
    validator = EventValidator(max_documents=100, ahead_ms=0)
    log = []
    for number in range(n):
        ranker.refresh()
        features = rng.random((int(rng.integers(2, 15)), F))
        ranking = ranker.rank(
            features,
            cutoff=6,
            policy=policy_for(model),
            seed=int(rng.integers(2**63)),
            multileaving=multileaving_of(model),
        )
        raw = ranker.query_event(
            ranking,
            query_id=f"q{number}",
            # Ids whose order is not that of the rows.
            items=[f"d{(row * 7) % 15:02}" for row in range(len(features))],
            at_ms=NOW_MS,
            log_candidates=needs_candidates(model),
        )
        impression = validator.query(raw, NOW_MS).event
        likes = features[ranking.order, 0] > rng.random(len(ranking.order))
        marks = [ClickMark(int(x) + 1, NOW_MS, "click") for x in np.flatnonzero(likes)]
        log.append(Interaction(impression, marks))  # type: ignore[arg-type]
        fold.fold(record(log[-1:], number + 1))
        shelf.append(newest(fold))
    return log, fold


@pytest.mark.parametrize("learner", sorted(LEARNERS))
def test_every_learner_learns_from_what_its_ranker_logs(learner: str) -> None:
    """None is skipped, parameters move, and rankers load what comes of it."""
    settings = settings_of(learner)
    log, fold = lived(settings, 60)
    counters = fold.counters()

    assert counters["learned"] == 60
    assert counters["learner_skipped"] == 0
    assert counters["learner_updates"] > 5
    again = learner_of(settings.models["m"])
    for interaction in log:
        again.learn(example_of(interaction))
    assert again.state() == fold.models["m"].learner.state()


@pytest.mark.parametrize("learner", sorted(LEARNERS))
def test_features_as_a_service_gave_them_teach_the_same(learner: str) -> None:
    """The learner normalises them; those of another list it does without."""
    plain, raw = settings_of(learner), settings_of(learner, log_candidates=True)
    _, expected = lived(plain, 30)
    log, fold = lived(raw, 30)
    logged = [msgspec.msgpack.decode(each.impression.extra) for each in log]
    assert sum("features_hash" in extra for extra in logged) == 30
    assert fold.models["m"].learner.state() == expected.models["m"].learner.state()
    # The setting may change: it says what is logged, not what is learned.
    state = list(fold.changes())
    fold_of(plain).restore(state)

    named = settings_of(learner, feature_names=["a", "b", "c", "d"])
    other = fold_of(named)
    other.fold(record(log, 1))
    needs = needs_candidates(named.models["m"])
    assert other.counters()["learner_skipped"] == (30 if needs else 0)


@pytest.mark.parametrize("learner", sorted(LEARNERS))
def test_a_log_cut_anywhere_gives_the_same_snapshot(learner: str) -> None:
    """Also through a restored state, and with another optimiser and depth."""
    options = {"optimiser": "adam", **OPTIONS.get(learner, {})}
    shape: dict[str, Any] = {"kind": "neural-tanh", "hidden": [3, 2]}
    settings = settings_of(learner, options=options, **shape)
    log, _ = lived(settings, 40)
    whole, first, second = (fold_of(settings) for _ in range(3))
    whole.fold(record(log, 1))
    first.fold(record(log[:7], 1))
    first.fold(record(log[7:19], 8))
    second.restore(first.changes())
    second.fold(record(log[19:], 20))

    assert newest(whole) == newest(second)
    assert whole.models["m"].learner.state() == second.models["m"].learner.state()


@pytest.mark.parametrize("learner", sorted(LEARNERS))
def test_lists_that_teach_it_nothing_are_skipped(learner: str) -> None:
    """Another policy, another number of features, or what a learner needs is absent."""
    settings = settings_of(learner)
    log, _ = lived(settings, 3)
    impression = log[0].impression
    strange = [
        msgspec.structs.replace(impression, n_features=F + 1),
        msgspec.structs.replace(
            impression, policy=2 if learner in ("pdgd", "coltr") else 5, extra=b""
        ),
    ]
    if learner in ("dbgd", "mgd", "coltr", "pl-rank"):
        strange.append(msgspec.structs.replace(impression, extra=b""))
    if learner in ("dbgd", "mgd"):
        ranks = json.loads('"AQA="')
        wrong = msgspec.msgpack.encode({"ranks": ranks})
        strange.append(msgspec.structs.replace(impression, extra=wrong))
    clicks = [ClickMark(1, NOW_MS, "click")]
    fold = fold_of(settings)
    fold.fold(record([Interaction(one, clicks) for one in strange], 1))

    assert fold.counters()["learner_skipped"] == len(strange)
    assert fold.counters()["learner_updates"] == 0


@pytest.mark.parametrize(
    ("learner", "known"),
    [
        ("pdgd", {"plackett-luce"}),
        ("coltr", {"plackett-luce"}),
        ("dbgd", {"multileave"}),
        ("mgd", {"multileave"}),
        ("pl-rank", {"plackett-luce", "tail-shuffle", "deterministic", "logged"}),
    ],
)
def test_lists_of_any_other_policy_are_skipped(learner: str, known: set[str]) -> None:
    """Whatever else they log: their draws are not those that a learner corrects."""
    settings = settings_of(learner)
    (one,), _ = lived(settings, 1)
    for number, policy in enumerate(POLICIES):
        impression = msgspec.structs.replace(one.impression, policy=number)
        fold = fold_of(settings)
        fold.fold(record([Interaction(impression, one.clicks)], 1))

        assert fold.counters()["learner_skipped"] == (policy not in known), policy


@pytest.mark.parametrize("learner", ["pairwise", "pdgd", "coltr"])
def test_another_learner_folds_the_same_log_from_its_beginning(
    learner: str, tmp_path: Path
) -> None:
    """A dump folded under the same name, with other settings, as if always so."""
    log, _ = lived(settings_of("pl-rank"), 30)
    dump, config = tmp_path / "interactions.dump", tmp_path / "other.toml"
    records = [(0, record(log[i : i + 7], i + 1).value or b"") for i in range(0, 30, 7)]
    write_dump(dump, Header("interactions", 1), records)
    config.write_text(f'[models.m]\nfeatures = {F}\nlearner = "{learner}"\n')
    words = ["replay", str(dump), "--local", "--out", str(tmp_path / "run")]
    assert main([*words, "--config", str(config)]) == 0

    snapshots = dict(read_changes(tmp_path / "run" / "snapshots.bin"))
    found = decode_snapshot(snapshots[b"m"])
    again = learner_of(ModelSettings(features=F, learner=learner))
    for interaction in log:
        again.learn(example_of(interaction))
    assert found.version == 30
    assert found.updates == again.updates > 5
    assert found.weights == again.weights().astype("<f4").tobytes()


@pytest.mark.parametrize("learner", sorted(LEARNERS))
def test_a_dumped_list_goes_through_ingestion_again(learner: str) -> None:
    """What learners read of it is the same in another namespace."""
    validator = EventValidator(max_documents=100, ahead_ms=0)
    for one in lived(settings_of(learner), 5)[0]:
        again = validator.query(query_event(one.impression), NOW_MS).event
        assert isinstance(again, Impression)
        ours = example_of(Interaction(again, one.clicks))
        for value, expected in zip(ours, example_of(one), strict=True):
            np.testing.assert_array_equal(value, expected)
        assert (again.model, again.policy) == ("m", one.impression.policy)


def test_a_snapshot_is_a_function_of_the_log() -> None:
    """Whenever it is asked for: no commit before it can be seen in its bytes."""
    settings = settings_of("pdgd")
    log, _ = lived(settings, 12)
    given: list[dict[bytes, bytes]] = []
    for every in (1, 2, 6):
        fold = fold_of(settings)
        found: dict[bytes, bytes] = {}
        for n, one in enumerate(log, 1):
            fold.fold(record([one], n))
            if n % every == 0:
                found |= {o.key: o.value for o in fold.outputs() if o.value}  # type: ignore[misc]
        given.append(found)

    for key in given[2]:
        assert given[0][key] == given[1][key] == given[2][key]
    newest_key = max(given[2], key=lambda key: int(key.rpartition(b".")[2]))
    last = decode_snapshot(given[2][newest_key])
    assert (last.version, last.parent, last.sources) == (12, 11, [(0, 12)])


@pytest.mark.parametrize(
    "changes",
    [
        {"learning_rate": 0.2},
        {"kind": "neural", "hidden": [3]},
        {"options": {"optimiser": "adam"}},
        {"feature_names": ["a", "b", "c", "d"]},
    ],
)
def test_other_settings_do_not_go_on_from_what_was_learned(
    changes: dict[str, Any],
) -> None:
    """They are refused, with the name of the model."""
    before = fold_of(settings_of("pdgd"))
    before.fold(record(lived(settings_of("pdgd"), 1)[0], 1))
    state = list(before.changes())
    with pytest.raises(ModelChanged, match=r"models\.m must stay .* dump the log"):
        fold_of(settings_of("pdgd", **changes)).restore(state)


def test_another_list_of_features_is_refused_by_its_first_difference() -> None:
    """Its number is the same, its hash is not; the snapshot has both."""
    names = ["a", "b", "c", "d"]
    named = settings_of("pdgd", feature_names=names)
    before = fold_of(named)
    before.fold(record(lived(named, 1)[0], 1))
    made = decode_snapshot(before.outputs()[-1].value or b"")
    assert made.feature_names == names
    assert made.features_hash == features_hash(names) != features_hash(F)
    state = list(before.changes())
    fold_of(named).restore(state)
    swapped = settings_of("pdgd", feature_names=["a", "b", "d", "c"])
    with pytest.raises(ModelChanged, match="feature_names had 'c' at 3, has 'd': rest"):
        fold_of(swapped).restore(state)
    with pytest.raises(
        ModelChanged, match=r"feature_names was \['a'.*\], is \[\]: rest"
    ):
        fold_of(settings_of("pdgd")).restore(state)


def test_assignments_that_no_array_holds_are_skipped() -> None:
    """As in a log that an older ingestion wrote."""
    fold = fold_of(settings_of("pdgd"))
    (one,), _ = lived(settings_of("pdgd"), 1)
    extra = msgspec.msgpack.encode({"assignments": [2**63, 0]})
    impression = msgspec.structs.replace(one.impression, extra=extra)
    fold.fold(record([Interaction(impression, one.clicks)], 1))

    assert fold.counters()["learner_skipped"] == 1


def test_clicks_teach_about_the_documents_that_were_clicked() -> None:
    """Positions count from 1, rows from 0, in displayed order."""
    (one,), _ = lived(settings_of("pdgd"), 1)
    n_shown = len(one.impression.shown) // 2
    marks = [ClickMark(1, NOW_MS, "click"), ClickMark(n_shown, NOW_MS, "click")]
    example = example_of(Interaction(one.impression, marks))

    assert np.flatnonzero(example.clicks).tolist() == [0, n_shown - 1]
    rows = np.frombuffer(one.impression.shown, "<u2").tolist()
    assert example.shown.tolist() == rows


@pytest.mark.parametrize("first", [1, 2, 4])
def test_missing_or_repeated_interactions_are_refused(first: int) -> None:
    """Numbers go on where the last record ended, or the log is not whole."""
    settings = settings_of("pdgd")
    log, _ = lived(settings, 2)
    fold = fold_of(settings)
    fold.fold(record(log, 1))

    with pytest.raises(InteractionsBroken, match=f"got {first} after 2 of source 0"):
        fold.fold(record(log, first))
    fold.fold(record(log, 3))

    assert fold.counters()["learned"] == 4


def test_a_learner_that_is_not_there_is_named_with_its_model() -> None:
    """The settings are wrong, and a worker can say so."""
    with pytest.raises(SettingsError, match=r"models\.search: learner must be one of"):
        ModelFold("search", ModelSettings(features=5, learner="none"))


def test_features_of_another_number_teach_nothing() -> None:
    """Even where they would fit: what their numbers mean is another thing."""
    settings = settings_of("pdgd")
    log, _ = lived(settings, 1)
    other = msgspec.structs.replace(log[0].impression, n_features=2 * F)
    # As many numbers as documents of the model's own width take, for twice as many.
    shown = np.frombuffer(other.shown, "<u2")
    rows = np.zeros((len(shown), 2 * F), "<f4")
    other = msgspec.structs.replace(other, features=rows.tobytes())
    fold = fold_of(settings)
    fold.fold(record([Interaction(other, [ClickMark(1, NOW_MS, "click")])], 1))

    assert fold.counters()["learner_skipped"] == 1
    assert fold.models["m"].learner.state() == learner_of(settings.models["m"]).state()


def test_snapshots_are_as_old_as_their_last_interaction() -> None:
    """The time of an impression, not that of the fold; also of one that is skipped."""
    settings = settings_of("pdgd")
    log, _ = lived(settings, 2)
    fold = fold_of(settings)
    assert decode_snapshot(newest(fold)).created_ms == 0
    for number, (one, policy) in enumerate(zip(log, (None, 5), strict=True), 1):
        changes = {"at_ms": NOW_MS + 7 * number}
        changes |= {"policy": policy} if policy else {}
        impression = msgspec.structs.replace(one.impression, **changes)
        fold.fold(record([Interaction(impression, one.clicks)], number))
        assert decode_snapshot(newest(fold)).created_ms == NOW_MS + 7 * number
    again = fold_of(settings)
    again.restore(list(fold.changes()))

    assert again.models["m"].created_ms == NOW_MS + 14
    assert again.counters() == fold.counters()
    assert again.counters()["learner_skipped"] == 1


@pytest.mark.parametrize("keep", [1, 3])
def test_only_the_newest_versions_are_kept(keep: int) -> None:
    """Tombstones for the others, each once, also by a fold that was restored."""
    settings = settings_of("pdgd")
    redis = msgspec.structs.replace(settings.redis, keep_versions=keep)
    settings = msgspec.structs.replace(settings, redis=redis)
    log, _ = lived(settings, 8)
    fold, kept, n_deleted = fold_of(settings), list[bytes](), 0
    for number, one in enumerate(log, 1):
        fold.fold(record([one], number))
        for output in fold.outputs():
            assert output.key is not None
            if output.value is None:
                n_deleted += 1
                kept.remove(output.key)
            else:
                kept.append(output.key)
        assert kept == [
            f"m/0.{version}".encode()
            for version in range(max(1, number - keep + 1), number + 1)
        ]
        restored = fold_of(settings)
        restored.restore(list(fold.changes()))
        fold = restored
    assert n_deleted == 8 - keep
