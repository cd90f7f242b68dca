"""`rankstream recount`: the canonical log counted again, and compared."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from models.counts.cells import TOTAL_NAMES, CellSummary
from producers.formats.canonical import read_dump, read_header
from rankstream.settings import Settings, load_settings, with_namespace
from rankstream.wire.topics import EVENTS, INTERACTIONS, STATISTICS
from streams.fold.canonical import STATE_TOPIC, CanonicalFold
from streams.fold.statistics_keys import checked
from streams.fold.statistics_reader import CellName
from streams.fold.statistics_reader import Statistics as StoredStatistics
from streams.kafka.resume_position import decode_position
from streams.recount.query_counts import Cell, CellKey
from streams.recount.recount import Found, Statistics, recount
from streams.recount.rules import Rules, rules_of
from streams.recount.verdict import Verdict
from streams.stage import Change
from streams.state_pieces import Parts

SUMMARY = "count the canonical log again, and compare"

POSITION_KEY = b"marker"
ATTEMPTS = 20
BETWEEN_S = 0.5

EPILOG = """examples:
  rankstream recount --namespace shop          a running or a stopped worker's work
  rankstream recount --events events.dump.zst --local run/
                                               what `replay --local --out run/` counted

It reads `events` from its beginning with code of its own, and compares with the
statistics and the outcomes at their checkpoint, and with `interactions`.
exit status: 0 where nothing is lost, double, wrong or extra, else 1
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument(
        "--events", type=Path, metavar="DUMP", help="a dumped log instead of Kafka"
    )
    parser.add_argument(
        "--local",
        type=Path,
        metavar="DIR",
        help="with --events: what the in-process runtime left there",
    )


def run(arguments: argparse.Namespace) -> int:
    """Count again and compare; 1 where the counts differ."""
    settings = with_namespace(load_settings(arguments.config), arguments.namespace)
    if (arguments.events is None) != (arguments.local is None):
        raise ValueError("--events and --local must be given together; got one")
    if arguments.events is not None:
        verdict = recount_dump(arguments.events, arguments.local, rules_of(settings))
    else:
        verdict = recount_topics(settings)
    if arguments.json:
        sys.stdout.write(json.dumps(verdict.as_dict()) + "\n")
    else:
        _tell(verdict)
    return 0 if verdict.is_clean else 1


def recount_topics(settings: Settings) -> Verdict:
    """Count the log in Kafka again; a worker may go on meanwhile."""
    # Kafka's client is not loaded for a file.
    from producers.topic_reader import read_topic  # noqa: PLC0415

    state = _steady_state(settings)
    values = [
        (key, value)
        for (topic, key), value in sorted(state.values.items())
        if topic == STATISTICS
    ]
    interactions = (
        (partition, value or b"")
        for partition, _, _, value in read_topic(settings, INTERACTIONS)
    )
    log = (
        (partition, offset, value or b"")
        for partition, offset, _, value in read_topic(settings, EVENTS)
    )
    return recount(
        log, state.found(settings), stored(values), interactions, rules_of(settings)
    )


def recount_dump(events: Path, folder: Path, rules: Rules) -> Verdict:
    """Count a dumped log again; there is nothing but statistics to compare with."""
    from streams.local import read_changes  # noqa: PLC0415  Kafka needs no such file

    values = list(read_changes(folder / "statistics.bin"))
    whole = Found(sys.maxsize, -1, None)
    found = dict.fromkeys(range(read_header(events).n_partitions), whole)
    log = ((p, n, value) for n, (p, value) in enumerate(read_dump(events)))
    return recount(log, found, stored(values), None, rules)


class _State:
    """The fold's state topics, the last value of each key of each partition."""

    def __init__(self, settings: Settings) -> None:
        from producers.topic_reader import read_topic  # noqa: PLC0415

        self.values: dict[tuple[str, bytes], bytes] = {}
        self._of: dict[int, dict[tuple[str, bytes], bytes]] = {}
        self.positions = positions_of(settings)
        for topic in (STATISTICS, STATE_TOPIC):
            for partition, _, key, value in read_topic(settings, topic):
                of_it = self._of.setdefault(partition, {})
                place = (topic, key or b"")
                if value:
                    of_it[place] = value
                else:
                    of_it.pop(place, None)
        for of_it in self._of.values():
            self.values |= {k: v for k, v in of_it.items() if k[0] == STATISTICS}
        after = positions_of(settings)
        self.is_steady = {
            p: checkpoint for p, (checkpoint, _) in self.positions.items()
        } == {p: checkpoint for p, (checkpoint, _) in after.items()}

    def found(self, settings: Settings) -> dict[int, Found]:
        """What the state says of each partition."""
        found = {}
        for partition, (checkpoint_offset, offset) in self.positions.items():
            fold = CanonicalFold(partition, settings)
            fold.restore(
                Change(topic, key, value)
                for (topic, key), value in self._of.get(partition, {}).items()
                if key != POSITION_KEY
            )
            found[partition] = Found(checkpoint_offset, offset, fold.counters())
        return found


def _steady_state(settings: Settings) -> _State:
    """The state as it was at one checkpoint of each partition."""
    for _ in range(ATTEMPTS):
        state = _State(settings)
        if state.is_steady:
            return state
        time.sleep(BETWEEN_S)
    raise RuntimeError(
        "the state must stand still while it is read; it moved each time: stop the "
        "worker, or raise delivery.state_s"
    )


def positions_of(settings: Settings) -> dict[int, tuple[int, int]]:
    """Checkpoint and offset of the fold's resume position, by partition."""
    from producers.topic_reader import read_topic  # noqa: PLC0415

    positions: dict[int, tuple[int, int]] = {}
    for partition, _, key, value in read_topic(settings, STATE_TOPIC):
        if key == POSITION_KEY and value:
            position = decode_position(value)
            positions[partition] = (position.checkpoint_offset, position.offset)
    return positions


def stored(values: Sequence[tuple[bytes, bytes]]) -> Statistics:
    """Statistics as they lie in their topic, cell by cell."""
    statistics = StoredStatistics(values)
    masks = _masks_of(values)
    by_query: dict[str, list[CellName]] = {}
    for name in statistics.names():
        by_query.setdefault(name.query, []).append(name)

    def cells_of(query: str) -> dict[CellKey, Cell]:
        cells = {}
        for name in by_query.get(query, ()):
            cell = cells[CellKey(*name[1:])] = cell_of(statistics, name)
            items = statistics.items(query, name.candidate_set)
            cell.masks = _named_masks(masks.get(name), items)
        return cells

    return Statistics(set(by_query), cells_of)


def cell_of(statistics: StoredStatistics, name: CellName) -> Cell:
    """A stored cell in plain dictionaries."""
    summary = statistics.cell(name)
    items = summary.items
    cell = Cell(totals=dict(zip(TOTAL_NAMES, summary.totals.tolist(), strict=True)))
    for item, rank, *counts, exposure in summary.pairs.tolist():
        place = (items[item], rank)
        if counts[0]:
            cell.pairs[place] = counts
        if exposure:
            cell.exposures[place] = exposure
    _take_sums(cell, summary)
    for a, rank, b, other_rank, count in summary.click_pairs.tolist():
        first, second = sorted([(items[a], rank), (items[b], other_rank)])
        cell.click_pairs[first, second] = count
    for row_name, count in zip(
        summary.row_names, summary.row_counts.tolist(), strict=True
    ):
        row = statistics.row(name, row_name)
        named: tuple[Any, ...] = ()
        if row.items:
            named = tuple(msgspec.msgpack.decode(row.items))
        cell.rows[row.policy, row.n_ranks, row.material, named] = count
    return cell


def _masks_of(values: Sequence[tuple[bytes, bytes]]) -> dict[CellName, bytes]:
    masks = {}
    for key, value in Parts().joined(dict(values)).items():
        kind, *place = msgspec.msgpack.decode(key)
        if kind == "masks":
            masks[CellName(*place)] = value
    return masks


def _named_masks(
    value: bytes | None, items: Sequence[str]
) -> dict[tuple[tuple[str, ...], tuple[int, ...]], int]:
    if value is None:
        return {}
    (rows,) = checked(msgspec.msgpack.decode(value))
    named = {}
    for numbers, packed, count in rows:
        shown = tuple(items[number] for number in memoryview(numbers).cast("i"))
        mask = int.from_bytes(packed, "little")
        ranks = tuple(r for r in range(1, len(shown) + 1) if mask >> (r - 1) & 1)
        named[shown, ranks] = count
    return named


def _take_sums(cell: Cell, summary: CellSummary) -> None:
    squares = summary.squared_inverses()
    for (item, plus, minus, inverse, *_), squared in zip(
        summary.sums.tolist(), squares, strict=True
    ):
        cell.sums[summary.items[item]] = [plus, minus, inverse, squared]


def _tell(verdict: Verdict) -> None:
    sys.stdout.write(
        f"{verdict.n_events:,} events counted again: lost {verdict.lost:,}, double "
        f"{verdict.double:,}, wrong {verdict.wrong:,}, extra {verdict.extra:,}\n"
    )
    for difference in verdict.differences:
        sys.stdout.write(f"  {difference}\n")
