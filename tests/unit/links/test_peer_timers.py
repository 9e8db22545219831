"""The timer of a connection: what is left of it once the connection has ended."""

from __future__ import annotations

from broker.routing.timer_queue import ABANDONED_MAX
from tests.support.broker import Broker


def test_connections_that_have_ended_leave_few_deadlines() -> None:
    """Each one had deadlines for its login, seconds ahead."""
    broker = Broker()
    for _ in range(3 * ABANDONED_MAX):
        client = broker.dial()
        assert len(broker.router.timer_queue) > 0
        client.hang_up()
    assert len(broker.router.timer_queue) <= ABANDONED_MAX + 1


def test_connections_that_go_on_keep_their_deadlines() -> None:
    broker = Broker()
    staying = [broker.dial() for _ in range(3)]
    for _ in range(3 * ABANDONED_MAX):
        broker.dial().hang_up()
    broker.advance(int(broker.container.limits.handshake_timeout_ms))
    assert all(client.is_closed() for client in staying)
