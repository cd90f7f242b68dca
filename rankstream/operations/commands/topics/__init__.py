"""`rankstream topics`: create and check topics, split the log, say who needs what."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "examples:\n"
        "  rankstream topics create --namespace shop\n"
        "  rankstream topics check --config shop.toml\n"
        "  rankstream topics split --config shop.toml --dry-run\n"
        "                       what split would do; it gives the log the\n"
        "                       kafka.partitions of the settings, and all workers\n"
        "                       must be stopped for both (docs/partitions.md)\n"
        "  rankstream topics acls --config shop.toml --principal 'shop-{role}'\n"
        "                       the least rights of each role at Kafka and Redis, as\n"
        "                       commands; asks nobody (docs/how-to/security.md)\n\n"
        "exit status: 1 if a topic is missing or is not as it must be; of check also\n"
        "if records are at risk, as where a broker is away\n"
    )
    parser.add_argument("what", choices=("create", "check", "split", "acls"))
    parser.add_argument(
        "--alter",
        action="store_true",
        help="with create: also correct the configuration of topics that exist",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="with split: say what would be divided, and change nothing",
    )
    parser.add_argument(
        "--role",
        action="append",
        metavar="ROLE",
        help="with acls: of this role of a worker, or of serve, rank, feed, monitor or "
        "operate; may be repeated (default: all that there is work for)",
    )
    parser.add_argument(
        "--principal",
        metavar="NAME",
        help="with acls: who it is for Kafka and Redis; {role} in it is the name of "
        "the role (default: kafka.username, else the name of the role)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
