"""`rankstream topics`: create what is missing, check what is there, split the log."""

import argparse

from rich.console import Console
from rich.text import Text

from producers.readiness import Waiting, wait_for_kafka
from producers.topic_admin import TopicAdmin
from rankstream.settings import Settings, load_settings, with_namespace
from streams.topology import topics_of

SUMMARY = "create the topics, check them, or split the log"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  rankstream topics create --namespace shop\n"
        "  rankstream topics check --config shop.toml\n"
        "  rankstream topics split --config shop.toml\n"
        "                       gives the log the kafka.partitions of the settings;\n"
        "                       all workers must be stopped (docs/partitions.md)\n\n"
        "exit status: 1 if a topic is missing or is not as it must be; of check also\n"
        "if records are at risk, as where a broker is away\n"
    )
    parser.add_argument("what", choices=("create", "check", "split"))
    parser.add_argument(
        "--alter",
        action="store_true",
        help="with create: also correct the configuration of topics that exist",
    )


def run(arguments: argparse.Namespace) -> int:
    """Create, check or split; 1 if something is not as it must be."""
    if arguments.alter and arguments.what != "create":
        raise ValueError(f"--alter goes with create; got {arguments.what}")
    settings = with_namespace(load_settings(arguments.config), arguments.namespace)
    wait_for_kafka(settings.kafka, Waiting())
    console = Console(soft_wrap=True, highlight=False)
    if arguments.what == "split":
        _split(settings, console)
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


def _create(admin: TopicAdmin, console: Console, *, alter: bool) -> None:
    done = admin.create(alter=alter)
    for name in done.created:
        console.print(Text(f"created {name}"))
    for name, changes in done.corrected.items():
        console.print(Text(f"corrected {name}: {', '.join(changes)}"))


def _split(settings: Settings, console: Console) -> None:
    # The other actions need neither numpy nor the clients of workers.
    from rankstream.conversion.split_log import split_log  # noqa: PLC0415

    split_log(settings, lambda line: console.print(Text(line)))
