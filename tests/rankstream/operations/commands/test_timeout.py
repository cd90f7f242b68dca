"""`--timeout`: who waits for too long ends, with a status of its own, and says so."""

import json
import threading
from pathlib import Path

import pytest

from producers.patience import TimedOut, check_patience, left_s, patience
from producers.readiness import Waiting
from rankstream.operations.cli import WAITING, main
from tests.services import KafkaService

NOWHERE = "127.0.0.1:1"
KAFKA, REDIS = f"Kafka at {NOWHERE}", f"Redis at redis://{NOWHERE}/0"

CALLS = {
    "backup": (["copy"], KAFKA),
    "decisions": (["list"], KAFKA),
    "dlq": (["count"], KAFKA),
    "dump": (["log.dump"], KAFKA),
    "erase": (["--user", "u"], KAFKA),
    "evaluate": (["search"], KAFKA),
    "experiments": (["list"], REDIS),
    "export": (["--arrays", "log.npz"], KAFKA),
    "feed": (["click.jsonl"], KAFKA),
    "intervene": (["--list"], KAFKA),
    "recount": ([], KAFKA),
    "replay": (["click.jsonl"], KAFKA),
    "restore": (["copy"], KAFKA),
    "simulate": (["--model", "search"], REDIS),
    "snapshots": (["list"], REDIS),
    "statistics": (["list"], KAFKA),
    "topics": (["create"], KAFKA),
}


def test_each_command_that_waits_is_tried() -> None:
    """A new one needs a call here."""
    assert CALLS.keys() == WAITING


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_wait_ends_where_the_time_is_up(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With what was waited for and what goes on, and nothing on standard output."""
    words, service = CALLS[name]
    click = '{"impression_id": "i", "query_id": "q", "at_ms": 5, "position": 1}\n'
    (tmp_path / "click.jsonl").write_text(click)
    (tmp_path / "away.toml").write_text(
        f'[kafka]\nbootstrap = "{NOWHERE}"\n[redis]\nurl = "redis://{NOWHERE}/0"\n'
        "[models.search]\nfeatures = 16\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main([name, *words, "--config", "away.toml", "--timeout", "0"]) == 124
    told = capsys.readouterr()
    assert f"rankstream {name}: waited 0 s for {service}" in told.err
    assert "what was done before stands" in told.err
    assert told.out == ""


def test_a_training_that_nobody_makes_goes_on_without_us(
    kafka: KafkaService,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What was asked for is asked for; the command says so, and ends."""
    file = tmp_path / "shop.toml"
    file.write_text(
        f'namespace = "{namespace}"\n[kafka]\nbootstrap = "{kafka.bootstrap}"\n'
        '[models.m]\nfeatures = 2\nversions = "trained"\n'
    )
    own = ["--config", str(file)]
    assert main(["topics", "create", *own]) == 0
    assert main(["intervene", "m", "--wait", "--timeout", "10", *own]) == 124
    told = capsys.readouterr().err
    assert "waited 10 s for the training of 'm', as long as --timeout says" in told
    assert "it goes on without us: `rankstream intervene --list` tells of it" in told
    assert main(["intervene", "--list", "--json", *own]) == 1
    (standing,) = json.loads(capsys.readouterr().out)["models"]
    assert standing["is_asked"]


def test_one_bound_holds_for_all_waits_of_a_command() -> None:
    """And for nobody else: neither before nor after, nor in other threads."""
    left: list[float] = []
    with patience(0.0):
        assert left_s() == 0.0
        with pytest.raises(TimedOut, match="waited 0 s for bread, as long as"):
            Waiting().waits("bread")
        thread = threading.Thread(target=lambda: left.append(left_s()))
        thread.start()
        thread.join()
    assert left == [float("inf")]
    check_patience("bread")
    with patience(None):
        check_patience("bread")
    with patience(1_000.0):
        assert 0.0 < left_s() <= 1_000.0
    assert left_s() == float("inf")


@pytest.mark.parametrize("told", ["-1", "soon", "nan", "inf"])
def test_a_time_is_seconds(told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What else is said is refused."""
    with pytest.raises(SystemExit, match="2"):
        main(["topics", "check", f"--timeout={told}"])
    assert f"must be seconds, 0 or more; got {told}" in capsys.readouterr().err


def test_an_inner_bound_lengthens_no_outer_one() -> None:
    """The one that ends first holds; after the inner one the outer one again."""
    with patience(60.0):
        with patience(900.0):
            assert left_s() <= 60.0
        with patience(0.0), pytest.raises(TimedOut, match="waited 0 s for x"):
            check_patience("x")
        assert 0.0 < left_s() <= 60.0
