"""Processes, cores, memory and restarts of a load: the arithmetic of `rankstream plan`.

Every figure is None where a constant of it was not measured.
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from rankstream.operations.answers.capacity.constants import Costs
from rankstream.operations.answers.capacity.drivers import (
    distinct,
    drivers_of,
    memory_of_scope,
)
from rankstream.operations.answers.capacity.load import Load

MIB = 2**20

IDLE = "idle"
WAITING, PER_KB = "_waiting", "_per_kb"
"""Ends of the names of constants of memory."""

LEARNING = {"learn", "publish"}
"""Roles that idle where no list has features."""

LEAST_ROOM = 1e-3

KEYS_A_QUERY = 2
"""In the state: a scope and a candidate set."""

RESTART = "restart_s"
"""Name of the constant of a restart with nothing to read back."""


def n_live(load: Load) -> float:
    """Queries that statistics hold."""
    return distinct(load.n_counted, load.queries)


def n_open(load: Load) -> float:
    """Lists whose window is open."""
    time = load.settings.time
    return load.lists_per_s * (time.click_window_ms + time.disorder_ms) / 1e3


READ_BACK: Mapping[str, Callable[[Load], float]] = MappingProxyType(
    {
        "restart_key_us": lambda load: KEYS_A_QUERY * n_live(load),
        "restart_open_list_us": n_open,
        "restart_open_kilobyte_us": lambda load: n_open(load) * load.number_bytes / 1e3,
    }
)
"""Microseconds of a restart, by constant, and how many of each there are to read."""


def with_partitions(load: Load, n: int) -> Load:
    """The same with so many partitions of the log."""
    kafka = msgspec.structs.replace(load.settings.kafka, partitions=n)
    return load.under(msgspec.structs.replace(load.settings, kafka=kafka))


def work_of(load: Load, role: str, costs: Costs) -> float | None:
    """Cores that all processes of a role take, beyond what each takes idle."""
    drivers = drivers_of(load) | {IDLE: 0.0}
    if role in LEARNING and not load.features:
        drivers = dict.fromkeys(drivers, 0.0)
    return costs.cores(role, drivers)


def idle_cores(role: str, costs: Costs) -> float:
    """Cores of a process that has nothing to do."""
    row = costs.of.cpu.get(role)
    return row.per.get(IDLE, 0.0) / 1e6 if row else 0.0


def cores_of(load: Load, role: str, costs: Costs, n: int) -> float | None:
    """Cores that so many processes of a role take."""
    work = work_of(load, role, costs)
    return None if work is None else work + n * idle_cores(role, costs)


def most_processes(load: Load, role: str) -> int:
    """So many processes of a role have work at once."""
    kafka, settings = load.settings.kafka, load.settings
    return {
        "ingest": kafka.input_partitions,
        "fold": kafka.partitions,
        # A model learns in one process.
        "learn": min(kafka.learner_partitions, max(1, len(settings.online))),
    }.get(role, 1)


def n_processes(load: Load, role: str, costs: Costs, utilisation: float) -> int:
    """So many that each takes its share of a core.

    Those of the fold may need more partitions than there are; of all others there are
    no more than can work.
    """
    work = work_of(load, role, costs)
    room = utilisation - idle_cores(role, costs)
    wanted = max(1, math.ceil((work or 0.0) / max(room, LEAST_ROOM)))
    return wanted if role == "fold" else min(wanted, most_processes(load, role))


def memory_bytes(load: Load, role: str, n: int, costs: Costs) -> float | None:
    """Resident bytes of so many processes of a role.

    Where events wait each reads ahead, the more the larger they are; what the fold
    keeps is shared among its processes.
    """
    name = f"memory_{role}{WAITING if load.is_waiting else ''}_mib"
    base = costs.one(name)
    ahead = costs.one(name + PER_KB) if load.is_waiting else 0.0
    kept = kept_bytes(load, role, costs)
    if base is None or ahead is None or kept is None:
        return None
    return n * (base + ahead * load.list_bytes / 1e3) * MIB + kept


def kept_bytes(load: Load, role: str, costs: Costs) -> float | None:
    """What the fold keeps, beside what each process has at first.

    Lists whose window is open, with their clicks; identities that are remembered; and
    what statistics hold of each query.
    """
    if role != "fold":
        return 0.0
    overhead, known = costs.one("open_list_bytes"), costs.one("known_identity_bytes")
    if overhead is None or known is None:
        return None
    time, live = load.settings.time, n_live(load)
    each = overhead + load.text_bytes + load.number_bytes
    each += load.clicks * load.click_bytes
    kept = n_open(load) * each + known * load.per_second * time.remember_ms / 1e3
    return kept + live * memory_of_scope(load, load.n_counted / max(live, 1.0))


def restart_s(load: Load, n: int, costs: Costs) -> float | None:
    """From the kill of one of so many processes of the fold until it folds again."""
    start, read = costs.one(RESTART), _read_back_s(load, n, costs)
    again = _folded_again_s(load, n, costs)
    if start is None or read is None or again is None:
        return None
    return start + read + again


def _read_back_s(load: Load, n: int, costs: Costs) -> float | None:
    """For one of so many processes to read back and restore its state."""
    told = [(costs.one(name), driver(load)) for name, driver in READ_BACK.items()]
    if any(each is None for each, _ in told):
        return None
    return sum((each or 0.0) * n_read for each, n_read in told) / n / 1e6


def _folded_again_s(load: Load, n: int, costs: Costs) -> float | None:
    """For what came since its last checkpoint, at most."""
    work = work_of(load, "fold", costs)
    return None if work is None else work / n * load.settings.delivery.state_s
