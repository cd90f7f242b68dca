"""What `rankstream init` does: ask what was not said, and write the settings."""

import argparse
import sys
from collections.abc import Sequence
from typing import NamedTuple

from rankstream.operations.answers.installation.new_settings import (
    COUNT,
    EVENTS,
    GOALS,
    OWN,
    Wishes,
    write_settings,
)
from rankstream.operations.commands import tell, write_json
from rankstream.settings import KafkaSettings
from rankstream.wire.nearest_name import meant


class Question(NamedTuple):
    """What is asked where an option does not say it.

    Parameters
    ----------
    choices
        Possible answers; without any, everything is one.
    default
        The answer where nothing is typed.
    """

    option: str
    words: str
    choices: Sequence[str]
    default: str


QUESTIONS = (
    Question(
        "kafka",
        "Where is Kafka? HOST:PORT, or none where logs lie in files",
        (),
        KafkaSettings().bootstrap,
    ),
    Question("events", "What do lists and clicks look like?", EVENTS, OWN),
    Question("goal", "What is to be done with them?", GOALS, COUNT),
)


def run(arguments: argparse.Namespace) -> int:
    """Write the file, and say what to do next."""
    if arguments.config is not None:
        raise ValueError(
            f"a new file must be named alone; got --config {arguments.config}: leave "
            "out --config"
        )
    answers = {each.option: getattr(arguments, each.option) for each in QUESTIONS}
    missing = [each for each in QUESTIONS if answers[each.option] is None]
    if missing and not sys.stdin.isatty():
        options = ", ".join(f"--{each.option}" for each in QUESTIONS)
        raise ValueError(
            f"without a terminal {options} must be given; --{missing[0].option} is "
            "missing: name it"
        )
    answers |= {each.option: _asked(each) for each in missing}
    wishes = Wishes(
        **answers,
        namespace=arguments.namespace or "",
        features=arguments.features,
    )
    found = write_settings(wishes, arguments.file)
    if arguments.json:
        write_json(found.to_dict())
        return 0
    sys.stdout.write(f"{found.file} was written; look at it, then\n")
    sys.stdout.writelines(f"  {step}\n" for step in found.next)
    return 0


def _asked(question: Question) -> str:
    """The answer, once it is one."""
    choices = f" ({', '.join(question.choices)})" if question.choices else ""
    while True:
        sys.stderr.write(f"{question.words}{choices} [{question.default}] ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise ValueError(
                f"each question must be answered; the input ended: say "
                f"--{question.option}"
            )
        answer = line.strip() or question.default
        if not question.choices or answer in question.choices:
            return answer
        tell(f"{answer!r} is none of them; {meant(answer, question.choices)}")
