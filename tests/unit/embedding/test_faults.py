"""Faults that a test injects: their effect on clients and on the broker."""

from broker.embedding import Broker
from tests.support.embedded import consume, port_of, put, waiting
from tests.support.socket_client import SocketClient


async def test_a_dropped_connection_ends_without_a_word() -> None:
    async with Broker() as running:
        async with SocketClient(port_of(running)) as one, SocketClient(port_of(running)) as other:
            await one.open("one")
            await other.open("other")
            assert running.faults.drop_connections() == 2
            assert await one.eof()
            assert await other.eof()
        async with SocketClient(port_of(running)) as again:
            await again.open("one")


async def test_what_its_consumer_held_waits_again_at_once() -> None:
    async with Broker() as running, SocketClient(port_of(running)) as client:
        put(running, "orders", b"a")
        await consume(client, "orders", count=1)
        assert waiting(running, "orders") == []
        running.faults.drop_connections()
        assert waiting(running, "orders") == [b"a"]
        assert [end.outcome for end in running.settled("orders")] == ["released"]
        assert running._app().container.peer_count() == 0


def test_there_may_be_none() -> None:
    with Broker() as running:
        assert running.faults.drop_connections() == 0
