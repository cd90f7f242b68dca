"""Policies that are to be valued: versions of models, and rankings in files."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from rankstream.operations.answers.sources import CountedLog
from rankstream.wire.envelope import (
    Pointer,
    Snapshot,
    is_pointer,
    pointer_from,
    pointer_of,
)
from rankstream.wire.nearest_name import suggestion
from rankstream.wire.routing import normalised_query
from rankstream.wire.segments import query_in_segment
from streams.estimation.question import LOGGED
from streams.estimation.targets import (
    QueryRanking,
    RankingTarget,
    SnapshotTarget,
    Target,
)
from streams.training.feature_records import FeatureRecords

JSONL = ".jsonl"

OTHER_FILES = (".csv", ".json", ".ndjson", ".parquet", ".tsv", ".txt")
"""Endings of files that are no rankings, and of no name of a model."""

FORM = (
    '{"query_id": "shoes", "items": ["a", "b"]}, and with "scores": [1.5, 0.2] and '
    '"temperature": 1.0 where lists are drawn by Plackett-Luce'
)


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """A query as it is ranked.

    Parameters
    ----------
    query_id
        As events name it.
    items
        Ids; without scores the first one is always first.
    scores
        One for each item.
    temperature
        What scores are divided by; 1 where there are scores and it is not told. At 0
        the first item is always first, whatever its score.
    segment
        In which it is ranked, where `ingestion.segment` makes one part of queries.
    """

    query_id: str
    items: list[str]
    scores: list[float] | None = None
    temperature: float | None = None
    segment: str | None = None

    def query(self) -> str:
        """As statistics are kept by it.

        Raises
        ------
        ValueError
            Where the segment is none.
        """
        if self.segment is None:
            return normalised_query(self.query_id)
        return query_in_segment(self.query_id, self.segment)

    def ranking(self) -> QueryRanking:
        """What the policy does with it.

        Raises
        ------
        ValueError
        """
        n_items = len(self.items)
        if not n_items or len({*self.items}) < n_items:
            raise ValueError("items must be one or more, each once")
        if self.scores is None:
            if self.temperature is not None:
                raise ValueError("a temperature must have scores beside it")
            return QueryRanking((*self.items,))
        temperature = 1.0 if self.temperature is None else self.temperature
        if not temperature >= 0.0:
            raise ValueError(f"temperature must be 0 or above; got {temperature:g}")
        with np.errstate(over="ignore"):
            scores = np.array(self.scores, np.float64) / (temperature or 1.0)
        if len(scores) != n_items or not np.isfinite(scores).all():
            raise ValueError(f"scores must be {n_items} finite numbers, one of an item")
        return QueryRanking((*self.items,), scores if temperature else None)


_decode = msgspec.json.Decoder(Line).decode


def rankings_of(file: Path) -> dict[str, QueryRanking]:
    """Rankings by query.

    Raises
    ------
    ValueError
        Where a line is no ranking, or a query comes again; it names the line.
    OSError
        Where the file cannot be read.
    """
    if not file.exists():
        raise ValueError(f"a file must be there: correct the path; at {file}")
    found: dict[str, QueryRanking] = {}
    with file.open("rb") as lines:
        for number, text in enumerate(lines, 1):
            if not text.strip():
                continue
            try:
                line = _decode(text)
                query, ranking = line.query(), line.ranking()
            except ValueError as error:
                raise ValueError(
                    f"a ranking must be a line such as {FORM}; {error}; in line "
                    f"{number} of {file}"
                ) from error
            if query in found:
                raise ValueError(
                    f"a query must be ranked once; {query!r:.100} is again in line "
                    f"{number} of {file}"
                )
            found[query] = ranking
    if not found:
        raise ValueError(f"rankings must be of one query or more; {file} has none")
    return found


class Policies(NamedTuple):
    """What is to be valued.

    Parameters
    ----------
    targets
        By name.
    base
        The name of what they are compared with.
    fitted_on
        Groups whose clicks versions came from, by name; None where that is not known.
        Versions that no click has moved are not there.
    models
        Whose versions they are.
    """

    targets: dict[str, Target]
    base: str
    fitted_on: dict[str, frozenset[int] | None]
    models: set[str]


def files_named(words: Iterable[str]) -> dict[str, Target]:
    """Policies of files among the words, by word.

    Raises
    ------
    ValueError, OSError
        As `rankings_of`, and where a word names a file of another kind.
    """
    words = [*words]
    for word in words:
        if word.endswith(OTHER_FILES):
            raise ValueError(
                f"rankings must be in a file FILE{JSONL}, with a line for each query, "
                f"such as {FORM}; got {word}: `rankstream rank --out FILE{JSONL}` "
                "writes such a file"
            )
    return {
        word: RankingTarget(rankings_of(_path(word)))
        for word in words
        if word.endswith(JSONL)
    }


def policies_of(
    words: Sequence[str],
    source: CountedLog,
    rankings: Mapping[str, Target],
    *,
    against: str = LOGGED,
    temperature: float = 1.0,
) -> Policies:
    """All policies that are named, those of files as they were read.

    Parameters
    ----------
    words
        MODEL, MODEL@EPOCH.VERSION, FILE.jsonl or NAME=FILE.jsonl.
    rankings
        See `files_named`.
    against
        Whom the others are compared with, by one of the words or its name.
    temperature
        What scores of models are divided by before lists are drawn.

    Raises
    ------
    ValueError
        Where a model or a version is not there, or names are not what they must be.
    """
    names: dict[str, str] = {}
    found = Policies({}, "", {}, set())
    versions = VersionsOf(source, temperature)
    for word in words:
        snapshot = None
        if word in rankings:
            name = _name_of_file(word)
        else:
            model, place = _version(word)
            snapshot = source.snapshot(model, place)
            name = f"{model}@{pointer_of(snapshot)}"
        if name in found.targets or name == LOGGED:
            raise ValueError(
                f"each policy must have a name of its own, other than {LOGGED!r}; got "
                f"{name!r}: name files NAME=FILE{JSONL}"
            )
        if snapshot is None:
            found.targets[name] = rankings[word]
        else:
            versions.add(found, name, snapshot)
        names[word] = name
    base = names.get(against, against)
    if base not in (LOGGED, *found.targets):
        raise ValueError(
            f"--against must be one of {', '.join((LOGGED, *found.targets))}; got "
            f"{base!r}{suggestion(base, (LOGGED, *found.targets))}"
        )
    return found._replace(base=base)


class VersionsOf:
    """Versions of models, as policies of a log that has features of candidates.

    Parameters
    ----------
    source
        Has the features.
    temperature
        What scores are divided by before lists are drawn.
    """

    def __init__(self, source: CountedLog, temperature: float) -> None:
        self._source = source
        self._temperature = temperature
        # Those of one list of features are read once.
        self._features: dict[tuple[bytes, int], FeatureRecords] = {}

    def add(self, policies: Policies, name: str, snapshot: Snapshot) -> None:
        """Add a version under a name."""
        key = snapshot.features_hash, snapshot.n_features
        if key not in self._features:
            self._features[key] = FeatureRecords(
                self._source.candidates(), *key, n_partitions=self._source.n_partitions
            )
        policies.targets[name] = SnapshotTarget(
            snapshot, self._features[key], self._temperature
        )
        policies.models.add(snapshot.model)
        if snapshot.groups or snapshot.updates:
            policies.fitted_on[name] = frozenset(snapshot.groups) or None


def _path(word: str) -> Path:
    _, mark, path = word.partition("=")
    return Path(path) if mark and not Path(word).exists() else Path(word)


def _name_of_file(word: str) -> str:
    name, mark, _ = word.partition("=")
    return name if mark and not Path(word).exists() else Path(word).stem


def _version(word: str) -> tuple[str, Pointer | None]:
    """A model, and which version of it."""
    model, mark, version = word.rpartition("@")
    if mark and is_pointer(version.encode()):
        return model, pointer_from(version.encode())
    return word, None
