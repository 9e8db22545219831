"""Messages of other formats, and their publishers, over real sockets and a broker's restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker.amqp.descriptors import NO_LOCAL_FILTER
from broker.amqp.limits import STREAMED_FROM
from broker.amqp.performatives import RECEIVER, Attach, Flow
from broker.amqp.terminus import Source
from broker.embedding import Broker
from tests.conformance.frames import Transfer, frame, read_frame
from tests.support import postgres
from tests.support.embedded import port_of
from tests.support.frames import attach_sender, body_of, flow, message
from tests.support.socket_client import SocketClient
from tests.unit.links.test_filters import stated

BATCH = 0x8001_3700
"""The message-format of a batch of Azure's clients: data sections, each of which is a message."""

NO_LOCAL = stated("no-local", NO_LOCAL_FILTER, "NoLocalFilter{}")

FRAME = 60_000
"""Bytes of payload in each frame of a large message."""


def sqlite(folder: Path) -> str:
    return f"sqlite:///{folder}/store.db"


def postgresql(folder: Path) -> str:  # noqa: ARG001 - the data is in its server
    server = postgres.server()
    return server.url(server.database())


STORES = pytest.mark.parametrize("store", [sqlite, postgresql], ids=["SQLite", "PostgreSQL"])

OPAQUE = b"\x00no section at all"
TORN = message(b"x" * (STREAMED_FROM + 100), durable=True)[:-7]
"""Sections whose last bytes are missing."""

PAYLOADS = {
    "an opaque payload": OPAQUE,
    "a large opaque payload": b"\x01" * (STREAMED_FROM + 5000),
    "a large payload that cannot be read to its end": TORN,
}


async def publish(broker: Broker, payload: bytes, *, message_format: int, by: str = "ada") -> None:
    """Send one message to `orders`, in frames of FRAME bytes, and wait until it is accepted."""
    async with SocketClient(port_of(broker)) as client:
        await client.open(by)
        await client.begin()
        client.send(attach_sender("orders", name="out"))
        while not isinstance(await client.next(), Flow):
            pass
        for at in range(0, max(1, len(payload)), FRAME):
            piece = Transfer(
                message_format=message_format if at == 0 else None,
                more=at + FRAME < len(payload),
                payload=payload[at : at + FRAME],
            )
            client.send_bytes(frame(piece))
        await client.frame()


async def received(
    broker: Broker, *, by: str = "eve", wanted: Source | None = None
) -> list[Transfer]:
    """Drain `orders`; return the transfer frames of its messages."""
    frames: list[Transfer] = []
    async with SocketClient(port_of(broker)) as client:
        await client.open(by)
        await client.begin()
        source = wanted or Source(address="orders")
        client.send(Attach(name="in", handle=0, role=RECEIVER, source=source))
        assert isinstance(await client.next(), Attach)
        client.send(flow(handle=0, delivery_count=0, credit=10, drain=True))
        while True:
            body = read_frame(await client.frame()).body
            if not isinstance(body, Transfer):
                assert isinstance(body, Flow)
                return frames
            frames.append(body)


@pytest.mark.requirement("PRD-05")
@STORES
@pytest.mark.parametrize(
    "payload", [pytest.param(each, id=name) for name, each in PAYLOADS.items()]
)
async def test_a_message_of_another_format_comes_back_as_it_was_sent(
    tmp_path: Path, store: Callable[[Path], str], payload: bytes
) -> None:
    url = store(tmp_path)
    async with Broker(store=url) as broker:
        await publish(broker, payload, message_format=BATCH)
        before = await received(broker)
    async with Broker(store=url) as broker:
        after = await received(broker)
    for frames in (before, after):
        assert {each.message_format for each in frames} == {BATCH}
        assert b"".join(each.payload for each in frames) == payload, "without a header of ours"


@STORES
async def test_sections_of_another_format_are_handled_as_ever(
    tmp_path: Path, store: Callable[[Path], str]
) -> None:
    url = store(tmp_path)
    payload = message(b"one", durable=True, priority=7) + message(b"two")
    async with Broker(store=url) as broker:
        await publish(broker, payload, message_format=BATCH)
        await received(broker)
    async with Broker(store=url) as broker:
        (again,) = await received(broker)
        await broker.until(lambda: len(broker.messages("orders")) == 1)
        (seen,) = broker.messages("orders")
    assert (seen.priority, seen.message_format, seen.body) == (7, BATCH, b"onetwo")
    assert again.message_format == BATCH
    assert again.payload != payload, "the header says that it may have been delivered"
    assert again.payload.endswith(message(b"one") + message(b"two"))


@pytest.mark.requirement("RCV-05")
@STORES
async def test_no_local_on_a_queue_knows_its_publisher_after_a_restart(
    tmp_path: Path, store: Callable[[Path], str]
) -> None:
    url = store(tmp_path)
    without_own = Source(address="orders", filter=[NO_LOCAL])
    async with Broker(store=url) as broker:
        for by in ("ada", "bob"):
            await publish(broker, message(by.encode(), durable=True), message_format=0, by=by)
    async with Broker(store=url) as broker:
        (other,) = await received(broker, by="ada", wanted=without_own)
        assert body_of(other.payload) == b"bob"
        both = await received(broker, by="eve", wanted=without_own)
    assert [body_of(each.payload) for each in both] == [b"ada", b"bob"]
