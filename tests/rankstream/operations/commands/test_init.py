"""`rankstream init`: settings that are valid, explained, and never overwritten."""

import itertools
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from rankstream.operations.answers.installation.new_settings import (
    EVENTS,
    GOALS,
    NO_KAFKA,
    Wishes,
    next_steps,
    settings_text,
)
from rankstream.operations.cli import main, parser_for
from rankstream.settings import KafkaSettings, Settings, load_settings
from tests.worker_process import PATIENCE_S

ALL = [
    Wishes(*each)
    for each in itertools.product(("broker:9092", NO_KAFKA), EVENTS, GOALS)
]


def loaded(text: str, folder: Path) -> Settings:
    """The settings of a file of this text, as its programs read them."""
    file = folder / "settings.toml"
    file.write_text(text)
    return msgspec.structs.replace(load_settings(file, {}), file="")


@pytest.mark.parametrize("wishes", ALL, ids=str)
def test_settings_are_valid_and_comments_are_their_defaults(
    wishes: Wishes, tmp_path: Path
) -> None:
    """To take the # away from all settings changes none."""
    text = settings_text(wishes)
    settings = loaded(text, tmp_path)
    uncommented, number = re.subn(r"(?m)^# (?=\w+ = )", "", text)
    assert number > 10
    assert loaded(uncommented, tmp_path) == settings
    assert all(len(line) <= 88 for line in text.splitlines())


@pytest.mark.parametrize("wishes", ALL, ids=str)
def test_settings_have_what_was_wished(wishes: Wishes, tmp_path: Path) -> None:
    """And nothing of Kafka where there is none."""
    text = settings_text(wishes)
    settings = loaded(text, tmp_path)
    is_on_kafka = wishes.kafka != NO_KAFKA
    assert ("[kafka]" in text) == is_on_kafka
    if is_on_kafka:
        assert settings.kafka.bootstrap == "broker:9092"
    assert bool(settings.sources) == (is_on_kafka and wishes.events != "own")
    assert bool(settings.formats) == (not is_on_kafka)
    assert bool(settings.models) == (wishes.goal == "learn")
    assert bool(settings.experiments) == (wishes.goal == "compare")


def test_a_section_is_explained_by_its_docstring() -> None:
    """Which stands above it."""
    text = settings_text(ALL[0])
    said = " ".join(line.removeprefix("# ") for line in text.splitlines())
    told = " ".join((KafkaSettings.__doc__ or "").split())
    assert f"{told} [kafka] bootstrap" in said


@pytest.mark.parametrize("wishes", ALL, ids=str)
def test_what_comes_next_are_commands(wishes: Wishes) -> None:
    """Each is parsed as it stands."""
    for step in next_steps(wishes, Path("shop.toml")):
        program, *words = step.split()
        assert program == "rankstream"
        assert parser_for(words).parse_args(words).config == Path("shop.toml")


def test_a_file_that_is_there_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever is in it."""
    file = tmp_path / "shop.toml"
    words = ["init", str(file), "--kafka", "none", "--events", "ubi", "--goal", "count"]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["file"] == str(file)
    assert all(step.startswith("rankstream ") for step in found["next"])
    file.write_text("mine")
    assert main(words) == 2
    assert "must not be overwritten" in capsys.readouterr().err
    assert file.read_text() == "mine"


def test_without_a_terminal_all_must_be_said(tmp_path: Path) -> None:
    """It does not wait for an answer that nobody can give."""
    said = subprocess.run(
        [sys.executable, "-m", "rankstream", "init", str(tmp_path / "shop.toml")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert said.returncode == 2
    assert "without a terminal --kafka, --events, --goal must be given" in said.stderr
    assert "--kafka is missing" in said.stderr
    assert [*tmp_path.iterdir()] == []


def test_a_terminal_is_asked_for_what_was_not_said(tmp_path: Path) -> None:
    """Again where the answer is none; nothing means the default."""
    ours, theirs = pty.openpty()
    file = tmp_path / "shop.toml"
    asked = subprocess.Popen(
        [sys.executable, "-m", "rankstream", "init", str(file), "--events", "metarank"],
        stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.write(ours, b"\nlaern\nlearn\n")
    out, err = asked.communicate(timeout=PATIENCE_S)
    os.close(ours)
    os.close(theirs)
    assert asked.returncode == 0, err
    assert b"Where is Kafka?" in err
    assert b"What do lists" not in err
    assert b"'laern' is none of them; did you mean learn?" in err
    assert out.startswith(f"{file} was written".encode())
    settings = load_settings(file, {})
    assert settings.kafka.bootstrap == KafkaSettings().bootstrap
    assert [*settings.sources] == ["metarank"]
    assert [*settings.models] == ["search"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--goal", "learn", "--features", "0"], "models.search.features"),
        (["--goal", "count", "--namespace", "a b"], "namespace must hold letters"),
        (["--goal", "count", "--config", "x"], "leave out --config"),
    ],
)
def test_settings_that_cannot_be_are_not_written(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They are refused as all commands refuse them."""
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--kafka", "a:1", "--events", "own", *words]) == 2
    assert said in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []
