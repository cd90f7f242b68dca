"""Names in the terminal: neither commands of it nor markup, whoever chose them."""

import io
from typing import Any

import msgspec
import pytest
from rich.console import Console

from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.terminal import view_of
from rankstream.wire.decisions import encode_manifest, manifest_key
from rankstream.wire.models.canary_reports import encode_report
from tests import monitored
from tests.decision_factory import rewrite

COMMANDS = "\x1b[2J", "\x1b]0;", "\x07", "\u202e"

EVIL = "".join(COMMANDS)

SECTIONS = (
    "snapshots", "canaries", "examination", "interventions", "curves", "decisions",
    "values",
)  # fmt: skip


def shown(gathered: Any) -> str:
    """What the terminal is sent, colours and all."""
    file = io.StringIO()
    Console(file=file, force_terminal=True, width=200).print(view_of(gathered))
    return file.getvalue()


def ended(value: Any, end: str) -> Any:
    """All texts of it, but states, with this behind them."""
    if isinstance(value, dict):
        return {k: v if k == "state" else ended(v, end) for k, v in value.items()}
    if isinstance(value, list):
        return [ended(each, end) for each in value]
    return value + end if isinstance(value, str) else value


@pytest.mark.parametrize("end", [EVIL, "[/bold]"])
@pytest.mark.parametrize("section", SECTIONS)
def test_no_text_of_the_overview_is_a_command_or_markup(
    section: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part of it, as if whoever wrote the topic was hostile."""
    gathered = monitored.full()
    overview = msgspec.json.decode(msgspec.json.encode(gathered.overview()))
    overview[section] = ended(overview[section], end)
    monkeypatch.setattr(gathered, "overview", lambda: overview)
    screen = shown(gathered)
    assert not [each for each in COMMANDS if each in screen]


@pytest.mark.parametrize("n_rankers", [2, 3])
def test_names_of_rankers_are_text(n_rankers: int) -> None:
    """In the matrix, in the pairs and in the sentence."""
    names = (EVIL + "new", "[/bold]", "old")[:n_rankers]
    gathered = Gathered()
    worth = (0.3, 0.2, 0.1)[:n_rankers]
    found = monitored.verdict_at(900, "x", names, worth)
    gathered.take_verdict(msgspec.json.encode(found))
    screen = shown(gathered)
    assert not [each for each in COMMANDS if each in screen]
    assert "\\x1b[2J" in screen
    assert "[/bold]" in screen


def test_names_of_models_rules_and_canaries_may_have_brackets() -> None:
    """`[/bold]` is a name like any other."""
    end = "[/bold]"
    gathered = Gathered()
    gathered.set_snapshots([monitored.snapshot(f"s{EVIL}{end}", 5, 1)])
    report = msgspec.structs.replace(monitored.canary(1), canary=f"c@1.2{end}")
    gathered.take_verdict(encode_report(report))
    made = msgspec.structs.replace(
        rewrite().manifest, name=f"r{end}", intervention=f"i{end}"
    )
    gathered.take_decisions(manifest_key(made.name), encode_manifest(made))
    screen = shown(gathered)
    assert not [each for each in COMMANDS if each in screen]
    for name in (f"c@1.2{end}", f"r{end}", f"i{end}"):
        assert name in screen
