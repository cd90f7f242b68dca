"""`rankstream topics`: create what is missing, or check what is there."""

import argparse

from rich.console import Console
from rich.text import Text

from producers.readiness import Waiting, wait_for_kafka
from producers.topic_admin import TopicAdmin
from rankstream.settings import load_settings, with_namespace
from streams.topology import topics_of

SUMMARY = "create the topics, or check them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  rankstream topics create --namespace shop\n"
        "  rankstream topics check --config shop.toml\n\n"
        "exit status: 1 if a topic is missing or is not as it must be; of check also\n"
        "if records are at risk, as where a broker is away\n"
    )
    parser.add_argument("what", choices=("create", "check"))
    parser.add_argument(
        "--alter",
        action="store_true",
        help="with create: also correct the configuration of topics that exist",
    )


def run(arguments: argparse.Namespace) -> int:
    """Create or check; 1 if something is not as it must be."""
    if arguments.alter and arguments.what != "create":
        raise ValueError("--alter goes with create; got check")
    settings = with_namespace(load_settings(arguments.config), arguments.namespace)
    wait_for_kafka(settings.kafka, Waiting())
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    console = Console(soft_wrap=True, highlight=False)
    try:
        if arguments.what == "create":
            done = admin.create(alter=arguments.alter)
            for name in done.created:
                console.print(Text(f"created {name}"))
            for name, changes in done.corrected.items():
                console.print(Text(f"corrected {name}: {', '.join(changes)}"))
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
