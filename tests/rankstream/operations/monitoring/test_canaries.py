"""What is going out, in the monitor: a row for each quantity, and the judgement."""

from pathlib import Path

import msgspec

from rankstream.operations.monitoring.overview import Gathered
from rankstream.wire.models.canary_reports import (
    OUT,
    CanaryDifference,
    CanaryReport,
    encode_report,
)
from tests.rankstream.operations.monitoring.test_monitoring import printed
from tests.rankstream.operations.monitoring.test_page_in_chromium import EVIL, asked

REPORT = CanaryReport(
    model="search",
    canary="search@3.1000",
    before="2.900",
    state=OUT,
    stage=2,
    stages=4,
    share=0.05,
    at_ms=0,
    canary_lists=1_234,
    served_lists=23_000,
    needed=0,
    planned=5_000,
    differences=[
        CanaryDifference(name="clicks", mean=0.0123, interval=(-0.02, 0.05)),
        CanaryDifference(name="without click", mean=None, interval=(None, None)),
    ],
    largest_loss=0.25,
    words="neither 0 nor -0.05 is excluded",
)


def test_each_quantity_has_a_row_and_the_judgement_follows() -> None:
    """With the share, how far it is, and the largest loss."""
    gathered = Gathered()
    assert gathered.overview()["canaries"] == []
    gathered.take_verdict(encode_report(REPORT))
    said = printed(gathered)
    (clicks,) = [line for line in said.splitlines() if "search@3.1000" in line]
    for figure in (
        "2.900", "5 % (2 of 4)", "1,234", "25 %", "clicks", "+0.0123",
        "-0.0200 to +0.0500", "0.250",
    ):  # fmt: skip
        assert figure in clicks
    (without,) = [line for line in said.splitlines() if "without click" in line]
    assert without.split()[-2:] == ["-", "-"]
    assert "search: going out, neither 0 nor -0.05 is excluded" in said
    assert "No verdict yet" not in said


def test_the_last_report_of_a_model_counts() -> None:
    """And what became of it stays to be seen."""
    gathered = Gathered()
    gathered.take_verdict(encode_report(REPORT))
    number = gathered.overview()["number"]
    gathered.take_verdict(encode_report(REPORT))
    assert gathered.overview()["number"] == number
    ended = msgspec.structs.replace(REPORT, state="canary withdrawn", words="worse")
    gathered.take_verdict(encode_report(ended))
    assert gathered.overview()["number"] == number + 1
    assert [each["state"] for each in gathered.overview()["canaries"]] == [
        "canary withdrawn"
    ]
    assert "search: canary withdrawn, worse" in printed(gathered)


def test_the_page_draws_each_quantity_and_escapes_names(tmp_path: Path) -> None:
    """What is worse is marked, whichever end is the bad one."""
    gathered = Gathered()
    gathered.take_verdict(encode_report(msgspec.structs.replace(REPORT, canary=EVIL)))
    worse = msgspec.structs.replace(
        REPORT,
        model="shop",
        state="canary withdrawn",
        differences=[
            CanaryDifference(name="clicks", mean=-0.5, interval=(-0.7, -0.3)),
            CanaryDifference(name="without click", mean=0.2, interval=(0.1, 0.3)),
            CanaryDifference(name="order", mean=0.2, interval=(0.1, 0.3)),
        ],
    )
    gathered.take_verdict(encode_report(worse))
    questions = [
        "document.querySelectorAll('#canaries tbody tr').length",
        "document.querySelectorAll('#canaries .worse').length",
        "document.querySelector('#canaries tbody th').textContent",
        "document.querySelector('#judged li.alarm').textContent",
        "!document.querySelector('#out').hidden",
    ]
    assert asked(gathered, questions, tmp_path) == [
        5, 2, EVIL, "shop: canary withdrawn, neither 0 nor -0.05 is excluded", True,
    ]  # fmt: skip
