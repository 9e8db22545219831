"""Posting over HTTP: the status, the commit before it, and replies."""

from __future__ import annotations

import asyncio
import json

import pytest

from broker.amqp.outcomes import Accepted
from broker.amqp.performatives import Attach, Detach, Flow
from broker.http.jms_fields import JmsFields
from broker.http.jms_posting import PostRequest, message_of
from broker.http.soap_jms import SoapCall
from broker.jms import Destination, JmsMessage, TextBody, decode, encode
from broker.links.posting import REPLY_QUEUE_GRACE_MS
from broker.routing.addresses.policy import AddressPolicy
from broker.security.identity import ADMIN
from tests.support.access import RuledUsers
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, Transfer, attach_sender
from tests.support.http import served, socket_to
from tests.support.jms_http import JmsAnswer, call, post, store_working, until
from tests.support.stores import GatedStore
from tests.support.subscriptions import subscribe

pytestmark = pytest.mark.requirement("MAP-09")


def jms_of(transfer: Transfer) -> JmsMessage:
    """Return the message of JMS in a transfer."""
    return decode(bytes(transfer.payload), now_ms=0, consumer=Destination("q"))


async def test_a_message_has_what_its_sender_said() -> None:
    broker = Broker()
    receiver = broker.session()
    receiver.attach_receiver("q", credit=1)
    headers = [
        ("jms.priority", "7"),
        ("jms.timeToLive", "60000"),
        ("JMSType", "kind"),
        ("JMSCorrelationID", "c"),
        ("JMSXGroupID", "g"),
        ("JMSXGroupSeq", "3"),
        ("JMS-Property", "n=5;type=int"),
        ("jms.messageType", "TextMessage"),
    ]
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await post(f"{url}/jms/queue/q?JMS-Property=m%3Dx", headers, "é".encode())
    message = jms_of(receiver.expect(Transfer))
    assert answer.status == 201
    assert message.message_id == answer.header("JMSMessageID")
    assert (message.priority, message.time_to_live) == (7, 60000)
    assert (message.type, message.correlation_id) == ("kind", "c")
    assert (message.group_id, message.group_sequence) == ("g", 3)
    assert set(message.properties) == {"n", "m"}
    assert message.destination == Destination("q")
    assert message.body.content == "é"


async def test_what_is_posted_can_be_looked_at() -> None:
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        await post(f"{url}/jms/queue/a%20b/c", [], b"1")
        answer = await post(f"{url}/jms/queue/a%20b/c", [], b"2")
        found = await call("GET", url + str(answer.header("location")))
    (only,) = json.loads(found.body)["messages"]
    assert only["JMSMessageID"] == answer.header("JMSMessageID")
    assert broker.queue("a b/c").contents() == 2


async def test_a_topic_says_how_many_subscriptions_matched() -> None:
    broker = Broker()
    subscribe(broker.session())
    async with served(broker.store, broker=broker, jms=True) as url:
        answers = [await post(f"{url}/jms/topic/{name}", [], b"x") for name in ("t", "u", "t/key")]
    assert [answer.header("JMS-Matched") for answer in answers] == ["1", "0", "1"]
    assert all(answer.header("location") is None for answer in answers)


async def test_a_message_that_is_not_durable_is_accepted() -> None:
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await post(f"{url}/jms/queue/q", [("jms.deliveryMode", "NON_PERSISTENT")], b"x")
    assert answer.status == 202


async def test_a_durable_message_is_answered_after_its_commit() -> None:
    store = GatedStore()
    broker = Broker(store=store)
    running = asyncio.get_running_loop().create_task(broker.journal.run(broker.container.run_round))
    async with served(store, broker=broker, jms=True) as url:
        answer = asyncio.get_running_loop().create_task(post(f"{url}/jms/queue/q", [], b"x"))
        await until(lambda: store.commits)
        transient = await post(f"{url}/jms/queue/q", [("jms.deliveryMode", "NON_PERSISTENT")], b"x")
        assert transient.status == 202
        assert not answer.done()
        assert (await store_working(store, answer)).status == 201
    running.cancel()


async def test_a_full_queue_is_a_problem() -> None:
    broker = Broker(policy=AddressPolicy(max_messages=1, full="reject"))
    async with served(broker.store, broker=broker, jms=True) as url:
        await post(f"{url}/jms/queue/q", [], b"x")
        answer = await post(f"{url}/jms/queue/q", [], b"x")
    assert answer.problem()[:2] == (503, "queue-full")
    assert answer.header("retry-after") == "1"


async def test_a_body_that_is_no_text_is_a_problem() -> None:
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await post(f"{url}/jms/queue/q", [("jms.messageType", "TextMessage")], b"\xff")
    assert answer.problem()[:2] == (400, "invalid-message")
    assert not broker.router.queues


@pytest.mark.requirement("MAP-05", "MAP-09")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("JMS-Property", "a-b=1", id="a property that no selector can name"),
        pytest.param("JMS-Property", "and=1", id="a property named like a word of selectors"),
        pytest.param("jms.priority", "0_7", id="a priority with an underscore"),
        pytest.param("jms.priority", "%D9%A7", id="a priority in digits of another script"),
    ],
)
async def test_a_field_that_no_jms_message_may_have_is_a_problem(name: str, text: str) -> None:
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        answer = await post(f"{url}/jms/queue/q", [(name, text)], b"x")
    assert answer.problem()[:2] == (400, "invalid-message")
    assert not broker.router.queues


# -- replies


async def asked(broker: Broker, url: str, wait_s: int) -> tuple[asyncio.Task[JmsAnswer], Client]:
    """Begin a request for a reply; return it with a client that receives requests."""
    responder = broker.session()
    responder.attach_receiver("q", credit=1)
    request = asyncio.get_running_loop().create_task(
        post(f"{url}/jms/queue/q", [("Prefer", f"wait={wait_s}")], b"?")
    )
    await until(lambda: broker.stats.published)
    return request, responder


def reply(responder: Client) -> None:
    """Answer the request that has arrived."""
    request = jms_of(responder.expect(Transfer))
    assert request.reply_to is not None
    responder.send(attach_sender(request.reply_to.address, handle=1))
    responder.expect(Attach)
    responder.expect(Flow)
    answer = JmsMessage(TextBody("!"), properties={"n": 1})
    answer.correlation_id = request.message_id
    responder.send(Transfer(handle=1, delivery_id=0, tag=b"0", payload=encode(answer)))


async def test_a_reply_is_the_response() -> None:
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        request, responder = await asked(broker, url, 10)
        reply(responder)
        answer = await request
    assert (answer.status, answer.body) == (200, b"!")
    assert answer.header("JMSCorrelationID") == answer.header("JMS-Request-MessageID")
    assert answer.headers("JMS-Property") == ["n=1;type=long"]
    # the client that has replied keeps its link, and gets no detach yet
    assert isinstance(responder.expect(Disposition).state, Accepted)
    assert responder.bodies() == []
    assert len(broker.router.queues) == 2
    broker.advance(REPLY_QUEUE_GRACE_MS)
    assert responder.expect(Detach).error is not None
    assert list(broker.router.queues) == ["q"]


@pytest.mark.attack("Z7")
async def test_a_client_whose_login_has_ended_gets_no_reply() -> None:
    users = RuledUsers({"": {ADMIN}})
    broker = Broker(authenticator=users)
    async with served(broker.store, broker=broker, jms=True) as url:
        request, responder = await asked(broker, url, 10)
        users.ended.add("")
        reply(responder)
        answer = await request
    assert answer.problem() == (403, "not-permitted", "the login is no longer valid")


async def test_a_reply_queue_ends_with_the_link_of_the_reply() -> None:
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        request, responder = await asked(broker, url, 10)
        reply(responder)
        await request
        responder.send(Detach(handle=1, closed=True))
    assert list(broker.router.queues) == ["q"]


async def test_no_reply_leaves_the_request_sent() -> None:
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        request, responder = await asked(broker, url, 0)
        answer = await request
    assert answer.problem()[:2] == (504, "no-reply")
    assert jms_of(responder.expect(Transfer)).message_id == answer.header("JMSMessageID")
    assert list(broker.router.queues) == ["q"]


async def test_a_client_that_is_gone_waits_no_longer() -> None:
    broker = Broker()
    async with served(broker.store, broker=broker, jms=True) as url:
        async with socket_to(url) as (_, writer):
            writer.write(
                b"POST /jms/queue/q HTTP/1.1\r\nHost: localhost\r\nPrefer: wait=60\r\n"
                b"Content-Length: 1\r\n\r\nx"
            )
            await until(lambda: len(broker.router.queues) == 2)
        await until(lambda: len(broker.router.queues) == 1)
    assert broker.queue().contents() == 1


def test_a_message_is_soap_or_plain() -> None:
    call_ = SoapCall(content_type="text/plain", soap_action=None, kind="queue", name="q")
    given = JmsFields(given={"JMSType": "t"})
    found = message_of(PostRequest(call=call_, fields=given, body=b"x", wait_s=None))
    assert (found.type, found.body.content, found.properties) == ("t", b"x", {})
