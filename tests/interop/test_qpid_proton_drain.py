"""Drains of a broker that serves clients, by SIGTERM and by `jms-broker drain`: nothing is lost."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from proton import ConnectionException, Message, ProtonException
from proton.utils import BlockingConnection

from tests.interop.broker_process import BrokerProcess
from tests.interop.proton_peer import Peer
from tests.interop.typed import Client

pytestmark = pytest.mark.requirement("OPS-14")

QUEUE: Final = "load"
PRODUCERS: Final = 3
CONSUMERS: Final = 2
ENOUGH: Final = 200
"""Accepted messages before the drain begins."""
PATIENCE_S: Final = 20.0

SETTINGS: Final = """\
store = "sqlite:///store.db"
[drain]
on_sigterm = {on_sigterm}
announce_ms = {announce_ms}
timeout_ms = {timeout_ms}
"""


def started(
    folder: Path, *, on_sigterm: bool = True, announce_ms: int = 0, timeout_ms: int = 10_000
) -> BrokerProcess:
    settings = SETTINGS.format(
        on_sigterm=str(on_sigterm).lower(), announce_ms=announce_ms, timeout_ms=timeout_ms
    )
    return BrokerProcess(folder, settings=settings)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder for a broker; a broker that a failed test leaves there is killed."""
    yield tmp_path
    lock = tmp_path / "store.db.lock"
    if lock.exists() and (pid := lock.read_text().strip()).isdecimal():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            return


class Load:
    """Clients in threads: what the broker has accepted from them, and what they have accepted."""

    def __init__(self, url: str) -> None:
        self._url: Final = url
        self.accepted: Final[list[set[str]]] = [set() for _ in range(PRODUCERS)]
        self.consumed: Final[list[list[str]]] = [[] for _ in range(CONSUMERS)]
        self.ends: Final[list[str]] = []
        self._threads: Final = [
            *(threading.Thread(target=self._produce, args=[n]) for n in range(PRODUCERS)),
            *(threading.Thread(target=self._consume, args=[n]) for n in range(CONSUMERS)),
        ]
        for thread in self._threads:
            thread.start()

    def _produce(self, number: int) -> None:
        connection = BlockingConnection(self._url, timeout=PATIENCE_S)
        try:
            sender = connection.create_sender(QUEUE)
            for count in range(1_000_000):
                name = f"{number}-{count}"
                sender.send(Message(body=name, durable=True))  # returns once it is accepted
                self.accepted[number].add(name)
        except ProtonException as error:
            self.ends.append(str(error))

    def _consume(self, number: int) -> None:
        connection = BlockingConnection(self._url, timeout=PATIENCE_S)
        try:
            receiver = connection.create_receiver(QUEUE, credit=10)
            while True:
                body = str(receiver.receive(timeout=PATIENCE_S).body)
                receiver.accept()
                self.consumed[number].append(body)
        except ProtonException as error:
            self.ends.append(str(error))

    def await_messages(self) -> None:
        ends = time.monotonic() + PATIENCE_S
        while sum(map(len, self.accepted)) < ENOUGH:
            assert time.monotonic() < ends, "too slow"
            os.sched_yield()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


def left_in(url: str) -> list[str]:
    """Return the bodies of all messages of the queue."""
    with Peer(url) as peer:
        taken = peer.drain(peer.receiver(QUEUE), 100_000)
        return [str(message.body) for _, message in taken]


def test_a_drain_under_load_loses_and_repeats_nothing(folder: Path) -> None:
    broker = started(folder)
    load = Load(broker.url)
    load.await_messages()
    broker.terminate()
    assert broker.wait() == 0
    load.join()
    log = broker.log.read_text()
    assert "broker drained: no client has unfinished work" in log
    assert len(load.ends) == PRODUCERS + CONSUMERS
    again = started(folder)
    left = left_in(again.url)
    assert again.stop() == 0
    accepted = set[str]().union(*load.accepted)
    consumed = [name for names in load.consumed for name in names]
    assert accepted - set(left) - set(consumed) == set(), "lost"
    assert sorted([*left, *consumed]) == sorted({*left, *consumed}), "delivered twice"


def test_clients_are_told_and_a_second_signal_ends_it_at_once(folder: Path) -> None:
    broker = started(folder, timeout_ms=60_000)
    connection = BlockingConnection(broker.url, timeout=PATIENCE_S)
    connection.create_sender(QUEUE).send(Message(body="x", durable=True))
    receiver = connection.create_receiver(QUEUE, credit=1)
    receiver.receive(timeout=PATIENCE_S)  # and not settled: the drain waits for it
    broker.terminate()
    until(broker, "takes no new messages")
    assert broker.running
    broker.terminate()
    assert broker.wait() == 1
    with pytest.raises(ConnectionException):
        connection.wait(lambda: False, timeout=PATIENCE_S)


def test_sigint_and_a_broker_without_the_setting_do_not_drain(folder: Path) -> None:
    for on_sigterm, number in ((True, signal.SIGINT), (False, signal.SIGTERM)):
        broker = started(folder, on_sigterm=on_sigterm, announce_ms=60_000)
        os.kill(broker.pid, number)
        assert broker.wait() == 0
        assert "draining" not in broker.log.read_text()


def test_the_command_announces_then_drains_and_waits(folder: Path) -> None:
    broker = started(folder, on_sigterm=True, announce_ms=1)
    Client(broker.url).prints("drain", "--announce-only", "--wait")
    assert broker.running
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(broker.url.rpartition(":")[2])))
    broker.terminate()
    assert broker.wait() == 0
    again = started(folder, on_sigterm=False, announce_ms=1)
    told = Client(again.url).prints("drain", "--wait").decode()
    assert told == f"the broker has stopped: its process {again.pid} has ended\n"
    assert again.wait() == 0
    assert re.search(r"broker stopped .*reason=\S*drained", plain(again.log.read_text()))


def until(broker: BrokerProcess, words: str) -> None:
    """Wait until the log has these words."""
    ends = time.monotonic() + PATIENCE_S
    while words not in broker.log.read_text():
        assert time.monotonic() < ends, broker.log.read_text()
        os.sched_yield()


def plain(text: str) -> str:
    """Return text without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
