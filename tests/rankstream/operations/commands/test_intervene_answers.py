"""`rankstream intervene --wait`: each who asks gets an answer, whatever comes next."""

from typing import Any

import pytest

from rankstream.operations.answers.models.answered_requests import FORGOTTEN, Answered
from rankstream.operations.commands.intervene import run as intervene
from rankstream.operations.commands.intervene.run import _followed
from rankstream.wire.models.training import DONE
from rankstream.wire.models.training import TRAINING as UNDER_WAY
from tests.rankstream.training_topic import (
    Looks,
    Topic,
    position,
    refused_for,
    request,
    status,
    trained_for,
)


def answer(*looks: list[tuple[bytes, bytes]], most: int = 9) -> Answered | None:
    """To the request `own`."""
    topic: Any = Topic(*looks)
    return _followed(topic, Looks(most), "m", "own")  # type: ignore[arg-type]


def name_of(found: Answered | None) -> str:
    """The intervention that it names."""
    assert found is not None
    assert found.run is not None
    return found.run.intervention


AGAIN = "somebody asked again"


@pytest.mark.parametrize("before", [[], [request("older", 9)]])
def test_a_request_that_is_not_seen_yet_is_waited_for(
    before: list[tuple[bytes, bytes]], capsys: pytest.CaptureFixture[str]
) -> None:
    """As while a transaction is open: whatever clocks say, nobody asked again."""
    done = [request("own"), trained_for("own"), status(DONE, "own")]
    found = answer(before, before, [*before, request("own")], [*before, *done])
    assert name_of(found) == "m@0.1200"
    assert AGAIN not in capsys.readouterr().err


@pytest.mark.parametrize("is_refused", [False, True])
def test_an_answer_is_found_though_the_next_training_has_begun(
    is_refused: bool,
) -> None:
    """The status is about that by then, and later also the position and refusals."""
    own = refused_for("own") if is_refused else trained_for("own")
    goes_on = [own, position("own"), status(UNDER_WAY, "")]
    later = [*goes_on, request("later"), position("later"), refused_for("", "no")]
    for end in (goes_on, [*later, trained_for("later", "m@1.1200")]):
        found = answer([request("own")], [request("own"), *end])
        if is_refused:
            assert found == Answered("own", None, "too few")
        else:
            assert name_of(found) == "m@0.1200"


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("is_refused", [False, True])
def test_of_two_who_ask_at_once_both_get_the_answer(
    is_compacted: bool, is_refused: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """One training is enough, and that is said; the topic may keep one request only."""
    later = (
        [request("later", 1)] if is_compacted else [request("own"), request("later")]
    )
    begun = [*later, status(UNDER_WAY, "later")]
    end = refused_for("later") if is_refused else trained_for("later")
    found = answer([request("own")], later, begun, [*later, end, position("later")])
    if is_refused:
        assert found == Answered("later", None, "too few")
    else:
        assert name_of(found) == "m@0.1200"
    assert capsys.readouterr().err.count(AGAIN) == 1


def test_who_was_begun_before_somebody_asked_again_gets_an_own_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The later one waits for the next training."""
    both = [request("own"), request("later")]
    begun = [*both, status(UNDER_WAY, "own")]
    found = answer([request("own")], begun, [*both, trained_for("own")])
    assert name_of(found) == "m@0.1200"
    assert AGAIN not in capsys.readouterr().err
    # Nothing answers it before that, and a stop ends it.
    assert answer([request("own")], begun, most=4) is None


def test_a_refusal_that_is_kept_no_more_is_an_answer() -> None:
    """The position names the request, and no run does."""
    found = answer([request("own"), refused_for("", "no"), position("own")])
    assert found == Answered("own", None, FORGOTTEN)


def test_nobody_who_answers_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once."""
    monkeypatch.setattr(intervene, "PATIENCE_S", -1.0)
    assert answer([request("own")], most=3) is None
    assert capsys.readouterr().err.count("no trainer has answered yet") == 1
