"""Requests to the other broker's sinks, and its answers, which may be anything."""

from __future__ import annotations

import pytest

from broker.amqp.composite import FieldWriter
from broker.amqp.descriptors import AMQP_VALUE, APPLICATION_PROPERTIES, PROPERTIES
from broker.amqp.encode import BytesWriter, put_descriptor, put_ulong, put_value
from broker.amqp.frames import AMQP_HEADER, put_frame
from broker.amqp.performatives import SENDER, Attach, Begin, Open
from broker.amqp.sections import split
from broker.amqp.terminus import Source
from broker.amqp.types import Int
from broker.bridge.client_connection import ClientConnection
from broker.bridge.connection import BridgeConnection
from broker.bridge.failure import BridgeError
from broker.bridge.remote_sink import (
    ANSWERS,
    RemoteSink,
    SinkAnswer,
    read_answer,
    request_bytes,
)
from broker.clock import SystemClock
from broker.management.request import read_envelope, read_request
from broker.message import read_message
from tests.support.frames import Transfer, frame


def test_a_request_is_one_of_management() -> None:
    data = request_bytes(
        "COMMIT",
        "bridge/b/1",
        number=7,
        arguments={"batch": 3, "partitions": [0], "attempts": [9], "counts": [100]},
    )
    message = read_message(split(data, 0, len(data)), data, SystemClock())
    request = read_request(message)
    assert (request.operation, request.type, request.name) == ("COMMIT", "sink", "bridge/b/1")
    assert request.number("batch", 0, high=9) == 3
    assert request.arguments["counts"] == [100]
    envelope = read_envelope(message)
    assert (envelope.reply_to, envelope.correlation_id) == (ANSWERS, b"\x53\x07")


def _answer(properties: object, body: object = None, *, correlation: int | None = 7) -> bytes:
    out = BytesWriter()
    fields = FieldWriter()
    for _ in range(5):
        fields.skip()
    if correlation is not None:
        put_ulong(fields.field(), correlation)
    fields.close(out, PROPERTIES)
    put_descriptor(out, APPLICATION_PROPERTIES)
    put_value(out, properties)
    put_descriptor(out, AMQP_VALUE)
    put_value(out, body)
    return out.getvalue()


TOLD = {"statusCode": Int(200), "statusDescription": "OK"}

ANSWERED = [
    (_answer(TOLD, {"batch": 3}), SinkAnswer(200, "OK", {"batch": 3})),
    (_answer({"statusCode": Int(404)}, None), SinkAnswer(404, "None", {})),
    (_answer(TOLD, [1]), SinkAnswer(200, "OK", {})),
]


@pytest.mark.parametrize(("data", "expected"), ANSWERED)
def test_an_answer(data: bytes, expected: SinkAnswer) -> None:
    assert read_answer(data) == (7, expected)


WRONG = [
    pytest.param(_answer({"statusCode": "x"}), id="no status"),
    pytest.param(_answer(TOLD, correlation=None), id="no number"),
    pytest.param(_answer(TOLD)[:-1], id="cut"),
    pytest.param(b"", id="empty"),
    pytest.param(b"\xff" * 20, id="nonsense"),
]


@pytest.mark.parametrize("data", WRONG)
def test_a_malformed_answer_ends_the_attempt(data: bytes) -> None:
    with pytest.raises(BridgeError, match="answer"):
        read_answer(data)


async def test_an_answer_to_no_request_ends_the_attempt() -> None:
    engine = ClientConnection(container_id="here", host="there", logs_in=False)
    sink = RemoteSink(BridgeConnection(engine, lambda: None), "bridge/b/1")
    out = BytesWriter()
    out.write(AMQP_HEADER)
    source = Source(address="$management")
    for each in (
        Open(container_id="there", max_frame_size=1000),
        Begin(remote_channel=0, next_outgoing_id=5, incoming_window=10, outgoing_window=10),
        Attach(name="bridge-answers", handle=0, role=SENDER, source=source),
    ):
        put_frame(out, 0, each)
    answer = Transfer(handle=0, delivery_id=0, payload=_answer(TOLD))
    engine.receive(out.getvalue() + frame(answer))
    assert not engine.failure
    with pytest.raises(BridgeError, match="not asked"):
        sink.take_answers()


@pytest.mark.parametrize("value", [None, "3", True, 1.5])
def test_a_number_that_is_none(value: object) -> None:
    with pytest.raises(BridgeError, match="no number batch"):
        SinkAnswer(200, "OK", {"batch": value}).number("batch")
