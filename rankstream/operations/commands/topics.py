"""`rankstream topics`: create what is missing, check what is there, split the log."""

import argparse

from rich.console import Console
from rich.text import Text

from producers.readiness import Waiting, wait_for_kafka
from producers.topic_admin import TopicAdmin
from rankstream.operations.commands import settings_of
from rankstream.settings import Settings
from streams.topology import topics_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "examples:\n"
        "  rankstream topics create --namespace shop\n"
        "  rankstream topics check --config shop.toml\n"
        "  rankstream topics split --config shop.toml --dry-run\n"
        "                       what split would do; it gives the log the\n"
        "                       kafka.partitions of the settings, and all workers\n"
        "                       must be stopped for both (docs/partitions.md)\n\n"
        "exit status: 1 if a topic is missing or is not as it must be; of check also\n"
        "if records are at risk, as where a broker is away\n"
    )
    parser.add_argument("what", choices=("create", "check", "split"))
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
        "--wait",
        type=float,
        metavar="SECONDS",
        help="end with status 2 if Kafka is away for longer (default: wait for it)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Create, check or split; 1 if something is not as it must be."""
    _check_options(arguments)
    settings = settings_of(arguments)
    wait_for_kafka(settings.kafka, Waiting(), within_s=arguments.wait)
    console = Console(soft_wrap=True, highlight=False)
    if arguments.what == "split":
        _split(settings, console, is_trial=arguments.dry_run)
        if arguments.dry_run:
            return 0
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    try:
        if arguments.what == "create":
            _create(admin, console, alter=arguments.alter)
        problems, dangers = admin.problems(), admin.dangers()
    finally:
        admin.close()
    for problem in problems:
        console.print(Text.assemble(("wrong ", "red"), problem))
    for danger in dangers:
        console.print(Text.assemble(("at risk ", "yellow"), danger))
    if not (problems or dangers):
        console.print("all topics are as they must be")
    is_bad = problems or (dangers and arguments.what == "check")
    return 1 if is_bad else 0


def _check_options(arguments: argparse.Namespace) -> None:
    for option, is_set, what in (
        ("--alter", arguments.alter, "create"),
        ("--dry-run", arguments.dry_run, "split"),
    ):
        if is_set and arguments.what != what:
            raise ValueError(f"{option} goes with {what}; got {arguments.what}")


def _create(admin: TopicAdmin, console: Console, *, alter: bool) -> None:
    done = admin.create(alter=alter)
    for name in done.created:
        console.print(Text(f"created {name}"))
    for name, changes in done.corrected.items():
        console.print(Text(f"corrected {name}: {', '.join(changes)}"))


def _split(settings: Settings, console: Console, *, is_trial: bool) -> None:
    # The other actions need neither numpy nor the clients of workers.
    from rankstream.operations.conversion.split_log import split_log  # noqa: PLC0415

    def tell(line: str) -> None:
        console.print(Text(line))

    split_log(settings, tell, is_trial=is_trial)
