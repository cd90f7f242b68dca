"""Policies that somebody names in Python, as valuations take them."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import pyarrow as pa

from rankstream.notebook.frames import is_frame
from rankstream.operations.answers.folders import snapshot_in
from rankstream.operations.answers.policies import (
    JSONL,
    Line,
    Policies,
    VersionsOf,
    rankings_of,
)
from rankstream.operations.answers.sources import CountedLog
from rankstream.operations.answers.values import WEIGHTS
from rankstream.wire.envelope import Snapshot
from rankstream.wire.nearest_name import meant, suggestion
from streams.estimation.question import LOGGED
from streams.estimation.targets import RankingTarget

KINDS = (
    "a ranker of `train`, a snapshot or its file, {query: [item, ...]}, {query: {item: "
    f"score}}}}, a DataFrame with query, item and score or position, or a file *{JSONL}"
)


def policies_named(
    named: Mapping[str, Any],
    source: CountedLog,
    *,
    against: str = LOGGED,
    temperature: float = 1.0,
) -> Policies:
    """All of them by their names.

    Parameters
    ----------
    temperature
        What scores of rankers are divided by; scores in rankings are drawn from as they
        are given.

    Raises
    ------
    ValueError
        Where one is no policy, or nobody has the name of the base.
    """
    if not isinstance(named, Mapping):
        raise ValueError(
            f"policies must be {{name: policy}}; got a {type(named).__name__}: give "
            'it a name, as in {"new": ranker}'
        )
    named = {str(name): policy for name, policy in named.items()}
    if not 0.0 <= temperature < math.inf:
        raise ValueError(
            f"temperature must be 0 or above, and finite; got {temperature:g}: at 0 "
            "the best always goes first"
        )
    found = Policies({}, against, {}, set())
    versions = VersionsOf(source, temperature)
    if not named or LOGGED in named:
        raise ValueError(
            f"policies must be one or more, by names other than {LOGGED!r}; got "
            f"{', '.join(named) or 'none'}"
        )
    if against not in (LOGGED, *named):
        raise ValueError(
            f"against must be one of {', '.join((LOGGED, *named))}; got {against!r:.60}"
            f": {meant(against, (LOGGED, *named))}"
        )
    for name, policy in named.items():
        snapshot = _snapshot_of(name, policy)
        if snapshot is None:
            found.targets[name] = _rankings(name, policy)
        else:
            versions.add(found, name, snapshot)
    return found


def check_how(weights: object, ranks: object) -> None:
    """Refuse what ranks cannot be worth, and a number of them that there cannot be.

    Raises
    ------
    ValueError
    """
    if weights not in WEIGHTS:
        raise ValueError(
            f"weights must be one of {', '.join(WEIGHTS)}; got {weights!r:.60}"
            f"{suggestion(str(weights), WEIGHTS)}"
        )
    if not isinstance(ranks, Integral) or int(ranks) < 0:
        raise ValueError(
            f"ranks must be a whole number, 0 or above; got {ranks!r:.60}: at 0 "
            "policies show as many items as lists did"
        )


def _snapshot_of(name: str, policy: Any) -> Snapshot | None:
    """The snapshot that a policy is, or lies in; None of rankings."""
    if isinstance(policy, str | Path):
        return None if str(policy).endswith(JSONL) else snapshot_in(Path(policy))
    if isinstance(policy, Snapshot):
        return policy
    if not hasattr(policy, "get_params"):
        return None
    found: Snapshot | None = getattr(policy, "snapshot_", None)
    if found is None:
        raise ValueError(
            f"a ranker must be fitted before it is valued; {name!r:.60} is not: call "
            "fit(log), or take what log.train() gives"
        )
    return found


def _rankings(name: str, policy: Any) -> RankingTarget:
    if isinstance(policy, str | Path):
        return RankingTarget(rankings_of(Path(policy)))
    if is_frame(policy):
        lines = _lines_of_frame(name, policy)
    elif isinstance(policy, Mapping):
        lines = _lines_of_mapping(name, policy)
    else:
        raise ValueError(
            f"a policy must be {KINDS}; {name!r:.60} is a {type(policy).__name__}"
        )
    found = {}
    for line in lines:
        query = line.query()
        if query in found:
            raise ValueError(
                f"a query must be ranked once; {name!r:.60} ranks {query!r:.100} twice"
            )
        try:
            found[query] = line.ranking()
        except ValueError as error:
            raise ValueError(
                f"{name!r:.60} must rank each query; {error}; of {query!r:.100}"
            ) from None
    return RankingTarget(found)


def _lines_of_mapping(name: str, policy: Mapping[str, Any]) -> Iterator[Line]:
    for query, ranked in policy.items():
        if isinstance(ranked, Mapping):
            scores = [float(score) for score in ranked.values()]
            yield Line(str(query), [*map(str, ranked)], scores)
        elif isinstance(ranked, Iterable) and not isinstance(ranked, str):
            yield Line(str(query), [*map(str, ranked)])
        else:
            raise ValueError(
                f"rankings must be lists of items, or {{item: score}}; {name!r:.60} "
                f"has a {type(ranked).__name__} of {query!r:.100}"
            )


def _lines_of_frame(name: str, frame: Any) -> Iterator[Line]:
    table = pa.table(frame)
    names: Sequence[str] = table.column_names
    by = next((each for each in ("score", "position") if each in names), None)
    missing = [each for each in ("query", "item") if each not in names]
    if missing or by is None:
        lacking = (missing or ["score"])[0]
        raise ValueError(
            f"rankings must have columns query, item, and score or position; "
            f"{name!r:.60} lacks {lacking}: {meant(lacking, names)}"
        )
    rows: dict[str, list[tuple[str, float]]] = defaultdict(list)
    columns = [table[each].to_pylist() for each in ("query", "item", by)]
    for query, item, number in zip(*columns, strict=True):
        rows[str(query)].append((str(item), _number(name, item, by, number)))
    for query, items in rows.items():
        if by == "score":
            yield Line(query, [item for item, _ in items], [x for _, x in items])
        else:
            yield Line(query, [item for item, _ in sorted(items, key=_position)])


def _number(name: str, item: object, by: str, value: object) -> float:
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    raise ValueError(
        f"rankings must have a finite {by} in each row; {name!r:.60} has {value!r:.60} "
        f"of item {item!r:.60}: fill it, or drop the row"
    )


def _position(row: tuple[str, float]) -> float:
    return row[1]
