"""A disk that fills up: producers wait, consumers go on, and service resumes by itself (P9)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from broker.amqp.performatives import Flow
from tests.conformance.frames import Disposition, Transfer, frame, read_frame
from tests.faults.test_kill import port_of
from tests.interop.broker_process import BrokerProcess
from tests.support.frames import attach_receiver, attach_sender, flow, message
from tests.support.socket_client import SocketClient

MEBIBYTE: Final = 1024 * 1024

MARGIN: Final = 300 * MEBIBYTE
"""Bytes that other programs may write or delete on the disk without affecting the test."""

SIZE: Final = 16 * 1024

WAITING: Final = "producers wait"
GOING_ON: Final = "producers go on"


class Filler:
    """Sends durable messages of `size` bytes as long as it has credit."""

    def __init__(self, client: SocketClient, size: int = SIZE) -> None:
        self.sent = 0
        self.accepted = 0
        self.credit = 0
        self._client: Final = client
        self._size: Final = size

    async def attach(self, address: str) -> None:
        await self._client.open(f"filler of {address}")
        await self._client.begin()
        self._client.send(attach_sender(name="filler", address=address))

    async def send_until(self, over: Callable[[], bool]) -> None:
        """Send with all credit that the broker grants, until `over()`."""
        while not over():
            while self.credit > 0:
                self._send()
            await self._hear()

    async def send_some(self, count: int) -> None:
        """Send `count` messages, for which credit must suffice; wait until all are accepted."""
        while self.credit <= 0:
            await self._hear()
        for _ in range(count):
            self._send()
        await self.settle()

    async def use_up(self) -> None:
        """Send as many messages as there is credit left, and wait until all are accepted."""
        while self.credit > 0:
            self._send()
        await self.settle()

    async def settle(self) -> None:
        """Wait until everything that was sent is accepted."""
        while self.accepted < self.sent:
            await self._hear()

    def _send(self) -> None:
        payload = message(bytes(self._size), durable=True)
        tag = b"%d" % self.sent
        self._client.send_bytes(frame(Transfer(delivery_id=self.sent, tag=tag, payload=payload)))
        self.sent += 1
        self.credit -= 1

    async def _hear(self) -> None:
        try:
            body = read_frame(await self._client.frame()).body
        except TimeoutError:
            return
        if isinstance(body, Flow) and body.handle == 0:
            # negative where the broker has taken credit back that was used meanwhile
            self.credit = int(body.delivery_count + body.link_credit) - self.sent
        elif isinstance(body, Disposition):
            self.accepted += (body.first if body.last is None else body.last) - body.first + 1


async def consume(port: int, address: str, count: int) -> None:
    """Receive `count` messages and accept them."""
    async with SocketClient(port) as client:
        await client.open("consumer")
        await client.begin()
        client.send(attach_receiver(name="consumer", address=address))
        client.send(flow(handle=0, credit=2**20, delivery_count=0, incoming_window=2**20))
        seen = 0
        while seen < count:
            body = read_frame(await client.frame()).body
            if isinstance(body, Transfer):
                client.send_bytes(frame(Disposition(first=seen)))
                seen += 1


def says(broker: BrokerProcess, words: str, times: int = 1) -> Callable[[], bool]:
    """Return a function that tests whether the log has `words` at least `times` times."""
    return lambda: broker.log.read_text().count(words) >= times


def settings(least: int) -> str:
    return f'store = "sqlite:///disk/store.db"\ndisk_free_min = {least}\n'


async def test_a_disk_that_others_fill_and_empty(tmp_path: Path) -> None:
    """The test needs no root: `disk_free_min` is the space that is free here, less a margin."""
    (tmp_path / "disk").mkdir()
    found = os.statvfs(tmp_path)
    free = found.f_bavail * found.f_frsize
    if free < 4 * MARGIN:
        pytest.skip(f"{free // MEBIBYTE} MiB are free here, {4 * MARGIN // MEBIBYTE} are needed")
    broker = BrokerProcess(tmp_path, settings=settings(free - MARGIN))
    async with SocketClient(port_of(broker)) as client:
        filler = Filler(client)
        await filler.attach("q")
        await filler.send_until(lambda: filler.accepted >= 10)
        with (tmp_path / "large").open("wb") as large:
            os.posix_fallocate(large.fileno(), 0, 2 * MARGIN)
        await filler.send_until(says(broker, WAITING))
        await filler.use_up()
        await consume(port_of(broker), "q", filler.accepted)
        (tmp_path / "large").unlink()
        await filler.send_until(says(broker, GOING_ON))
        sent = filler.sent
        await filler.send_until(lambda: filler.accepted > sent)
    assert broker.stop() == 0


@contextmanager
def mounted(folder: Path, mebibytes: int) -> Iterator[None]:
    """Make `folder` a disk of its own, in memory; skip the test if that is impossible."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder)]
    tried = subprocess.run(mount, capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no disk could be mounted: {tried.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder in which `disk` is a file system of 256 MiB, in memory."""
    with mounted(tmp_path / "disk", 256):
        yield tmp_path


@pytest.mark.privileged
async def test_a_disk_that_messages_fill_and_consumers_empty(disk: Path) -> None:
    """The database file does not shrink, but has free room inside."""
    broker = BrokerProcess(disk, settings=settings(64 * MEBIBYTE))
    async with SocketClient(port_of(broker)) as client:
        filler = Filler(client)
        await filler.attach("q")
        consumed = 0
        for times in (1, 2):
            await filler.send_until(says(broker, WAITING, times))
            await filler.use_up()
            await consume(port_of(broker), "q", filler.accepted - consumed)
            consumed = filler.accepted
            await filler.send_until(says(broker, GOING_ON, times))
    assert broker.stop() == 0
