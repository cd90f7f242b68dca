"""A worker without one of its safeguards, to prove that the harness can fail.

python -m tests.fire.broken_worker {marker|watermark} --config FILE
"""

import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from rankstream.cli import main as rankstream
from rankstream.events import ACTIVE, ENDED, SCHEMA, Element, Frontier, encode_record
from streams.checkpoint import Checkpointer
from streams.folds.elements import Elements
from streams.folds.join import Join
from streams.kinds import ROLES
from streams.supervisor import supervise

decode_element = msgspec.msgpack.Decoder(Element).decode


def without_marker_check() -> None:
    """Records between the cut and the marker are folded again, and written again."""
    resume = Checkpointer._resume

    def heedless(self: Any, marker: Any) -> int:
        start = resume(self, marker)
        self._resumed = None
        return start

    Checkpointer._resume = heedless  # type: ignore[method-assign]


def with_the_largest_time() -> None:
    """The watermark is the largest time in the log, whoever is still behind it."""
    take = Join.take

    def hasty(self: Join, elements: Elements) -> None:
        for i in range(len(elements)):
            element = decode_element(elements.raw(i))
            one: list[Element] = [element]
            if isinstance(element, Frontier):
                if element.state == ACTIVE:
                    continue
                one = []
            record = [SCHEMA, 0, 1, [*one, Frontier(0, 1, element.at_ms, ENDED)]]
            take(self, Elements(encode_record(record)))

    Join.take = hasty  # type: ignore[method-assign]


FAULTS = {"marker": without_marker_check, "watermark": with_the_largest_time}


def main(words: list[str]) -> int:
    """Run all roles, or one of them, broken."""
    broken, *options = words
    FAULTS[broken]()
    if "--child" in options:
        return rankstream(["worker", *options])
    command = [sys.executable, "-m", "tests.fire.broken_worker", broken, *options]
    commands: dict[str, Sequence[str]] = {
        role: [*command, "--child", role] for role in ROLES
    }
    return supervise(commands, final=frozenset({0, 78}))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
