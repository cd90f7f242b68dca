"""`rankstream intervene` without a broker: what is meant, and how it stands."""

import json
import time
from pathlib import Path

import msgspec
import pytest

from producers.stop_signal import Stop
from rankstream.operations.answers.models import trainings
from rankstream.operations.answers.models.trainings import (
    Counted,
    at_work,
    read_trainings,
    standing_of,
)
from rankstream.operations.cli import main
from rankstream.operations.commands import STOPPED
from rankstream.operations.commands.intervene import run as intervene
from rankstream.operations.commands.intervene.tables import lines_of
from rankstream.settings import ModelSettings, Settings, TrainingSettings
from rankstream.wire.models.training import (
    DONE,
    LEFT_ALONE,
    SCHEMA,
    Status,
    encode_record,
    training_key,
)
from rankstream.wire.models.training import TRAINING as UNDER_WAY
from streams.kafka.training.intervention import BEAT_S
from tests.rankstream.training_topic import (
    Looks,
    Topic,
    position,
    refused_for,
    request,
    status,
    trained_for,
)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["other"], "that is trained, or a curve, of ['m', 'n']; got 'other'"),
        ([], "that is trained, or a curve, of ['m', 'n']; got None"),
        (["m", "--verify", "0.3"], "--verify must be given with --events"),
        (["m", "--events", "x"], "--verify must be given with --events"),
    ],
)
def test_what_is_not_clear_is_refused(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anybody is asked."""
    config = tmp_path / "shop.toml"
    config.write_text(
        "".join(
            f"[models.{name}]\nfeatures = 3\nversions = 'trained'\n" for name in "mn"
        )
        + "[models.other]\nfeatures = 3\n"
    )
    assert main(["intervene", *words, "--config", str(config)]) == 2
    assert said in capsys.readouterr().err


def test_what_cannot_be_read_is_passed_over() -> None:
    """A run that cannot is refused in words."""
    kinds = ("request", "status", "position", "refusal")
    keys = [training_key(kind, "m") for kind in kinds]
    bad = [(key, value) for key in keys for value in (b"", b"\x93\x01", b"\x91\x09")]
    empty = training_key("request", "m"), msgspec.msgpack.encode([SCHEMA, "", 0])
    good = [request("own"), status(DONE, "own"), position("own"), refused_for("x")]
    found = read_trainings(Topic(*[[*good, *bad, empty]]))  # type: ignore[arg-type]
    assert found.asked == {"m": ["own"]}
    assert found.statuses["m"].state == DONE
    assert found.positions["m"].request == "own"
    assert [each.request for each in found.refused["m"]] == ["x"]
    with pytest.raises(ValueError, match=r"a run in training must be readable.*m@0\.5"):
        read_trainings(Topic([(b"m@0.5/run", b"\x93\x01")]))  # type: ignore[arg-type]


PLAN = TrainingSettings(after=[1_000, 2_000])
SETTINGS = Settings(
    models={"m": ModelSettings(features=3, versions="trained", training=PLAN)}
)


def lines_after(*records: tuple[bytes, bytes], at_ms: int = 0) -> str:
    """What is said of the model `m`."""
    found = read_trainings(Topic([*records], at_ms=at_ms))  # type: ignore[arg-type]
    standing = standing_of(SETTINGS, "m", found, Counted(1_234))
    lines = lines_of(standing)
    assert max(map(len, lines)) <= 100
    assert json.loads(json.dumps(standing.to_dict()))["model"] == "m"
    return " ".join(" ".join(lines).split())


def test_the_last_refusal_and_what_is_next_are_said() -> None:
    """With its moment, and the intervention that it came after."""
    long = "queries must be 10; got 3, of [red] " + "many words " * 20
    said = lines_after(refused_for("", "no"), refused_for("", long), position("x"))
    assert (
        "m: last refused 2025-06-15 15:06:40 UTC (by asked), after m@0.1200: " in said
    )
    assert "got 3, of [red] many words" in said
    assert "next intervention at 2,000 interactions (1,234 counted so far)" in said
    assert "refused" not in lines_after()
    assert "next intervention at 1,000 interactions" in lines_after()


def test_what_waits_what_is_under_way_and_what_is_left_alone_are_said() -> None:
    """A status that is old, by the broker's clock, says nothing of now."""
    waits = "somebody asked for a training, which is not done yet"
    assert waits in lines_after(request("own"))
    assert waits not in lines_after(request("own"), position("own"))
    now_ms = time.time_ns() // 1_000_000
    ahead = Status(SCHEMA, UNDER_WAY, "epoch 3", now_ms + 3_600_000)
    key = training_key("status", "m")
    assert "now:" not in lines_after((key, encode_record(ahead)))
    assert "m: now: training" in lines_after(status(UNDER_WAY, ""), at_ms=now_ms)
    said = lines_after(status(LEFT_ALONE, ""), position(""))
    assert said == "m: left alone: left alone"


@pytest.mark.parametrize("words", [["--list"], ["--show", "0.7"]])
def test_a_name_that_is_unknown_is_refused_with_those_that_are(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of the settings and of the topic; likewise a version."""
    config = tmp_path / "shop.toml"
    config.write_text("[models.n]\nfeatures = 3\nversions = 'trained'\n")
    monkeypatch.setattr(intervene, "TopicReader", lambda _: Topic([trained_for("")]))
    ask = ["intervene", *words, "--config", str(config)]
    assert main([*ask, "other"]) == 2
    known = "['m', 'n']" if words == ["--list"] else "['n']"
    assert f"of {known}; got 'other'" in capsys.readouterr().err
    if words == ["--list"]:
        assert main([*ask, "m", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [each["intervention"] for each in found["trainings"]] == ["m@0.1200"]
        assert [each["model"] for each in found["models"]] == ["m"]
        assert main([*ask, "n"]) == 1
        assert "n: next intervention by hand" in capsys.readouterr().out
    else:
        assert main([*ask, "n"]) == 2
        assert "a training must be one of []; got n@0.7" in capsys.readouterr().err


def beats(*said: str, ahead_ms: int = 0) -> list[tuple[bytes, bytes]]:
    """Words of a trainer, each of which says that it is at work."""
    at_ms = time.time_ns() // 1_000_000 + ahead_ms
    found = [Status(SCHEMA, UNDER_WAY, each, at_ms, "", "a/w") for each in said]
    return [(training_key("status", "m"), encode_record(each)) for each in found]


@pytest.mark.parametrize("ahead_ms", [-3_600_000, 0, 3_600_000])
def test_who_asks_while_one_is_at_work_is_refused(
    ahead_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who says nothing for three beats is dead, whatever its clock is."""
    first, alive = (beats(*said, ahead_ms=ahead_ms) for said in ("1", "12"))
    ended = [*first, status(DONE, "")]
    waits: list[str] = []

    def found(*looks: list[tuple[bytes, bytes]], most: int = 9) -> Status | None:
        topic, stop = Topic(*looks), Looks(most)
        return at_work(topic, stop, "m", lambda: waits.append("x"))  # type: ignore[arg-type]

    said = found(first, first, alive)
    assert said is not None
    assert said.said == "2"
    assert found(first, ended) is None
    assert found(first, most=3) is None
    assert len(waits) == 3
    monkeypatch.setattr(trainings, "SILENT_S", 0.0)
    assert found(first) is None
    assert found(ended) is None
    assert found([]) is None
    assert len(waits) == 4


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_dead_trainer_does_not_keep_one_from_asking(
    is_stopped: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Unless the user stopped while it was waited for its next word."""
    config, sent = tmp_path / "shop.toml", []
    config.write_text("[models.m]\nfeatures = 3\nversions = 'trained'\n")
    topic = Topic(beats("1", ahead_ms=3_600_000))
    monkeypatch.setattr(intervene, "TopicReader", lambda _: topic)
    monkeypatch.setattr(intervene, "send_records", lambda *x: sent.append(x))
    monkeypatch.setattr(trainings, "SILENT_S", 0.0)
    if is_stopped:
        monkeypatch.setattr(Stop, "asked", True)
    code = main(["intervene", "m", "--config", str(config)])
    said = capsys.readouterr().err
    assert "m: a trainer began it and did not end; waiting for its next word" in said
    assert (code, len(sent)) == ((STOPPED, 0) if is_stopped else (0, 1))
    assert ("nothing was asked for" in said) is is_stopped


def test_it_is_waited_for_three_beats() -> None:
    """One may be late."""
    assert pytest.approx(3 * BEAT_S) == trainings.SILENT_S
