"""A client with the engine's rule of resuming, whose connections are cut at random bytes (2.6.13).

It tells its own unsettled map, and judges the broker's, as the broker does at the other end.
"""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from storage.memory import MemoryStore
from storage.sql.sqlite.store import SqliteStore
from tests.support.frames import body_of, message
from tests.support.resuming_client import ResumingClient, ResumingReceiver, ResumingSender
from tests.support.stored_broker import StoredBroker

CUTS: Final = 80
MESSAGES: Final = 500
UNCUT: Final = 1 << 20

OPENED: Final = 330
"""The bytes of both directions before the first delivery, about."""


def cut_again_and_again(client: ResumingClient, *, most: int) -> None:
    """Lose the connection within its first `most` bytes, CUTS times."""
    draw = client.draw
    for _ in range(CUTS):
        client.eagerness = draw.choice((0, 0.3, 1))
        if isinstance(client, ResumingSender):
            client.add(draw.choice((0, 2, 12)))
        elif isinstance(client, ResumingReceiver):
            client.credit = draw.choice((2, 10, 60))
        client.exchange(draw.randint(1, OPENED) if draw.random() < 0.2 else draw.randint(1, most))


def finish(client: ResumingClient) -> None:
    """Let the client go on without cuts until it has nothing unsettled."""
    client.eagerness = 1
    for _ in range(50):
        client.exchange(UNCUT)
        if client.is_done():
            return
    raise AssertionError(f"{len(client.unsettled)} deliveries are left")


@pytest.mark.requirement("PRD-03")
@pytest.mark.parametrize("seed", range(2))
def test_what_a_client_sends_arrives_once_wherever_it_is_cut(tmp_path: Path, seed: int) -> None:
    broker = StoredBroker(lambda: SqliteStore(tmp_path / "store.db"))
    with closing(broker):
        sender = ResumingSender(broker, random.Random(seed))
        cut_again_and_again(sender, most=6000)
        finish(sender)
        broker.catch_up()
        found = [body_of(each) for each in broker.bodies_in("q")]
        assert sorted(found, key=int) == [b"%d" % number for number in range(len(sender.bodies))]
        assert set(sender.seen) >= {"incomplete", "SETTLE", "RESUME", "SEND_ANEW", "KEEP"}


@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize("seed", range(2))
def test_what_a_client_receives_comes_once_wherever_it_is_cut(seed: int) -> None:
    broker = StoredBroker(MemoryStore)
    with closing(broker):
        filler = broker.session("filler")
        filler.attach_sender()
        for number in range(MESSAGES):
            # some messages take several of the client's frames
            body = b"%d" % number
            payload = message(body, properties={"padding": "p" * 600} if number % 3 else None)
            filler.transfer(number, payload=payload, settled=True)
            filler.frames()
        receiver = ResumingReceiver(broker, random.Random(seed))
        cut_again_and_again(receiver, most=5000)
        receiver.credit = 500
        finish(receiver)
        assert sorted(receiver.taken, key=int) == [b"%d" % number for number in range(MESSAGES)]
        assert set(receiver.seen) >= {"incomplete", "resumed", "settled", "aborted", "FORGET"}
