"""Rankings of which a log has nothing, as queries or items are called otherwise."""

from collections.abc import Mapping

from rankstream.notebook.counted import Counted
from rankstream.operations.answers.statistics import counted_scope
from rankstream.wire.nearest_name import suggestion
from streams.estimation.targets import RankingTarget, Target

MOST_QUERIES = 100
"""Of a ranking whose items are looked for."""


def refuse_misnamed(found: Counted, targets: Mapping[str, Target]) -> None:
    """Refuse rankings whose queries, or items, no list of the log had.

    Raises
    ------
    ValueError
        It names one of the ranking, and one of the log.
    """
    for name, target in targets.items():
        if isinstance(target, RankingTarget):
            _refuse(found, name, target)


def _refuse(found: Counted, name: str, target: RankingTarget) -> None:
    known = [query for query in target.queries if query in found.queries]
    if not found.queries or not target.queries:
        return
    if not known:
        query = target.queries[0]
        near = suggestion(query, found.queries)
        like = near or f": the log has {next(iter(found.queries))!r:.60}"
        raise ValueError(
            f"rankings must be of queries that lists were counted of; {name!r:.60} "
            f"ranks {query!r:.60}, which has none{like}"
        )
    shown = ""
    for query in known[:MOST_QUERIES]:
        items = _items_of(found, query)
        if not items.isdisjoint(target.items_of(query)):
            return
        shown = shown or min(items, default="")
    ranked = target.items_of(known[0])[0]
    raise ValueError(
        f"no list showed an item of {name!r:.60}: it ranks {ranked!r:.60}, lists "
        f"showed {shown!r:.60}: name items as the log does"
    )


def _items_of(found: Counted, query: str) -> set[str]:
    statistics = found.source.statistics
    scopes = [counted_scope(statistics, scope) for scope in found.scopes(query)]
    return {place.item for scope in scopes for place in scope.places()}
