"""The least rights of each role at brokers that ask for them.

They follow from the tables of stages and roles; nothing here names a topic but for
programs beside the worker. Names are those on the cluster.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rankstream.settings import Settings
from rankstream.wire.nearest_name import suggestion
from rankstream.wire.rights import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CREATE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    READ,
    TOPIC,
    WRITE,
    WRITER,
    Right,
)
from rankstream.wire.topics import (
    CLICKS,
    EVENTS,
    LATE,
    QUERIES,
    dead_letters,
    full_name,
)
from streams.topology import RESTORE_WRITER, group_of, topics_of, writer_of
from streams.worker_roles import ROLES, kinds_of


@dataclass(frozen=True)
class Program:
    """What is no role of a worker, and reaches Kafka.

    Parameters
    ----------
    rights
        Those on what its topics, groups and transactions are called.
    """

    name: str
    summary: str
    rights: Callable[[Settings], Iterable[Right]]


def rights_of(name: str, settings: Settings) -> list[Right]:
    """The least that a role of a worker, or another program, must be allowed.

    Raises
    ------
    ValueError
        Where there is none of that name.
    """
    known = (*ROLES, *PROGRAMS)
    if name in PROGRAMS:
        found = PROGRAMS[name].rights(settings)
    elif name in ROLES:
        found = _of_role(name, settings)
    else:
        near = suggestion(name, known)
        raise ValueError(
            f"a role must be one of {', '.join(known)}; got {name!r}{near}"
        )
    return sorted(set(_least(found)))


def _least(rights: Iterable[Right]) -> Iterator[Right]:
    """Without those that follow from others: who may read or write may describe."""
    all_of = set(rights)
    for each in all_of:
        wider = [each._replace(operation=other) for other in (READ, WRITE, ALTER)]
        if each.operation != DESCRIBE or all_of.isdisjoint(wider):
            yield each


def _of_role(name: str, settings: Settings) -> Iterator[Right]:
    role, kinds = ROLES[name], kinds_of(name)
    # Each process looks at all topics before it starts, and at its own ones later.
    yield from _on_topics(_all_topics(settings), settings, DESCRIBE, DESCRIBE_CONFIGS)
    states = [topic for kind in kinds for topic in kind.state_topics]
    sources = [kind.source for kind in kinds]
    outputs = [topic for kind in kinds for topic in kind.outputs]
    yield from _on_topics([*sources, *states, *role.sources], settings, READ)
    yield from _on_topics([*outputs, *states, *role.outputs], settings, WRITE)
    foreign = [*role.foreign(settings)]
    yield from (Right(TOPIC, topic, READ) for topic in foreign)
    if kinds or foreign:
        yield Right(GROUP, group_of(settings.namespace, name), READ)
    for kind in kinds:
        # One for each partition of the source, of which there may be more later.
        prefix = writer_of(kind.name, kind.source, "")
        yield Right(
            WRITER, full_name(settings.namespace, prefix), WRITE, is_prefix=True
        )
    for writer in role.writers(settings):
        yield Right(WRITER, full_name(settings.namespace, writer), WRITE)


def _all_topics(settings: Settings) -> list[str]:
    return [topic.name for topic in topics_of(settings.kafka)]


def _on_topics(
    topics: Iterable[str], settings: Settings, *operations: str
) -> Iterator[Right]:
    for topic in topics:
        for operation in operations:
            yield Right(TOPIC, full_name(settings.namespace, topic), operation)


def _groups(settings: Settings, operation: str) -> Iterator[Right]:
    for name, role in ROLES.items():
        if kinds_of(name) or any(role.foreign(settings)):
            yield Right(GROUP, group_of(settings.namespace, name), operation)


def _serving(settings: Settings) -> Iterator[Right]:
    return _on_topics((QUERIES, CLICKS), settings, WRITE)


def _feeding(settings: Settings) -> Iterator[Right]:
    yield from _serving(settings)
    # To say what became of the events.
    letters = (dead_letters(QUERIES), dead_letters(CLICKS), LATE)
    yield from _on_topics(letters, settings, READ)
    yield from _on_topics((EVENTS,), settings, DESCRIBE)
    yield from _groups(settings, DESCRIBE)


def _reading(settings: Settings) -> Iterator[Right]:
    yield from _on_topics(_all_topics(settings), settings, READ, DESCRIBE_CONFIGS)
    yield from _groups(settings, DESCRIBE)


def _operating(settings: Settings) -> Iterator[Right]:
    topics, changed = _all_topics(settings), (CREATE, ALTER, ALTER_CONFIGS)
    yield from _on_topics(topics, settings, READ, WRITE, DESCRIBE_CONFIGS, *changed)
    yield from _groups(settings, READ)
    for name, role in ROLES.items():
        if role.is_needed(settings):
            yield from (x for x in _of_role(name, settings) if x.resource == WRITER)
    yield Right(WRITER, full_name(settings.namespace, RESTORE_WRITER), WRITE)
    yield Right(CLUSTER, "", DESCRIBE)


PROGRAMS = {
    each.name: each
    for each in (
        Program("serve", "events and rankings over HTTP", _serving),
        Program("rank", "services that rank in their own process", lambda _: ()),
        Program("feed", "feed and replay, which say what became of it", _feeding),
        Program("monitor", "monitor, doctor, and what reads only", _reading),
        Program("operate", "topics, and what operators write", _operating),
    )
}
"""By name."""
