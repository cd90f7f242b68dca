"""What `rankstream plan` does: multiply, and print."""

import argparse

from rich.console import Console
from rich.table import Table

from rankstream.operations.answers.capacity.constants import SHIPPED, load_constants
from rankstream.operations.answers.capacity.load import Load, planned_settings
from rankstream.operations.answers.capacity.plan import Plan, plan_of
from rankstream.operations.commands import settings_of, write_json

UNKNOWN = "not said"
UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def run(arguments: argparse.Namespace) -> int:
    """Print the plan; 1 where something of it is not said."""
    settings = planned_settings(
        settings_of(arguments),
        partitions=arguments.partitions,
        retention_days=arguments.retention,
        window_s=arguments.window,
        replicas=arguments.replicas,
    )
    load = Load(
        per_second=arguments.events,
        items=arguments.lists,
        queries=arguments.queries,
        clicks=arguments.clicks,
        features=arguments.features,
        candidates=arguments.candidates,
        policy=arguments.policy,
        settings=settings,
    )
    found = plan_of(
        load,
        load_constants(arguments.constants or SHIPPED),
        utilisation=arguments.utilisation,
        input_days=arguments.input_days,
    )
    if arguments.json:
        write_json(found.to_dict())
    else:
        _print(found)
    return 1 if found.unsaid else 0


def _print(plan: Plan) -> None:
    console = Console(soft_wrap=True, highlight=False)
    console.print(_roles(plan))
    console.print(_topics(plan))
    rows = (
        ("partitions of events", f"{plan.partitions}"),
        ("brokers: cores", _number(plan.broker_cores)),
        ("brokers: in", f"{_bytes(plan.bytes_in_per_s)}/s"),
        ("brokers: out", f"{_bytes(plan.bytes_out_per_s)}/s"),
        ("restart of the fold", f"{_number(plan.restart_s)} s"),
    )
    for name, value in rows:
        console.print(f"{name:<22} {value}")
    if plan.bounds:
        console.print("\nwhat binds, the first one first")
    for each in plan.bounds:
        console.print(
            f"  {each.events_per_s:>14,.0f} events/s  {each.what}: {each.remedy}"
        )
    for line in plan.assumed:
        console.print(f"assumed: {line}", markup=False)
    for line in plan.unsaid:
        console.print(f"not said: {line}", markup=False)
    console.print(f"\nconstants of {plan.machine}: {plan.measured}", markup=False)


def _roles(plan: Plan) -> Table:
    table = Table(title=f"{plan.per_second:,.0f} events/s", title_justify="left")
    for name in ("role", "processes", "cores", "memory"):
        table.add_column(name, justify="left" if name == "role" else "right")
    for each in plan.roles:
        table.add_row(
            each.role,
            f"{each.processes}",
            _number(each.cores),
            _bytes(each.memory_bytes),
        )
    table.add_row("all", "", _number(plan.cores), _bytes(plan.memory_bytes))
    return table


def _topics(plan: Plan) -> Table:
    table = Table()
    for name in ("topic", "partitions", "bytes a second", "disk", "keeps"):
        table.add_column(
            name, justify="left" if name in {"topic", "keeps"} else "right"
        )
    for each in plan.topics:
        if each.bytes_per_s != 0.0:
            table.add_row(
                each.topic,
                f"{each.partitions}",
                _bytes(each.bytes_per_s),
                _bytes(each.disk_bytes),
                each.keeps,
            )
    table.add_row("all, with replicas", "", "", _bytes(plan.disk_bytes), "")
    return table


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.3g}"


def _bytes(value: float | None) -> str:
    """In the largest unit that leaves 1 or more."""
    if value is None:
        return UNKNOWN
    place = 0
    while value >= 1_000.0 and place < len(UNITS) - 1:
        value, place = value / 1_000.0, place + 1
    return f"{value:,.3g} {UNITS[place]}"
