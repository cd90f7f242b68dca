"""What is watched: each row is a panel, and an alert where it has a limit.

Expressions are PromQL. `$of` stands for a choice of jobs, which dashboards fill in, and
`$window` for the row's window. Prometheus 2.42 and later know all that is used.
"""

from collections.abc import Callable
from dataclasses import dataclass
from string import Template

Scale = Callable[[float], float]
"""What seconds of windows, waits and limits become; tests make them short."""


def as_they_are(seconds: float) -> float:
    """For production."""
    return seconds


@dataclass(frozen=True)
class Alert:
    """When somebody should look, and what to do then.

    Parameters
    ----------
    limit
        A comparison and a number, such as `> 0.01`; of seconds where `is_time`.
    for_s
        For how long it must be so, seconds.
    summary
        What is wrong; may name labels as Prometheus' templates do.
    do
        What to do, in sentences.
    page
        Of the tree, that says more.
    """

    name: str
    limit: str
    for_s: float
    severity: str
    summary: str
    do: str
    page: str
    is_time: bool = False


@dataclass(frozen=True)
class Row:
    """One panel.

    Parameters
    ----------
    expression
        Whose values are drawn, and compared with the limit.
    unit
        As Grafana calls it.
    legend
        Labels that tell its lines apart.
    """

    section: str
    title: str
    expression: str
    unit: str
    legend: str
    alert: Alert | None = None
    window_s: float = 300.0

    def query(self, of: str = "", scale: Scale = as_they_are) -> str:
        """The expression, for some jobs."""
        window = duration(scale(self.window_s))
        return Template(self.expression).substitute(of=of, window=window)

    def condition(self, alert: Alert, scale: Scale = as_they_are) -> str:
        """What the alert asks."""
        sign, number = alert.limit.split()
        least = scale(float(number)) if alert.is_time else float(number)
        return f"(\n  {self.query(scale=scale)}\n) {sign} {least:g}"


def duration(seconds: float) -> str:
    """A duration as Prometheus writes it.

    Examples
    --------
    >>> duration(900.0), duration(90.0), duration(1.5), duration(3_600.0)
    ('15m', '90s', '1500ms', '1h')
    """
    ms = round(seconds * 1_000)
    for unit, of_ms in (("h", 3_600_000), ("m", 60_000), ("s", 1_000)):
        if ms and ms % of_ms == 0:
            return f"{ms // of_ms}{unit}"
    return f"{ms}ms"


def share(part: str, whole: str, by: str = "job") -> str:
    """The share of a counter in another one, over the window."""
    return (
        f"sum by ({by}) (rate({part}[$window])) / "
        f"sum by ({by}) (rate({whole}[$window]))"
    )


def quantile(metric: str, by: str, share_below: str = "0.99") -> str:
    """A quantile of a histogram, over the window."""
    return (
        f"histogram_quantile({share_below}, "
        f"sum by ({by}, le) (rate({metric}_bucket{{$of}}[$window])))"
    )
