"""`--plot` of commands: what is drawn, and what is refused before anything is read."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from producers.topic_reader import Record
from rankstream.operations.answers.comparisons.experiments import MOST_OF_COURSE, course
from rankstream.operations.cli import main
from rankstream.operations.commands.intervene import run as intervene
from rankstream.settings import Settings
from rankstream.wire.topics import EVALUATIONS
from rankstream.wire.verdicts import Verdict, encode_verdict
from tests.rankstream.operations.commands.test_evaluate import events, written
from tests.rankstream.operations.plots.test_pictures_of_answers import judged
from tests.rankstream.training_topic import Topic, trained_for


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log, replayed, and a file of rankings."""
    folder = tmp_path_factory.mktemp("log")
    log = written(folder / "log.jsonl", events(1_500))
    lines = [{"query_id": x, "items": [*"cbda"]} for x in ("red shoes", "green tea")]
    written(folder / "best.jsonl", lines)
    assert main(["replay", str(log), "--local", "--out", str(folder / "run")]) == 0
    return folder


def words_in(file: Path) -> set[str]:
    """Texts of an SVG."""
    root = ET.fromstring(file.read_bytes())  # noqa: S314  we made it
    return {"".join(each.itertext()) for each in root.iter()}


def test_evaluate_and_statistics_draw_beside_what_they_print(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON stays JSON, as where the picture is, is said on standard error."""
    file, local = tmp_path / "values.svg", ["--local", str(folder / "run")]
    words = ["evaluate", str(folder / "best.jsonl"), *local, "--plot", str(file)]
    assert main([*words, "--json"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("{")
    assert f"drawn: {file}" in said.err
    assert {"logged", "best", "less logged", "value"} <= words_in(file)

    file = tmp_path / "shoes.svg"
    words = ["statistics", "show", "Red  shoes", *local, "--plot", str(file)]
    assert main(words) == 0
    assert "relevance, corrected for position" in capsys.readouterr().out
    assert {"red shoes", "a", "b", "c", "corrected", "curve of bias"} <= words_in(file)


def test_a_query_without_a_curve_is_drawn_as_it_was_counted(tmp_path: Path) -> None:
    """A curve of one list tells nothing; the picture is there, and the status is 1."""
    log = written(tmp_path / "one.jsonl", events(3))
    out, file = tmp_path / "run", tmp_path / "one.png"
    assert main(["replay", str(log), "--local", "--out", str(out)]) == 0
    words = ["statistics", "show", "red shoes", "--local", str(out)]
    assert main([*words, "--plot", str(file)]) == 1
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["values.pdf", "values", "values.svg.gz"])
def test_an_unknown_ending_is_refused_with_those_that_are_known(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before a log is looked for."""
    with pytest.raises(SystemExit):
        main(["evaluate", "x.jsonl", "--local", "nowhere", "--plot", name])
    assert "must end in .svg or .png" in capsys.readouterr().err


def test_without_what_draws_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, before anything is read."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["evaluate", "x.jsonl", "--local", "nowhere", "--plot", "a.svg"]) == 2
    said = capsys.readouterr().err
    assert "pip install 'rankstream[plots]'" in said
    assert len(said.splitlines()) == 1


SHOP = "[models.m]\nfeatures = 3\nversions = 'trained'\n"


@pytest.mark.parametrize(
    ("words", "titles"),
    [
        (["--list"], {"1 intervention", "m, parent", "event time (UTC)"}),
        (["--show", "0.1200"], {"m@0.1200", "estimated DCG of held-out queries"}),
    ],
)
def test_trainings_that_are_shown_are_drawn(
    words: list[str], titles: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them by event time, and one by its epochs."""
    config, file = tmp_path / "shop.toml", tmp_path / "all.svg"
    config.write_text(SHOP)
    monkeypatch.setattr(intervene, "TopicReader", lambda _: Topic([trained_for("own")]))
    call = ["intervene", *words, "--plot", str(file), "--config", str(config)]
    assert main(call) == 0
    assert titles <= words_in(file)


@pytest.mark.parametrize(
    "words", [[], ["--verify", "0.1200", "--events", "x", "--list"]]
)
def test_what_shows_no_training_draws_none(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody is asked for one either."""
    config = tmp_path / "shop.toml"
    config.write_text(SHOP)
    call = ["intervene", *words, "--plot", "a.svg", "--config", str(config)]
    assert main(call) == 2
    assert "--plot must go with --list, --show or --wait" in capsys.readouterr().err


class Evaluations:
    """Records of `evaluations`."""

    def __init__(self, records: list[tuple[bytes, bytes | None]]) -> None:
        self._records = records

    def __call__(self, _: Settings) -> "Evaluations":
        """Where `TopicReader` is built."""
        return self

    def __enter__(self) -> "Evaluations":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def partitions(self, topic: str) -> list[int]:
        """Of `TopicReader`."""
        assert topic == EVALUATIONS
        return [0] if self._records else []

    def records(self, topic: str) -> list[Record]:
        """Of `TopicReader`."""
        assert topic == EVALUATIONS
        return [
            Record(0, place, 0, *each, ()) for place, each in enumerate(self._records)
        ]


def test_the_course_of_an_experiment_is_of_its_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Oldest first, the last verdict once; of very many every second one."""

    def course_of(*records: tuple[bytes, bytes | None], last: int = 90) -> list[int]:
        monkeypatch.setattr(
            "producers.topic_reader.TopicReader", Evaluations([*records])
        )
        found = course(Settings(), judged(last))
        return [each.drawn_by.impressions for each in found]

    def record(found: Verdict, key: bytes = b"boost") -> tuple[bytes, bytes]:
        return key, encode_verdict(found)

    assert course_of() == [90]
    other = record(judged(20), b"other")
    strange = (b"boost", b"{"), (b"boost", None)
    own = [record(judged(n)) for n in (30, 60, 90)]
    assert course_of(own[0], other, *strange, *own[1:]) == [30, 60, 90]
    assert course_of(*own[:2]) == [30, 60, 90]
    n = 3 * MOST_OF_COURSE
    many = course_of(*(record(judged(x)) for x in range(n)), last=n)
    assert MOST_OF_COURSE // 4 < len(many) <= MOST_OF_COURSE + 1
    assert many == sorted(many)
    assert many[-1] == n
