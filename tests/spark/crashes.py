"""A queue, a stream from it into another queue, and the fate of every message.

python-qpid-proton and the broker's own figures decide: nothing of the pipeline is trusted.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from proton import Message, Terminus
from proton.utils import BlockingConnection, SyncRequestResponse

from tests.interop.broker_process import BrokerProcess
from tests.interop.proton_peer import Peer
from tests.spark.driver import Plan
from tests.spark.session import MASTER
from tests.support.ports import free_port

MESSAGES: Final = 400
BATCH: Final = 100
SLICES: Final = 2
RETURN_SECONDS: Final = 60
ARRIVAL_SECONDS: Final = 240
LOOK_SECONDS: Final = 0.2
BROKER: Final = 'store = "sqlite:///store.db"\n'


@dataclass(frozen=True)
class Count:
    """The numbers of messages at one moment, by their state."""

    acked: int
    """Gone from the queue for good."""
    sink: int
    lost: int
    """Gone from the queue, and not in the sink."""
    duplicates: int

    def __str__(self) -> str:
        return f"{self.acked:5} {self.sink:5} {self.lost:5} {self.duplicates:5}"


WHOLE: Final = Count(acked=MESSAGES, sink=MESSAGES, lost=0, duplicates=0)


class Scene:
    """One broker on a fixed port with a durable store, and the queues `in` and `out`."""

    def __init__(self, folder: Path, *, settings: str = "") -> None:
        self.folder: Final = folder
        self._settings: Final = BROKER + settings
        self.port: Final = free_port()
        self.pipe: Final = folder / "pipe"
        self.told: Final = folder / "told"
        for pipe in (self.pipe, self.told):
            os.mkfifo(pipe)
        (folder / "broker").mkdir()
        self.broker = self._start()
        self._drivers = 0
        self.fill(0, MESSAGES)

    def _start(self) -> BrokerProcess:
        folder = self.folder / "broker"
        return BrokerProcess(folder, settings=self._settings, port=self.port)

    def restart_broker(self, *, away_s: float, meanwhile: Callable[[], None] | None = None) -> None:
        """Kill the broker without a warning, and start it `away_s` seconds later on its store."""
        self.broker.kill()
        if meanwhile is not None:
            meanwhile()
        pause(away_s)
        self.broker = self._start()

    def fill(self, first: int, count: int) -> None:
        """Add numbered messages to `in`."""
        with Peer(self.broker.url) as peer:
            peer.opened()
            numbers = range(first, first + count)
            peer.fill("in", *(Message(body=number, durable=True) for number in numbers))

    def wait_for_sink(self, messages: int) -> None:
        """Wait until `out` has that number of messages."""
        deadline = time.monotonic() + ARRIVAL_SECONDS
        while (arrived := self._arrived()) < messages:
            assert time.monotonic() < deadline, f"{arrived} of {messages} have arrived"
            pause(LOOK_SECONDS)

    def _arrived(self) -> int:
        """Return the number of messages in `out`, which the sink creates."""
        listed = asked(self.broker.url, "QUERY", "org.amqp.management", "self", entityType="queue")
        rows = [dict(zip(listed["attributeNames"], row, strict=True)) for row in listed["results"]]
        return sum(int(row["messages"]) for row in rows if row["name"] == "out")

    def close(self) -> None:
        self.broker.kill()

    def plan(
        self,
        fault: Mapping[str, str] | None = None,
        /,
        *,
        master: str = MASTER,
        available_now: bool = True,
        timeout: str = "10s",
        **options: str,
    ) -> Plan:
        """Return the stream from `in` to `out`: a folder for each driver, one checkpoint."""
        self._drivers += 1
        url = self.broker.url
        source = {
            "url": url,
            "address": "in",
            "maxMessagesPerTrigger": str(BATCH),
            "numPartitions": str(SLICES),
            "amqp.timeout": timeout,
            **options,
        }
        return Plan(
            provider="tests.spark.faulty:FaultySource",
            folder=str(self.folder / f"driver-{self._drivers}"),
            checkpoint=str(self.folder / "checkpoint"),
            source=source,
            sink={"url": url, "address": "out", "amqp.timeout": timeout},
            master=master,
            available_now=available_now,
            fault=dict(fault or {}),
        )

    def fault(self, place: str, nth: int, action: str) -> dict[str, str]:
        """Return the options of a fault that strikes once in this scene."""
        return {
            "place": place,
            "nth": str(nth),
            "action": action,
            "once": str(self.folder / "struck"),
            "told": str(self.told),
            "pipe": str(self.pipe),
        }

    def struck(self) -> bool:
        return (self.folder / "struck").exists()

    def wait_until_paused(self) -> None:
        """Wait until the fault pauses: opening a pipe waits for its other end."""
        self.told.read_bytes()

    def let_go(self) -> None:
        """End the pause."""
        self.pipe.write_bytes(b"go")

    def wait_until_returned(self, messages: int) -> None:
        """Wait until `in` has that number of messages that no consumer holds."""
        with Peer(self.broker.url) as peer:
            peer.opened()
            peer.until(
                lambda: asked(self.broker.url, "READ", "queue", "in")["messages"] == messages,
                seconds=RETURN_SECONDS,
            )

    def count(self, sent: int = MESSAGES) -> Count:
        """Return the counts of now, if `sent` messages were sent; consume nothing."""
        with Peer(self.broker.url) as peer:
            peer.opened()
            numbers = Counter(browsed(peer, "out", 2 * sent))
        total = sum(numbers.values())
        acked = sent - self.left("in")
        return Count(
            acked=acked,
            sink=total,
            lost=max(0, acked - len(numbers)),
            duplicates=total - len(numbers),
        )

    def left(self, queue: str) -> int:
        """Return the queue's number of messages, including those that consumers or leases hold."""
        told = asked(self.broker.url, "READ", "queue", queue)
        return sum(int(told[name]) for name in ("messages", "acquired", "held"))


def asked(url: str, operation: str, kind: str, name: str, **properties: str) -> dict[str, Any]:
    """Return the body of the broker's response to a management request."""
    connection = BlockingConnection(url, timeout=10)
    try:
        words = {"operation": operation, "type": kind, "name": name, **properties}
        response: Any = SyncRequestResponse(connection, "$management").call(
            Message(properties=words)
        )
    finally:
        connection.close()
    assert response.properties["statusCode"] == 200, response.properties
    return cast("dict[str, Any]", response.body)


def pause(seconds: float) -> None:
    """Let other processes run."""
    threading.Event().wait(seconds)


def browsed(peer: Peer, address: str, most: int) -> list[int]:
    """Return the numbers of a queue's messages, up to `most`, in order; the messages stay there."""
    receiver = peer.new_receiver(address)
    receiver.source.distribution_mode = Terminus.DIST_MODE_COPY
    peer.attach(receiver)
    taken = peer.drain(receiver, credit=most)
    peer.accept(*(delivery for delivery, _ in taken))
    return [int(str(message.body)) for _, message in taken]
