"""`python -m tests.faults.victim PORT QUEUE MODE`: a client that gets busy, says so, and waits."""

from __future__ import annotations

import asyncio
import os
import sys

from tests.faults.asking import record_of
from tests.faults.client import Client
from tests.support.frames import message

HELD = 50
"""Number of messages that it holds unsettled, and of those it sends in its transaction."""


async def busy(port: int, queue: str, mode: str) -> None:
    """Be in the middle of `mode` until killed."""
    async with Client(port, f"victim-{os.getpid()}") as client:
        if mode == "transfer":
            sender = await client.sender(queue)
            await sender.room()
            await sender.send(message(b"x" * 2**20, durable=True), halt_at=2**19)
        else:
            await hold(client, queue, transacted=mode == "transaction")
        await record_of(client, "queue", queue)  # its answer shows that all before is read
        print("busy", flush=True)
        await client.ended(60)


async def hold(client: Client, queue: str, *, transacted: bool) -> None:
    """Receive messages and settle none; in a transaction, accept them and send others."""
    receiver = await client.receiver(queue, credit=HELD)
    transactions = await client.transactions() if transacted else None
    transaction = None if transactions is None else await transactions.declare()
    sender = await client.sender(queue)
    for _ in range(HELD):
        delivery = await receiver.next(0.5)
        if transaction is not None:
            await sender.room()
            await sender.send(message(b"victim.0|", durable=True), transaction=transaction)
            if delivery is not None:
                receiver.accept(delivery, transaction=transaction)


if __name__ == "__main__":
    asyncio.run(busy(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
