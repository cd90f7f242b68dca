"""What `rankstream statistics show` prints of one query."""

import argparse
from collections.abc import Sequence

from rich.console import Console

from rankstream.operations.commands.logged_candidates import (
    never_logged_label,
    sets_logged,
    sets_to_be_logged,
)
from rankstream.operations.commands.relevance_tables import (
    NO_CURVE,
    SPARE_OF_RELEVANCE,
    curve_label,
    relevance_table,
)
from rankstream.operations.commands.statistics_asked import Asked, nothing, say
from rankstream.operations.commands.statistics_scopes import (
    ShownScope,
    Together,
    Wanted,
    chosen,
    shown_scope,
    together,
)
from rankstream.operations.commands.statistics_tables import (
    SPARE_OF_SCOPES,
    directory_of,
    left_label,
    missing_label,
    remarks_on,
    reward_labels,
    scope_title,
    table_of,
)
from rankstream.operations.relevance import relevance_of
from rankstream.operations.terminal.counts import counted
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.plain_text import plain
from rankstream.wire.routing import normalised_query
from streams.statistics.keys import Counted, ScopeName


def show(asked: Asked) -> int:
    """Print one query; 1 where there is nothing to print."""
    arguments, _, statistics = asked
    query = normalised_query(arguments.query)
    scopes = statistics.scopes(query)
    left = left_label(statistics)
    n_headless = statistics.n_headless(query)
    missing = missing_label(n_headless, "head of a scope", "heads of scopes")
    if not scopes:
        return nothing(
            f"no closed list of the query {query!r}; lists count when their click "
            f"window has passed (`statistics list`){left and '; '}{left}"
            f"{missing and '; '}{missing}"
        )
    settings = statistics.counted[0] if statistics.counted else None
    wanted = Wanted(arguments.candidates, arguments.intervention, arguments.era)
    names = chosen(scopes, wanted, settings)
    if not names:
        words = [
            f"--{name} {value!r}"
            for name, value in wanted._asdict().items()
            if value is not None
        ]
        return nothing(
            f"none of the {counted(len(scopes), 'scope')} of the query {query!r} is "
            f"of {' and '.join(words)}; without {'it' if len(words) == 1 else 'them'} "
            "all are listed"
        )
    console = wide_console()
    found = [shown_scope(statistics, name) for name in names]
    if len(found) > 1 and not arguments.by_scope:
        several = f"{len(found):,} of " if len(found) < len(scopes) else ""
        title = f"{several}{counted(len(scopes), 'scope')} of {plain(query)}"
        directory = directory_of(found, title, settings, arguments.limit)
        print_fitted(console, directory, SPARE_OF_SCOPES)
        _tell(console, together(found), "all of these together", settings, arguments)
        console.print("--by-scope shows each; --intervention, --era, --candidates some")
    else:
        for one in found:
            _tell(console, one, scope_title(one.name, settings), settings, arguments)
    _tell_relevance(console, asked, names)
    say(console, _never_logged(asked, names))
    say(console, left)
    say(console, missing)
    return 0


def _tell_relevance(console: Console, asked: Asked, names: Sequence[ScopeName]) -> None:
    """The items of all these scopes together, corrected for where they stood."""
    arguments, _, statistics = asked
    curve, source, doubt, ends, bias = asked.curve()
    if curve is None or not statistics.counted:
        console.print(NO_CURVE, highlight=False)
        return
    wanted = set(names)
    columns = statistics.columns([names[0].query], is_wanted=wanted.__contains__)
    groups = statistics.counted[0].groups
    found = relevance_of(
        columns,
        curve,
        groups,
        asked.trust(),
        has_classes=asked.has_classes,
        estimator=asked.estimator,
    )
    table = relevance_table(found, arguments.limit)
    print_fitted(console, table, SPARE_OF_RELEVANCE)
    label = curve_label(curve, source, ends)
    for remark in (found.chosen, label, bias, doubt, found.warning, *found.remarks):
        say(console, remark and f"  {remark}")


def _never_logged(asked: Asked, names: Sequence[ScopeName]) -> str:
    """Whether features are missing; a folder of a replay has no topic of them."""
    wanted = sets_to_be_logged(names, asked.settings.models)
    if not wanted or asked.arguments.local is not None:
        return ""
    return never_logged_label(wanted, sets_logged(asked.settings, names[0].query))


def _tell(
    console: Console,
    found: ShownScope | Together,
    title: str,
    settings: Counted | None,
    arguments: argparse.Namespace,
) -> None:
    _, rate = reward_labels(settings)
    print_fitted(console, table_of(found, title, settings, arguments.limit), [rate])
    for remark in remarks_on(found):
        console.print(f"  {remark}", highlight=False)
