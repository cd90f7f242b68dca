"""Whether features were logged of the candidates of a query that training asks for."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from rankstream.operations.terminal.counts import counted
from rankstream.settings import ModelSettings, Settings
from rankstream.wire.routing import partition_of_route, route_of_query
from streams.fold.candidates_fold import COUNTS, STATE_TOPIC
from streams.statistics.keys import ScopeName


def sets_to_be_logged(
    names: Sequence[ScopeName], models: Mapping[str, ModelSettings]
) -> set[bytes]:
    """Candidate sets of lists by models whose rankers log features.

    Parameters
    ----------
    names
        Scopes of one query.
    """
    return {
        name.candidate_set
        for name in names
        if not name.is_growing and _logs(name.intervention, models)
    }


def _logs(intervention: str, models: Mapping[str, ModelSettings]) -> bool:
    """Whether it is a model, or a version of one, that logs them."""
    name = intervention if intervention in models else intervention.rpartition("@")[0]
    return name in models and models[name].logs_candidates


def sets_logged(settings: Settings, query: str) -> set[bytes]:
    """Candidate sets of a query with features in the topic `candidates`.

    As the fold knows it at its last checkpoint: features themselves are not read.
    """
    # Kafka's client is loaded only where it is needed.
    from producers.topic_reader import TopicReader  # noqa: PLC0415

    found: set[bytes] = set()
    with TopicReader(settings) as reader:
        n_partitions = len(reader.partitions(STATE_TOPIC))
        if not n_partitions:
            return found
        partition = partition_of_route(route_of_query(query), n_partitions)
        for record in reader.records(STATE_TOPIC, {partition: 0}):
            if record.key is None or record.key == COUNTS:
                continue
            of_query, name = msgspec.msgpack.decode(record.key)
            if of_query == query:
                (found.add if record.value else found.discard)(name)
    return found


def never_logged_label(wanted: Collection[bytes], logged: Collection[bytes]) -> str:
    """That features are missing; empty where all are there."""
    n_missing = len(set(wanted) - set(logged))
    if not n_missing:
        return ""
    return (
        f"features of candidates were never logged for "
        f"{counted(n_missing, 'candidate set')} of {len(wanted):,} that models with "
        "`log_candidates` ranked: nothing can be trained on these; rankers log them "
        "with the first list that they rank, once their snapshot says so"
    )
