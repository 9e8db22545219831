"""A database that is restored to a moment (F31), as docs/operations/backup.md describes it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.faults.producer import Producer, drained
from tests.faults.server import Place, Server
from tests.support import postgres
from tests.support.postgres import SMALL
from tests.support.socket_client import SocketClient

NOON: Final = "noon"
"""Name of the moment to which the database is restored."""


class Archive:
    """A folder with the log of a server, and a copy of its data."""

    def __init__(self) -> None:
        self.folder: Final = Path(tempfile.mkdtemp(prefix="pg"))
        self.log: Final = self.folder / "log"
        self.data: Final = self.folder / "data"
        self.log.mkdir()
        user = postgres.unprivileged()
        if user is not None:
            shutil.chown(self.folder, user)
            shutil.chown(self.log, user)

    def settings(self) -> str:
        """Return the settings of a server that archives its log."""
        command = f"test ! -f {self.log}/%f && cp %p {self.log}/%f"
        return f"{SMALL}archive_mode = on\narchive_command = '{command}'\n"

    def copy(self, server: postgres.Server) -> None:
        """Copy the data of a server that runs."""
        place = str(server.folder)
        arguments = ["-h", place, "-U", "postgres", "-c", "fast", "-N", "-w"]
        server.run("pg_basebackup", *arguments, "-D", str(self.data))


class Restored(postgres.Server):
    """A server on the copied data, with the archived log up to `NOON`."""

    def __init__(self, archive: Archive, binaries: Path) -> None:
        self._archive: Final = archive
        settings = (
            f"{SMALL}archive_mode = off\nrestore_command = 'cp {archive.log}/%f %p'\n"
            f"recovery_target_name = '{NOON}'\nrecovery_target_action = 'promote'\n"
        )
        super().__init__(Path(tempfile.mkdtemp(prefix="pg")), binaries, settings=settings)

    def make(self) -> None:
        data = self.folder / "data"
        shutil.copytree(self._archive.data, data)
        (data / "recovery.signal").touch()
        account = self.account()
        if account:
            for path in (data, *data.rglob("*")):
                shutil.chown(path, account["user"], account["group"])


@pytest.fixture
def archive() -> Iterator[Archive]:
    made = Archive()
    yield made
    shutil.rmtree(made.folder)


@pytest.fixture
def server(archive: Archive) -> Iterator[postgres.Server]:
    programs = postgres.server().binaries
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    made = postgres.Server(folder, programs, settings=archive.settings())
    yield made
    made.remove()


async def test_what_was_accepted_before_a_moment_is_there_when_it_is_restored(
    tmp_path: Path, server: postgres.Server, archive: Archive
) -> None:
    database = server.database()
    broker = Server(Place(tmp_path, store=server.url(database)))
    await broker.start()
    async with SocketClient(broker.port) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        await producer.run(200)
        copying = asyncio.create_task(asyncio.to_thread(archive.copy, server))
        while not copying.done():
            await producer.run(len(producer.accepted) + 1)
        await copying
        before = list(producer.accepted)
        await server.sql("SELECT pg_create_restore_point($1)", NOON)
        accepted_later = len(producer.accepted) + 200
        await producer.run(accepted_later)
    await server.sql("SELECT pg_switch_wal()")
    await broker.kill()
    await asyncio.to_thread(server.stop)  # the archiver ends its work first

    restored = await asyncio.to_thread(Restored, archive, server.binaries)
    try:
        again = Server(Place(tmp_path, store=restored.url(database)))
        await again.start()
        held = await drained(again.port, "q", len(before))
        assert set(before) <= set(held), "an accepted message is not there"
        assert held == list(range(len(held))), "one state, with nothing left out"
        assert len(held) < accepted_later, "that of the moment, not the last one"
        assert await again.stop() == 0
    finally:
        await asyncio.to_thread(restored.remove)
