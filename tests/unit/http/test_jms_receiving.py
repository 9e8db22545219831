"""Receiving over HTTP: a receipt for each message, and what settles it."""

from __future__ import annotations

import asyncio

import pytest

from broker.http import jms_receiving
from broker.http.limits import JMS_LOCK_MS, JMS_RECEIPTS_PER_USER_MAX
from broker.jms import JmsMessage, TextBody, encode
from broker.routing.addresses.policy import AddressPolicy
from broker.security.identity import ADMIN, APPLICATION, MONITOR
from tests.support.access import ADA, RuledUsers
from tests.support.broker import Broker, Doorman
from tests.support.frames import message
from tests.support.http import basic, served, server_of, socket_to
from tests.support.jms_http import JmsAnswer, call, post, store_working, until
from tests.support.linkless import send
from tests.support.stores import GatedStore

pytestmark = pytest.mark.requirement("MAP-09")

DEAD = AddressPolicy(dead_letter="dead")


def holding(count: int = 1, **fields: object) -> Broker:
    """Return a broker with `count` messages."""
    broker = Broker(**fields)  # type: ignore[arg-type]
    broker.fill(count=count)
    return broker


def is_attached(broker: Broker) -> bool:
    """Return whether a request waits at the queue."""
    return "q" in broker.router.queues and bool(broker.queue().consumers.attached)


def receipt_of(answer: JmsAnswer) -> str:
    assert answer.status == 200
    found = answer.header("JMS-Receipt")
    assert found is not None
    return found


async def test_a_message_is_received_with_a_receipt() -> None:
    broker = holding()
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await post(f"{url}/jms/receive/queue/q")
    assert (answer.status, answer.body) == (200, b"0")
    assert answer.header("JMS-Message-Type") == "BytesMessage"
    assert answer.header("JMSRedelivered") == "false"
    assert answer.header("JMS-Receipt-Seconds") == "30"
    assert broker.queue().state.acquired == 1


async def test_a_message_with_a_long_header_can_be_received_and_accepted() -> None:
    broker = Broker()
    long = JmsMessage(TextBody("x"))
    long.correlation_id = "c" * 200_000
    send(broker, user="", encoded=encode(long))
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await post(f"{url}/jms/receive/queue/q")
        assert (answer.body, answer.header("JMSCorrelationID")) == (b"x", None)
        assert answer.header("JMS-Properties-Omitted") == "1"
        assert (await call("DELETE", f"{url}/jms/receipts/{receipt_of(answer)}")).status == 204
    assert broker.queue().contents() == 0


@pytest.mark.parametrize(
    ("method", "action", "left", "dead"),
    [
        pytest.param("DELETE", "", 0, 0, id="accept"),
        pytest.param("POST", "/release", 1, 0, id="release"),
        pytest.param("POST", "/reject", 0, 1, id="reject"),
    ],
)
async def test_a_receipt_is_settled_once(method: str, action: str, left: int, dead: int) -> None:
    broker = holding(policy=DEAD)
    async with served(broker.store, broker=broker, jms=True) as url:
        receipt = receipt_of(await post(f"{url}/jms/receive/queue/q"))
        path = f"{url}/jms/receipts/{receipt}{action}"
        assert (await call(method, path)).status == 204
        assert (await call(method, path)).problem()[:2] == (404, "not-found")
    found = broker.router.queues.get("dead")
    assert (broker.queue().contents(), broker.queue().state.acquired) == (left, 0)
    assert (0 if found is None else found.contents()) == dead


async def test_a_renewed_receipt_holds_longer_and_an_expired_one_no_more() -> None:
    broker = holding()
    async with served(broker.store, broker=broker, jms=True) as url:
        receipt = receipt_of(await post(f"{url}/jms/receive/queue/q"))
        broker.advance(JMS_LOCK_MS - 1)
        assert (await post(f"{url}/jms/receipts/{receipt}/renew")).status == 204
        broker.advance(JMS_LOCK_MS - 1)
        assert (await post(f"{url}/jms/receive/queue/q")).status == 204
        broker.advance(1)
        gone = await call("DELETE", f"{url}/jms/receipts/{receipt}")
        assert gone.problem()[:2] == (404, "not-found")
        again = await post(f"{url}/jms/receive/queue/q")
    assert (again.header("JMSRedelivered"), again.header("JMSXDeliveryCount")) == ("true", "2")


async def test_there_are_no_other_actions() -> None:
    broker = holding()
    async with served(broker.store, broker=broker, jms=True) as url:
        receipt = receipt_of(await post(f"{url}/jms/receive/queue/q"))
        answer = await post(f"{url}/jms/receipts/{receipt}/eat")
    assert answer.problem() == (
        404,
        "not-found",
        "no action eat; there are release, reject, renew",
    )


@pytest.mark.requirement("OPS-08")
async def test_a_receipt_is_of_no_use_to_another_user() -> None:
    doorman = Doorman({"a": "x", "b": "x"}, administrators=["a", "b", ""])
    broker = holding(authenticator=doorman)
    a, b = (list(basic(name, "x").items()) for name in "ab")
    async with served(broker.store, broker=broker, jms=True) as url:
        receipt = receipt_of(await post(f"{url}/jms/receive/queue/q", a))
        path = f"{url}/jms/receipts/{receipt}"
        assert (await call("DELETE", path, b)).status == 404
        assert (await call("DELETE", path, a)).status == 204


async def test_nothing_waits() -> None:
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await post(f"{url}/jms/receive/queue/q")
    assert answer.status == 204
    assert broker.queue().consumers.attached == []


async def test_a_message_that_comes_while_a_request_waits() -> None:
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        request = asyncio.get_running_loop().create_task(
            post(f"{url}/jms/receive/queue/q?wait=10&selector=n%3D2")
        )
        await until(lambda: is_attached(broker))
        broker.fill()
        send(broker, user="", encoded=message(b"wanted", properties={"n": 2}))
        answer = await request
    assert (answer.status, answer.body) == (200, b"wanted")
    assert broker.queue().contents() == 2


async def test_a_request_waits_no_longer_than_it_says() -> None:
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await post(f"{url}/jms/receive/queue/q?wait=1")
    assert answer.status == 204
    assert broker.queue().consumers.attached == []


@pytest.mark.parametrize(
    ("query", "slug"),
    [
        ("wait=61", "bad-request"),
        ("wait=x", "bad-request"),
        ("selector=a+%3D", "invalid-selector"),
        ("colour=red", "bad-request"),
    ],
)
async def test_arguments_are_checked(query: str, slug: str) -> None:
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await post(f"{url}/jms/receive/queue/q?{query}")
    assert answer.problem()[:2] == (400, slug)
    assert not broker.router.queues


async def test_headers_of_messages_are_for_senders() -> None:
    async with served(GatedStore(), jms=True) as url:
        answer = await post(f"{url}/jms/receive/queue/q", [("JMSType", "x")])
    assert answer.problem()[:2] == (400, "header-not-allowed")


async def begin_to_receive(broker: Broker, url: str) -> None:
    """Send a request that waits, and lose the connection."""
    async with socket_to(url) as (_, writer):
        writer.write(b"POST /jms/receive/queue/q?wait=60 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await until(lambda: is_attached(broker))


async def test_a_client_that_is_gone_takes_no_message() -> None:
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        await begin_to_receive(broker, url)
        await until(lambda: not broker.queue().consumers.attached)
        broker.fill()
        assert (await post(f"{url}/jms/receive/queue/q")).header("JMSRedelivered") == "false"


async def test_a_response_that_nobody_reads_leaves_the_receipt_to_expire() -> None:
    broker = holding()
    async with served(broker.store, broker=broker, jms=True) as url:
        async with socket_to(url) as (_, writer):
            writer.write(b"POST /jms/receive/queue/q HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await until(lambda: broker.queue().state.acquired)
        assert (await post(f"{url}/jms/receive/queue/q")).status == 204
        broker.advance(JMS_LOCK_MS)
        assert (await post(f"{url}/jms/receive/queue/q")).body == b"0"


async def test_a_server_that_stops_ends_waiting_requests() -> None:
    broker = Broker()
    server = server_of(broker.store, broker, jms=True)
    await server.start()
    async with socket_to(server.url()) as (_, writer):
        writer.write(b"POST /jms/receive/queue/q?wait=60 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await until(lambda: is_attached(broker))
        await server.stop()
    assert not is_attached(broker)


async def test_a_deleted_queue_ends_the_request() -> None:
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        request = asyncio.get_running_loop().create_task(post(f"{url}/jms/receive/queue/q?wait=60"))
        await until(lambda: is_attached(broker))
        broker.router.delete(broker.queue(), broker.journal.batch)
        broker.container.run_round()
        answer = await request
    assert answer.problem()[:2] == (410, "queue-deleted")


@pytest.mark.requirement("OPS-08")
async def test_a_right_that_is_lost_while_a_request_waits() -> None:
    users = RuledUsers({"": {ADMIN}, ADA: {ADMIN}})
    broker = Broker(authenticator=users)
    async with served(broker.store, broker=broker, jms=True) as url:
        request = asyncio.get_running_loop().create_task(post(f"{url}/jms/receive/queue/q?wait=60"))
        await until(lambda: is_attached(broker))
        users.ended.add("")
        send(broker)
        answer = await request
    assert answer.problem() == (403, "not-permitted", "the login is no longer valid")
    assert (broker.queue().contents(), broker.queue().state.acquired) == (1, 0)


@pytest.mark.attack("Z7")
@pytest.mark.requirement("OPS-08")
@pytest.mark.parametrize("is_sent", [True, False], ids=["a message comes", "nothing comes"])
async def test_a_role_that_is_taken_away_while_a_request_waits(
    monkeypatch: pytest.MonkeyPatch, *, is_sent: bool
) -> None:
    assert jms_receiving.CHECK_S < 5
    monkeypatch.setattr(jms_receiving, "CHECK_S", 60.0 if is_sent else 0.01)
    users = RuledUsers({"": {APPLICATION}, ADA: {ADMIN}})
    broker = Broker(authenticator=users)
    async with served(broker.store, broker=broker, jms=True) as url:
        request = asyncio.get_running_loop().create_task(post(f"{url}/jms/receive/queue/q?wait=60"))
        await until(lambda: is_attached(broker))
        users.roles[""] = frozenset({MONITOR})
        if is_sent:
            send(broker)
        answer = await request
    assert answer.problem()[:2] == (403, "not-permitted")
    assert "receive queue:q" in answer.problem()[2]
    assert (broker.queue().contents(), broker.queue().state.acquired) == (int(is_sent), 0)


async def test_a_user_has_only_so_many_receipts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert JMS_RECEIPTS_PER_USER_MAX == 1000
    monkeypatch.setattr(jms_receiving, "JMS_RECEIPTS_PER_USER_MAX", 1)
    broker = holding(2)
    async with served(broker.store, broker=broker, jms=True) as url:
        receipt = receipt_of(await post(f"{url}/jms/receive/queue/q"))
        refused = await post(f"{url}/jms/receive/queue/q")
        assert refused.problem() == (429, "limit-reached", "user anonymous has its 1 receipts")
        assert broker.queue().state.acquired == 1
        await call("DELETE", f"{url}/jms/receipts/{receipt}")
        assert (await post(f"{url}/jms/receive/queue/q")).status == 200


async def test_requests_that_wait_together_get_no_more_receipts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jms_receiving, "JMS_RECEIPTS_PER_USER_MAX", 1)
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        loop = asyncio.get_running_loop()
        path = f"{url}/jms/receive/queue/q?wait=60"
        waiting = [loop.create_task(post(path)) for _ in range(2)]
        await until(lambda: is_attached(broker) and len(broker.queue().consumers.attached) == 2)
        broker.fill(count=2)
        statuses = sorted([(await each).status for each in waiting])
    assert statuses == [200, 429]
    assert (broker.queue().contents(), broker.queue().state.acquired) == (2, 1)


async def test_an_accept_is_answered_after_its_commit() -> None:
    store = GatedStore()
    broker = Broker(store=store)
    running = asyncio.get_running_loop().create_task(broker.journal.run(broker.container.run_round))
    async with served(store, broker=broker, jms=True) as url:
        loop = asyncio.get_running_loop()
        await store_working(store, loop.create_task(post(f"{url}/jms/queue/q", [], b"x")))
        receiving = loop.create_task(post(f"{url}/jms/receive/queue/q"))
        receipt = receipt_of(await store_working(store, receiving))
        before = len(store.commits)
        accepting = loop.create_task(call("DELETE", f"{url}/jms/receipts/{receipt}"))
        await until(lambda: len(store.commits) > before)
        assert not accepting.done()
        assert (await store_working(store, accepting)).status == 204
    running.cancel()
