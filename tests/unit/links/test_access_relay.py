"""Rights of the anonymous relay: its memory of addresses, and what becomes of refused messages."""

from __future__ import annotations

import pytest

from broker.amqp.errors import UNAUTHORIZED_ACCESS
from broker.amqp.outcomes import Accepted, Rejected, TransactionalState
from broker.amqp.terminus import Source, Target
from broker.amqp.types import Byte
from broker.links.access import RELAY_ADDRESSES_MAX
from broker.security.identity import Identity
from tests.support.access import (
    ADA,
    CONNECTING,
    SOMEWHERE,
    RecordedRules,
    RuledUsers,
    access_of,
    guarded,
    recorded,
    refusal,
    refusal_of_attach,
    refusal_of_message,
    session_as,
)
from tests.support.broker import Broker
from tests.support.frames import Disposition, attach_sender, message
from tests.support.large import StreamingBroker, large, pieces
from tests.support.transactions import Controller

pytestmark = pytest.mark.attack("Z1")

SENT = ("send queue:q", True)
AS_QUEUE, AS_TOPIC = Byte(0), Byte(1)


class Sender:
    """A client of `ada` on the anonymous relay."""

    def __init__(self, broker: Broker) -> None:
        self.client = session_as(broker)
        self.client.attach_sender(None)
        self.sent = 0

    def send(self, to: str = "q", *, settled: bool = False, kind: Byte | None = None) -> str | None:
        """Send a message; return why that is not permitted, None if it is."""
        number = self.sent
        self.sent += 1
        annotations: dict[str, object] = {} if kind is None else {"x-opt-jms-dest": kind}
        payload = message(to=to, annotations=annotations)
        self.client.transfer(number, payload=payload, settled=settled)
        return refusal_of_message(self.client)


def relay(*rights: str) -> tuple[Broker, RecordedRules, Sender]:
    """Return a broker with the queue `q` in which `ada` has these rights, and a sender of hers."""
    rules, access = recorded(access_of(*rights, connecting=(*CONNECTING, SOMEWHERE)))
    broker = Broker(authenticator=RuledUsers(), access=access, credit=1000)
    broker.router.create(broker.router.parse("q", "queue"), broker.journal.batch)
    sender = Sender(broker)
    rules.taken()
    return broker, rules, sender


# -- the memory


def test_the_rules_are_asked_once_for_an_address() -> None:
    _, rules, sender = relay("send queue:q")
    assert [sender.send() for _ in range(3)] == [None] * 3
    assert rules.taken() == [SENT]


def test_a_refusal_is_not_remembered() -> None:
    broker, rules, sender = relay()
    assert [sender.send() for _ in range(2)] == [refusal("send queue:q")] * 2
    assert rules.taken() == [("send queue:q", False)] * 2
    assert broker.stats.access_denied == 2


def test_spellings_of_one_address_are_one() -> None:
    _, rules, sender = relay("send,create queue:q")
    assert [sender.send(to) for to in ("/queue/durable/q", "/durable/queue/q")] == [None] * 2
    assert [right for right, _ in rules.taken()] == ["send queue:q", "create queue:q"]


def test_an_absent_node_needs_the_right_to_create_each_time() -> None:
    """Another client may have deleted the node since."""
    broker, rules, sender = relay("send queue:new", "create queue:new")
    assert sender.send("new") is None
    broker.router.delete(broker.router.queues["new"], broker.journal.batch)
    assert sender.send("new") is None
    assert [right for right, _ in rules.taken()] == [
        *("send queue:new", "create queue:new"),
        "create queue:new",
    ]


def test_the_oldest_address_is_forgotten_at_the_limit() -> None:
    _, rules, sender = relay("send,create queue:#")
    names = [f"q{number}" for number in range(RELAY_ADDRESSES_MAX)]
    for name in names:
        assert sender.send(name) is None
    rules.taken()
    assert sender.send(names[0]) is None
    assert rules.taken() == [], "as many as the limit are remembered"
    assert sender.send() is None
    assert sender.send(names[1]) is None
    assert rules.taken() == [SENT], "one more makes room, for which the oldest is forgotten"
    assert sender.send(names[0]) is None
    assert rules.taken() == [(f"send queue:{names[0]}", True)]


def test_the_limit_is_for_queues_and_topics_together() -> None:
    _, rules, sender = relay("send,create queue:#", "send,create topic:#")
    for number in range(RELAY_ADDRESSES_MAX):
        assert sender.send(f"n{number}") is None
    assert sender.send("t", kind=AS_TOPIC) is None
    rules.taken()
    assert sender.send("n0") is None
    assert rules.taken() == [("send queue:n0", True)]


@pytest.mark.parametrize("key", ["", "/eu"])
def test_a_new_queue_precedes_a_remembered_topic_if_no_kind_is_said(key: str) -> None:
    broker, rules, sender = relay(f"send topic:t{key}", f"send queue:t{key}")
    router, batch = broker.router, broker.journal.batch
    topic = router.create(router.parse("t", "topic"), batch)
    assert [sender.send(f"t{key}") for _ in range(2)] == [None] * 2
    queue = router.create(router.parse(f"t{key}", "queue"), batch)
    rules.taken()
    assert [sender.send(f"t{key}") for _ in range(2)] == [None] * 2
    assert rules.taken() == [(f"send queue:t{key}", True)]
    assert (topic.published, queue.published) == (2, 2)


def test_a_queue_and_a_topic_of_one_name_are_remembered_apart() -> None:
    broker, rules, sender = relay("send queue:q", "send topic:q")
    router = broker.router
    topic = router.create(router.parse("q", "topic"), broker.journal.batch)
    assert [sender.send(kind=kind) for kind in (AS_QUEUE, AS_TOPIC) * 3] == [None] * 6
    assert [right for right, _ in rules.taken()] == ["send queue:q", "send topic:q"]
    assert (broker.queue().published, topic.published) == (3, 3)


def test_a_remembered_address_means_the_node_of_the_moment() -> None:
    broker, _, sender = relay("send,create queue:q")
    router, batch = broker.router, broker.journal.batch
    assert sender.send() is None
    router.delete(router.queues["q"], batch)
    again = router.create(router.parse("q", "queue"), batch)
    assert sender.send() is None
    assert again.published == 1


def test_new_rules_count_from_the_next_message_on() -> None:
    broker, _, sender = relay("send queue:q")
    assert sender.send() is None
    broker.container.adopt_access(access_of())
    assert sender.send() == refusal("send queue:q")
    broker.container.adopt_access(access_of("send queue:q"))
    assert sender.send() is None


def test_other_roles_count_as_soon_as_they_are_known() -> None:
    broker, _, sender = relay()
    users = broker.container.authenticator
    assert isinstance(users, RuledUsers)
    for roles, expected in (({"application"}, None), (set(), refusal("send queue:q"))):
        users.roles[ADA] = frozenset(roles)
        broker.container.rights_review.begin()
        broker.container.tick()
        assert sender.send() == expected


def test_links_of_a_connection_share_a_memory() -> None:
    broker, rules, sender = relay("send queue:q")
    assert sender.send() is None
    rules.taken()
    sender.client.attach(attach_sender(None, name="second", handle=1))
    sender.client.frames()
    rules.taken()
    sender.client.transfer(1, payload=message(to="q"), handle=1)
    assert refusal_of_message(sender.client) is None
    assert rules.taken() == []
    assert broker.queue().contents() == 2


def test_a_memory_is_that_of_one_connection() -> None:
    broker, rules, sender = relay("send queue:q")
    assert sender.send() is None
    other = session_as(broker, "bob")
    other.attach_sender(None)
    other.transfer(payload=message(to="q"))
    assert refusal_of_message(other) == refusal("send queue:q")
    assert [user for user, _, allowed in rules.decided if not allowed] == ["bob"]


# -- the attach


@pytest.mark.parametrize(
    ("right", "may"),
    [
        ("send queue:q", True),
        ("send topic:t/eu", True),
        ("send temporary:queue", True),
        ("view management:queues", True),
        ("edit management:store", True),
        ("receive queue:q", False),
        ("create queue:q", False),
        ("stage queue:q", False),
    ],
)
def test_the_relay_is_for_those_who_may_send_to_some_address(right: str, *, may: bool) -> None:
    client = session_as(guarded(right))
    refused = refusal_of_attach(client, attach_sender(None))
    assert refused == (None if may else "not allowed to send queue:# (no rule allows it)")


def test_a_refused_relay_is_counted_and_reported() -> None:
    broker = guarded()
    assert refusal_of_attach(session_as(broker), attach_sender(None)) is not None
    assert broker.stats.access_denied == 1
    assert (
        broker.watcher.events[-1] == "denied ada: not allowed to send queue:# (no rule allows it)"
    )


# -- refused messages


def test_a_refused_message_is_rejected_and_the_link_goes_on() -> None:
    broker, _, sender = relay("send queue:q")
    assert sender.send("secret") == refusal("send queue:secret")
    assert sender.send() is None
    assert list(broker.router.queues) == ["q"]
    assert broker.queue().contents() == 1


def test_a_settled_message_that_is_refused_detaches_the_link() -> None:
    broker, _, sender = relay("send queue:q")
    assert sender.send("secret", settled=True) == refusal("send queue:secret")
    assert broker.container.link_count() == 0
    assert sender.client.peer.is_live()


def test_a_sender_that_takes_no_rejections_is_detached() -> None:
    broker = guarded(SOMEWHERE)
    client = session_as(broker)
    source = Source(outcomes=["amqp:accepted:list"])
    client.attach(attach_sender(None, source=source))
    client.frames()
    client.transfer(payload=message(to="q"))
    client.expect_detach(UNAUTHORIZED_ACCESS)


def test_a_sender_that_wants_no_word_of_unroutable_messages_gets_none() -> None:
    broker = guarded(SOMEWHERE)
    client = session_as(broker)
    client.attach(attach_sender(target=Target(capabilities=["DISCARD_UNROUTABLE"])))
    client.frames()
    client.transfer(payload=message(to="q"), settled=True)
    client.expect_nothing()
    assert broker.router.queues == {}
    assert broker.stats.access_denied == 1


async def test_a_large_message_is_judged_like_a_small_one() -> None:
    async with StreamingBroker() as streaming:
        broker = streaming.broker
        client = broker.session()
        client.peer.identity = Identity(ADA, roles=frozenset())
        broker.container.access = access_of("send,create queue:q")
        client.attach_sender(None)
        outcomes: list[object] = []
        for number, to in enumerate(("secret", "q")):
            client.send(*pieces(large(to=to)[0], number))
            await streaming.work()
            outcomes += [each.state for each in client.bodies() if isinstance(each, Disposition)]
        refused, accepted = outcomes
        assert isinstance(refused, Rejected)
        assert refused.error is not None
        assert refused.error.description == refusal("send queue:secret")
        assert isinstance(accepted, Accepted)
        assert list(broker.router.queues) == ["q"]


# -- transactions


def controller(broker: Broker) -> Controller:
    """Return a client of `ada` with a coordinator, and the anonymous relay at handle 0."""
    found = Controller(broker, client=session_as(broker))
    found.client.attach_sender(None)
    return found


def test_a_settled_message_that_is_refused_dooms_its_transaction() -> None:
    broker, _, _ = relay("send queue:q")
    ada = controller(broker)
    txn = ada.declare()
    ada.post(txn, to="q")
    ada.transfer(message(to="secret"), state=TransactionalState(txn_id=txn), settled=True)
    ada.client.expect_nothing()
    assert ada.fail_to_commit(txn) == UNAUTHORIZED_ACCESS
    assert broker.queue().contents() == 0
    assert list(broker.router.queues) == ["q"]


def test_a_transaction_with_a_refused_message_can_be_rolled_back() -> None:
    broker, _, _ = relay("send queue:q")
    ada = controller(broker)
    txn = ada.declare()
    ada.transfer(message(to="secret"), state=TransactionalState(txn_id=txn), settled=True)
    ada.roll_back(txn)
    txn = ada.declare()
    ada.post(txn, to="q")
    ada.commit(txn)
    assert broker.queue().contents() == 1


def test_rights_count_when_a_message_is_sent_not_at_the_commit() -> None:
    broker, _, _ = relay("send queue:q")
    ada = controller(broker)
    txn = ada.declare()
    ada.post(txn, to="q")
    broker.container.adopt_access(access_of())
    ada.commit(txn)
    assert broker.queue().contents() == 1
