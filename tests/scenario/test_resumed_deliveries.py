"""Random disconnects of a receiver and a sender that resume: each message exactly once (2.6.13)."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from broker.amqp.outcomes import ACCEPTED, State
from broker.amqp.performatives import RCV_SECOND, SENDER, Attach, Detach, End, Flow
from broker.amqp.terminus import CONNECTION_CLOSE, UNSETTLED_STATE, Source, Target
from storage.api import Store
from storage.memory import MemoryStore
from storage.sql.postgresql.store import PostgresStore
from storage.sql.sqlite.store import SqliteStore
from tests.conformance.resuming import unsettled_map
from tests.support import postgres
from tests.support.broker import Client
from tests.support.frames import Body, Disposition, Transfer, body_of, message
from tests.support.stored_broker import StoredBroker
from tests.support.unsettled_maps import told

DISCONNECTS: Final = 200
SOURCE: Final = Source(address="q", expiry_policy=CONNECTION_CLOSE, timeout=60)
TARGET: Final = Target(
    address="q", expiry_policy=CONNECTION_CLOSE, timeout=60, durable=UNSETTLED_STATE
)

StoreMaker = Callable[[], Store]


def memory(folder: Path) -> StoreMaker:  # noqa: ARG001 - like the others
    store = MemoryStore()
    return lambda: store


def sqlite(folder: Path) -> StoreMaker:
    return lambda: SqliteStore(folder / "store.db")


def postgresql(folder: Path) -> StoreMaker:  # noqa: ARG001 - the data is in its server
    server = postgres.server()
    url = server.url(server.database())
    return lambda: PostgresStore(url)


SEEDS: Final = [
    *(pytest.param(memory, seed, id=f"memory {seed}") for seed in range(3)),
    pytest.param(sqlite, 3, id="SQLite", marks=pytest.mark.slow),
    pytest.param(postgresql, 4, id="PostgreSQL", marks=pytest.mark.slow),
]
"""The store of each run, and the seed of its disconnects."""


@dataclass
class Resuming:
    """A client that loses its link again and again; frames on their way are lost with it."""

    broker: StoredBroker
    draw: random.Random
    client: Client | None = None
    unsettled: dict[bytes, State | None] = field(default_factory=dict)

    def frames(self) -> list[Body]:
        """Return the frames that have arrived since the last call."""
        assert self.client is not None
        return [each for each in self.client.bodies() if each is not None]

    def come_back(self) -> None:
        """Attach the link again, on the connection or on another one."""
        if self.client is None:
            self.client = self.broker.session(type(self).__name__)
        self.attached(self.attach(self.client))

    def attach(self, client: Client) -> Attach:
        raise NotImplementedError

    def attached(self, answer: Attach) -> None:
        raise NotImplementedError

    def work(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self.broker.close()

    def ways(self) -> tuple[str, ...]:
        """Return the ways in which the link may end."""
        return ("detach", "end", "hang up", "steal")

    def part(self) -> None:
        """Lose the link in one of its ways; perhaps read what the broker has sent last."""
        assert self.client is not None
        way = self.draw.choice(self.ways())
        if way == "detach":
            self.client.send(Detach(handle=0))
        elif way == "end":
            self.client.send(End())
            self.client.hang_up()
            self.client = None
        elif way == "hang up":
            self.client.hang_up()
            self.client = None
        elif way == "restart":
            self.broker = self.broker.restarted()
            self.client = None
        else:
            self.client = self.broker.session(type(self).__name__)
        if self.client is not None:
            self.client.frames()


@dataclass
class Receiver(Resuming):
    """Settles second: it keeps an outcome until the broker has settled the delivery."""

    taken: list[bytes] = field(default_factory=list)
    ids: dict[int, bytes] = field(default_factory=dict)

    def attach(self, client: Client) -> Attach:
        encoded = unsettled_map(self.unsettled)
        return client.attach_receiver(source=SOURCE, unsettled=encoded, rcv_settle_mode=RCV_SECOND)

    def attached(self, answer: Attach) -> None:
        theirs = told(answer) or {}
        self.unsettled = {tag: state for tag, state in self.unsettled.items() if tag in theirs}
        self.ids = {}
        assert self.client is not None
        self.client.flow(handle=0, credit=self.draw.randint(1, 8), delivery_count=0)

    def work(self) -> None:
        assert self.client is not None
        for body in self.frames():
            if isinstance(body, Transfer):
                self.received(body)
            elif isinstance(body, Disposition) and body.role is SENDER and body.settled:
                for number in [each for each in self.ids if body.covers(each)]:
                    self.unsettled.pop(self.ids.pop(number), None)
        for number, tag in list(self.ids.items()):
            if self.unsettled.get(tag) is None and self.draw.random() < 0.7:
                self.unsettled[tag] = ACCEPTED
                settled = Disposition(first=number, settled=False, state=ACCEPTED)
                self.client.send(settled)

    def received(self, transfer: Transfer) -> None:
        tag = transfer.tag
        assert tag is not None
        assert transfer.delivery_id is not None
        if transfer.settled:
            assert transfer.resume
            self.unsettled.pop(tag, None)
            return
        if not transfer.resume:
            assert tag not in self.unsettled
            self.taken.append(body_of(transfer.payload))
        self.unsettled.setdefault(tag, None)
        self.ids[transfer.delivery_id] = tag


@dataclass
class Sender(Resuming):
    """Settles second to the broker: it resumes a delivery until it has its outcome.

    The broker stores the outcomes, so its link may also end by a restart, unless that ends the
    store, too.
    """

    numbers: int = 0
    next_id: int = 0
    numbered: Client | None = None
    bodies: dict[bytes, bytes] = field(default_factory=dict)
    ids: dict[int, bytes] = field(default_factory=dict)

    def ways(self) -> tuple[str, ...]:
        ways = super().ways()
        # a restart takes most of the time, so there are few
        return ways if self.broker.store.commits_at_once else (*ways * 3, "restart")

    def attach(self, client: Client) -> Attach:
        if client is not self.numbered:
            self.numbered = client
            self.next_id = 0
        encoded = unsettled_map(self.unsettled)
        return client.attach_sender(target=TARGET, rcv_settle_mode=RCV_SECOND, unsettled=encoded)

    def attached(self, answer: Attach) -> None:
        theirs = told(answer) or {}
        self.ids = {}
        for tag in list(self.unsettled):
            self.transfer(tag, resume=tag in theirs)

    def transfer(self, tag: bytes, *, resume: bool = False) -> None:
        assert self.client is not None
        self.ids[self.next_id] = tag
        payload = message(self.bodies[tag], durable=True)
        self.client.transfer(self.next_id, tag=tag, payload=payload, resume=resume)
        self.next_id += 1

    def work(self) -> None:
        assert self.client is not None
        for body in self.frames():
            if isinstance(body, Disposition) and body.role is not SENDER:
                assert body.state is ACCEPTED
                for number in [each for each in self.ids if body.covers(each)]:
                    if self.draw.random() < 0.7:
                        self.unsettled.pop(self.ids.pop(number), None)
                        self.client.send(Disposition(role=SENDER, first=number))
            else:
                assert isinstance(body, Flow), body
        for _ in range(self.draw.randint(0, 3)):
            tag = b"t%d" % self.numbers
            self.bodies[tag] = b"%d" % self.numbers
            self.numbers += 1
            self.unsettled[tag] = None
            self.transfer(tag)


@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize(("store", "seed"), SEEDS)
def test_a_receiver_takes_each_message_once(
    tmp_path: Path, store: Callable[[Path], StoreMaker], seed: int
) -> None:
    draw = random.Random(seed)
    broker = StoredBroker(store(tmp_path))
    receiver = Receiver(broker, draw)
    sent = 0
    with closing(receiver):
        filler = broker.session("filler")
        filler.attach_sender()
        for _ in range(DISCONNECTS):
            receiver.come_back()
            for _ in range(draw.randint(0, 4)):
                filler.transfer(sent, payload=message(b"%d" % sent, durable=True), settled=True)
                sent += 1
                receiver.work()
            receiver.part()
        finish(receiver)
        assert sorted(receiver.taken, key=int) == [b"%d" % number for number in range(sent)]
        assert broker.router.termini.resumed > DISCONNECTS // 4
        queue = broker.queue()
        assert (int(queue.backlogs.waiting), int(queue.state.acquired)) == (0, 0)
        broker.catch_up()
        assert broker.bodies_in("q") == []


def finish(receiver: Receiver) -> None:
    """Let the client take and settle everything."""
    for _ in range(200):
        receiver.come_back()
        for _ in range(4):
            receiver.work()
        assert receiver.client is not None
        receiver.client.send(Detach(handle=0))
        receiver.client.frames()
        if not receiver.unsettled and not receiver.broker.queue().contents():
            return
    raise AssertionError("messages are left")


@pytest.mark.requirement("PRD-03")
@pytest.mark.parametrize(("store", "seed"), SEEDS)
def test_the_messages_of_a_sender_arrive_once(
    tmp_path: Path, store: Callable[[Path], StoreMaker], seed: int
) -> None:
    draw = random.Random(seed)
    sender = Sender(StoredBroker(store(tmp_path)), draw)
    with closing(sender):
        for _ in range(DISCONNECTS):
            sender.come_back()
            for _ in range(draw.randint(0, 3)):
                sender.work()
            sender.part()
        sender.come_back()
        sender.broker.catch_up()
        found = [body_of(each) for each in sender.broker.bodies_in("q")]
        assert sorted(found, key=int) == [b"%d" % number for number in range(sender.numbers)]
