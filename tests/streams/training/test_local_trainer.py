"""Models trained in process: by the schedule of a worker, and as often as it may."""

import msgspec
import numpy as np
import pytest

from streams.training.inputs import TrainingRefused
from tests.streams.training.shop import EXAMINATION, Shop, model_of, settings_of

PLAN = {"least_support": 1.0, "epochs": 2, "examination": EXAMINATION.tolist()}


def test_an_era_has_no_more_interventions_than_statistics_keep_apart() -> None:
    """As on Kafka: the next one is refused in words, and what is served stays."""
    settings = settings_of({"m": model_of(after=[200, 300, 400], **PLAN)})
    limits = msgspec.structs.replace(settings.limits, interventions=3)
    shop = Shop(msgspec.structs.replace(settings, limits=limits))
    shop.show(600, np.random.default_rng(1))
    assert [each.reason for each in shop.trainer.runs] == ["count"] * 2
    said = shop.trainer.refusals["m"]
    assert "at most limits.interventions, 3" in said
    served = shop.pipeline.snapshots[b"m"]
    with pytest.raises(TrainingRefused, match=r"limits\.interventions"):
        shop.trainer.train("m")
    assert shop.pipeline.snapshots[b"m"] == served


def test_what_was_refused_is_tried_again_only_when_more_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However often it is flushed."""
    shop = Shop(settings_of({"m": model_of(after=[100], **PLAN)}))
    n_tried = 0

    def refused(*_: object) -> None:
        nonlocal n_tried
        n_tried += 1
        raise TrainingRefused("too few")

    monkeypatch.setattr(shop.trainer, "train", refused)
    shop.show(200, np.random.default_rng(1))
    before = n_tried
    shop.trainer.flush()
    assert n_tried == before + 1
    for _ in range(3):
        assert shop.trainer.flush() == []
    assert n_tried == before + 1
    shop.show(1, np.random.default_rng(2))
    shop.end()
    assert n_tried > before + 1
    assert shop.trainer.refusals == {"m": "too few"}


def test_a_time_is_not_passed_before_each_partition_has_passed_it() -> None:
    """An intervention by hand before some partition has begun leaves it to come."""
    settings = settings_of({"m": model_of(**PLAN)}, partitions=32)
    shop = Shop(settings)
    shop.show(300, np.random.default_rng(1))
    shop.pipeline.flush()
    run = shop.trainer.train("m").run
    times = [at_ms for _, at_ms in run.watermarks]
    position = shop.trainer.positions["m"]
    known = [each for each in times if each is not None]
    assert position.watermark_ms == (min(known) if len(known) == 32 else -1)
    assert run.created_ms == min(known)
