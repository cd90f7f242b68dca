"""What was done to the topics, and how they are."""

from dataclasses import dataclass

from rankstream.operations.answers.as_builtins import Answer


@dataclass(frozen=True)
class TopicsStanding(Answer):
    """What `topics create`, `check` and `split` tell.

    Parameters
    ----------
    created
        Names of topics.
    corrected
        Changes of their configuration, by the name of the topic.
    steps
        What a split did or, with `--dry-run`, would do.
    problems, dangers
        Sentences about what is not as it must be, and what endangers records.
    """

    created: list[str]
    corrected: dict[str, list[str]]
    steps: list[str]
    problems: list[str]
    dangers: list[str]
