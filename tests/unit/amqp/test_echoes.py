"""Answers to flow(echo=true) (core 2.7.4)."""

import pytest

from broker.amqp.limits import ECHO_INTERVAL_MS
from broker.amqp.performatives import Detach, End, Flow
from tests.support.broker import Broker, Client
from tests.support.frames import Body, flow


def echoing() -> Client:
    """Return a client with one sending link and two receiving links in its session."""
    client = Broker().session()
    client.attach_sender(handle=0)
    client.attach_receiver(handle=1, credit=7)
    client.attach_receiver(handle=2, name="another")
    return client


def test_an_echo_of_the_session_tells_its_windows() -> None:
    client = echoing()
    client.flow(echo=True)
    told = client.expect_last(Flow)
    assert (told.handle, told.delivery_count, told.link_credit) == (-1, -1, -1)
    assert (told.next_incoming_id, told.incoming_window) == (0, 2048)
    assert told.next_outgoing_id == 0
    assert not told.echo


@pytest.mark.parametrize(
    ("handle", "given", "told"),
    [
        pytest.param(0, None, 100, id="of a link to send on"),
        pytest.param(1, None, 7, id="of a link to receive on"),
        pytest.param(1, 3, 3, id="with credit at once"),
        pytest.param(2, None, 0, id="of a link without credit"),
    ],
)
def test_an_echo_of_a_link_tells_its_credit(handle: int, given: int | None, told: int) -> None:
    client = echoing()
    client.flow(echo=True, handle=handle, delivery_count=0, credit=given)
    answer = client.expect_last(Flow)
    assert answer.handle == handle
    assert (answer.delivery_count, answer.link_credit, answer.drain) == (0, told, False)


def test_echoes_are_answered_every_ten_milliseconds_at_most() -> None:
    client = echoing()
    client.broker.advance(1)
    client.flow(echo=True)
    client.expect_last(Flow)
    for handle in (None, 1, 0, 1, None, 1):
        client.flow(echo=True, handle=handle)
    client.expect_nothing()
    client.broker.advance(ECHO_INTERVAL_MS - 1)
    client.expect_nothing()
    client.broker.advance(1)
    assert [body.handle for body in client.bodies() if isinstance(body, Flow)] == [1, 0]
    client.broker.advance(60 * ECHO_INTERVAL_MS)
    client.expect_nothing()
    client.flow(echo=True)
    client.expect_last(Flow)


def test_an_echo_ten_milliseconds_after_the_last_is_answered_at_once() -> None:
    client = echoing()
    for _ in range(3):
        client.flow(echo=True)
        client.expect_last(Flow)
        client.broker.advance(ECHO_INTERVAL_MS)


def test_sessions_echo_by_themselves() -> None:
    client = echoing()
    client.begin(1)
    client.flow(echo=True)
    client.flow(echo=True, channel=1)
    assert [each.channel for each in client.frames()] == [0, 1]
    client.flow(echo=True)
    client.broker.advance(ECHO_INTERVAL_MS)
    assert [each.channel for each in client.frames()] == [0]
    client.broker.advance(4)
    client.flow(echo=True, channel=1)
    assert [each.channel for each in client.frames()] == [1]
    client.flow(echo=True, channel=1)
    client.flow(echo=True)
    client.broker.advance(ECHO_INTERVAL_MS - 4)
    assert [each.channel for each in client.frames()] == [0]
    client.broker.advance(4)
    assert [each.channel for each in client.frames()] == [1]


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(Detach(handle=1, closed=True), id="detached by the peer"),
        pytest.param(flow(handle=1, credit=1, delivery_count=99), id="detached by us"),
    ],
)
def test_an_owed_echo_of_a_link_that_ends_is_the_sessions(end: Body) -> None:
    client = echoing()
    client.flow(echo=True)
    client.flow(echo=True, handle=1)
    client.expect(Flow)
    client.send(end)
    client.expect(Detach)
    client.broker.advance(ECHO_INTERVAL_MS)
    assert client.expect_last(Flow).handle == -1


def test_an_echo_that_breaks_its_link_is_still_answered() -> None:
    client = echoing()
    client.flow(echo=True, handle=1, credit=1, delivery_count=99)
    client.expect_detach("amqp:invalid-field", handle=1)
    assert client.expect_last(Flow).handle == -1


def test_an_owed_echo_ends_with_its_session() -> None:
    client = echoing()
    client.flow(echo=True)
    client.flow(echo=True, handle=1)
    client.expect(Flow)
    client.send(End())
    client.expect_end()
    client.broker.advance(ECHO_INTERVAL_MS)
    client.expect_nothing()
