"""`rankstream intervene` without a broker: what is meant, and how a run is shown."""

import json
from pathlib import Path

import msgspec
import pytest

from producers.topic_reader import Record
from rankstream.cli import main
from rankstream.commands.intervene import ALIVE_MS, _at_work, _followed, _read
from rankstream.commands.intervene_tables import as_builtins, print_runs
from rankstream.commands.intervene_verify import Verdict, told_of
from rankstream.wire.topics import TRAINING
from rankstream.wire.training import (
    DONE,
    SCHEMA,
    CurveUsed,
    FeaturesUsed,
    Parent,
    Request,
    RunRecord,
    Sizes,
    Status,
    encode_record,
    training_key,
)
from rankstream.wire.training import TRAINING as UNDER_WAY

RUN = RunRecord(
    schema=SCHEMA, model="m", intervention="m@0.1200", epoch=0, version=1_200,
    created_ms=1_750_000_000_000, reason="count", counts=[(0, 700), (1, 500)],
    watermarks=[(0, 1_750_000_000_000), (1, None)],
    features=FeaturesUsed(40, b"\x01\x02"), settings={"features": 3},
    split_shares=[0.65, 0.15, 0.2], seed=0, parent=Parent(0, 0, b"\x03"),
    curve=CurveUsed([1.0], [0.0], False, "given", [], b"\x04"), groups=[0, 1],
    sizes=Sizes(30, 10, 200, 7, 0.01, 2, 0, 90), epochs=[(0, 0.9, 1.2), (1, 0.8, 1.3)],
    best_epoch=1, scale=0.5, temperature=2.0, least_exposure=0.125, reward=None,
    reward_reason="the selection groups have no lists", sha256=b"\x05",
)  # fmt: skip


def test_a_run_is_a_row_and_json_with_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its reason for having no reward is below the table."""
    print_runs([RUN], as_json=False)
    said = capsys.readouterr().out
    for words in (
        "1 training", "m@0.1200", "1,200", "2025-06-15T15:06:40+00:00", "7 of 200",
        "1 of 1", "1.2000 to 1.3000", "m@0.1200: the selection groups have no lists",
    ):  # fmt: skip
        assert words in said, words
    print_runs([RUN], as_json=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert row == json.loads(json.dumps(as_builtins(RUN)))
    assert row["parent"] == {"epoch": 0, "version": 0, "sha256": "03"}
    assert row["sizes"]["n_below"] == 7


def test_a_curve_that_is_not_well_known_is_said_below_the_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By the name of each training that used it."""
    print_runs([RUN], as_json=False)
    assert "not well known" not in capsys.readouterr().out
    warning = "examination is not well known at rank 2: no clicks"
    curve = msgspec.structs.replace(RUN.curve, warning=warning)
    print_runs([msgspec.structs.replace(RUN, curve=curve)], as_json=False)
    assert f"m@0.1200: {warning}" in capsys.readouterr().out


def test_a_verdict_says_what_differs() -> None:
    """Or that nothing does."""
    equal = Verdict("m@0.3", b"a" * 32, b"a" * 32, [])
    other = Verdict("m@0.3", b"a" * 32, b"b" * 32, ["weights differ by 0.1 at most"])
    assert told_of(equal, as_json=False).startswith("m@0.3: equal bytes, sha256 6161")
    assert told_of(other, as_json=False) == (
        "m@0.3: NOT equal\n  weights differ by 0.1 at most"
    )
    assert json.loads(told_of(other, as_json=True))["is_equal"] is False


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["other"], "a model must be one whose learner is 'trained', of ['m', 'n']"),
        ([], "a model must be one whose learner is 'trained', of ['m', 'n']; got None"),
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
            f"[models.{name}]\nfeatures = 3\nlearner = 'trained'\n" for name in "mn"
        )
        + "[models.other]\nfeatures = 3\n"
    )
    assert main(["intervene", *words, "--config", str(config)]) == 2
    assert said in capsys.readouterr().err


class Topic:
    """Records of `training`, more at each look."""

    def __init__(self, *looks: list[tuple[bytes, bytes]]) -> None:
        self._looks = list(looks)

    def records(self, topic: str) -> list[Record]:
        """Of `TopicReader`."""
        assert topic == TRAINING
        look = self._looks.pop(0) if self._looks[1:] else self._looks[0]
        return [
            Record(0, place, 0, key, value, ())
            for place, (key, value) in enumerate(look)
        ]


class Looks:
    """A stop that is asked for after so many looks."""

    def __init__(self, most: int) -> None:
        self._most = most

    @property
    def asked(self) -> bool:
        """Whether it was."""
        return self._most <= 0

    def wait(self, _: float) -> None:
        """No time."""
        self._most -= 1


def request(name: str, at_ms: int = 5) -> tuple[bytes, bytes]:
    """Of the model `m`."""
    return training_key("request", "m"), encode_record(Request(SCHEMA, name, at_ms))


def status(state: str, asked: str) -> tuple[bytes, bytes]:
    """Of the model `m`."""
    record = Status(SCHEMA, state, state, 0, asked)
    return training_key("status", "m"), encode_record(record)


THE_RUN = training_key("run", RUN.intervention), encode_record(RUN)
DONE_OF_IT = [request("own"), THE_RUN, status(DONE, "own")]


@pytest.mark.parametrize("before", [[], [request("older", 9)]])
def test_a_request_that_is_not_seen_yet_is_waited_for(
    before: list[tuple[bytes, bytes]], capsys: pytest.CaptureFixture[str]
) -> None:
    """As while a transaction is open: whatever clocks say, nobody asked again."""
    topic = Topic(before, before, [*before, request("own")], [*before, *DONE_OF_IT])
    own = Request(SCHEMA, "own", 5)
    assert _followed(topic, Looks(9), "m", own) == RUN  # type: ignore[arg-type]
    assert "asked again" not in capsys.readouterr().err


@pytest.mark.parametrize("is_compacted", [False, True])
def test_who_is_asked_after_is_told(
    is_compacted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where the topic keeps only the last request by then."""
    later = [request("later", 1)]
    first = [request("own")]
    topic = Topic(first, later if is_compacted else first + later)
    own = Request(SCHEMA, "own", 5)
    assert _followed(topic, Looks(9), "m", own) is None  # type: ignore[arg-type]
    assert "somebody asked again" in capsys.readouterr().err


def test_requests_and_status_that_cannot_be_read_are_passed_over() -> None:
    """A run that cannot is refused in words."""
    keys = [training_key(kind, "m") for kind in ("request", "status")]
    bad = [(key, value) for key in keys for value in (b"", b"\x93\x01", b"\x91\x09")]
    empty = training_key("request", "m"), msgspec.msgpack.encode([SCHEMA, "", 0])
    found = _read(Topic([*bad, empty, *DONE_OF_IT]))  # type: ignore[arg-type]
    assert found.asked == {"m": ["own"]}
    assert found.statuses["m"].state == DONE
    with pytest.raises(ValueError, match=r"a run in training must be readable.*m@0\.5"):
        _read(Topic([(b"m@0.5/run", b"\x93\x01")]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "age_ms", "is_refused"),
    [
        (UNDER_WAY, ALIVE_MS - 1_000, True),
        (UNDER_WAY, ALIVE_MS + 1_000, False),
        (DONE, 0, False),
    ],
)
def test_who_asks_while_one_is_at_work_is_refused(
    state: str, age_ms: int, is_refused: bool
) -> None:
    """Unless it has said nothing for long: it is dead, and the next one is asked."""
    said = Status(SCHEMA, state, "epoch 3", 1_000_000 - age_ms)
    assert (_at_work(said, 1_000_000) is not None) is is_refused
    assert _at_work(None, 1_000_000) is None
