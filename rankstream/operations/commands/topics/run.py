"""What `rankstream topics` does: look at the topics, and change them."""

import argparse
from collections import Counter

from rich.console import Console
from rich.text import Text

from producers.brokers.topic_admin import Done, TopicAdmin
from producers.readiness import Waiting, wait_for_kafka
from rankstream.operations.answers.as_builtins import as_builtins
from rankstream.operations.answers.installation.access import access
from rankstream.operations.answers.installation.topics import TopicsStanding
from rankstream.operations.commands import settings_of, tell, write_json
from rankstream.settings import Settings
from streams.topology import topics_of

EVERYBODY = "User:*"
"""What Kafka takes for whoever asks."""


def run(arguments: argparse.Namespace) -> int:
    """Create, check or split; 1 if something is not as it must be."""
    _check_options(arguments)
    settings = settings_of(arguments)
    if arguments.what == "acls":
        return _acls(settings, arguments)
    wait_for_kafka(settings.kafka, Waiting())
    console = Console(soft_wrap=True, highlight=False, quiet=arguments.json)
    steps: list[str] = []
    if arguments.what == "split":
        _split(settings, console, steps, is_trial=arguments.dry_run)
    if arguments.dry_run:
        found = TopicsStanding([], {}, steps, [], [])
    else:
        found = _standing(settings, console, steps, arguments)
    if arguments.json:
        write_json(found.to_dict())
    is_bad = found.problems or (found.dangers and arguments.what == "check")
    return 1 if is_bad else 0


def _acls(settings: Settings, arguments: argparse.Namespace) -> int:
    """Print who needs what; nobody is asked."""
    found = access(settings, arguments.role or (), arguments.principal or "")
    if any(each.principal == EVERYBODY for each in found):
        tell(f"warning: {EVERYBODY} is everybody whom a broker lets in: name a user")
    if arguments.json:
        write_json(as_builtins(found))
        return 0
    console = Console(soft_wrap=True, highlight=False)
    said = Counter(each.redis for each in found if each.redis)
    for each in found:
        is_own = said[each.redis] == 1
        redis = [each.redis] if is_own else []
        lines = [f"# {each.role}: {each.summary}", *each.commands, *redis, ""]
        console.print(Text("\n".join(lines)))
    for command in (each for each, n_roles in said.items() if n_roles > 1):
        # A second line of one user would replace the first.
        roles = ", ".join(each.role for each in found if each.redis == command)
        console.print(Text(f"# Redis, one user of {roles}\n{command}\n"))
    return 0


def _standing(
    settings: Settings,
    console: Console,
    steps: list[str],
    arguments: argparse.Namespace,
) -> TopicsStanding:
    """Create what is missing, where that is asked for, and look at all."""
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    done = Done([], {})
    try:
        if arguments.what == "create":
            done = admin.create(alter=arguments.alter)
            _tell_done(done, console)
        checked = admin.checked()
    finally:
        admin.close()
    for problem in checked.problems:
        console.print(Text.assemble(("wrong ", "red"), problem))
    for danger in checked.dangers:
        console.print(Text.assemble(("at risk ", "yellow"), danger))
    if not (checked.problems or checked.dangers):
        console.print("all topics are as they must be")
    return TopicsStanding(*done, steps, checked.problems, checked.dangers)


def _check_options(arguments: argparse.Namespace) -> None:
    for option, is_set, what in (
        ("--alter", arguments.alter, "create"),
        ("--dry-run", arguments.dry_run, "split"),
        ("--role", arguments.role, "acls"),
        ("--principal", arguments.principal, "acls"),
    ):
        if is_set and arguments.what != what:
            raise ValueError(f"{option} goes with {what}; got {arguments.what}")


def _tell_done(done: Done, console: Console) -> None:
    for name in done.created:
        console.print(Text(f"created {name}"))
    for name, changes in done.corrected.items():
        console.print(Text(f"corrected {name}: {', '.join(changes)}"))


def _split(
    settings: Settings, console: Console, steps: list[str], *, is_trial: bool
) -> None:
    # The other actions need neither numpy nor the clients of workers.
    from rankstream.operations.conversion.split_log import split_log  # noqa: PLC0415

    def tell(line: str) -> None:
        steps.append(line)
        console.print(Text(line))

    split_log(settings, tell, is_trial=is_trial)
