"""Trainings under the newest curve of a model, in process, and made again."""

from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.configuration.curves import PositionCurve
from rankstream.configuration.training import Schedule
from rankstream.wire.envelope import decode_snapshot, encode_snapshot
from rankstream.wire.models.training import encode_record
from streams.training.verification import (
    VerificationRefused,
    curve_made_again,
    made_again,
)
from tests.streams.training.shop import Shop, model_of, settings_of

PLAN = {"least_support": 1.0, "epochs": 2}


def curve_of(**schedule) -> PositionCurve:
    """A curve of five ranks."""
    return PositionCurve(ranks=5, schedule=Schedule(**schedule))


@cache
def shop() -> Shop:
    """Both due at the same count, and the curve once more."""
    models: dict[str, Any] = {
        "m": model_of(after=[800], **PLAN),
        "eyes": curve_of(after=[800, 1_000]),
    }
    found = Shop(settings_of(models))
    found.first = found.pipeline.snapshots[b"m"]  # type: ignore[attr-defined]
    found.show(1_200, np.random.default_rng(1))
    return found


def test_a_training_takes_the_newest_curve_and_its_run_names_it() -> None:
    """Curves come first where both are due; nothing is estimated besides."""
    (run,), (first, second) = shop().trainer.runs, shop().trainer.curves
    assert run.curve.source == first.intervention
    assert run.curve.alpha == first.alpha[: len(run.curve.alpha)]
    assert run.curve.groups == first.groups
    assert second.version > first.version
    assert second.parent is not None
    assert second.parent.version == first.version
    assert "eyes" not in shop().trainer.refusals


def test_nobody_folds_for_a_curve_and_it_takes_no_name_in_statistics() -> None:
    """No version 0, no lists of it, and no deployment."""
    assert set(shop().pipeline.snapshots) == {b"m", b"eyes"}
    assert decode_snapshot(shop().pipeline.snapshots[b"eyes"]).kind == "curve"
    assert [each.model for each in shop().trainer._deployments] == ["m"]
    fresh = Shop(settings_of({"m": model_of(), "eyes": curve_of()}))
    assert b"eyes" not in fresh.pipeline.snapshots


def test_a_run_is_made_again_with_the_curve_that_it_took() -> None:
    """Which was the newest then is in no log; its numbers are in the run."""
    (run,) = shop().trainer.runs
    parent = decode_snapshot(shop().first)  # type: ignore[attr-defined]
    again = made_again(shop().settings, run, parent, lambda: shop().log)
    served = shop().pipeline.snapshots[b"m"]
    assert encode_snapshot(again.snapshot) == served
    assert encode_record(again.run) == encode_record(run)
    alpha = [1.0, *(0.9 * x for x in run.curve.alpha[1:])]
    forged = msgspec.structs.replace(
        run, curve=msgspec.structs.replace(run.curve, alpha=alpha)
    )
    with pytest.raises(VerificationRefused, match="its numbers have another"):
        made_again(shop().settings, forged, parent, lambda: shop().log)


def test_a_curve_is_made_again_from_the_log_alone() -> None:
    """Equal bytes, of the second one with the first before it."""
    first, second = shop().trainer.curves
    one = curve_made_again(shop().settings, first, None, lambda: shop().log)
    assert encode_record(one.run) == encode_record(first)
    two = curve_made_again(shop().settings, second, one.snapshot, lambda: shop().log)
    assert encode_snapshot(two.snapshot) == shop().pipeline.snapshots[b"eyes"]
    with pytest.raises(VerificationRefused, match="must be the one that its record"):
        curve_made_again(shop().settings, second, None, lambda: shop().log)


def test_a_fit_of_a_curve_that_was_a_model_is_made_again() -> None:
    """The record that an earlier release wrote stays as it is, to the byte."""
    first = shop().trainer.curves[0]
    training = {"after": [800, 1_000], "cutoff": 10, "at": []}
    # It took options that the estimator does not look at, and kept them.
    options = {"ranks": 5, "bootstrap": 7}
    form = {"learner": "examination", "options": options, "training": training}
    run = msgspec.structs.replace(
        first,
        settings={"features": 0, "seed": 0, **form},
        options=first.options | {"bootstrap": 7},
    )
    again = curve_made_again(shop().settings, run, None, lambda: shop().log)
    assert encode_record(again.run) == encode_record(run)
    assert again.run.sha256 == first.sha256


def test_losses_are_chosen_from_under_the_curve_that_is_named() -> None:
    """By a network, with another curve beside; made again it is the same."""
    losses = ["arp-linear", "truncated-lambda"]
    how = {"loss": "selected", "losses": losses, "curve": "eyes"}
    models: dict[str, Any] = {
        "m": model_of(kind="neural", hidden=[4], after=[800], **how, **PLAN),
        "eyes": curve_of(after=[800]),
        "others": curve_of(after=[800]),
    }
    both = Shop(settings_of(models))
    parent = both.snapshot()
    both.show(900, np.random.default_rng(1))
    (run,) = both.trainer.runs
    ours, _ = both.trainer.curves

    assert run.curve.source == ours.intervention == f"eyes@{ours.epoch}.{ours.version}"
    assert [each.loss for each in run.losses] == losses
    assert run.losses[losses.index(run.loss)].behind == 0.0
    given = msgspec.structs.replace(
        models["m"].training, curve="", examination=run.curve.alpha
    )
    again = made_again(both.settings, run, parent, lambda: both.log)
    assert encode_snapshot(again.snapshot) == both.pipeline.snapshots[b"m"]
    assert encode_record(again.run) == encode_record(run)
    # The same numbers by hand lead to the same choice.
    model = msgspec.structs.replace(models["m"], training=given)
    by_hand = Shop(settings_of({"m": model}))
    by_hand.show(900, np.random.default_rng(1))
    assert by_hand.trainer.runs[0].losses == run.losses


def test_without_a_version_a_training_is_refused_with_the_remedy() -> None:
    """Until the curve has one; settings may give a curve instead."""
    models: dict[str, Any] = {"m": model_of(after=[300], **PLAN), "eyes": curve_of()}
    late = Shop(settings_of(models))
    late.show(600, np.random.default_rng(1))
    assert "'eyes' has no version yet: fit it" in late.trainer.refusals["m"]
    late.trainer.fit("eyes")
    late.show(100, np.random.default_rng(2))
    assert [each.curve.source for each in late.trainer.runs] == [
        late.trainer.curves[0].intervention
    ]
    given = model_of(examination=[1.0, 0.5], **PLAN)
    assert settings_of({"m": given, "eyes": curve_of()}).curve_for(given) == ""
