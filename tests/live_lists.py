"""Lists that are shown now, each clicked once, from a sender whom nobody holds back.

Every one of them must be applied: `assert_all_applied` compares what was acknowledged
with what the pipeline's state says, and has the log counted again by the recount.
"""

import http.client
import json
import re
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from typing import Self

from deploy.process import free_port
from producers.event_producer import EventProducer
from producers.topic_reader import read_records
from rankstream.operations.recount.log import recount_topics, steady_state
from rankstream.settings import Settings
from rankstream.wire.events import decode_interaction_record
from rankstream.wire.topics import CLICKS, INTERACTIONS, QUERIES, dead_letters
from streams.worker_roles import ROLES, role_of

ASIDE = ("late", "orphan", "duplicate", "dead_letter", "pending")
TURN_S = 0.05

FOLD = role_of("fold")


def soon() -> str:
    """Settings under which the state follows soon, and a page of each role."""
    return (
        "[delivery]\nstate_s = 1.0\nsession_timeout_s = 6.0\n"
        f"[metrics]\nport = {free_port(len(ROLES))}\n"
    )


def query_of(number: int) -> str:
    """One of fifty."""
    return f"q{number % 50}"


class LiveLists:
    """A sender in a thread; `finish` ends all sources, and so closes all windows.

    Parameters
    ----------
    per_s
        Lists a second.
    query_of
        The query of each list, by number.
    padding
        Bytes that each list carries along.

    Attributes
    ----------
    n_lists
        Shown so far; each is clicked.
    by_query
        The same, by query.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        per_s: float = 100.0,
        query_of: Callable[[int], str] = query_of,
        padding: int = 0,
    ) -> None:
        self.n_lists = 0
        self.by_query: Counter[str] = Counter()
        self._per_s = per_s
        self._query_of = query_of
        self._padding = "." * padding
        self._producer = EventProducer(settings)
        self._enough = threading.Event()
        self._failed: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()
        self._producer.close()

    @property
    def n_acknowledged(self) -> int:
        """Events that the broker is known to have."""
        return self._producer.acknowledged

    def finish(self) -> None:
        """Send nothing more, wait until the broker has it all, and say that it ends."""
        self._enough.set()
        self._thread.join()
        if self._failed:
            raise self._failed[0]
        self._producer.end()

    def _run(self) -> None:
        began_s = time.monotonic()
        try:
            while not self._enough.wait(TURN_S):
                while self.n_lists < self._per_s * (time.monotonic() - began_s):
                    self._show(int(time.time() * 1_000))
                self._producer.nudge()
        except BaseException as error:  # noqa: BLE001  the test must hear of it
            self._failed.append(error)

    def _show(self, now_ms: int) -> None:
        query = self._query_of(self.n_lists)
        named = {"impression_id": f"i{self.n_lists}", "query_id": query}
        shown = {"at_ms": now_ms, "shown": ["a", "b", "c"]}
        more = {"attributes": {"padding": self._padding}} if self._padding else {}
        self._send(QUERIES, named | shown | more)
        self._send(CLICKS, named | {"at_ms": now_ms, "position": 1})
        self.n_lists += 1
        self.by_query[query] += 1

    def _send(self, topic: str, event: dict[str, object]) -> None:
        self._producer.send(topic, json.dumps(event).encode())


def outcomes(settings: Settings) -> Counter[str]:
    """What became of the events, as the state of the fold and dead letters say."""
    counts: Counter[str] = Counter()
    for found in steady_state(settings).found(settings).values():
        counts.update(found.outcomes or {})
    for topic in (QUERIES, CLICKS):
        counts["dead_letter"] += sum(
            1 for _ in read_records(settings, dead_letters(topic))
        )
    return counts


def closed(settings: Settings) -> int:
    """Interactions that came out, of whatever sender."""
    return sum(
        len(decode_interaction_record(record.value or b"").interactions)
        for record in read_records(settings, INTERACTIONS)
    )


def applied(settings: Settings) -> int:
    """Lists and clicks whose windows are closed, as the page of the role says."""
    return _counted(settings, r"applied_\w+_total")


def joined(settings: Settings) -> int:
    """The same, and those that wait for the end of their windows."""
    return _counted(settings, r"(?:applied_\w+_total|pending)")


def _counted(settings: Settings, name: str) -> int:
    """A count of the fold, over all partitions; 0 while it has no page."""
    url = f"http://127.0.0.1:{settings.metrics.port + FOLD.metrics_port}/metrics"
    try:
        with urllib.request.urlopen(url, timeout=10) as page:
            said = page.read().decode()
    except (OSError, http.client.HTTPException):  # it is being started again
        return 0
    counts = re.findall(rf"(?m)^rankstream_{name}\{{.*\}} (\S+)", said)
    return sum(int(float(count)) for count in counts)


def assert_all_applied(settings: Settings, lists: LiveLists) -> None:
    """Each exactly once, by the state and by the recount of the log."""
    counts = outcomes(settings)
    assert {name: counts[name] for name in ASIDE} == dict.fromkeys(ASIDE, 0)
    assert counts["applied_impressions"] == counts["applied_clicks"] == lists.n_lists
    verdict = recount_topics(settings)
    assert verdict.is_clean, verdict.as_dict()
