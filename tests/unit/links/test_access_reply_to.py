"""Reply addresses give no rights: to a requester, to a replier, or by the broker's responses."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from broker.amqp.errors import RESOURCE_LOCKED
from broker.amqp.performatives import Detach
from broker.amqp.terminus import Source, Target
from broker.management.replies import Replies
from broker.management.request import Envelope
from broker.security.access import AccessRules
from tests.support.access import (
    ADA,
    CONNECTING,
    OWNER,
    RuledUsers,
    access_of,
    refusal,
    refusal_of_attach,
    refusal_of_message,
    rule,
    session_as,
)
from tests.support.broker import Broker, Client
from tests.support.frames import Transfer, attach_receiver, message
from tests.support.management import MANAGEMENT, read_reply, request

pytestmark = pytest.mark.requirement("SEC-03")

BOB = "bob"
"""The user that answers requests."""

PRIVATE = "private"
"""A queue to which only the owner may send, if no right of a test says otherwise."""

ASKING = (*CONNECTING, "send queue:requests", "receive queue:requests")


def broker_with(*rights: str, bob: Iterable[str] = ()) -> Broker:
    """Return a broker with the queues `private` and `requests`, in which two users have rights.

    `rights` are those of `ada`, in addition to those of every user.
    """
    of_all = [each for each in access_of(*rights, connecting=ASKING).rules if not each.is_built_in]
    of_bob = [rule(f"b{number}", right, who=f"user:{BOB}") for number, right in enumerate(bob)]
    broker = Broker(authenticator=RuledUsers(), access=AccessRules([*of_all, *of_bob]), credit=1000)
    for kind, name in (("queue", PRIVATE), ("queue", "requests"), ("topic", "news")):
        broker.router.create(broker.router.parse(name, kind), broker.journal.batch)
    return broker


def temporary(client: Client, handle: int = 0) -> str:
    """Create a temporary queue for `client`, with credit; return its address."""
    source = Source(dynamic=True, capabilities=["temporary-queue"])
    asked = attach_receiver(name="replies", handle=handle, source=source)
    made = client.attach(asked)
    assert made.source is not None
    assert made.source.address is not None
    client.flow(handle=handle, credit=9, delivery_count=0)
    return made.source.address


def deliveries(client: Client) -> list[bytes]:
    return [each.payload for each in client.bodies() if isinstance(each, Transfer)]


# -- applications that answer requests


def answer(replier: Client, to: str) -> str | None:
    """Answer a request to its reply address, on the relay; return the refusal, None for none."""
    replier.attach_sender(None)
    replier.transfer(payload=message(to=to))
    found = refusal_of_message(replier)
    replier.send(Detach(handle=0, closed=True))
    replier.frames()
    return found


@pytest.mark.parametrize(
    ("ada", "bob", "refused"),
    [
        pytest.param((), (), refusal("send queue:private"), id="neither may send there"),
        pytest.param(
            ("send queue:private",), (), refusal("send queue:private"), id="the requester may"
        ),
        pytest.param((), ("send queue:private",), None, id="the replier may"),
    ],
)
def test_an_answer_is_judged_by_the_rights_of_the_replier(
    ada: tuple[str, ...], bob: tuple[str, ...], refused: str | None
) -> None:
    running = broker_with(*ada, bob=bob)
    requester = session_as(running)
    requester.attach_sender("requests")
    requester.transfer(payload=request(reply_to=PRIVATE))
    assert refusal_of_message(requester) is None, "the reply address of a message is not judged"
    assert answer(session_as(running, BOB), PRIVATE) == refused
    assert running.queue(PRIVATE).contents() == (refused is None)


def test_an_answer_to_another_users_temporary_queue_reaches_that_user_alone() -> None:
    running = broker_with(bob=("send temporary:queue",))
    owner, attacker = session_as(running, OWNER), session_as(running)
    address = temporary(owner)
    for source in (Source(address=address), Source(address=address, distribution_mode="copy")):
        attacker.send(attach_receiver(source=source))
        attacker.expect_refusal(RESOURCE_LOCKED)
        attacker.send(Detach(handle=0, closed=True))
    assert answer(session_as(running, BOB), address) is None
    assert len(deliveries(owner)) == 1
    assert deliveries(attacker) == []


def test_an_answer_to_management_is_a_request_of_the_replier() -> None:
    running = broker_with(bob=("send queue:other",))
    replier = session_as(running, BOB)
    replier.attach_sender(None)
    replier.attach(attach_receiver(MANAGEMENT, handle=1, target=Target(address="here")))
    replier.flow(handle=1, credit=9, delivery_count=0)
    replier.transfer(payload=request("PURGE", "queue", PRIVATE, to=MANAGEMENT))
    (told,) = deliveries(replier)
    assert read_reply(told).status == 403


# -- responses of the broker


def ask(client: Client, reply_to: str) -> str | None:
    """Send a request to `$management`; return why it is refused, None if it is accepted."""
    client.attach_sender(MANAGEMENT, handle=5)
    client.transfer(0, handle=5, payload=request("READ", "queue", PRIVATE, reply_to=reply_to))
    return refusal_of_message(client)


SPELLINGS = [
    pytest.param("private", "queue:private", id="a queue"),
    pytest.param("queue://private", "queue:private", id="with a prefix"),
    pytest.param("absent", "queue:absent", id="a queue that does not exist"),
    pytest.param("topic://news", "topic:news", id="a topic"),
    pytest.param("topic://absent", "topic:absent", id="a topic that does not exist"),
    pytest.param("news", "queue:news", id="a topic whose kind a stranger must not learn"),
    pytest.param("topic://news/eu", "topic:news/eu", id="a topic with a key"),
]


@pytest.mark.parametrize(("reply_to", "resource"), SPELLINGS)
def test_a_response_is_written_only_where_the_client_may_send(reply_to: str, resource: str) -> None:
    running = broker_with()
    assert ask(session_as(running), reply_to) == refusal(f"send {resource}")
    assert [each.contents() for each in running.queues()] == [0, 0]
    assert running.stats.access_denied == 1


def test_a_response_is_written_to_no_temporary_queue_of_others_without_the_right() -> None:
    running = broker_with()
    owner = session_as(running, OWNER)
    address = temporary(owner)
    assert ask(session_as(running), address) == refusal("send temporary:queue")
    assert deliveries(owner) == []


def test_a_client_that_may_send_there_gets_the_response_there() -> None:
    running = broker_with("send queue:private")
    assert ask(session_as(running), PRIVATE) is None
    assert running.queue(PRIVATE).contents() == 1


def test_a_clients_own_temporary_queue_needs_no_right() -> None:
    client = session_as(broker_with())
    client.attach_sender(MANAGEMENT, handle=5)
    address = temporary(client)
    payload = request("READ", "queue", PRIVATE, reply_to=address)
    client.transfer(0, handle=5, payload=payload)
    (told,) = deliveries(client)
    assert read_reply(told).status == 403


def own_link(client: Client) -> None:
    """Attach a link for responses whose target has the name of the queue `private`."""
    client.attach(attach_receiver(MANAGEMENT, handle=1, target=Target(address=PRIVATE)))
    client.flow(handle=1, credit=9, delivery_count=0)


def test_a_link_of_the_name_of_a_queue_gets_the_response() -> None:
    running = broker_with()
    client = session_as(running)
    own_link(client)
    client.attach_sender(MANAGEMENT, handle=5)
    payload = request("READ", "queue", PRIVATE, reply_to=PRIVATE)
    client.transfer(0, handle=5, payload=payload)
    assert len(deliveries(client)) == 1
    assert running.queue(PRIVATE).contents() == 0


@pytest.mark.parametrize(
    ("rights", "found"), [((), False), (("send queue:private",), True)], ids=["without", "with"]
)
def test_a_response_that_comes_later_does_not_reach_a_queue_of_that_name(
    rights: tuple[str, ...], *, found: bool
) -> None:
    """The link that was to get it has ended meanwhile."""
    running = broker_with(*rights)
    client = session_as(running)
    own_link(client)
    client.send(Detach(handle=1, closed=True))
    replies = Replies(running.container)
    node = replies.node_for(client.peer, Envelope(reply_to=PRIVATE, correlation_id=None))
    assert (node is running.queue(PRIVATE)) is found


def test_the_attach_of_a_requester_needs_no_right_for_the_reply_address() -> None:
    client = session_as(broker_with())
    receiver = attach_receiver(MANAGEMENT, target=Target(address=PRIVATE))
    assert refusal_of_attach(client, receiver) is None
    assert client.peer.identity.user == ADA
