"""In which text a page of metrics is written, and what every page has."""

import importlib.metadata
import re

from prometheus_client import CollectorRegistry, Info, ProcessCollector
from prometheus_client.exposition import choose_encoder

OPENMETRICS = "application/openmetrics-text"


def process_registry() -> CollectorRegistry:
    """A registry with what the system says of this process, and with our version."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    build = Info("rankstream_build", "the version that runs", registry=registry)
    build.info({"version": importlib.metadata.version("rankstream")})
    return registry


def accepted(accept: str) -> str:
    """OpenMetrics 1.0 where a client takes that, else the text of Prometheus.

    Parameters
    ----------
    accept
        The header of a request; "" where there is none.

    Returns
    -------
    A header that names one of both.

    Examples
    --------
    >>> accepted("application/openmetrics-text; version=0.0.1;q=0.5, */*;q=0.1")
    ''
    >>> accepted("application/openmetrics-text;q=0.0")
    ''
    >>> accepted("text/plain;q=0.5, application/openmetrics-text")
    'application/openmetrics-text; version=1.0.0'
    """
    for each in accept.split(","):
        kind, *parameters = (part.strip() for part in each.split(";"))
        told = dict(part.lower().partition("=")[::2] for part in parameters)
        is_known = told.get("version", "1.0.0").strip('"') == "1.0.0"
        if kind.lower() == OPENMETRICS and is_known and _is_wanted(told.get("q", "1")):
            return f"{OPENMETRICS}; version=1.0.0"
    return ""


def _is_wanted(weight: str) -> bool:
    """Not by a weight of 0, nor by one that is no number."""
    return re.fullmatch(r"[01](\.\d{0,3})?", weight) is not None and float(weight) > 0.0


def written(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """All that a registry has, and its type of content."""
    encode, kind = choose_encoder(accepted(accept))
    return encode(registry), kind
