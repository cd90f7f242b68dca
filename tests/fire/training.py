"""What was trained under fire, against its records, its log, and what was shown."""

import contextlib
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from producers.event_producer import SendFailed, send_records
from producers.formats.canonical_dump import Header, write_dump
from producers.topic_reader import TopicReader
from rankstream.operations.answers.models.verification import verified
from rankstream.settings import Settings
from rankstream.snapshots import SnapshotError, decode_snapshot
from rankstream.wire.envelope import Pointer, pointer_of
from rankstream.wire.models.deployments import is_deployment
from rankstream.wire.models.snapshot_names import sha256_of
from rankstream.wire.models.training import (
    SCHEMA,
    Position,
    Request,
    RunRecord,
    decode_record,
    decode_training_key,
    encode_record,
    training_key,
)
from rankstream.wire.models.training import TRAINING as UNDER_WAY
from rankstream.wire.topics import EVENTS, PREFERENCES, SNAPSHOTS, TRAINING
from streams.comparisons.intervention_lists import CLICKS, LISTS, merged
from streams.recount.differences import Verdict
from tests.fire.events import ACTIONS
from tests.fire.expectations import Expected
from tests.fire.letters import last_values
from tests.fire.lists import ON_POLICY, TRAINED

FIRST = 300
"""Lists that must be counted before anything is trained."""

PATIENCE_S = 600.0
"""How long it may last that is under way, or is due, when all is folded."""

OPEN_S = 400.0
"""How long sources are kept open for a first training."""

ASK_S = 20.0


def trained_config(n_events: int) -> str:
    """Settings of a model that trains itself several times in a run.

    Half of the queries are held out, and hardly any support is asked for: few lists
    live at a time, and where none of them were of a query held out, or items of it were
    shown by chance too seldom, nothing was ever trained.
    """
    return f"""
[models.{TRAINED}]
features = 4
versions = "trained"
[models.{TRAINED}.training]
first = {FIRST}
last = {max(2 * FIRST, n_events // 3)}
interventions = 6
epochs = 3
held_out = 0.5
least_support = 0.01
most_unsupported = 1.0
examination = [1.0, 0.7, 0.5, 0.4, 0.3]
"""


class Written:
    """What the topics say of the trained model.

    Attributes
    ----------
    runs
        By pointer; a run that was written twice is `doubled`.
    digests
        Of the snapshots, by pointer.
    noted
        Names that were deployed.
    """

    def __init__(self, settings: Settings) -> None:
        self.runs: dict[Pointer, RunRecord] = {}
        self.doubled: list[str] = []
        self.digests: dict[Pointer, set[bytes]] = {}
        self.noted: list[str] = []
        self.position: Position | None = None
        self.state = ""
        with TopicReader(settings) as reader:
            for record in reader.records(TRAINING):
                if record.value:
                    self._take_training(record.key or b"", record.value)
            for record in reader.records(SNAPSHOTS):
                if record.value:
                    self._take_snapshot(record.key or b"", record.value)

    def _take_training(self, key: bytes, value: bytes) -> None:
        named = decode_training_key(key)
        found: Any = decode_record(named.kind, value) if named else None
        if isinstance(found, RunRecord):
            at = Pointer(found.epoch, found.version)
            if at in self.runs:
                self.doubled.append(found.intervention)
            self.runs[at] = found
        elif isinstance(found, Position):
            self.position = found
        elif named and named.kind == "status":
            self.state = found.state

    def _take_snapshot(self, key: bytes, value: bytes) -> None:
        if is_deployment(key, value):
            self.noted.append(key.decode().removesuffix("/deployed"))
            return
        try:
            snapshot = decode_snapshot(value)
        except SnapshotError:
            return
        if snapshot.model == TRAINED:
            at = pointer_of(snapshot)
            self.digests.setdefault(at, set()).add(sha256_of(value))


def ask_for_intervention(settings: Settings) -> None:
    """As `rankstream intervene` does."""
    now_ms = time.time_ns() // 1_000_000
    request = Request(SCHEMA, f"at {now_ms}", now_ms)
    record = training_key("request", TRAINED), encode_record(request)
    send_records(settings, TRAINING, [record])


class Asking:
    """Asks for a training again and again, in a thread, until stopped.

    Parameters
    ----------
    every_s
        From one request to the next; None asks for none.
    """

    def __init__(self, settings: Settings, every_s: float | None) -> None:
        self.n_asked = 0
        self._settings, self._every_s = settings, every_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin; the first request is after a pause."""
        if self._every_s is not None:
            self._thread.start()

    def stop(self) -> None:
        """Ask for no more."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(30)

    def _run(self) -> None:
        while not self._stopped.wait(self._every_s):
            # A broker that has no time for it is asked again at the next turn.
            with contextlib.suppress(SendFailed):
                ask_for_intervention(self._settings)
                self.n_asked += 1


def n_trained(settings: Settings) -> int:
    """How often the model was trained."""
    return len(Written(settings).runs) if TRAINED in settings.models else 0


def await_trained(settings: Settings, expected: Expected) -> None:
    """Ask for a training until there was one, or patience is over.

    While the sources are open: once they end no list lives, and nothing is left to be
    trained from.
    """
    deadline = time.monotonic() + OPEN_S
    asking = Asking(settings, ASK_S)
    asking.start()
    try:
        while len(expected.shown) > FIRST and not n_trained(settings):
            if time.monotonic() > deadline:
                return
            time.sleep(0.5)
    finally:
        asking.stop()


def settled(settings: Settings, expected: Expected, *, must_train: bool) -> Written:
    """What was written once it was trained and is not any more, or patience is over."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = Written(settings)
        is_trained = not must_train or bool(found.runs) or len(expected.shown) <= FIRST
        is_settled = is_trained and found.state != UNDER_WAY
        if is_settled or time.monotonic() > deadline:
            return found
        time.sleep(0.5)


def compare_trained(
    settings: Settings, expected: Expected, folder: Path, *, must_train: bool
) -> Verdict:
    """Whole interventions, made again from the log; and what was shown of them.

    `must_train` says that there must be one. A record of twenty hours ahead lets time
    pass and features go, and whether one comes before is the machine's business.
    """
    verdict = Verdict()
    if TRAINED not in settings.models:
        return verdict
    written = Written(settings)
    if must_train and not written.runs and len(expected.shown) > FIRST:
        verdict.find("lost", f"{TRAINED} must be trained; it never was")
    _compare_published(written, verdict)
    _compare_shown(settings, expected, verdict)
    if written.runs:
        _make_again(settings, max(written.runs), folder, verdict)
    return verdict


def _compare_published(written: Written, verdict: Verdict) -> None:
    """Each run has its snapshot and its note, and nothing is there without a run."""
    for name in written.doubled:
        verdict.find("double", f"run of {name}")
    names = Counter(run.intervention for run in written.runs.values())
    for name in (Counter(written.noted) - names).elements():
        verdict.find("extra", f"deployment of {name}")
    for name in (names - Counter(written.noted)).elements():
        verdict.find("lost", f"deployment of {name}")
    newest = max(written.runs, default=None)
    for at, run in written.runs.items():
        if at not in written.digests:
            # Of older versions compaction may have been faster than this look.
            if at == newest:
                verdict.find("lost", f"snapshot of {run.intervention}")
        elif written.digests[at] != {run.sha256}:
            verdict.find("wrong", f"snapshot of {run.intervention}")
    for at in written.digests.keys() - written.runs.keys():
        if at != Pointer(0, 0):
            verdict.find("extra", f"snapshot {at} of {TRAINED} is of no run")
    position = written.position
    must_be = written.runs[newest].intervention if newest else ""
    if must_be != (position.intervention if position else ""):
        verdict.find("wrong", f"{TRAINED} must stand behind {must_be}; {position}")


def _compare_shown(settings: Settings, expected: Expected, verdict: Verdict) -> None:
    """Lists and clicks of an intervention, as they were sent."""
    counts = Counter[str]()
    for one in expected.shown.values():
        if one.intervention == ON_POLICY:
            ranks = {rank for _, rank, action in one.marks if action not in ACTIONS}
            counts["lists"] += 1
            counts["clicks"] += len(ranks)
    with TopicReader(settings) as reader:
        records = list(reader.records(PREFERENCES))
    sums = merged(last_values((each.key, each.value) for each in records))
    found = sums[ON_POLICY].groups.sum(axis=0) if ON_POLICY in sums else (0, 0)
    for name, column in (("lists", LISTS), ("clicks", CLICKS)):
        what = f"{name} of {ON_POLICY}"
        verdict.compare(what, counts[name], int(found[column]))


def _make_again(
    settings: Settings, at: Pointer, folder: Path, verdict: Verdict
) -> None:
    """The last snapshot from a dump of the log, to the last byte."""
    dump = folder / "events.dump"
    with TopicReader(settings) as reader:
        header = Header(EVENTS, len(reader.partitions(EVENTS)))
        records = ((x.partition, x.value or b"") for x in reader.records(EVENTS))
        write_dump(dump, header, records)
    try:
        found = verified(settings, TRAINED, str(at), dump)
    except (RuntimeError, ValueError) as error:
        verdict.find("wrong", f"{TRAINED}@{at} made again: {error}")
        return
    finally:
        dump.unlink(missing_ok=True)
    if not found.is_equal:
        verdict.find("wrong", f"{TRAINED}@{at} made again: {found.differences}")
