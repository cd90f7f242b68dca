"""What `rankstream statistics show` prints of one query."""

import argparse
from collections.abc import Sequence

from rich.console import Console

from rankstream.operations.answers.curve import NO_CURVE, CurveOfBias
from rankstream.operations.answers.relevance import QueryRelevance
from rankstream.operations.answers.shown_query import shown_query
from rankstream.operations.answers.sources import CountedLog
from rankstream.operations.answers.statistics import (
    CountedScopes,
    Wanted,
    chosen,
    left_label,
    missing_label,
    never_logged_label,
    sets_logged,
    sets_to_be_logged,
)
from rankstream.operations.commands import nothing, write_json
from rankstream.operations.commands.options.plot import draw_if_asked
from rankstream.operations.commands.options.query import as_asked, query_asked
from rankstream.operations.commands.statistics.tables import (
    SPARE_OF_RELEVANCE,
    SPARE_OF_SCOPES,
    directory_of,
    relevance_table,
    reward_labels,
    say,
    scope_title,
    table_of,
)
from rankstream.operations.plots.relevance import query_picture
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.words import counted, plain
from rankstream.wire.nearest_name import nearest
from streams.statistics.keys import Counted, ScopeName

MOST_NAMES = 10_000
"""Among so many queries the nearest one is looked for."""


def show(source: CountedLog, arguments: argparse.Namespace) -> int:
    """Print one query; 1 where there is nothing to print, or no relevance."""
    statistics = source.statistics
    query = query_asked(arguments)
    scopes = statistics.scopes(query)
    left = left_label(statistics)
    n_headless = statistics.n_headless(query)
    missing = missing_label(n_headless, "head of a scope", "heads of scopes")
    if not scopes:
        known = {name.query for name in statistics.scopes()}
        near = nearest(query, sorted(known)) if len(known) <= MOST_NAMES else ""
        meant = f": did you mean {as_asked(near)}? Else" if near else ";"
        return nothing(
            f"no closed list of the query {as_asked(query)}{meant} lists count when "
            f"their click window has passed (`statistics list`){left and '; '}{left}"
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
    found = shown_query(
        source,
        names,
        examination=arguments.examination,
        curve_model=arguments.curve,
        has_classes=arguments.classes,
        estimator=arguments.estimator,
    )
    draw_if_asked(arguments, lambda: query_picture(found))
    if arguments.json:
        write_json(found.to_dict())
        return 0 if found.relevance is not None else nothing(NO_CURVE)
    console = wide_console()
    by_name = dict(zip(names, found.scopes, strict=True))
    if len(names) > 1 and not arguments.by_scope:
        several = f"{len(names):,} of " if len(names) < len(scopes) else ""
        title = f"{several}{counted(len(scopes), 'scope')} of {plain(query)}"
        directory = directory_of(by_name, title, settings, arguments.limit)
        print_fitted(console, directory, SPARE_OF_SCOPES)
        whole = found.together
        _tell(console, whole, "all of these together", settings, arguments)
        console.print("--by-scope shows each; --intervention, --era, --candidates some")
    else:
        for name, one in by_name.items():
            _tell(console, one, scope_title(name, settings), settings, arguments)
    if found.relevance is not None:
        _tell_relevance(console, found.relevance, found.curve, arguments.limit)
    say(console, _never_logged(source, names))
    say(console, left)
    say(console, missing)
    return nothing(NO_CURVE) if found.relevance is None else 0


def _tell_relevance(
    console: Console, found: QueryRelevance, by: CurveOfBias, limit: int
) -> None:
    print_fitted(console, relevance_table(found, limit), SPARE_OF_RELEVANCE)
    for remark in (found.chosen, *by.said(), found.warning, *found.remarks):
        say(console, remark and f"  {remark}")


def _never_logged(source: CountedLog, names: Sequence[ScopeName]) -> str:
    """Whether features are missing; a folder of a replay has no topic of them."""
    wanted = sets_to_be_logged(names, source.settings.models)
    if not wanted or not source.is_of_kafka:
        return ""
    return never_logged_label(wanted, sets_logged(source.settings, names[0].query))


def _tell(
    console: Console,
    found: CountedScopes,
    title: str,
    settings: Counted | None,
    arguments: argparse.Namespace,
) -> None:
    _, rate = reward_labels(settings)
    print_fitted(console, table_of(found, title, settings, arguments.limit), [rate])
    for remark in found.remarks():
        console.print(f"  {remark}", highlight=False)
