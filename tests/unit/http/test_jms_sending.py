"""Responses with large messages, which are read from the store in pieces."""

from __future__ import annotations

import asyncio

import pytest

from broker.http.limits import JMS_DECODED_BYTES_MAX
from tests.support.frames import message
from tests.support.http import served
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
