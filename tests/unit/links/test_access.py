"""The rights that each place needs: with them it works, and without one of them nothing happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from broker.amqp.outcomes import Accepted, Rejected
from broker.amqp.performatives import Attach, Detach
from broker.amqp.terminus import COPY, Source, Target
from broker.links.attach import EXISTING_NODE
from broker.security.access import AccessRules
from tests.support.access import (
    ADA,
    CONNECTING,
    OWNER,
    SOMEWHERE,
    RuledUsers,
    access_of,
    dial_as,
    guarded,
    own_subscriptions,
    refusal,
    refusal_of_attach,
    refusal_of_detach,
    refusal_of_message,
    refusal_of_open,
    rule,
    session_as,
    things,
)
from tests.support.broker import Broker, Client
from tests.support.frames import attach_receiver, attach_sender, message
from tests.support.subscriptions import looking_up, subscribe, subscribing
from tests.support.transactions import Controller
from tests.unit.links.test_slices import browse_slice, lease_slice, said
from tests.unit.links.test_staging import properties

Act = Callable[[Broker, Client], str | None]
Preparation = Callable[[Broker], None]


def nothing(broker: Broker) -> None:
    """Prepare nothing: what is asked for does not exist."""


def queue(broker: Broker, *, name: str = "q") -> None:
    broker.router.create(broker.router.parse(name, "queue"), broker.journal.batch)


def topic(broker: Broker, *, name: str = "t") -> None:
    broker.router.create(broker.router.parse(name, "topic"), broker.journal.batch)


def subscription(
    broker: Broker, words: str = "durable", *, container_id: str = ADA, name: str = "n"
) -> None:
    """Make a subscription to the topic `t`, with two messages, that belongs to the user `ada`."""
    owner = session_as(broker, OWNER, container_id)
    subscribe(owner, words, name)
    own_subscriptions(broker, ADA)
    sender = session_as(broker, OWNER, "sender")
    sender.attach_sender("t", kind="topic")
    sender.transfer(0, settled=True)
    sender.transfer(1, settled=True)
    sender.hang_up()
    owner.hang_up()


def attaching(attach: Attach) -> Act:
    return lambda _, client: refusal_of_attach(client, attach)


def sending(address: str = "q", kind: str = "", **fields: object) -> Act:
    return attaching(attach_sender(address, kind=kind, **fields))  # type: ignore[arg-type]


def receiving(address: str | None = "q", **source: object) -> Act:
    return attaching(attach_receiver(source=Source(address=address, **source)))  # type: ignore[arg-type]


def relaying(
    to: str = "q",
    kind: int | None = None,
    *,
    settled: bool = False,
    user_id: bytes | None = None,
    address: str | None = None,
) -> Act:
    """Send a message to the anonymous relay; `kind` is that of the destination in JMS.

    With `address` it is sent to that node.
    """
    annotations = None if kind is None else {"x-opt-jms-dest": kind}

    def act(_: Broker, client: Client) -> str | None:
        client.attach_sender(address)
        payload = message(to=to, annotations=annotations, user_id=user_id)  # type: ignore[arg-type]
        client.transfer(payload=payload, settled=settled)
        found = refusal_of_message(client)
        if found is None or not settled:
            client.send(Detach(handle=0, closed=True))
            client.expect(Detach)
        return found

    return act


def posting(to: str = "q", kind: int | None = None, *, user_id: bytes | None = None) -> Act:
    """Send a message to the anonymous relay in a transaction."""
    annotations = None if kind is None else {"x-opt-jms-dest": kind}

    def act(broker: Broker, client: Client) -> str | None:
        controller = Controller(broker, client=client)
        client.attach_sender(None)
        outcome = controller.try_to_post(
            controller.declare(), to=to, annotations=annotations, user_id=user_id
        )
        for handle in (0, 9):
            client.send(Detach(handle=handle, closed=True))
            client.expect(Detach)
        if isinstance(outcome, Accepted):
            return None
        assert isinstance(outcome, Rejected)
        assert outcome.error is not None
        return outcome.error.description

    return act


def leaving(words: str = "durable", name: str = "n") -> Act:
    """Subscribe, and end the subscription by a closing detach."""

    def act(_: Broker, client: Client) -> str | None:
        assert refusal_of_attach(client, subscribing(words, name)) is None
        return refusal_of_detach(client)

    return act


def unsubscribing(words: str = "", name: str = "n") -> Act:
    """Look a subscription up, and end it by a closing detach."""

    def act(_: Broker, client: Client) -> str | None:
        assert refusal_of_attach(client, looking_up(words, name)) is None
        return refusal_of_detach(client)

    return act


def sending_to_a_reply_queue(broker: Broker, client: Client) -> str | None:
    """Send to the temporary queue of another user's connection."""
    other = session_as(broker, OWNER, "another")
    made = other.attach(attach_receiver(source=Source(dynamic=True)))
    assert made.source is not None
    told = refusal_of_attach(client, attach_sender(made.source.address))
    other.hang_up()
    return told


def leased(broker: Broker) -> None:
    """Make the lease `l` of the queue `q`, with a batch of its one message."""
    from tests.unit.management.test_leases import Driver

    broker.fill()
    lead = Driver(broker)
    lead.open()
    lead.acquire(slices=1)
    lead.client.hang_up()


LEASED = said(lease="l", fencing_token=1, batch=1, slice=0)
SLICE = receiving(distribution_mode=COPY, filter=[lease_slice(LEASED)])
BROWSED = "durable/ada/n"


@dataclass(frozen=True)
class Place:
    """A use of the broker with the rights that it `needs`, where `before` has been done."""

    name: str
    needs: tuple[str, ...]
    act: Act
    before: Preparation = nothing


PLACES = (
    Place("a sender", ("send queue:q",), sending(), queue),
    Place("a sender that makes its queue", ("send queue:q", "create queue:q"), sending()),
    Place("a sender to a topic", ("send topic:t",), sending("t", "topic"), topic),
    Place("a sender to a key", ("send topic:t/eu",), sending("t/eu", "topic"), topic),
    Place(
        "a sender to a key that makes its topic",
        ("send topic:t/eu", "create topic:t"),
        sending("t/eu", "topic"),
    ),
    Place(
        "a sender to a class of addresses",
        ("send queue:q", "create queue:q"),
        sending("/durable/queue/q"),
    ),
    Place("the relay", ("send queue:q",), relaying(), queue),
    Place("the relay that makes a queue", ("send queue:q", "create queue:q"), relaying()),
    Place(
        "the relay that makes a topic",
        ("send topic:t/eu", "create topic:t"),
        relaying("t/eu", 1),
    ),
    Place("the relay, settled", ("send queue:q",), relaying(settled=True), queue),
    Place("the relay in a transaction", ("send queue:q",), posting(), queue),
    Place("a receiver", ("receive queue:q",), receiving(), queue),
    Place("a receiver that makes its queue", ("receive queue:q", "create queue:q"), receiving()),
    Place("a browser", ("browse queue:q",), receiving(distribution_mode=COPY), queue),
    Place("a subscriber", ("subscribe topic:t",), attaching(subscribing()), topic),
    Place(
        "a subscriber that makes its topic",
        ("subscribe topic:t", "create topic:t"),
        attaching(subscribing()),
    ),
    Place(
        "a subscriber to a key",
        ("subscribe topic:t/eu",),
        attaching(subscribing(address="t/eu")),
        topic,
    ),
    Place(
        "a subscriber to a pattern", ("subscribe topic:a.*",), attaching(subscribing(address="a.*"))
    ),
    Place(
        "a durable subscriber that begins",
        ("subscribe topic:t", "use subscription:ada/n", "create subscription:ada/n"),
        attaching(subscribing("durable")),
        topic,
    ),
    Place(
        "a durable subscriber that comes back",
        ("subscribe topic:t", "use subscription:ada/n"),
        attaching(subscribing("durable")),
        subscription,
    ),
    Place(
        "a shared subscriber that begins",
        ("subscribe topic:t", "share subscription:ada/n", "create subscription:ada/n"),
        attaching(subscribing("shared")),
        topic,
    ),
    Place(
        "a shared durable subscriber",
        ("subscribe topic:t", "share subscription:ada/n"),
        attaching(subscribing("shared durable")),
        partial(subscription, words="shared durable"),
    ),
    Place(
        "a global subscriber",
        ("subscribe topic:t", "use global-subscription:n"),
        attaching(subscribing("global durable")),
        partial(subscription, words="global durable", container_id="another"),
    ),
    Place(
        "a global subscriber that shares",
        ("subscribe topic:t", "share global-subscription:n"),
        attaching(subscribing("shared global durable")),
        partial(subscription, words="shared global durable", container_id="another"),
    ),
    Place(
        "a subscriber that drops a backlog",
        ("subscribe topic:t/eu", "use subscription:ada/n", "end subscription:ada/n"),
        attaching(subscribing("durable", address="t/eu")),
        subscription,
    ),
    Place("a lookup", ("use subscription:ada/n",), attaching(looking_up()), subscription),
    Place(
        "a lookup of a global subscription",
        ("use global-subscription:n",),
        attaching(looking_up("global")),
        partial(subscription, words="global durable"),
    ),
    Place("a dynamic queue", ("create temporary:queue",), receiving(None, dynamic=True)),
    Place(
        "a dynamic queue to send to",
        ("create temporary:queue",),
        sending(target=Target(dynamic=True)),
    ),
    Place(
        "a dynamic topic",
        ("create temporary:topic",),
        sending(target=Target(dynamic=True, capabilities=["topic"])),
    ),
    Place("another's temporary queue", ("send temporary:queue",), sending_to_a_reply_queue),
    Place("a stage", ("send queue:q", "stage queue:q"), sending(properties=properties()), queue),
    Place("a slice of a lease", ("lease queue:q",), SLICE, leased),
    Place(
        "a browser of a subscription",
        ("browse subscription:ada/n",),
        receiving(BROWSED, distribution_mode=COPY, filter=[browse_slice(said())]),
        subscription,
    ),
)

MISSING = [
    pytest.param(place, missing, id=f"{place.name} without the right to {missing.split()[0]}")
    for place in PLACES
    for missing in place.needs
]


def prepared(place: Place, *rights: str) -> Broker:
    """Return a broker in which `ada` has these rights, and may connect."""
    connecting = (CONNECTING[0], SOMEWHERE)
    broker = Broker(authenticator=RuledUsers(), access=access_of(*rights, connecting=connecting))
    users = broker.container.authenticator
    assert isinstance(users, RuledUsers)
    users.roles[""] = users.roles[OWNER]  # for preparations
    place.before(broker)
    return broker


@pytest.mark.parametrize("place", PLACES, ids=[place.name for place in PLACES])
def test_with_its_rights_each_place_works(place: Place) -> None:
    broker = prepared(place, *place.needs)
    assert place.act(broker, session_as(broker)) is None
    assert broker.stats.access_denied == 0


@pytest.mark.attack("Z5")
@pytest.mark.parametrize(("place", "missing"), MISSING)
def test_without_one_of_them_nothing_happens(place: Place, missing: str) -> None:
    broker = prepared(place, *(each for each in place.needs if each != missing))
    client = session_as(broker)
    before = things(broker)
    assert place.act(broker, client) == refusal(missing)
    assert things(broker) == before
    assert broker.stats.access_denied == 1
    assert f"denied ada: {refusal(missing)}" in broker.watcher.events
    assert client.peer.is_live(), "only the link is refused"


OF_NO_KIND = "to an address that says no kind"

UNKNOWN = [
    # name, act, what exists, what the refused client is told
    (f"a sender {OF_NO_KIND}, a queue", sending("x"), partial(queue, name="x"), "send queue:x"),
    (f"a sender {OF_NO_KIND}, a topic", sending("x"), partial(topic, name="x"), "send queue:x"),
    (f"the relay {OF_NO_KIND}, a queue", relaying("x"), partial(queue, name="x"), "send queue:x"),
    (f"the relay {OF_NO_KIND}, a topic", relaying("x"), partial(topic, name="x"), "send queue:x"),
    (f"a receiver {OF_NO_KIND}", receiving("x"), partial(topic, name="x"), "receive queue:x"),
    (
        f"a browser {OF_NO_KIND}",
        receiving("x", distribution_mode=COPY),
        partial(topic, name="x"),
        "browse queue:x",
    ),
    (
        "a receiver that makes no queue",
        receiving(capabilities=["queue", EXISTING_NODE]),
        queue,
        "receive queue:q",
    ),
    *(
        (place.name, place.act, place.before, place.needs[0])
        for place in PLACES
        if place.before is not nothing
    ),
]


@pytest.mark.parametrize(
    ("act", "before", "needed"), [case[1:] for case in UNKNOWN], ids=[case[0] for case in UNKNOWN]
)
def test_a_refusal_does_not_tell_whether_there_is_one(
    act: Act, before: Preparation, needed: str
) -> None:
    told = []
    for each in (before, nothing):
        broker = prepared(Place("", (), act, each))
        told.append(act(broker, session_as(broker)))
    assert told == [refusal(needed)] * 2


def test_a_client_with_rights_on_a_topic_gets_the_topic() -> None:
    broker = prepared(Place("", (), nothing, topic), "send,subscribe topic:t")  # type: ignore[arg-type]
    assert sending("t")(broker, session_as(broker)) is None
    assert receiving("t")(broker, session_as(broker, container_id="another")) is None
    assert broker.router.queues == {}


# -- what ends


ENDINGS = [
    pytest.param(leaving(), "use subscription:ada/n", "durable", ADA, id="a subscriber"),
    pytest.param(
        leaving("global durable"),
        "use global-subscription:n",
        "global durable",
        OWNER,
        id="a global subscriber",
    ),
    pytest.param(unsubscribing(), "use subscription:ada/n", "durable", ADA, id="a lookup"),
    pytest.param(
        unsubscribing("global"),
        "use global-subscription:n",
        "global durable",
        OWNER,
        id="a lookup of a global subscription",
    ),
]


@pytest.mark.attack("Z5")
@pytest.mark.parametrize(("act", "use", "words", "container_id"), ENDINGS)
def test_a_closing_detach_needs_the_right_to_end(
    act: Act, use: str, words: str, container_id: str
) -> None:
    end = use.replace("use", "end")
    before = partial(subscription, words=words, container_id=container_id)
    broker = prepared(Place("", (), act, before), "subscribe topic:t", use)
    there = things(broker)
    assert act(broker, session_as(broker)) == refusal(end)
    assert things(broker) == there, "the subscription goes on, with its messages"
    broker.container.adopt_access(access_of("subscribe topic:t", use, end))
    assert act(broker, session_as(broker, container_id=ADA)) is None
    assert things(broker)["subscriptions"] == []


def test_a_volatile_subscription_ends_with_its_link_without_a_right() -> None:
    broker = guarded("subscribe,create topic:t", "share,create subscription:ada/n")
    client = session_as(broker)
    assert leaving("shared")(broker, client) is None
    assert things(broker)["subscriptions"] == []


def test_a_detach_that_does_not_close_needs_no_right_to_end() -> None:
    broker = guarded("subscribe,create topic:t", "use,create subscription:ada/n")
    client = session_as(broker)
    subscribe(client, "durable")
    assert refusal_of_detach(client, closed=False) is None
    assert len(things(broker)["subscriptions"]) == 1


# -- connections


@pytest.mark.parametrize("user", [ADA, ""], ids=["a user", "a client without a login"])
def test_a_connection_needs_the_right_to_connect(user: str) -> None:
    broker = Broker(authenticator=RuledUsers(), access=access_of("send queue:q", connecting=()))
    client = dial_as(broker, user)
    assert refusal_of_open(client, "c") == refusal("connect connection:amqp")
    assert not client.peer.is_open
    assert broker.container.peer_count() == 0
    broker.container.adopt_access(access_of())
    assert refusal_of_open(dial_as(broker, user), "c") is None


# -- spellings


SPELLINGS = [
    pytest.param("/queue/durable/q", "queue", id="a class"),
    pytest.param("/durable/queue/q", "queue", id="a class the other way round"),
    pytest.param("/queue/tmp/q", "queue", id="a class of temporary queues"),
    pytest.param("/topic/transient/q", "topic", id="a class of topics"),
    pytest.param("/topic/durable/q/key", "topic", id="a class and a key"),
]


@pytest.mark.attack("Z3")
@pytest.mark.parametrize(("address", "kind"), SPELLINGS)
@pytest.mark.parametrize("act", [sending, relaying, receiving], ids=["attach", "relay", "receive"])
def test_no_spelling_avoids_a_deny_rule(act: Callable[[str], Act], address: str, kind: str) -> None:
    denied = [rule(f"no-{each}", f"* {each}:q", effect="deny") for each in ("queue", "topic")]
    allowed = access_of("* queue:#", "* topic:#")
    rules = [each for each in allowed.rules if not each.is_built_in]
    broker = Broker(authenticator=RuledUsers(), access=AccessRules([*rules, *denied]))
    told = act(address)(broker, session_as(broker))
    assert told is not None
    assert told.endswith(f" {kind}:q{'/key' if 'key' in address else ''} (rule no-{kind})")
    assert things(broker)["queues"] == things(broker)["topics"] == []
