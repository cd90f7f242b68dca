"""Rules, dashboard and page of alerts: as the table says, and each alert fires."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from docs.alerting.files import FILES, PAGE, ROWS, alerts, anchor_of, rules
from docs.alerting.table import Row
from docs.reference import metrics
from tests.documented_blocks import TREE
from tests.pages import rows_below
from tests.prometheus import program

OF_PROMETHEUS = {"up", "process_cpu_seconds_total", "process_resident_memory_bytes"}


class Fault(NamedTuple):
    """What series show while all is well, and while an alert is to fire.

    In each minute; counters grow by so much. What is absent is not there while bad.
    """

    series: str
    well: float
    bad: float
    is_counter: bool = False
    beside: str = ""
    alike: str = ""
    is_absent: bool = False


FAULTS = {
    "RankstreamDown": Fault('up{job="rankstream"}', 1, 0),
    "RankstreamUnwatched": Fault('up{job="rankstream"}', 1, 0, is_absent=True),
    "RankstreamGone": Fault(
        'rankstream_ready{job="rankstream",role="fold"}', 1, 0, is_absent=True
    ),
    "RankstreamNotReady": Fault('rankstream_ready{role="fold"}', 1, 0),
    "RankstreamLag": Fault('rankstream_lag_seconds{stage="fold"}', 1, 400),
    "RankstreamCommitsSlow": Fault(
        'rankstream_commit_duration_seconds_bucket{stage="fold",le="60.0"}', 0, 9, True,
        alike='rankstream_commit_duration_seconds_bucket{stage="fold",le="+Inf"}',
    ),
    "RankstreamClockDiffers": Fault(
        'rankstream_clock_difference_seconds{stage="fold"}', 0, -45
    ),
    "RankstreamLateEvents": Fault(
        "rankstream_late_total", 0, 20, True, 'rankstream_consumed_total{stage="fold"}'
    ),
    "RankstreamOrphanClicks": Fault(
        "rankstream_orphan_total", 0, 90, True,
        'rankstream_consumed_total{stage="fold"}',
    ),
    "RankstreamDeadLetters": Fault(
        "rankstream_dead_letter_total", 0, 9, True,
        'rankstream_consumed_total{stage="ingest-clicks"}',
    ),
    "RankstreamRedisAway": Fault('rankstream_redis_up{role="publish"}', 1, 0),
    "RankstreamRedisRefuses": Fault("rankstream_publish_failures_total", 0, 3, True),
    "RankstreamSnapshotsRejected": Fault(
        "rankstream_snapshots_rejected_total", 0, 1, True
    ),
    "RankstreamTrainerRefused": Fault(
        'rankstream_trainings_total{outcome="refused",model="m"}', 0, 1, True
    ),
    "RankstreamDecisionsRefused": Fault(
        'rankstream_decision_rewrites_total{outcome="refused"}', 0, 1, True
    ),
    "RankstreamGuardrail": Fault(
        'rankstream_canary_changes_total{outcome="withdrawn",model="m"}', 0, 1, True
    ),
    "RankstreamExperimentAlarm": Fault(
        'rankstream_experiment_health{experiment="e",check="join rate"}', 1, 2
    ),
    "RankstreamServeErrors": Fault(
        'rankstream_serve_answers_total{status="503"}', 0, 30, True,
        'rankstream_serve_answers_total{status="200"}',
    ),
    "RankstreamServeEventsLost": Fault(
        "rankstream_serve_events_failed_total", 0, 1, True
    ),
}  # fmt: skip
"""Of each alert; what is beside grows by 1,000 a minute, what is alike as the first."""

WELL_MIN, BAD_MIN, AFTER_MIN = 60, 40, 90
"""Minutes before, during and after an incident."""


def known_names() -> set[str]:
    """Series that pages have, those of histograms among them."""
    names = set(OF_PROMETHEUS)
    for row in rows_below("| metric | is a | by | counts |", metrics.page()):
        name = row[0].strip("`")
        names |= {name, f"{name}_bucket"} if row[1] == "histogram" else {name}
    return names


@pytest.mark.parametrize("place", FILES)
def test_files_are_as_the_table_says(place: str) -> None:
    """After a change of the table: `python -m docs.alerting`."""
    assert (TREE / place).read_text(encoding="utf-8") == FILES[place]()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
def test_expressions_name_what_pages_have(row: Row) -> None:
    """No metric that nobody tells."""
    named = set(re.findall(r"\b(?:rankstream|process)_\w+|\bup\b", row.query()))
    assert named
    assert named <= known_names()


def test_limits_in_seconds_are_scaled_and_no_others() -> None:
    """As tests shorten windows and waits: a share stays a share."""
    by_name = {alert.name: (row, alert) for row, alert in alerts()}
    row, alert = by_name["RankstreamLag"]
    assert row.condition(alert).endswith(" > 300")
    assert row.condition(alert, lambda seconds: seconds / 60).endswith(" > 5")
    row, alert = by_name["RankstreamLateEvents"]
    said = row.condition(alert, lambda seconds: seconds / 60)
    assert said.rpartition(") ")[2] == row.condition(alert).rpartition(") ")[2]


def test_alerts_link_to_what_is_there() -> None:
    """A heading of the page, and a page that says more."""
    text = (TREE / PAGE).read_text(encoding="utf-8")
    headings = {each.lower() for each in re.findall(r"(?m)^## (\S+)$", text)}
    linked = re.findall(r'runbook: "(\S+)#(\S+)"', rules())
    assert linked == [(PAGE, anchor_of(alert)) for _, alert in alerts()]
    assert headings == {anchor for _, anchor in linked}
    missing = [x.page for _, x in alerts() if not (TREE / x.page).exists()]
    assert missing == []
    assert 'runbook_url: "https://d.example/alerts.html#rankstreamlag"' in rules(
        site="https://d.example/"
    )


def test_the_dashboard_is_whole() -> None:
    """Every panel has its place, its number and its expression; none overlaps."""
    made = json.loads((TREE / "deploy/grafana/rankstream.json").read_text())
    panels = made["panels"]
    assert [each["id"] for each in panels] == [*range(1, len(panels) + 1)]
    places: set[tuple[int, int]] = set()
    for each in panels:
        at = each["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert places.isdisjoint(cells)
        assert at["x"] + at["w"] <= 24
        places |= cells
    queries = [x["targets"][0]["expr"] for x in panels if x["type"] != "row"]
    assert len(queries) == len(ROWS)
    assert all('job=~"$job"' in each for each in queries)


def minutes(fault: Fault) -> list[dict[str, str]]:
    """Series of a fault, as promtool reads them."""
    well, bad = f"{fault.well:g}", f"{fault.bad:g}"
    if fault.is_counter:
        # From the value before, so much more each minute.
        top = fault.bad * BAD_MIN
        values = f"0x{WELL_MIN} 0+{bad}x{BAD_MIN} {top:g}x{AFTER_MIN}"
    elif fault.is_absent:
        values = f"{well}x{WELL_MIN} stale _x{BAD_MIN} {well}x{AFTER_MIN}"
    else:
        values = f"{well}x{WELL_MIN} {bad}x{BAD_MIN} {well}x{AFTER_MIN}"
    named = filter(None, (fault.series, fault.alike))
    found = [{"series": each, "values": values} for each in named]
    everything = WELL_MIN + BAD_MIN + AFTER_MIN + 2
    if not fault.series.startswith("up{"):
        # Something is read at all times.
        found.append({"series": 'up{job="rankstream"}', "values": f"1x{everything}"})
    if fault.beside:
        grows = {"series": fault.beside, "values": f"0+1000x{everything}"}
        found.append(grows)
    return found


def promtool_test(folder: Path, name: str, fault: Fault) -> dict[str, Any]:
    """A file of promtool: silence before, the alert in the incident, silence after."""
    names = [alert.name for _, alert in alerts()]
    quiet = [
        {"eval_time": f"{at}m", "alertname": each, "exp_alerts": []}
        for at in (WELL_MIN - 5, WELL_MIN + BAD_MIN + AFTER_MIN - 5)
        for each in names
    ]
    (folder / "rules.yml").write_text(rules(), encoding="utf-8")
    query = f'count(ALERTS{{alertname="{name}",alertstate="firing"}})'
    fires = {
        "expr": query,
        "eval_time": f"{WELL_MIN + BAD_MIN - 1}m",
        "exp_samples": [{"labels": "{}", "value": 1}],
    }
    others = {
        "expr": f'count(ALERTS{{alertname!="{name}",alertstate="firing"}})',
        "eval_time": f"{WELL_MIN + BAD_MIN - 1}m",
        "exp_samples": [],
    }
    case = {
        "interval": "1m",
        "input_series": minutes(fault),
        "alert_rule_test": quiet,
        "promql_expr_test": [fires, others],
    }
    return {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [case]}


def test_prometheus_takes_the_rules(tmp_path: Path) -> None:
    """As they are, and with shorter times; promtool is Prometheus' own."""
    for name, text in (("one", rules()), ("two", rules(lambda x: x / 60.0))):
        (tmp_path / name).write_text(text)
        words = [program("promtool"), "check", "rules", str(tmp_path / name)]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"{len(FAULTS)} rules found" in done.stdout


def test_every_alert_fires_and_is_over(tmp_path: Path) -> None:
    """With the windows of production, in its own incident, and no other alert does."""
    assert FAULTS.keys() == {alert.name for _, alert in alerts()}
    for name, fault in FAULTS.items():
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(promtool_test(tmp_path, name, fault)))
        words = [program("promtool"), "test", "rules", str(file)]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        assert done.returncode == 0, (name, done.stdout + done.stderr)


OTHERS_GO_ON = (("up{job='rankstream-serve',instance='s:8088'}", "1x60"),)
A_WORKER = "{{job='rankstream',role='fold',instance='{}:9101'}}"


@pytest.mark.parametrize(
    ("series", "is_gone"),
    [
        # Names are looked up: what ended is no target, and all it told goes stale.
        ((("a", "1x20 stale"),), True),
        # It waited for Kafka when it ended.
        ((("a", "0x20 stale"),), True),
        # One of two; its partitions go to the other.
        ((("a", "1x20 stale"), ("b", "1x60")), False),
        # Pods are replaced, the new one first.
        ((("a", "1x20 stale"), ("b", "_x18 1x42")), False),
        # It comes back.
        ((("a", "1x20 stale _x20 1x20"),), False),
    ],
)
def test_a_role_that_vanished_is_told(
    tmp_path: Path, series: tuple[tuple[str, str], ...], is_gone: bool
) -> None:
    """While another job is read all along, and by no alert but this one."""
    told = [
        (name + A_WORKER.format(instance), values)
        for instance, values in series
        for name in ("up", "rankstream_ready")
    ]
    firing = "ALERTS{alertstate='firing',alertname!='RankstreamNotReady'}"
    gone = {"labels": "{alertname='RankstreamGone'}", "value": 1}
    case = {
        "interval": "1m",
        "input_series": [
            {"series": name, "values": values}
            for name, values in (*told, *OTHERS_GO_ON)
        ],
        "promql_expr_test": [
            {
                "expr": f"count by (alertname) ({firing})",
                "eval_time": "50m",
                "exp_samples": [gone] if is_gone else [],
            }
        ],
    }
    (tmp_path / "rules.yml").write_text(rules(), encoding="utf-8")
    file = tmp_path / "gone.json"
    asked = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": [case]}
    file.write_text(json.dumps(asked))
    words = [program("promtool"), "test", "rules", str(file)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
