"""Canaries judged as lists come: the share rises, all are served it, or nobody is.

It stores nothing: a judgement is a function of the committed sums and of the record of
the canary. Once all other writers of the model are fenced, the record is read again: of
a canary that somebody changed meanwhile nothing is decided.
"""

import asyncio
import contextlib
import logging
import math
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
from aiokafka.errors import KafkaError

from models.evaluation.canary_judgement import Judgement, Verdict
from rankstream.settings import Settings
from rankstream.wire.models.canaries import Canary
from rankstream.wire.models.canary_reports import OUT, CanaryReport, encode_report
from rankstream.wire.models.changes import (
    CANARY,
    PROMOTED,
    UNDECIDED,
    WITHDRAWN,
    Change,
    History,
)
from rankstream.wire.schemas import SchemaRefused
from rankstream.wire.topics import EVALUATIONS
from streams.comparisons.canary_lists import tag_of
from streams.comparisons.canary_report import report_of
from streams.comparisons.canary_verdicts import judged
from streams.kafka.clients import Cluster
from streams.kafka.committed_reader import CommittedBatch
from streams.kafka.deployment.canary_change import (
    Decided,
    ended,
    is_last,
    promoted,
    risen,
)
from streams.kafka.deployment.fenced_log import WriterFenced
from streams.kafka.deployment.operator_change import write_once
from streams.kafka.sent_record import send_record
from streams.series import Series
from streams.stage import Output
from streams.training.model_records import ModelRecords

LOOK_S = 1.0
"""How often it is looked whether sums moved."""

TELL_S = 5.0
"""Time between reports while nothing else happens."""

REPORT = b"/canary"
"""How keys of reports end; they begin with the model."""

CHANGES = {
    CANARY: "raised",
    PROMOTED: "promoted",
    WITHDRAWN: "withdrawn",
    UNDECIDED: "undecided",
}
"""How the page calls what the history says."""

log = logging.getLogger("rankstream.trainer")


class _Overtaken(Exception):
    """Somebody else changed the canary since it was judged."""


class Canaries:
    """Judges what is going out, by sums of `preferences`.

    Parameters
    ----------
    seen
        What `snapshots` says, as it is read; what is written here is added at once.
    by
        Names this trainer among others.
    """

    def __init__(
        self, settings: Settings, cluster: Cluster, seen: ModelRecords, by: str
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._seen = seen
        self._by = by
        self._values: dict[int, dict[bytes, bytes]] = {}
        self._settled: set[int] = set()
        self._moved: set[str] = set()
        self._judged: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._reports: dict[str, CanaryReport] = {}
        self._told: dict[str, tuple[float, CanaryReport]] = {}
        self._n_refused = 0
        self._changes = Counter(
            {(name, what): 0 for name in settings.deployed for what in CHANGES.values()}
        )

    def take(self, partition: int, batch: CommittedBatch) -> None:
        """Take what was read of a partition of `preferences`.

        Nothing is judged before all were read to their ends: older values of a key may
        stand before.
        """
        if batch.is_first:
            # All of it comes again, and what was removed meanwhile does not.
            self._values.pop(partition, None)
            self._settled.discard(partition)
        values = self._values.setdefault(partition, {})
        for key, value in batch.records:
            tag = tag_of(key or b"")
            if tag is None:
                continue
            if value is None:
                values.pop(key or b"", None)
            else:
                values[key or b""] = value
            self._moved.add(tag.rpartition("/")[0])
        if batch.is_settled:
            self._settled.add(partition)

    def counters(self) -> dict[str, int]:
        """What happened so far, and how many are going out."""
        n_out = sum(each in self._settings.models for each in self._seen.canaries)
        return {
            "canaries_changed": self._changes.total(),
            "canaries_refused": self._n_refused,
            "canaries_out": n_out,
        }

    def series(self) -> Iterator[Series]:
        """What became of canaries, by model."""
        for (model, outcome), n in self._changes.items():
            labels = {"model": model, "outcome": outcome}
            yield Series("canary_changes", labels, n)

    async def run(self, done: asyncio.Event) -> None:
        """Judge what moved, again and again until the event is set.

        Raises
        ------
        KafkaError
        """
        while True:
            try:
                await self._look()
            except KafkaError as error:
                # A training may go on for hours, and one that is worse waits for none.
                if done.is_set():
                    raise
                log.warning("event=canary-look-failed reason=%s", error)
            if done.is_set() or not await _rested(done):
                return

    async def _look(self) -> None:
        if len(self._settled) < self._settings.kafka.partitions:
            return
        moved, self._moved = self._moved, set()
        for name, canary in sorted(self._seen.canaries.items()):
            if canary.intervention in moved or self._judged.get(name) != canary.tag:
                # What fails is judged again at the next look.
                self._judged.pop(name, None)
                await self._judge(name, canary)
                self._judged[name] = canary.tag
        await self._tell()

    async def _judge(self, name: str, canary: Canary) -> None:
        values = {
            key: value
            for _, of_partition in sorted(self._values.items())
            for key, value in of_partition.items()
        }
        try:
            found = judged(canary, values, self._settings)
        except (SchemaRefused, ValueError) as error:
            self._refuse(name, str(error))
            return
        self._reports[name] = report_of(
            canary,
            found,
            state=OUT,
            at_ms=time.time_ns() // 1_000_000,
            largest_loss=_largest_loss(self._seen.history, canary),
        )
        if found.verdict is not Verdict.WAIT:
            await self._change(name, canary, found)

    async def _change(self, name: str, canary: Canary, found: Judgement) -> None:
        written: list[Output] = []

        def make(records: ModelRecords) -> tuple[Change, list[Output]]:
            now = records.canaries.get(name)
            if now is None or now.tag != canary.tag:
                raise _Overtaken
            made, outputs = _decided(records, now, found, self._by)
            written.extend(outputs)
            if made.what != CANARY:
                # In the same transaction: nobody is left to say it later.
                ended = msgspec.structs.replace(self._reports[name], state=made.what)
                key = name.encode() + REPORT
                outputs = [*outputs, Output(EVALUATIONS, 0, key, encode_report(ended))]
            return made, outputs

        try:
            made, _ = await write_once(self._settings, self._cluster, name, make)
        except _Overtaken:
            return
        except WriterFenced as error:
            # Who came between has changed it, or it is judged anew.
            log.warning("event=fenced model=%s reason=%s", name, error)
            self._moved.add(canary.intervention)
            return
        for each in written:
            self._seen.take_snapshot(each.key or b"", each.value)
        if made.what != CANARY:
            self._reports.pop(name, None)
        self._changes[name, CHANGES[made.what]] += 1
        log.info(
            "event=canary model=%s what=%s version=%s reason=%s",
            name, made.what.replace(" ", "-"), made.version, made.why,
        )  # fmt: skip

    async def _tell(self) -> None:
        """Say how each does, not more often than anybody reads, and how it ended."""
        now_s, due = time.monotonic(), []
        for name, found in self._reports.items():
            canary = self._seen.canaries.get(name)
            state = found.state
            if canary is None or canary.intervention != found.canary:
                last = self._seen.history.newest(name)
                state = last.what if last else "ended"
            report = msgspec.structs.replace(found, state=state)
            told_s, told = self._told.get(name, (-math.inf, None))
            is_new = told is None or (told.state, told.stage) != (
                report.state, report.stage,
            )  # fmt: skip
            if report != told and (is_new or now_s - told_s >= TELL_S):
                due.append((name, report))
        for name, report in due:
            key = name.encode() + REPORT
            await send_record(self._cluster, EVALUATIONS, key, encode_report(report))
            self._told[name] = now_s, report
            if report.state != OUT:
                del self._reports[name]

    def _refuse(self, name: str, why: str) -> None:
        if self._refused.get(name) != why:
            self._refused[name] = why
            self._n_refused += 1
            log.error("event=canary-refused model=%s reason=%s", name, why)


def _decided(
    records: ModelRecords, canary: Canary, found: Judgement, by: str
) -> tuple[Change, list[Output]]:
    decided = Decided(by, found.words, figures_of(found))
    if found.verdict is Verdict.RISE:
        go_on = promoted if is_last(canary) else risen
        return go_on(records, canary, decided)
    what = UNDECIDED if found.verdict is Verdict.UNDECIDED else WITHDRAWN
    return ended(records, canary, what, decided)


def _largest_loss(history: History, canary: Canary) -> float | None:
    """What was found when it began; None where nothing was."""
    place = canary.intervention.rpartition("@")[2]
    for change in history.changes.get(canary.model, {}).values():
        if change and change.version == place and "largest_loss" in change.evidence:
            return float(change.evidence["largest_loss"])
    return None


def figures_of(found: Judgement) -> dict[str, Any]:
    """What a judgement follows from, as the history has it."""
    figures = {
        "difference": found.clicks.mean,
        "low": found.clicks.low,
        "high": found.clicks.high,
        "canary_lists": found.canary_lists,
        "served_lists": found.served_lists,
    }
    for each in found.guardrails:
        figures |= {f"{each.name} low": each.low, f"{each.name} high": each.high}
    return {name: each for name, each in figures.items() if math.isfinite(each)}


async def _rested(done: asyncio.Event) -> bool:
    """Wait until the next look; False where it is over."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(done.wait(), LOOK_S)
    return not done.is_set()
