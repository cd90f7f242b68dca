"""What `rankstream decisions` prints of rules, and of the evidence."""

import argparse
import math

from rich.table import Table

from rankstream.operations.answers.bandit_sets import VALUES
from rankstream.operations.answers.decisions import (
    DEFAULT,
    DecidedSet,
    Rule,
    Withdrawn,
    decided_sets,
    rules,
    withdraw,
)
from rankstream.operations.commands import nothing, settings_of, tell, write_json
from rankstream.operations.commands.options.query import query_asked
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.words import counted, moment, plain
from rankstream.settings import Settings
from rankstream.wire.decisions import GENERAL, LOGGING, OWN, Evidence
from rankstream.wire.nearest_name import suggestion

PAIRS = ((OWN, GENERAL), (OWN, LOGGING), (LOGGING, GENERAL))
"""Policies of a candidate set that are compared."""

SERVED = {
    OWN: "its own order",
    LOGGING: "logging",
    DEFAULT: "by default",
}
"""What serves a candidate set, in words."""

OF_ORDERS = {OWN: "its own order", LOGGING: "that of the logging model"}
"""Whose order a set has, in words; a bandit's is named by its policy."""

OF_MANIFESTS = (
    "rule", "bandit", "rewrite", "written", "intervention", "default", "served by",
)  # fmt: skip

OF_RULES = (
    "decided", "by logging", "undecided", "left out", "general over logging", "paired",
)  # fmt: skip

SPARE = ("intervention", "left out", "served by", "by logging", "bandit")

OF_SETS_SPARE = ("clicks", "candidate set", "logging over general")


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; 1 where there is nothing."""
    settings = settings_of(arguments)
    if arguments.action == "show":
        return _show(settings, arguments)
    if arguments.action == "withdraw":
        number = withdraw(settings, arguments.rule)
        if arguments.json:
            write_json(Withdrawn(arguments.rule, number).to_dict())
        else:
            tell(f"{arguments.rule} was withdrawn by its rewrite {number}")
        return 0
    if arguments.rule is not None:
        return _list_sets(settings, arguments)
    return _list_rules(settings, arguments)


def _list_rules(settings: Settings, arguments: argparse.Namespace) -> int:
    found, faults = rules(settings)
    for each in faults:
        tell(each)
    if not found:
        return nothing(
            "no rule has decided anything yet: set [decisions.NAME] or [bandits.NAME], "
            "and run the role `decide` (`rankstream worker`)"
        )
    if arguments.json:
        write_json([each.to_dict() for each in found])
    else:
        print_fitted(wide_console(), _table_of_rules(found), SPARE)
        for rule in found:
            for why, n_lists in rule.refused.items():
                tell(f"{rule.name}: {counted(n_lists, 'list')} judge nothing, {why}")
            if rule.remark:
                tell(f"{rule.name}: {rule.remark}")
    return 0


def _list_sets(settings: Settings, arguments: argparse.Namespace) -> int:
    found = decided_sets(settings, arguments.rule)
    if not found:
        return nothing(
            f"a rule must have decided something to be listed; {arguments.rule!r} has "
            "not, or is none: `rankstream decisions list` tells which rules there are"
            f"{suggestion(arguments.rule, settings.decided)}"
        )
    shown = found[: arguments.most]
    if arguments.json:
        write_json([each.to_dict() for each in shown])
        return 0
    n_decided = sum(bool(each.order) for each in found)
    table = Table(
        title=f"{counted(n_decided, 'decision')} of "
        f"{counted(len(found), 'candidate set')}",
        caption="" if len(shown) == len(found) else f"the first {len(shown):,}; --most",
    )
    for name in ("query", "candidate set", "served"):
        table.add_column(name)
    for name in ("lists", "clicks", *(f"{one} over {other}" for one, other in PAIRS)):
        table.add_column(name, justify="right")
    for each in shown:
        table.add_row(*_row_of_set(each))
    print_fitted(wide_console(), table, OF_SETS_SPARE)
    return 0


def _row_of_set(each: DecidedSet) -> tuple[str, ...]:
    of = {(x.policy, x.against): x for x in each.evidence}
    first = each.evidence[0] if each.evidence else None
    lists = first.interactions if first else 0
    return (
        plain(each.query),
        each.candidate_set.hex()[:8],
        SERVED.get(each.served, plain(each.served)),
        f"{each.bandit.lists if each.bandit else lists:,}",
        "–" if each.bandit else f"{first.clicks:,}" if first else "0",
        *(_difference(of.get(pair)) for pair in PAIRS),
    )


def _show(settings: Settings, arguments: argparse.Namespace) -> int:
    found = decided_sets(settings, arguments.rule, query_asked(arguments))
    if not found:
        return nothing(
            f"the rule {arguments.rule!r} says nothing of {arguments.query!r}: no list "
            "of it is counted that the rule goes by, or there is no such rule: "
            f"`rankstream decisions list`{suggestion(arguments.rule, settings.decided)}"
        )
    if arguments.json:
        write_json([each.to_dict() for each in found])
        return 0
    console = wide_console()
    for each in found:
        if each.order:
            print_fitted(console, _table_of_order(each))
        if each.evidence:
            print_fitted(console, _table_of_evidence(each))
        console.print(plain(each.remark), highlight=False)
    return 0


def _table_of_rules(found: list[Rule]) -> Table:
    table = Table()
    for name in OF_MANIFESTS:
        table.add_column(name)
    for name in OF_RULES:
        table.add_column(name, justify="right")
    for each in found:
        table.add_row(
            plain(each.name), plain(each.bandit) or "–", f"{each.number:,}",
            moment(each.at_ms),
            plain(each.intervention), plain(each.default), plain(each.model),
            f"{each.decided:,}", f"{each.by_logging:,}", f"{each.undecided:,}",
            f"{each.left_out:,}", _difference(each.general), _paired(each.paired),
        )  # fmt: skip
    return table


def _table_of_order(each: DecidedSet) -> Table:
    candidates = each.candidate_set.hex()[:8]
    whose = OF_ORDERS.get(each.served, plain(each.served))
    table = Table(title=f"{plain(each.query)}, candidates {candidates}: {whose}")
    table.add_column("rank", justify="right")
    table.add_column("item")
    if each.bandit:
        table.caption = f"by {counted(each.bandit.lists, 'list')} of its own"
        table.add_column(VALUES[each.served], justify="right")
    rank = 1
    for block in each.order:
        last = rank + len(block) - 1
        place = f"{rank}" if last == rank else f"{rank} to {last}"
        told = [plain(", ".join(block))]
        if each.bandit:
            told.append(", ".join(f"{each.bandit.values[x]:.3f}" for x in block))
        table.add_row(place, *told)
        rank = last + 1
    return table


def _table_of_evidence(each: DecidedSet) -> Table:
    table = Table(
        title=f"{plain(each.query)}, candidates {each.candidate_set.hex()[:8]}: "
        "differences",
        caption="by lists of the selection groups",
    )
    table.add_column("of")
    for name in ("difference", "lower", "upper", "lists", "clicks", "groups"):
        table.add_column(name, justify="right")
    for one in each.evidence:
        table.add_row(
            plain(f"{one.policy} over {one.against}"),
            *(_figure(x) for x in (one.estimate, one.lower, one.upper)),
            f"{one.interactions:,}", f"{one.clicks:,}", f"{one.groups:,}",
        )  # fmt: skip
    return table


def _difference(one: Evidence | None) -> str:
    if one is None:
        return "–"
    return f"{_figure(one.estimate)} ({_figure(one.lower)} to {_figure(one.upper)})"


def _paired(ends: list[float]) -> str:
    return " to ".join(map(_figure, ends)) or "–"


def _figure(value: float) -> str:
    return f"{value + 0.0:+.3f}" if math.isfinite(value) else "none"
