"""`rankstream.simulate`: a log of users whose taste and habits are known."""

from pathlib import Path

from producers.formats.letor import LetorData
from rankstream.lab.simulation.queries import queries_of
from rankstream.notebook.log import Log
from rankstream.notebook.ranker import ClickRanker
from rankstream.notebook.simulated import users_of
from rankstream.settings import Settings


def simulate(  # noqa: PLR0913  all that a simulation depends on
    data: LetorData | Path | str | None = None,
    *,
    users: str = "position_based",
    lists: int = 10_000,
    cutoff: int = 10,
    seed: int = 1,
    ranker: ClickRanker | None = None,
    policy: str = "plackett-luce",
    progress: bool = True,
) -> Log:
    """A log of simulated users, who click as a known model says.

    Parameters
    ----------
    data
        Queries with graded documents: a LETOR file, or a folder of folds, of which the
        first one's training part is taken; None: made-up ones, from the seed.
    users
        A click model, such as `position_based`, `trust_bias`, `perfect`,
        `navigational` or `informational`.
    lists
        How many are shown.
    cutoff
        Their length.
    seed
        Of all that is drawn: the same gives the same log, to the bit.
    ranker
        Whose lists they are; None: any list is as likely as any other.
    policy
        How lists are made of its scores: `plackett-luce`, `deterministic` or
        `tail-shuffle`.
    progress
        Whether it says how far it is.

    Raises
    ------
    ValueError
        Where there are no such users, or a number is none that there can be.
    """
    if isinstance(data, LetorData):
        queries = data
    else:
        queries, _ = queries_of(None if data is None else Path(data), fold=1, seed=seed)
    source = users_of(queries, users, lists, cutoff, seed, ranker, policy)
    return Log(source, Settings(), progress=progress)
