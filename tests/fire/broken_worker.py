"""A worker that is other than users start it.

python -m tests.fire.broken_worker {position|watermark|fence|phases} --config FILE

One is without one of its safeguards, to prove that the harness can fail; or its
processes kill themselves amid a commit as they are told (`tests.fire.commit_phases`).
"""

import os
import sys
from pathlib import Path
from typing import Any

from rankstream.operations.cli import main as rankstream
from rankstream.settings import load_settings
from rankstream.wire.events import Frontier
from streams.event_time import Watermark
from streams.kafka.group.member_offsets import MemberProducer
from streams.kafka.partitions.committer import Committer
from streams.kafka.partitions.partition_life import Event
from streams.kafka.processes.role_processes import Preloaded
from streams.kafka.processes.supervisor import supervise
from streams.kafka.state.transactions import Transactions
from streams.worker_roles import ROLES
from tests.fire.commit_phases import kill_at_phases
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


def without_a_fence() -> None:
    """Nobody has another's id, and no broker asks who commits."""
    transactions: Any = Transactions
    producer: Any = MemberProducer
    begin, send = transactions.__init__, producer.send_offsets_to_transaction

    def of_this_process(self: Any, cluster: Any, name: str, *timeout_ms: int) -> None:
        begin(self, cluster, f"{name}-{os.getpid()}", *timeout_ms)

    async def as_anybody(self: Any, offsets: Any, group_id: str, _: Any = None) -> None:
        await send(self, offsets, group_id)

    transactions.__init__ = of_this_process
    producer.send_offsets_to_transaction = as_anybody


FAULTS = {
    "position": without_resume_position,
    "watermark": with_the_largest_time,
    "fence": without_a_fence,
}


def main(words: list[str]) -> int:
    """Run all roles that there is work for, or one of them, as it was asked for."""
    broken, *options = words
    _, config, *child = options
    if broken in FAULTS:
        FAULTS[broken]()
    elif child:
        kill_at_phases(child[-1], Path(config).parent)
    if child:
        return rankstream(["worker", *options])
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
