"""Kill -9 of a process at a place of its commit, by its own hand.

The harness leaves a file beside the settings that says which role, and where. Who
comes there takes the file away and kills itself, so nobody else can be meant. A
transaction that only ends what others left open is one too: `begun` and `first` may
strike it.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from aiokafka import TopicPartition

from streams.kafka import clients
from streams.kafka.group.member_offsets import MemberProducer
from streams.kafka.group.membership import Membership

PHASES = {
    "begun": "nothing was sent",
    "first": "brokers have its first record",
    "last": "brokers have all of its records, and not the group's positions",
    "positions": "brokers have the positions too",
    "ending": "brokers were asked to end it; of some the answer was read",
    "ended": "it is committed, and nothing in the process knows",
}
"""Places of a transaction, in their order, and what is true there."""

ANSWER_S = 0.002
"""Brokers are asked to end a transaction; so long after that, some have answered."""


class Order:
    """Which role is to be killed, and where."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "kill-at"

    def give(self, role: str, phase: str) -> None:
        """Kill the next process of a role that comes to a phase."""
        written = self._path.with_suffix(".written")
        written.write_text(f"{role} {phase}", encoding="utf-8")
        written.rename(self._path)

    def is_open(self) -> bool:
        """Whether nobody was killed yet."""
        return self._path.exists()

    def withdraw(self) -> None:
        """Kill nobody."""
        self._path.unlink(missing_ok=True)

    def is_for(self, role: str, phase: str) -> bool:
        """Whether a process is meant."""
        try:
            return self._path.read_text(encoding="utf-8") == f"{role} {phase}"
        except FileNotFoundError:
            return False

    def carry_out(self, role: str, phase: str) -> None:
        """Kill this process, if it is meant."""
        if self.is_for(role, phase):
            self.withdraw()
            os.kill(os.getpid(), signal.SIGKILL)


def kill_at_phases(role: str, folder: Path) -> None:
    """From here on transactions of this process of a role follow orders."""
    order = Order(folder)

    class Struck(MemberProducer):
        """A producer that may be killed at each phase."""

        _has_sent = False

        async def begin_transaction(self) -> None:
            await super().begin_transaction()
            self._has_sent = False
            order.carry_out(role, "begun")

        async def send(self, *place: Any, **content: Any) -> Awaitable[Any]:
            return await self._sent(await super().send(*place, **content))

        async def send_batch(self, *place: Any, **content: Any) -> Awaitable[Any]:
            return await self._sent(await super().send_batch(*place, **content))

        async def _sent(self, sent: Awaitable[Any]) -> Awaitable[Any]:
            if not self._has_sent and order.is_for(role, "first"):
                await sent
                order.carry_out(role, "first")
            self._has_sent = True
            return sent

        async def send_offsets_to_transaction(
            self,
            offsets: dict[TopicPartition, int | tuple[int, str]],
            group_id: str,
            member: Membership | None = None,
        ) -> None:
            order.carry_out(role, "last")
            await super().send_offsets_to_transaction(offsets, group_id, member)
            order.carry_out(role, "positions")

        async def commit_transaction(self) -> None:
            ending = asyncio.ensure_future(super().commit_transaction())
            if order.is_for(role, "ending"):
                await asyncio.wait({ending}, timeout=ANSWER_S)
                order.carry_out(role, "ending")
            await ending
            order.carry_out(role, "ended")

    clients.MemberProducer = Struck  # type: ignore[attr-defined]
