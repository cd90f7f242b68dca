"""What `rankstream doctor` does: look, and say what to do."""

import argparse

from rich.console import Console
from rich.text import Text

from rankstream.operations.answers.installation.diagnosis import diagnosis
from rankstream.operations.answers.installation.finding import FAILS, OK, WARNS
from rankstream.operations.commands import settings_of, write_json
from rankstream.operations.terminal.words import counted, visible

LIGHTS = {OK: "green", WARNS: "yellow", FAILS: "red"}


def run(arguments: argparse.Namespace) -> int:
    """Print what was found; 1 where something fails."""
    found = diagnosis(settings_of(arguments))
    status = 0 if found.is_fine else 1
    if arguments.json:
        write_json(found.to_dict())
        return status
    console = Console(soft_wrap=True, highlight=False)
    for each in found.findings:
        light = f"{each.state:<6}", LIGHTS[each.state]
        console.print(Text.assemble(light, f"{each.part:<13} ", visible(each.says)))
    n_failing, n_warning = (
        sum(each.state == state for each in found.findings) for state in (FAILS, WARNS)
    )
    if n_failing or n_warning:
        console.print(
            f"{counted(n_failing, 'failure')}, {counted(n_warning, 'warning')}"
        )
    return status
