"""What `rankstream statistics actions` prints: lists of one item as a bandit's."""

import argparse
import math

from rich.table import Table

from models.evaluation.bounds.families import Bound
from rankstream.operations.answers.actions import Action, actions_of
from rankstream.operations.answers.sources import CountedLog
from rankstream.operations.commands import nothing, tell, write_json
from rankstream.operations.commands.options.query import as_asked, queries_asked
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.words import counted, plain

SPARE = ("clicks", "could not show it", "candidate set")


def show_actions(source: CountedLog, arguments: argparse.Namespace) -> int:
    """Print them; 1 where there are none."""
    queries = queries_asked(arguments)
    if not 0.0 <= arguments.confidence <= 1.0:
        raise ValueError(
            f"--confidence must lie in [0, 1]; got {arguments.confidence:g}"
        )
    found = actions_of(
        source.statistics,
        queries,
        bound=Bound(arguments.bound),
        epsilon=arguments.confidence,
    )
    for why, n_lists in found.refused.items():
        tell(f"{counted(n_lists, 'list')} left out, {why}")
    if not found.actions:
        asked = f" of the query {as_asked(queries[0])}" if queries else ""
        listed = "; `statistics list` has the queries that were counted"
        return nothing(
            f"no closed list of one item{asked} says what an action earns: rank with "
            "a cutoff of 1, by a policy that is logged, and from named candidates"
            f"{listed if queries else ''}"
        )
    if arguments.json:
        write_json(found.to_dict())
        return 0
    shown = found.actions[: arguments.limit]
    table = Table(
        title=counted(len(found.actions), "action"),
        caption="" if len(shown) == len(found.actions) else f"the first {len(shown):,}",
    )
    for name in ("context", "candidate set", "action"):
        table.add_column(name)
    for name in ("estimate", "lower", "upper", "lists", "could not show it", "clicks"):
        table.add_column(name, justify="right")
    for each in shown:
        table.add_row(*_row_of(each))
    print_fitted(wide_console(), table, SPARE)
    return 0


def _row_of(each: Action) -> tuple[str, ...]:
    return (
        plain(each.query), each.candidate_set.hex()[:8], plain(each.action),
        "–" if math.isnan(each.estimate) else f"{each.estimate:.4f}",
        f"{each.lower:.4f}", f"{each.upper:.4f}",
        f"{each.lists:,}", f"{each.elsewhere:,}", f"{each.clicks:,}",
    )  # fmt: skip
