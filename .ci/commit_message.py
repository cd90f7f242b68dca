"""Holds a commit's message to its form: `python .ci/commit_message.py FILE`.

The subject is an imperative of at most 72 characters that begins with a capital and has
no point at its end. A body begins behind an empty line, in lines of at most 100.
"""

import re
import sys
from pathlib import Path

SUBJECT, LINE = 72, 100

SCISSORS = "# ------------------------ >8 ------------------------"
"""What follows is the change itself, which `git commit --verbose` shows."""

MEANT_FOR_LATER = re.compile(r"(fixup|squash|amend)! ")

NO_IMPERATIVE = re.compile(
    r"(?:the|an?|this|we|i|\w*[^s]s|\w+ing|\w+ed)(?=\W|$)", re.IGNORECASE
)
IMPERATIVES = frozenset(
    ("bias", "bring", "embed", "exceed", "feed", "need", "proceed", "seed", "speed")
)
"""Which end as others do that are none."""


def faults(message: str) -> list[str]:
    """What is wrong with a message, in words."""
    lines = [
        line.rstrip()
        for line in message.partition(SCISSORS)[0].splitlines()
        if not line.startswith("#")
    ]
    subject, *body = "\n".join(lines).strip().splitlines() or [""]
    subject = MEANT_FOR_LATER.sub("", subject)
    first = subject.split(" ")[0]
    found = []
    if len(subject) > SUBJECT:
        found.append(f"the subject must have {SUBJECT} characters; got {len(subject)}")
    if not first[:1].isupper():
        found.append(f"the subject must begin with a capital; got {first!r}")
    if NO_IMPERATIVE.match(first) and first.lower() not in IMPERATIVES:
        found.append(f"the subject must begin with an imperative; got {first!r}")
    if subject.endswith("."):
        found.append("the subject must have no point at its end")
    if body and body[0]:
        found.append(f"an empty line must follow the subject; got {body[0]!r}")
    found += [
        f"a line must have {LINE} characters; got {len(line)}: {line[:40]}..."
        for line in body
        if len(line) > LINE and " " in line.strip()  # an address cannot be broken
    ]
    return found


if __name__ == "__main__":
    told = faults(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.exit("\n".join(told) if told else 0)
