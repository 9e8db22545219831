"""A look at an address: all ready messages in order; looking changes nothing."""

from broker.embedding import Broker
from tests.support.embedded import consume, port_of, put, waiting
from tests.support.socket_client import SocketClient


async def test_a_look_changes_nothing() -> None:
    async with Broker() as running:
        put(running, "orders", b"a", b"b")
        app = running._app()
        before = app.stats.as_dict()
        assert waiting(running, "orders") == [b"a", b"b"]
        assert waiting(running, "orders") == [b"a", b"b"]
        queue = app.container.router.queues["orders"]
        assert (queue.backlogs.waiting, queue.state.acquired) == (2, 0)
        assert queue.consumers.count() == 0
        assert not queue.is_woken
        assert app.stats.as_dict() == before


async def test_more_than_one_chunk_is_seen() -> None:
    bodies = [b"%d" % number for number in range(500)]
    async with Broker() as running:
        put(running, "orders", *bodies)
        assert waiting(running, "orders") == bodies


async def test_an_address_that_nobody_used_is_not_made_by_looking() -> None:
    async with Broker() as running:
        assert running.messages("orders") == []
        assert not running._app().container.router.queues


async def test_what_a_consumer_holds_does_not_wait() -> None:
    async with Broker() as running, SocketClient(port_of(running)) as client:
        put(running, "orders", b"a", b"b")
        await consume(client, "orders", count=1)
        assert waiting(running, "orders") == [b"b"]


async def test_a_topic_shows_what_its_subscriptions_hold() -> None:
    async with Broker(default_kind="topic") as running, SocketClient(port_of(running)) as client:
        await consume(client, "news", count=0)
        put(running, "news", b"a", kind="topic")
        assert waiting(running, "news") == [b"a"]
