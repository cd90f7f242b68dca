"""The figures of `bench pipeline`: their names, and which run without being named.

Loads nothing heavy: the help of the command reads it too.
"""

from collections.abc import Iterable
from typing import NamedTuple


class FigureRow(NamedTuple):
    """One line about a figure; `is_long` ones run only when named."""

    summary: str
    is_long: bool = False
    needs_services: bool = True


FIGURES = {
    "logged": FigureRow("fold of logged exposures, over an empty Faust agent"),
    "deterministic": FigureRow("fold of deterministic lists, over the same"),
    "plackett-luce": FigureRow("fold of Plackett-Luce lists, over the same"),
    "ingestion": FigureRow("ingestion of JSON events, over the same"),
    "in-process": FigureRow("in-process replay, over decoding", needs_services=False),
    "compared": FigureRow(
        "ten rankers compared on every list, over without", needs_services=False
    ),
    "state-logged": FigureRow(
        "state written an event of logged exposures", needs_services=False
    ),
    "state-deterministic": FigureRow(
        "state written an event of deterministic lists", needs_services=False
    ),
    "state-plackett-luce": FigureRow(
        "state written an event of Plackett-Luce lists", needs_services=False
    ),
    "open-memory": FigureRow("memory of an open impression", needs_services=False),
    "list-memory": FigureRow(
        "memory of a list in a scope, a pair of item and rank", needs_services=False
    ),
    "query-state": FigureRow(
        "state and memory of a query by groups; minutes", True, needs_services=False
    ),
    "first-start": FigureRow(
        "CPU from install to the first fold; minutes", True, needs_services=False
    ),
    "latency": FigureRow("record to snapshot in Redis, at half speed; minutes", True),
    "restart": FigureRow("kill -9 to the next fold, after ten minutes", True),
    "end-to-end": FigureRow(
        "JSON events to counted statistics, over Kafka Streams; minutes", True
    ),
    "trickle": FigureRow("CPU where few events come, over the same; minutes", True),
    "idle": FigureRow("CPU where no events come, over the same; minutes", True),
    "all-roles": FigureRow("JSON events to snapshots, CPU by role", True),
    "learning": FigureRow("the learn role alone, over interactions that wait", True),
    "scaling": FigureRow("CPU of the fold by event, in 1, 2 and 4 processes", True),
}
"""In the order in which they are measured."""

BESIDE_STREAMS = {"end-to-end", "trickle", "idle"}
"""Those whose rival is an application of Kafka Streams."""


def needs_services(names: Iterable[str]) -> bool:
    """Whether any of these figures needs a broker and Redis."""
    return any(FIGURES[name].needs_services for name in names)


def chosen_figures(names: Iterable[str]) -> list[str]:
    """The named figures in the order of `FIGURES`; the short ones where none is named.

    Raises
    ------
    ValueError
        Where there is no figure of a name.
    """
    wanted = set(names)
    unknown = sorted(wanted - FIGURES.keys())
    if unknown:
        raise ValueError(
            f"--figures must be some of {', '.join(FIGURES)}; got {', '.join(unknown)}"
        )
    return [
        name
        for name, row in FIGURES.items()
        if (name in wanted if wanted else not row.is_long)
    ]
