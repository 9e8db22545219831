"""Responses with large messages, which are read from the store in pieces."""

from __future__ import annotations

import asyncio

import pytest

from broker.http.limits import JMS_DECODED_BYTES_MAX
from broker.jms import BytesBody, Destination, JmsMessage, encode
from tests.support.broker import Broker
from tests.support.frames import message
from tests.support.http import served, socket_to
from tests.support.jms_http import post, store_working
from tests.support.large import StreamingBroker, pieces
from tests.support.large import large as large_message
from tests.support.linkless import send

pytestmark = pytest.mark.requirement("MAP-09")


async def received(streaming: StreamingBroker) -> bytes:
    """Receive a message over HTTP, and return its body."""
    broker = streaming.broker
    async with served(streaming.store, broker=broker, jms=True) as url:
        answer = asyncio.get_running_loop().create_task(post(f"{url}/jms/receive/queue/q"))
        found = await store_working(streaming.store, answer)
    assert (found.status, found.header("JMS-Message-Type")) == (200, "BytesMessage")
    assert found.header("content-length") == str(len(found.body))
    return found.body


async def test_a_large_body_is_sent_in_pieces() -> None:
    async with StreamingBroker() as streaming:
        payload, body = large_message(durable=True)
        sender = streaming.broker.session()
        sender.attach_sender("q")
        sender.send(*pieces(payload))
        await streaming.work()
        assert await received(streaming) == body


async def test_a_body_that_is_not_decoded_is_whole() -> None:
    async with StreamingBroker() as streaming:
        body = bytes(JMS_DECODED_BYTES_MAX + 1)
        send(streaming.broker, user="", encoded=message(body))
        assert await received(streaming) == body


INJECTED = "x\r\nSet-Cookie: a=b\r\n\r\n<script>"


@pytest.mark.attack("S7")
async def test_no_text_of_a_message_begins_a_header_or_a_body() -> None:
    message_ = JmsMessage(BytesBody(b"body"))
    message_.message_id = f"ID:{INJECTED}"
    message_.type = message_.correlation_id = message_.group_id = INJECTED
    message_.reply_to = Destination(INJECTED)
    message_.properties[INJECTED] = INJECTED
    message_.properties["SOAPJMS_soapAction"] = INJECTED
    message_.properties["SOAPJMS_contentType"] = f"text/html{INJECTED}"
    broker = Broker()
    send(broker, user="", encoded=encode(message_))
    async with (
        served(broker.store, broker=broker, jms=True) as url,
        socket_to(url) as (reader, writer),
    ):
        writer.write(b"POST /jms/receive/queue/q HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
        assert await reader.readexactly(4) == b"body"
    names = [line.partition(":")[0] for line in head.lower().splitlines()]
    assert "set-cookie" not in names
    assert "content-type: application/octet-stream" in head.lower().splitlines()
    assert head.count("%0D%0ASet-Cookie") == 9
