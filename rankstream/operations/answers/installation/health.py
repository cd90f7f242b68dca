"""Health of a pipeline: counters of its workers, and losses that operators accepted."""

import contextlib
import http.client
from collections.abc import Iterable, Iterator, Mapping

from producers.topic_reader import TopicReader
from rankstream.settings import Settings
from rankstream.wire.schemas import LogRefused
from streams.kafka.state.lost_records import AcceptedLoss, is_dispensable
from streams.kafka.state.resume_position import POSITION_KEY, decode_position
from streams.topology import STAGES
from streams.worker_roles import ROLES, kinds_of

TAIL_OFFSETS = 500
"""Every commit writes the position, with no more than a few records after it."""


def accepted_losses(reader: TopicReader) -> list[AcceptedLoss]:
    """All of them, by topic and partition; of topics that exist.

    A position of another release says nothing.
    """
    found: list[AcceptedLoss] = []
    for kind in filter(is_dispensable, STAGES):
        state_topic = kind.state_topics[0]
        if not reader.partitions(state_topic):
            continue
        for partition, packed in sorted(dict(_positions(reader, state_topic)).items()):
            try:
                losses = decode_position(packed).losses
            except LogRefused:
                continue
            found += [AcceptedLoss(kind.source, partition, each) for each in losses]
    return found


def loss_in_words(accepted: AcceptedLoss) -> str:
    """A loss in words.

    Examples
    --------
    >>> print(loss_in_words(AcceptedLoss.parsed("queries:0:5-8")))
    queries[0]: offsets 5-8 (4) were lost unread, as an operator accepted
    """
    return (
        f"{accepted.topic}[{accepted.partition}]: offsets {accepted.loss} "
        f"({len(accepted.loss)}) were lost unread, as an operator accepted"
    )


def losses_in_words(losses: Iterable[AcceptedLoss]) -> str:
    """All of them in a sentence; empty where there are none."""
    said = "; ".join(map(loss_in_words, losses))
    return said and f"{said}."


def _positions(reader: TopicReader, state_topic: str) -> Iterator[tuple[int, bytes]]:
    """Partition and resume position, the last of each partition last."""
    for record in reader.last_records(state_topic, TAIL_OFFSETS):
        if record.key == POSITION_KEY and record.value:
            yield record.partition, record.value


def pages_of_roles(settings: Settings) -> dict[str, dict[str, int] | None]:
    """Counts of each role that the settings need, as its page has them.

    None where a page does not answer; empty where the settings have no pages.
    """
    if not settings.metrics.port:
        return {}
    pages = {
        name: _page(settings.metrics.host, settings.metrics.port + role.metrics_port)
        for name, role in ROLES.items()
        if role.is_needed(settings)
    }
    return {
        name: None if page is None else added_up(page) for name, page in pages.items()
    }


def counts_of_stages(
    pages: Mapping[str, Mapping[str, int] | None],
) -> dict[str, int]:
    """Counts of all roles that fold events, added up."""
    total: dict[str, int] = {}
    for role in filter(kinds_of, pages):
        for name, count in (pages[role] or {}).items():
            total[name] = total.get(name, 0) + count
    return total


def _page(host: str, port: int) -> str | None:
    """The page, which is empty before a role counts; None where nobody answers."""
    connection = http.client.HTTPConnection(host, port, timeout=1.0)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def added_up(page: str) -> dict[str, int]:
    """Counts of a Prometheus page by name, over all labels.

    Examples
    --------
    >>> added_up('rankstream_late_total{partition="0"} 2.0')
    {'late': 2}
    """
    counts: dict[str, int] = {}
    for line in page.splitlines():
        name, _, value = line.partition("} ")
        if not line.startswith("rankstream_") or not value:
            continue
        plain = name.partition("{")[0].removeprefix("rankstream_")
        plain = plain.removesuffix("_total")
        with contextlib.suppress(ValueError, OverflowError):  # NaN counts nothing
            counts[plain] = counts.get(plain, 0) + int(float(value))
    return counts
