"""`rankstream decisions`: what is served for which query, on what evidence."""

import argparse

from rankstream.operations.commands.options.query import add_query

MOST = 20
"""Candidate sets that are listed where nothing else is asked for."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "examples:\n"
        "  rankstream decisions list                  rules, each with its rewrite\n"
        "  rankstream decisions list orders           queries with their evidence\n"
        "  rankstream decisions show orders 'shoes'   one query, and what would\n"
        "                                             change its decision\n"
        "  rankstream decisions withdraw orders       rankers go on without it\n"
        "\n"
        "A rule is a section [decisions.NAME] of the settings, or a bandit,\n"
        "[bandits.NAME]; the role `decide` of `rankstream worker` rewrites both\n"
        "(docs/decisions.md, docs/bandits.md).\n"
    )
    actions = parser.add_subparsers(dest="action", required=True)
    listing = actions.add_parser("list", help="rules, or the queries of one")
    listing.add_argument("rule", nargs="?", help="list its queries instead")
    listing.add_argument(
        "--most",
        type=_positive,
        default=MOST,
        metavar="N",
        help=f"so many queries, the surest first (default: {MOST})",
    )
    show = actions.add_parser("show", help="one query: order, evidence, what lacks")
    show.add_argument("rule", help="NAME of [decisions.NAME] or [bandits.NAME]")
    add_query(show)
    withdrawing = actions.add_parser(
        "withdraw", help="end a rule that the settings have no more"
    )
    withdrawing.add_argument("rule", help="its NAME, which the settings have no more")
    for action in (listing, show, withdrawing):
        action.add_argument("--json", action="store_true", help="print JSON")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more; got {text}")
    return number
