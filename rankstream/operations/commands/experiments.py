"""`rankstream experiments`: which rankers are compared, and what came out."""

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from producers.readiness import Waiting, wait_for_redis, why_no_kafka
from rankstream.experiment_publication import check_drawable, planned
from rankstream.experiment_records import (
    ExperimentRecord,
    decode_record,
    encode_record,
    put_records,
    stored_records,
)
from rankstream.operations.commands import settings_of
from rankstream.operations.terminal.counts import counted
from rankstream.settings import (
    ExperimentSettings,
    Settings,
)
from rankstream.snapshots import SnapshotStore, store_of
from rankstream.used_epochs import Counted
from rankstream.wire.topics import EXPERIMENTS, PREFERENCES
from rankstream.wire.verdicts import Ends, MethodVerdict, Verdict, encode_verdict

SUMMARY = "comparisons of rankers: list, publish, show verdicts"

LIGHTS = {"ok": "green", "warning": "yellow", "alarm": "red"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = """examples:
  rankstream experiments list          the settings, and what clients follow
  rankstream experiments publish       make clients follow the settings
  rankstream experiments show boost    preferences, intervals, health

An experiment is a table of the settings:
  [experiments.boost]
  epoch = 1                                raise it with every change
  method = "pairwise-preference"
  rankers = { old = "search", new = "" }   names, each with the model that ranks
  share = 0.1                              of the sessions"""
    actions = parser.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="all experiments")
    publishing = actions.add_parser("publish", help="make clients follow the settings")
    show = actions.add_parser("show", help="the verdict on one experiment")
    show.add_argument("experiment")
    show.add_argument("--epoch", type=int, help="which one (default: the last)")
    show.add_argument(
        "--method", help="which one (default: the one that drew the lists)"
    )
    for action in (listing, publishing, show):
        action.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; 1 if there is nothing."""
    settings = settings_of(arguments)
    if arguments.action == "show":
        return _show(settings, arguments)
    if arguments.action == "publish":
        _check_foldable(settings)
    wait_for_redis(settings.redis.url, Waiting())
    store = store_of(settings)
    try:
        if arguments.action == "publish":
            return _told(_publish(settings, store), arguments)
        stored, refused = stored_records(store)
    finally:
        store.close()
    for name, why in refused.items():
        _nothing(f"Redis must hold the settings of experiment {name!r}; {why}")
    followed = {name for name, record in stored.items() if record.settings}
    rows = [
        _row(name, settings.experiments.get(name), stored.get(name))
        for name in sorted({*settings.experiments, *followed})
    ]
    return _list(rows, arguments)


def _publish(settings: Settings, store: SnapshotStore) -> dict[str, str]:
    """The settings into the topic and, as it has them, into Redis; what became of each.

    The topic comes first: the role `publish` brings to Redis what a stop leaves.
    """
    # Kafka's client is loaded only where it is needed.
    from producers.event_producer import send_records  # noqa: PLC0415
    from producers.topic_admin import KafkaAway  # noqa: PLC0415

    why = why_no_kafka(settings.kafka)
    if why:
        raise KafkaAway(
            f"Kafka must answer at {settings.kafka.bootstrap}, as its topic keeps the "
            f"experiments; {why}; nothing was published"
        )
    logged, held = _logged(settings), stored_records(store).records
    # An older release wrote to Redis alone; what the topic knows goes before that.
    verdicts, records = planned(
        held | logged, settings.experiments, lambda: _counted(settings)
    )
    news = _differing(records, logged)
    values = [(name.encode(), encode_record(name, each)) for name, each in news.items()]
    if values:
        send_records(settings, EXPERIMENTS, values)
    put_records(store, _differing(records, held))
    return verdicts


def _differing(
    records: Mapping[str, ExperimentRecord], held: Mapping[str, ExperimentRecord]
) -> dict[str, ExperimentRecord]:
    """Those that are not held already."""
    return {name: each for name, each in records.items() if held.get(name) != each}


def _logged(settings: Settings) -> dict[str, ExperimentRecord]:
    """The last record of each experiment in the topic."""
    found = {}
    for key, value in _last_values(settings, EXPERIMENTS).items():
        try:
            found[key.decode()] = decode_record(value)
        except ValueError as error:
            raise ValueError(
                f"the record of experiment {key!r} in the topic must be readable; "
                f"{error}; if nobody can have published it, write a record without "
                "a value under that key"
            ) from error
    return found


def _counted(settings: Settings) -> Counted:
    """Epochs that lists were counted under; none where there are no topics yet."""
    # The science is loaded only where it is needed.
    from streams.comparisons.preference_fold import read_records  # noqa: PLC0415

    found = read_records(_last_values(settings, PREFERENCES, may_be_missing=True))
    counted: dict[str, dict[int, ExperimentSettings | None]] = {}
    for each in found.comparisons:
        counted.setdefault(each.name, {})[each.settings.epoch] = each.settings
    for name, epoch in found.refused:
        counted.setdefault(name, {})[epoch] = None
    return counted


def _last_values(
    settings: Settings, topic: str, *, may_be_missing: bool = False
) -> dict[bytes, bytes]:
    """The last value of each key of a topic."""
    # Kafka's client is loaded only where it is needed.
    from producers.topic_reader import TopicReader  # noqa: PLC0415

    values: dict[bytes, bytes] = {}
    with TopicReader(settings) as reader:
        if may_be_missing and not reader.partitions(topic):
            return values
        for record in reader.records(topic):
            if record.key is not None and record.value is not None:
                values[record.key] = record.value
            elif record.key is not None:
                values.pop(record.key, None)
    return values


def _check_foldable(settings: Settings) -> None:
    """Refuse what clients cannot draw or the fold cannot count."""
    wanted = sorted(settings.experiments.items())
    for name, experiment in wanted:
        try:
            check_drawable(name, experiment)
        except ValueError as error:
            where = f"; in {settings.file}" if settings.file else ""
            raise ValueError(f"{error}{where}") from error
    # The science is loaded only where it is needed, and compiles.
    from streams.comparisons.comparison import Comparison  # noqa: PLC0415

    for name, experiment in wanted:
        Comparison(name, experiment)


def _told(found: dict[str, str], arguments: argparse.Namespace) -> int:
    if arguments.json:
        json.dump(found, sys.stdout)
        sys.stdout.write("\n")
    for name, what in () if arguments.json else found.items():
        Console().print(f"{name}: {what}", highlight=False, markup=False)
    return 0 if found else _nothing("the settings must name an experiment; none is")


def _list(rows: list[dict[str, Any]], arguments: argparse.Namespace) -> int:
    if not rows:
        return _nothing("there are no experiments")
    if arguments.json:
        json.dump(rows, sys.stdout)
        sys.stdout.write("\n")
        return 0
    table = Table(title=counted(len(rows), "experiment"), title_justify="left")
    for heading in ("name", "epoch", "method", "rankers", "share", "clients"):
        table.add_column(heading)
    for row in rows:
        rankers = ", ".join(sorted(row["rankers"]))
        cells = (row["name"], row["epoch"], row["method"], rankers, row["share"])
        table.add_row(*(escape(str(cell)) for cell in cells), row["clients"])
    Console().print(table)
    return 0


def _row(
    name: str,
    wanted: ExperimentSettings | None,
    record: ExperimentRecord | None,
) -> dict[str, Any]:
    stored = record.settings if record else None
    shown = wanted or stored
    if stored is None:
        clients = "not published"
        if wanted is not None and record is not None and wanted.epoch <= record.epoch:
            clients = f"epoch {record.epoch} was removed: raise the epoch"
    elif wanted is None:
        clients = "not in the settings"
    elif wanted == stored:
        clients = "follow"
    elif wanted.epoch > stored.epoch:
        clients = f"follow epoch {stored.epoch}"
    else:
        clients = f"follow other settings, of epoch {stored.epoch}: raise the epoch"
    fields: dict[str, Any] = msgspec.to_builtins(shown)
    return {"name": name, **fields, "clients": clients}


def _show(settings: Settings, arguments: argparse.Namespace) -> int:
    # The science is loaded only where it is needed.
    from streams.comparisons.preference_fold import (  # noqa: PLC0415
        read_outcomes,
        read_records,
    )
    from streams.comparisons.verdicts import verdict_of  # noqa: PLC0415

    values = _last_values(settings, PREFERENCES)
    records = read_records(values)
    places = [(each.name, each.settings.epoch) for each in records.comparisons]
    _say_refused(records.refused, arguments)
    found = [place for place in places if _is_asked_for(place, arguments)]
    if not found:
        known = {*settings.experiments, *(name for name, _ in places)}
        return _nothing(_what_is_missing(known, arguments))
    comparison = records.comparisons[places.index(found[-1])]
    verdict = verdict_of(comparison, read_outcomes(values))
    if arguments.json:
        sys.stdout.write(encode_verdict(verdict).decode() + "\n")
        return 0
    method = arguments.method or verdict.method
    if method not in verdict.methods:
        raise ValueError(
            f"--method must be one of {sorted(verdict.methods)}; got {method!r}"
        )
    for table in tables_of(verdict, method):
        Console().print(table)
    return 0


def _what_is_missing(known: set[str], arguments: argparse.Namespace) -> str:
    name = arguments.experiment
    if name not in known:
        there = ", ".join(sorted(known)) or "none"
        return f"an experiment must be known; {name!r} is not; there are: {there}"
    epoch = "" if arguments.epoch is None else f" of epoch {arguments.epoch}"
    return (
        f"an experiment must have lists{epoch} whose click window has closed; "
        f"{name!r} has none yet"
    )


def _is_asked_for(place: tuple[str, int], arguments: argparse.Namespace) -> bool:
    name, epoch = place
    return name == arguments.experiment and arguments.epoch in (None, epoch)


def _say_refused(
    refused: Mapping[tuple[str, int], str], arguments: argparse.Namespace
) -> None:
    for place, why in sorted(refused.items()):
        if _is_asked_for(place, arguments):
            _nothing(f"epoch {place[1]} of {place[0]!r} must be readable; {why}")


def tables_of(verdict: Verdict, method: str) -> list[Table]:
    """Pairs and health of a verdict, as people read them."""
    of_method = verdict.methods[method]
    name, epoch = escape(verdict.experiment), verdict.epoch
    winner = escape(of_method.winner or "none yet")
    pairs = Table(
        title=f"{name}, epoch {epoch}, {method}: {of_method.impressions:,} "
        f"impressions; winner: {winner}",
        caption=caption_of(verdict, of_method),
        caption_justify="left",
        title_justify="left",
    )
    for heading in (
        "a over b", "preference", "sessions to come", "sessions that came", "e-value",
    ):  # fmt: skip
        pairs.add_column(heading, justify="left" if heading == "a over b" else "right")
    for pair in of_method.pairs:
        pairs.add_row(
            escape(f"{pair.a} over {pair.b}"),
            f"{pair.mean:+.4f}",
            _range(pair.to_come),
            _range(pair.came),
            f"10^{max(pair.log_e_a, pair.log_e_b) / 2.302585:.1f}",
        )
    health = Table(title="health", title_justify="left")
    for heading in ("check", "value", "state", "why"):
        health.add_column(heading)
    for check in verdict.health:
        state = f"[{LIGHTS[check.state]}]{check.state}[/]"
        value = "-" if check.value is None else f"{check.value:.4g}"
        why = "" if check.state == "ok" or not check.detail else str(check.detail)
        health.add_row(check.name, value, state, escape(why))
    return [pairs, health]


def caption_of(verdict: Verdict, of_method: MethodVerdict) -> str:
    """What the intervals answer, and whether sessions are enough for it."""
    told = [
        f"Intervals hold for all pairs at {1 - verdict.alpha:.0%}, at any time "
        f"({verdict.correction}).",
        verdict.questions["to_come"],
        f"{verdict.questions['came']} The e-value is theirs.",
        verdict.questions["winner"],
    ]
    return "\n".join(told + [of_method.sessions.why] * bool(of_method.sessions.why))


def _range(ends: Ends) -> str:
    low, high = ends
    return "-" if low is None or high is None else f"{low:+.4f} .. {high:+.4f}"


def _nothing(why: str) -> int:
    Console(stderr=True).print(why, highlight=False, markup=False)
    return 1
