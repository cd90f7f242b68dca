"""What was asked of a run, and the settings of its workers."""

from pathlib import Path
from typing import NamedTuple

from deploy.redis_server import Redis
from tests.fire.brokers import Brokers
from tests.fire.events import (
    ACTIONS,
    DISORDER_MS,
    KEEP_MS,
    REMEMBER_MS,
    WINDOW_MS,
)
from tests.fire.lists import MODEL, N_FEATURES
from tests.fire.training import trained_config

NAMESPACE = "fire"


class Options(NamedTuple):
    """What was asked for.

    Parameters
    ----------
    is_fast
        Whether event time passes faster than the clock: then what is late comes at
        once, and no service is beside.
    n_services
        That nobody holds back.
    n_brokers
        1, or more that are one cluster.
    commit
        Of the build that the first worker runs; "" is this one.
    settings
        More of the workers'.
    stop_s
        A stop may take so long.
    """

    n_events: int
    n_kills: int
    seed: int
    plan: str
    rate: float | None
    broken: str = ""
    is_poisoned: bool = False
    is_fast: bool = False
    n_services: int = 2
    n_brokers: int = 1
    commit: str = ""
    settings: str = ""
    stop_s: float = 10.0


CONFIG = f"""
[time]
keep_ms = {KEEP_MS}{{fast}}

[limits]
exposure_rows = 4
lists = 4

[statistics]
groups = 8
actions = {{{{{", ".join(f'"{key}" = "{value}"' for key, value in ACTIONS.items())}}}}}

[models.{MODEL}]
features = {N_FEATURES}
{{trained}}"""
"""Eras leave in a run; all else of time is as it is by default."""

FAST = f"""
disorder_ms = {DISORDER_MS}
click_window_ms = {WINDOW_MS}
remember_ms = {REMEMBER_MS}
"""
"""For `[time]`, where it passes fast."""

SELDOM = "commit_s = 0.4\n"
"""For `[delivery]` then: most of what brokers and workers compute is commits."""


def settings_file(
    folder: Path, name: str, options: Options, broker: Brokers, redis: Redis
) -> Path:
    """Settings of a worker, in a file of its name."""
    path = folder / f"{name}.toml"
    path.write_text(
        f'namespace = "{NAMESPACE}"\n'
        f'[kafka]\nbootstrap = "{broker.bootstrap}"\n'
        f"replication_factor = {broker.n_nodes}\n"
        f'[redis]\nurl = "{redis.url}"\n'
        "[delivery]\nsession_timeout_s = 6.0\n"
        + (SELDOM if options.is_fast else "")
        + ("" if options.commit else f"stop_s = {max(30.0, options.stop_s)}\n")
        + CONFIG.format(
            fast=FAST if options.is_fast else "",
            # Builds of before may know no such model.
            trained="" if options.commit else trained_config(options.n_events),
        )
        + options.settings
    )
    return path
