"""Constants of a machine: what each driver costs, with where it was measured."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

SHIPPED = Path(__file__).with_name("measured.json")


class Coefficients(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What each driver costs, by its name.

    `source` says by which command and when it was measured.
    """

    per: dict[str, float]
    source: str


class Constant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One number; None where nobody measured it."""

    value: float | None
    unit: str
    source: str


class Constants(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of a machine.

    Parameters
    ----------
    machine
        What kind it is.
    date, command
        When and by what most of it was measured.
    load
        Load averages of the machine before and after, which shared it with other work.
    cpu
        Microseconds of CPU of each process, by driver.
    n_bytes
        Bytes that each topic gets, by driver.
    constants
        All others by name.
    """

    machine: str
    date: str
    command: str
    load: tuple[float, float]
    cpu: dict[str, Coefficients]
    n_bytes: dict[str, Coefficients]
    constants: dict[str, Constant]


def load_constants(path: Path = SHIPPED) -> Constants:
    """Those of a file.

    Raises
    ------
    ValueError
        Where it cannot be read, or holds what cannot be.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Constants)
    except (OSError, msgspec.MsgspecError) as reason:
        raise ValueError(
            f"--constants must be a file of `bench capacity --save`; {path}: {reason}"
        ) from reason
    for name, value in _numbers(found):
        if not 0.0 <= value < math.inf:
            raise ValueError(
                f"{name} of {path} must be 0 or more and finite; got {value}"
            )
    return found


def save_constants(constants: Constants, path: Path) -> None:
    """Write them, to be read and compared by people."""
    text = json.dumps(msgspec.to_builtins(constants), indent=2)
    path.write_text(f"{text}\n", encoding="utf-8")


def _numbers(constants: Constants) -> Iterator[tuple[str, float]]:
    for rows in (constants.cpu, constants.n_bytes):
        for name, row in rows.items():
            yield from ((f"{name} by {driver}", x) for driver, x in row.per.items())
    for name, one in constants.constants.items():
        if one.value is not None:
            yield name, one.value


@dataclass(frozen=True)
class Costs:
    """Constants that are asked for by name, and what of it nobody measured.

    `unmeasured` collects the names that were asked for in vain.
    """

    of: Constants
    unmeasured: dict[str, str] = field(default_factory=dict)

    @property
    def unsaid(self) -> list[str]:
        """What was asked for in vain, with the reason."""
        return [f"{name}: {why}" for name, why in sorted(self.unmeasured.items())]

    def cores(self, process: str, drivers: Mapping[str, float]) -> float | None:
        """CPU seconds a second."""
        found = self._summed(f"CPU of {process}", self.of.cpu.get(process), drivers)
        return None if found is None else found / 1e6

    def bytes_of(self, topic: str, drivers: Mapping[str, float]) -> float | None:
        """Bytes a second, before they are replicated."""
        return self._summed(f"bytes of {topic}", self.of.n_bytes.get(topic), drivers)

    def one(self, name: str) -> float | None:
        """A single constant."""
        found = self.of.constants.get(name)
        if found is None or found.value is None:
            self.unmeasured[name] = found.source if found else "nobody measured it"
            return None
        return found.value

    def _summed(
        self, what: str, row: Coefficients | None, drivers: Mapping[str, float]
    ) -> float | None:
        if row is None:
            self.unmeasured[what] = "nobody measured it"
            return None
        return sum(each * drivers[name] for name, each in row.per.items())
