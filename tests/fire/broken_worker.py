"""A worker without one of its safeguards, to prove that the harness can fail.

python -m tests.fire.broken_worker {position|watermark} --config FILE
"""

import sys
from pathlib import Path
from typing import Any

from rankstream.operations.cli import main as rankstream
from rankstream.settings import load_settings
from rankstream.wire.events import Frontier
from streams.event_time import Watermark
from streams.kafka.committer import Committer
from streams.kafka.partition_life import Event
from streams.kafka.processes.role_processes import Preloaded
from streams.kafka.processes.supervisor import supervise
from streams.worker_roles import ROLES
from tests.fire.events import DISORDER_MS


def without_resume_position() -> None:
    """Records behind the checkpoint are folded again, and written again."""
    resume = Committer._resume

    def heedless(self: Any, position: Any) -> Event:
        resume(self, position)
        return Event.OPENED_LEVEL

    Committer._resume = heedless  # type: ignore[method-assign]


def with_the_largest_time() -> None:
    """The watermark is the largest time that any source has seen, not what all have."""

    def take(self: Watermark, frontier: Frontier) -> bool:
        seen_ms = frontier.at_ms + DISORDER_MS if frontier.at_ms >= 0 else -1
        has_moved = seen_ms > self.at_ms
        self.at_ms = max(self.at_ms, seen_ms)
        return has_moved

    Watermark.take = take  # type: ignore[method-assign]


FAULTS = {"position": without_resume_position, "watermark": with_the_largest_time}


def main(words: list[str]) -> int:
    """Run all roles that there is work for, or one of them, broken."""
    broken, *options = words
    FAULTS[broken]()
    if "--child" in options:
        return rankstream(["worker", *options])
    _, config = options
    settings = load_settings(Path(config), {})
    needed = [name for name, role in ROLES.items() if role.is_needed(settings)]
    loaded = dict.fromkeys(name for role in needed for name in ROLES[role].loads)
    processes = Preloaded([sys.executable], "tests.fire.broken_worker", [*loaded])
    try:
        return supervise(
            {role: [*words, "--child", role] for role in needed},
            final=frozenset({0, 78}),
            patience_s=settings.delivery.stop_s,
            start=processes.start,
        )
    finally:
        processes.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
