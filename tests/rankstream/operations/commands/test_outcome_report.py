"""How feed and replay end: counts, commands that say more, and the status."""

import argparse
from collections import Counter
from pathlib import Path

import pytest

from producers.formats.adapted import Adapted
from producers.outcomes import Outcomes
from rankstream.operations.cli import main
from rankstream.operations.commands.options.files import add_columns
from rankstream.operations.commands.options.outcomes import lines_of
from rankstream.operations.recorded_log import lines_of_adapted
from rankstream.settings import Settings

NOW_MS = 1_733_788_889_378
QUERY = (
    f'{{"query_id": "l1", "user_query": "red", "timestamp": {NOW_MS}, '
    '"query_response_hit_ids": ["a", "b"]}\n'
)
CLICK = (
    f'{{"action_name": "click", "query_id": "l1", "timestamp": {NOW_MS + 9}, '
    '"event_attributes": {"object": {"object_id": "a"}, "position": {"ordinal": 1}}}\n'
)


def test_nothing_is_said_where_nothing_was_lost() -> None:
    """A clean run is quiet."""
    assert Outcomes().is_clean
    assert lines_of(Outcomes(), Settings()) == []
    assert lines_of_adapted(Adapted(), "ubi") == []


def test_what_was_lost_is_counted_with_the_command_that_shows_it() -> None:
    """In the namespace that it was sent to."""
    outcomes = Outcomes(
        letters=Counter({"not-adapted": 2, "malformed": 1}),
        set_aside=Counter(late=1),
        n_unread=1_000,
    )
    lines = lines_of(outcomes, Settings(namespace="shop", file="shop.toml"))

    assert not outcomes.is_clean
    assert lines == [
        "3 dead letters: 2 not-adapted, 1 malformed; see "
        "`rankstream dlq list --config shop.toml --namespace shop`",
        "late or without a list, of all senders: 1 event (1 late)",
        "not read by ingestion yet: 1,000 records; "
        "`rankstream dlq count --config shop.toml --namespace shop` will tell of them",
    ]


@pytest.mark.parametrize(
    ("outcomes", "says"),
    [
        (Outcomes(n_unjoined=7, may_wait=True), "not joined yet, of all senders: 7"),
        (Outcomes(may_wait=True), "cannot be told yet: the last clicks may wait"),
    ],
)
def test_what_is_not_judged_yet_is_no_clean_end(outcomes: Outcomes, says: str) -> None:
    """Nobody takes silence for a success."""
    (line,) = lines_of(outcomes, Settings())
    assert line.startswith(says)
    assert line.endswith("`rankstream dlq count` will tell of them")
    assert not outcomes.is_clean


@pytest.mark.parametrize(
    ("content", "words", "status"),
    [
        (QUERY + CLICK, ["--strict"], 0),
        (QUERY + CLICK + CLICK, ["--strict"], 0),
        (QUERY + CLICK + CLICK.replace(": 1}", ": 0}"), [], 0),
        (QUERY + CLICK.replace(": 1}", ": 0}"), [], 1),
        (QUERY + CLICK.replace(": 1}", ": 0}"), ["--strict"], 1),
        (QUERY + CLICK.replace(": 1}", ": 2}"), ["--strict"], 1),
        (QUERY + CLICK.replace("l1", "l2"), ["--strict", "--option", "query=id"], 1),
        (
            QUERY + CLICK.replace(str(NOW_MS + 9), str(NOW_MS + 600_000)),
            ["--strict"],
            1,
        ),
    ],
)
def test_strict_makes_a_loss_the_status_of_a_local_replay(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: str,
    words: list[str],
    status: int,
) -> None:
    """Refused, not shown, without a list or late; a repeat is no loss.

    Where no click was applied at all it is so without being asked.
    """
    path = tmp_path / "log.ndjson"
    path.write_text(content)

    assert main(["replay", str(path), "--local", "--format", "ubi", *words]) == status

    assert ("not applied: " in capsys.readouterr().err) == (
        "--strict" not in words or status == 1
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["feed", "--format", "ubi", "--kind", "click"], "--kind must be auto"),
        (["feed", "--option", "ordinal_base=0"], "--option must come with --format"),
        (["feed", "--format", "ubi", "--option", "base=0"], "ordinal_base"),
        (["feed", "--format", "ubi", "--option", "base"], "NAME=VALUE"),
        (["replay", "log", "--local", "--columns", "sku=a"], "--columns must be"),
        (["replay", "log", "--local", "--columns", "item"], "--columns must be"),
    ],
)
def test_options_that_cannot_be_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    says: str,
) -> None:
    """Before anything is read or sent."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").write_text("{}")
    assert main(words) == 2
    assert says in capsys.readouterr().err


def test_a_table_is_called_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where nobody said so."""
    path = tmp_path / "shown.csv"
    path.write_text(f"impression,item,at,clicked\ni,a,{NOW_MS},1\n")
    assert main(["replay", str(path), "--local"]) == 0
    assert "1 document of csv" in capsys.readouterr().err


def test_columns_that_are_told_in_turn_add_up() -> None:
    """As options of formats do."""
    parser = argparse.ArgumentParser()
    add_columns(parser)
    words = ["--columns", "item=sku,at=when", "--columns", "query=words"]
    assert parser.parse_args(words).columns == "item=sku,at=when,query=words"
