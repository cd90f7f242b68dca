"""Alert rules, a dashboard and a page, made of the table."""

import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from docs.alerting import pipeline_rows, serving_rows
from docs.alerting.table import Alert, Row, Scale, as_they_are, duration
from docs.reference.markdown import code

ROWS = pipeline_rows.ROWS + serving_rows.ROWS
"""In the order of the dashboard."""

PAGE = "docs/alerts.md"

OF_JOBS = 'job=~"$job", '
"""How a dashboard chooses."""

WIDTH, HEIGHT = 8, 7
"""Of a panel; a dashboard is 24 wide."""

DATA = {"type": "prometheus", "uid": "${datasource}"}

LINE = 100
"""Characters of a line of a page."""

INTRODUCTION = """# Alerts

`deploy/prometheus/rankstream.rules.yml` has these alerts, and
`deploy/grafana/rankstream.json` a dashboard with a panel of each, and others. All three
are made of one table, `docs/alerting/`, by `python -m docs.alerting`. The annotation
`runbook` has a place in the tree. `--site URL` prints rules with a `runbook_url`
instead, which links to the pages of a site.

Prometheus 2.42 and later take them. In tests it reads a worker and a server through
lag, late events, dead letters, a Redis that is away, a training that is refused and a
canary that is worse: each alert fires in its incident, not before, and is over after
it. With the windows of production, all alerts are held to that by `promtool`.

Let Prometheus read the page of each role and of each server, in jobs whose names begin
with `rankstream`, also on Kubernetes:

```text
scrape_configs:
  - job_name: rankstream
    static_configs:
      - targets: ["localhost:9100", "localhost:9101", "localhost:9102"]
rule_files: ["rankstream.rules.yml"]
```

With `metrics.port` 9100 these are `ingest`, `fold` and `learn`; `docs/topics.md` has
the others. Prometheus asks for OpenMetrics by itself. `docs/reference/metrics.md` says
what each metric is; `make site` makes that page, in `build/pages/reference/`.

Each server must be a target of its own: behind one address counters of several mix.
"""


def alerts() -> Iterator[tuple[Row, Alert]]:
    """Rows that have an alert."""
    return ((row, row.alert) for row in ROWS if row.alert is not None)


def anchor_of(alert: Alert) -> str:
    """Its heading on the page, as links name it."""
    return alert.name.lower()


def rules(scale: Scale = as_they_are, site: str = "") -> str:
    """A file of rules for Prometheus.

    Parameters
    ----------
    scale
        Of all seconds in it.
    site
        Where the documentation is served; "" for where pages lie in the tree.
    """
    # A place in the tree is no URL, and no link of whoever is told.
    word = "runbook_url" if site else "runbook"
    page = f"{site.rstrip('/')}/alerts.html" if site else PAGE
    lines = ["# Made by `python -m docs.alerting`.", "groups:"]
    lines += ["  - name: rankstream", "    rules:"]
    for row, alert in alerts():
        notes = {
            "summary": alert.summary,
            "description": alert.do,
            word: f"{page}#{anchor_of(alert)}",
        }
        lines += [
            f"      - alert: {alert.name}",
            "        expr: |-",
            textwrap.indent(row.condition(alert, scale), " " * 10),
            f"        for: {duration(scale(alert.for_s)) if alert.for_s else '0s'}",
            f"        labels: {{severity: {alert.severity}}}",
            "        annotations:",
            # A string of JSON is one of YAML.
            *(f"          {name}: {json.dumps(said)}" for name, said in notes.items()),
        ]
    return "\n".join(lines) + "\n"


def page() -> str:
    """Each alert: what it asks, and what to do."""
    parts = [INTRODUCTION]
    for row, alert in alerts():
        plain = alert.summary.replace("{{ $labels.", "`").replace(" }}", "`")
        wait = f" for {duration(alert.for_s)}" if alert.for_s else ""
        said = f"It fires where this is so{wait}. {alert.do} See `{alert.page}`."
        parts.append(f"## {alert.name}\n")
        parts.append(f"{plain[0].upper()}{plain[1:]} ({alert.severity}).\n")
        parts.append(code(row.condition(alert)))
        parts.append(textwrap.fill(said, LINE, break_on_hyphens=False) + "\n")
    return "\n".join(parts)


def dashboard() -> str:
    """A dashboard for Grafana 10 and later, as JSON."""
    panels: list[dict[str, Any]] = []
    top, left, section = 0, 0, ""
    for row in ROWS:
        if row.section != section:
            top += HEIGHT * bool(left)
            left, section = 0, row.section
            place = {"x": 0, "y": top, "w": 24, "h": 1}
            panels.append({"type": "row", "title": section, "gridPos": place})
            top += 1
        panels.append(_panel(row, left, top))
        left = (left + WIDTH) % 24
        top += HEIGHT * (left == 0)
    for number, panel in enumerate(panels, 1):
        panel["id"] = number
    made = {
        "title": "rankstream",
        "uid": "rankstream",
        "tags": ["rankstream"],
        "schemaVersion": 38,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [_datasource(), _jobs()]},
        "panels": panels,
    }
    return json.dumps(made, indent=1) + "\n"


def _panel(row: Row, left: int, top: int) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": row.unit}
    if row.alert is not None:
        sign, number = row.alert.limit.split()
        inside, beyond = ("red", "green") if sign == "<" else ("green", "red")
        steps = [(inside, None), (beyond, float(number))]
        defaults["thresholds"] = {
            "mode": "absolute",
            "steps": [{"color": color, "value": at} for color, at in steps],
        }
        defaults["custom"] = {"thresholdsStyle": {"mode": "line"}}
    told = f"Alert {row.alert.name}: {row.alert.do}" if row.alert else ""
    return {
        "type": "timeseries",
        "title": row.title,
        "description": told,
        "datasource": DATA,
        "gridPos": {"x": left, "y": top, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [
            {
                "refId": "A",
                "datasource": DATA,
                "expr": row.query(OF_JOBS),
                "legendFormat": row.legend,
            }
        ],
    }


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus"}


def _jobs() -> dict[str, Any]:
    asked = 'label_values(up{job=~"rankstream.*"}, job)'
    return {
        "name": "job",
        "type": "query",
        "datasource": DATA,
        "query": {"query": asked, "refId": "jobs"},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": "rankstream.*",
        "current": {"text": "All", "value": "$__all"},
    }


FILES: Mapping[str, Callable[[], str]] = {
    "deploy/prometheus/rankstream.rules.yml": rules,
    "deploy/grafana/rankstream.json": dashboard,
    PAGE: page,
}
"""Where each lies in the tree."""
