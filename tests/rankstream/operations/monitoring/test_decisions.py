"""Rules of decisions in the monitor: the newest rewrite of each."""

from pathlib import Path

from rankstream.operations.monitoring.overview import Gathered
from rankstream.wire.decisions import Manifest, encode_manifest, manifest_key
from tests.decision_factory import rewrite
from tests.rankstream.operations.monitoring.test_monitoring import printed
from tests.rankstream.operations.monitoring.test_page_in_chromium import EVIL, asked


def taken(gathered: Gathered, made: Manifest) -> None:
    """Hand over a rewrite."""
    gathered.take_decisions(manifest_key(made.name), encode_manifest(made))


def test_the_newest_rewrite_of_each_rule_is_shown() -> None:
    """Until it is removed; what is no rewrite changes nothing."""
    gathered = Gathered()
    taken(gathered, rewrite(intervention="rule@1.900").manifest)
    taken(gathered, rewrite(2, intervention="rule@2.1000", n_left_out=1_234).manifest)
    number = gathered.overview()["number"]
    for key, value in (*rewrite(3).records[:-1], (b"no key", b"")):
        gathered.take_decisions(key or b"", value)
    gathered.take_decisions(manifest_key("other"), b"no rewrite")
    assert gathered.overview()["number"] == number
    (line,) = [x for x in printed(gathered).splitlines() if "rule@2.1000" in x]
    for figure in ("m@0.1", "1,234", "2023-11-14 22:13:20"):
        assert figure in line
    assert "No verdict yet" not in printed(gathered)
    gathered.take_decisions(manifest_key("rule"), None)
    assert gathered.overview()["decisions"] == []


def test_a_browser_shows_it_whatever_its_name(tmp_path: Path) -> None:
    """Names are text there."""
    gathered = Gathered()
    withdrawn = rewrite(1, {}, name=EVIL, intervention="", n_decisions=0)
    taken(gathered, withdrawn.manifest)
    questions = [
        "document.querySelector('#decisions tbody th').textContent",
        "document.querySelector('#decisions tbody td').textContent",
        "!document.querySelector('#decided').hidden",
    ]
    assert asked(gathered, questions, tmp_path) == [EVIL, "withdrawn", True]
