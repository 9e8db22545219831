"""A backup under load: everything acknowledged before it began is in the copy (F31)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.faults.producer import Producer, drained
from tests.faults.test_kill import SETTINGS, port_of
from tests.interop.broker_process import BrokerProcess
from tests.interop.typed import Client
from tests.support.socket_client import SocketClient

BACKUPS = 3


async def test_what_was_acknowledged_before_a_backup_is_in_it(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    before: list[list[int]] = []
    async with SocketClient(port_of(broker)) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        for number in range(BACKUPS):
            folder = tmp_path / f"copy{number}" / "data"
            await asyncio.to_thread(folder.mkdir, parents=True)
            await producer.run(len(producer.accepted) + 200)
            before.append(list(producer.accepted))
            copying = asyncio.create_task(
                asyncio.to_thread(Client(broker.url).prints, "backup", str(folder / "store.db"))
            )
            while not copying.done():
                await producer.run(len(producer.accepted) + 1)
            assert (await copying).startswith(b"copied ")
            assert len(producer.accepted) > len(before[-1]), "commits went on"
        broker.kill()
    for number, accepted in enumerate(before):
        restored = BrokerProcess(tmp_path / f"copy{number}", settings=SETTINGS)
        held = await drained(port_of(restored), "q", len(accepted))
        assert set(accepted) <= set(held), "an accepted message is not in the copy"
        assert held == list(range(len(held))), "one state, with nothing left out"
        assert restored.stop() == 0
