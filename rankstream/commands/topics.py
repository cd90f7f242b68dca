"""`rankstream topics`: create what is missing, or check what is there."""

import argparse

from rich.console import Console

from producers.topic_admin import TopicAdmin
from rankstream.settings import load_settings, with_namespace

SUMMARY = "create the topics, or check them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  rankstream topics create --namespace shop\n"
        "  rankstream topics check --config shop.toml    exit status 1 if anything is wrong\n"
    )
    parser.add_argument("what", choices=("create", "check"))


def run(arguments: argparse.Namespace) -> int:
    """Create or check; 1 if something is not as it must be."""
    settings = with_namespace(load_settings(arguments.config), arguments.namespace)
    admin = TopicAdmin(settings)
    console = Console(soft_wrap=True)
    try:
        if arguments.what == "create":
            for name in admin.create():
                console.print(f"created {name}")
        problems = admin.problems()
    finally:
        admin.close()
    for problem in problems:
        console.print(f"[red]wrong[/] {problem}", highlight=False)
    if not problems:
        console.print("all topics are as they must be")
    return 1 if problems else 0
