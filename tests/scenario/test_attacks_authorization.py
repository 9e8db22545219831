"""Attack classes Z1 to Z11 (docs/design/hostile-input.md), each beside a healthy client."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from broker.amqp.errors import RESOURCE_LOCKED, UNAUTHORIZED_ACCESS
from broker.amqp.outcomes import Rejected
from broker.amqp.performatives import RECEIVER, Detach
from broker.amqp.terminus import COPY, Source
from broker.management.management import SELF
from broker.routing.addresses.policy import AddressPolicy
from broker.security.access import AccessRules
from tests.scenario.access_paths import managing, opening
from tests.support.access import (
    ADA,
    CONNECTING,
    OWNER,
    SOMEWHERE,
    RuledUsers,
    access_of,
    own_subscriptions,
    refusal,
    refusal_of_attach,
    refusal_of_message,
    rule,
    session_as,
    things,
)
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, attach_receiver, attach_sender, message
from tests.support.healthy import NoHarm
from tests.support.management import Manager
from tests.support.subscriptions import looking_up, subscribing
from tests.unit.links.test_access import (
    Act,
    Preparation,
    attaching,
    nothing,
    posting,
    queue,
    relaying,
    sending,
    subscription,
    topic,
)

ROOT: Final = Path(__file__).parents[2]
MALLORY: Final = "mallory"
ATTEMPTS: Final = 3
"""How often an attempt is made; the healthy client is served between."""


def broker_of(*rights: str, who: str = f"user:{MALLORY}", **fields: object) -> Broker:
    """Return a broker in which mallory has these rights, and every user may connect."""
    rules = access_of(connecting=(*CONNECTING, SOMEWHERE)).rules
    given = [rule(f"m{number}", right, who=who) for number, right in enumerate(rights)]
    access = AccessRules([*(each for each in rules if not each.is_built_in), *given])
    return Broker(authenticator=RuledUsers(), access=access, **fields)  # type: ignore[arg-type]


# -- attempts that a rule refuses


@dataclass(frozen=True)
class Attempt:
    """An attempt of mallory, who has `rights`, and the right that she would need."""

    name: str
    needs: str
    act: Act
    before: Preparation = nothing
    rights: tuple[str, ...] = ()


def querying(type_: str) -> Act:
    """Ask management for all entities of a type."""
    return managing("QUERY", SELF, "self", entity=type_)


def claiming(user_id: bytes) -> Act:
    """Send a message in another user's name."""

    def act(_: Broker, client: Client) -> str | None:
        client.attach_sender("q")
        client.transfer(payload=message(user_id=user_id))
        return refusal_of_message(client)

    return act


def holding(broker: Broker) -> None:
    """Have a connection of another user with the container-id `held`."""
    session_as(broker, OWNER, "held")


def subscribed(broker: Broker, words: str = "durable") -> None:
    """Make a subscription of another user under the client id that mallory has."""
    subscription(broker, words, container_id=MALLORY)
    own_subscriptions(broker, ADA)


SECRET: Final = partial(queue, name="secret")
NEEDS: Final = "send queue:secret"
THEIRS: Final = ("subscribe topic:t", "use,create,end subscription:mallory/n")
"""All rights on the subscription but that to another user's client id."""

FOREIGN: Final = "use client-id:mallory"

ATTEMPTS_BY_CLASS: Final = {
    "Z1": (
        Attempt("a message on the relay", NEEDS, relaying("secret"), SECRET),
        Attempt("a settled one", NEEDS, relaying("secret", settled=True), SECRET),
        Attempt("one in a transaction", NEEDS, posting("secret"), SECRET),
        Attempt("one to a topic", "send topic:t/eu", relaying("t/eu", 1), topic),
        Attempt("one to a queue that is not there", NEEDS, relaying("secret")),
    ),
    "Z3": (
        Attempt("a class of addresses", NEEDS, sending("/queue/durable/secret"), SECRET),
        Attempt("the class the other way round", NEEDS, sending("/durable/queue/secret"), SECRET),
        Attempt("a class on the relay", NEEDS, relaying("/queue/tmp/secret"), SECRET),
        Attempt("two names", "send queue:other,secret", sending("other,secret"), SECRET),
        Attempt("another case", "send queue:OTHER", sending("OTHER")),
        Attempt(
            "a wildcard that is wider than the right",
            "subscribe topic:news.#",
            attaching(subscribing(address="news.#")),
            rights=("subscribe topic:news.*",),
        ),
    ),
    "Z5": (
        Attempt("a queue", "create queue:other", sending("other")),
        Attempt(
            "a topic",
            "create topic:t",
            attaching(subscribing()),
            rights=("subscribe topic:t",),
        ),
        Attempt(
            "a durable subscription",
            "create subscription:mallory/n",
            attaching(subscribing("durable")),
            topic,
            rights=("subscribe topic:t", "use subscription:mallory/n"),
        ),
        Attempt(
            "a queue by management", "edit management:queues", managing("CREATE", "queue", "x")
        ),
        Attempt(
            "the end of a queue", "edit management:queues", managing("DELETE", "queue", "q"), queue
        ),
    ),
    "Z8": (
        Attempt(
            "the name of an administrator",
            "impersonate user-id:root",
            claiming(b"root"),
            queue,
            rights=("send queue:q",),
        ),
        Attempt(
            "the name of another user",
            "impersonate user-id:ada",
            claiming(b"ada"),
            queue,
            rights=("send queue:q",),
        ),
    ),
    "Z9": (
        Attempt("a list of queues", "view management:queues", querying("queue")),
        Attempt(
            "a list of topics",
            "view management:topics",
            querying("topic"),
            rights=("view management:queues",),
        ),
        Attempt(
            "the removal of messages",
            "edit management:queues",
            managing("PURGE", "queue", "q"),
            queue,
        ),
        Attempt(
            "a queue that is not there",
            "edit management:queues",
            managing("PURGE", "queue", "none"),
        ),
    ),
    "Z11": (
        Attempt(
            "a client id that is held", "use client-id:held", opening("held", MALLORY), holding
        ),
        Attempt(
            "a durable subscription of another user",
            FOREIGN,
            attaching(subscribing("durable")),
            subscribed,
            rights=THEIRS,
        ),
        Attempt(
            "the same for another topic",
            FOREIGN,
            attaching(subscribing("durable", address="t/eu")),
            subscribed,
            rights=("subscribe topic:t/eu", *THEIRS),
        ),
        Attempt("its lookup", FOREIGN, attaching(looking_up()), subscribed, rights=THEIRS),
    ),
}

REFUSED: Final = [
    pytest.param(attempt, marks=pytest.mark.attack(class_), id=f"{class_}: {attempt.name}")
    for class_, attempts in ATTEMPTS_BY_CLASS.items()
    for attempt in attempts
]


@pytest.mark.parametrize("attempt", REFUSED)
def test_what_is_refused_changes_nothing_and_harms_nobody(
    no_harm: NoHarm, attempt: Attempt
) -> None:
    broker = broker_of(*attempt.rights)
    attempt.before(broker)
    with no_harm.beside(broker) as healthy:
        before = things(broker)
        for _ in range(ATTEMPTS):
            mallory = session_as(broker, MALLORY)
            assert attempt.act(broker, mallory) == refusal(attempt.needs)
            healthy.exchange()
            mallory.hang_up()
        assert things(broker) == before


# -- Z2


BY_LINK: Final = {"receives": None, "browses": COPY}


@pytest.mark.attack("Z2")
@pytest.mark.parametrize("mode", BY_LINK.values(), ids=BY_LINK)
@pytest.mark.parametrize(
    ("right", "capabilities", "refused"),
    [
        pytest.param("send,receive", ["temporary-queue"], RESOURCE_LOCKED, id="of JMS"),
        pytest.param("send", [], UNAUTHORIZED_ACCESS, id="without the right"),
    ],
)
def test_no_other_connection_consumes_from_a_temporary_queue(
    no_harm: NoHarm, right: str, capabilities: list[str], refused: str, mode: str | None
) -> None:
    """Z2: mallory knows the address, and may receive from every queue."""
    broker = broker_of("receive,browse,send queue:#", f"{right} temporary:*")
    victim = session_as(broker, ADA)
    source = Source(dynamic=True, capabilities=capabilities)
    made = victim.attach_receiver(source=source, credit=10)
    assert made.source is not None
    address = made.source.address
    with no_harm.beside(broker) as healthy:
        mallory = session_as(broker, MALLORY)
        for number in range(ATTEMPTS):
            source = Source(address=address, distribution_mode=mode)
            mallory.send(attach_receiver(source=source, handle=number, name=f"{number}"))
            mallory.expect_refusal(refused)
            healthy.exchange()
        mallory.attach_sender(address, handle=9)
        mallory.transfer(handle=9, body=b"a reply", settled=True)
        victim.expect_deliveries(b"a reply")


@pytest.mark.attack("Z2")
@pytest.mark.parametrize("operation", ["PURGE", "DELETE"])
def test_no_other_user_manages_a_temporary_queue(no_harm: NoHarm, operation: str) -> None:
    """Z2: mallory has the right to purge and to edit all queues, by name."""
    broker = broker_of("purge,view queue:#")
    victim = session_as(broker, ADA)
    made = victim.attach_receiver(source=Source(dynamic=True))
    assert made.source is not None
    with no_harm.beside(broker) as healthy:
        mallory = session_as(broker, MALLORY)
        reply = Manager(broker, client=mallory).ask(operation, "queue", made.source.address)
        assert reply.status == 403
        healthy.exchange()
        assert made.source.address in broker.router.queues


# -- Z4


@pytest.mark.attack("Z4")
@pytest.mark.parametrize("user", ["*", "#", "{user}", "a*", "ad?", "[a]da", "ada.x", "#.ada"])
def test_no_name_of_a_user_widens_a_pattern(no_harm: NoHarm, user: str) -> None:
    """Z4: each user has the queues below its name; mallory chose hers."""
    broker = broker_of("send,receive,create queue:of.{user}.#", who="authenticated")
    queue(broker, name="of.ada.orders")
    with no_harm.beside(broker) as healthy:
        mallory = session_as(broker, user, "mallory")
        told = refusal_of_attach(mallory, attach_sender("of.ada.orders"))
        assert told == refusal("send queue:of.ada.orders")
        healthy.exchange()
        ada = session_as(broker, ADA)
        assert refusal_of_attach(ada, attach_sender("of.ada.orders")) is None


# -- Z6


@pytest.mark.attack("Z6")
def test_the_broker_moves_nothing_to_where_a_client_says(no_harm: NoHarm) -> None:
    """Z6: messages that fail go to the queue of the settings, which mallory may not read."""
    policy = AddressPolicy(dead_letter="dead", max_delivery_count=1)
    broker = broker_of("send,receive,create queue:q", policy=policy)
    queue(broker, name="secret")
    named = {"x-opt-dead-letter": "secret", "x-opt-deliver-to": "secret", "x-opt-jms-dest": 0}
    with no_harm.beside(broker) as healthy:
        mallory = session_as(broker, MALLORY)
        mallory.attach_sender("q")
        mallory.transfer(payload=message(to="secret", annotations=dict(named)), settled=True)
        mallory.attach_receiver("q", handle=1, credit=1)
        mallory.frames()
        rejected = Disposition(role=RECEIVER, first=0, settled=True, state=Rejected())
        mallory.send(rejected)
        healthy.exchange()
        assert broker.queue("dead").contents() == 1
        assert broker.queue("secret").contents() == 0
        told = refusal_of_attach(mallory, attach_receiver("dead", name="dead", handle=2))
        assert told == refusal("receive queue:dead")


@pytest.mark.attack("Z6")
def test_a_delayed_message_is_judged_when_it_is_sent(no_harm: NoHarm) -> None:
    """Z6: the timer that delivers it has all rights."""
    broker = broker_of()
    queue(broker, name="secret")
    with no_harm.beside(broker) as healthy:
        mallory = session_as(broker, MALLORY)
        mallory.attach_sender(None)
        delayed = message(to="secret", annotations={"x-opt-delivery-delay": 1000})
        mallory.transfer(payload=delayed)
        assert refusal_of_message(mallory) == refusal("send queue:secret")
        healthy.exchange()
        broker.advance(2000)
        assert broker.queue("secret").contents() == 0


# -- Z7


def reloaded(broker: Broker) -> None:
    """Take all rights from mallory."""
    broker.container.adopt_access(access_of(connecting=(*CONNECTING, SOMEWHERE)))


def disabled(broker: Broker) -> None:
    """Disable mallory in the users file, and let the watch of that file find it."""
    users = broker.container.authenticator
    assert isinstance(users, RuledUsers)
    users.ended.add(MALLORY)
    broker.container.rights_review.begin()


@pytest.mark.attack("Z7")
@pytest.mark.parametrize("withdraw", [reloaded, disabled])
def test_nothing_goes_on_after_a_right_was_withdrawn(
    no_harm: NoHarm, withdraw: Preparation
) -> None:
    """Z7: links that are attached, in both directions, and those that are attached anew."""
    broker = broker_of("send,receive,create queue:q")
    with no_harm.beside(broker) as healthy:
        mallory = session_as(broker, MALLORY)
        mallory.attach_sender("q")
        mallory.attach_receiver("q", handle=1, credit=10)
        withdraw(broker)
        healthy.exchange()
        broker.advance(0)
        mallory.frames()
        healthy.exchange()
        if mallory.peer.is_live():
            mallory.send(Detach(handle=0, closed=True), Detach(handle=1, closed=True))
            told = refusal_of_attach(mallory, attach_sender("q", name="again"))
            assert told == refusal("send queue:q")
        owner = session_as(broker, OWNER)
        owner.attach_sender("q")
        owner.transfer(settled=True)
        assert broker.queue().contents() == 1, "nothing was delivered"


# -- Z9


EXTREMES: Final = [
    pytest.param(2**63 - 1, 100, id="an offset beyond everything"),
    pytest.param(-1, 100, id="an offset before everything"),
    pytest.param(-(2**63), 100, id="the least offset"),
    pytest.param(0, 2**63 - 1, id="all rows"),
    pytest.param(0, 0, id="no rows"),
    pytest.param(0, -1, id="fewer than none"),
]


@pytest.mark.attack("Z9")
@pytest.mark.parametrize(("offset", "count"), EXTREMES)
def test_numbers_of_requests_are_bounded(no_harm: NoHarm, offset: int, count: int) -> None:
    """Z9: mallory may look at queues."""
    broker = broker_of("view management:queues")
    for number in range(20):
        queue(broker, name=f"q{number}")
    with no_harm.beside(broker) as healthy:
        manager = Manager(broker, client=session_as(broker, MALLORY))
        assert manager.query("queue", offset=offset, count=count).status == 400
        healthy.exchange()
        assert len(manager.query("queue", count=5).rows) == 5


# -- Z10


OUTWARD: Final = {
    "HTTPConnection",
    "HTTPSConnection",
    "create_connection",
    "create_datagram_endpoint",
    "open_connection",
    "sock_connect",
    "start_tls",
    "urlopen",
    "urlretrieve",
    "create_subprocess_exec",
    "create_subprocess_shell",
    "Popen",
    "system",
}
"""Names of functions that reach other machines, or programs that could."""

KEYS: Final = "broker/net/key_source.py"
BRIDGES: Final = "broker/bridge/connection.py"
"""The modules that connect to other machines: to the URL of the settings' issuer, and to those of
the settings' bridges."""


def calls_outward(file: Path) -> set[str]:
    return set(re.findall(r"\b(\w+)\(", file.read_text())) & OUTWARD


@pytest.mark.attack("Z10")
def test_the_broker_has_no_code_that_connects_to_where_a_client_says() -> None:
    """Z10: the command line is another program; stores connect to what the settings name."""
    found = {
        file.relative_to(ROOT).as_posix(): names
        for file in (ROOT / "broker").rglob("*.py")
        if "cli" not in file.parts and (names := calls_outward(file))
    }
    assert found == {KEYS: {"HTTPSConnection"}, BRIDGES: {"create_connection"}}


@pytest.mark.attack("Z10")
@pytest.mark.parametrize(
    "address",
    [
        "amqp://127.0.0.1:1/q",
        "http://127.0.0.1:1/",
        "//127.0.0.1/q",
        "tcp://127.0.0.1:1",
        "q@127.0.0.1",
    ],
)
def test_an_address_with_a_host_is_a_name_as_any_other(no_harm: NoHarm, address: str) -> None:
    """Z10: it is refused, or it is the name of a queue of this broker."""
    broker = broker_of("send,receive,create queue:#")
    with no_harm.beside(broker) as healthy:
        mallory = session_as(broker, MALLORY)
        mallory.send(attach_sender(address))
        mallory.frames()
        healthy.exchange()
        assert all(each in ("healthy", address) for each in broker.router.queues)


# -- Z11


@pytest.mark.attack("Z11")
def test_a_link_of_the_same_name_disturbs_no_other_user(no_harm: NoHarm) -> None:
    """Z11: names of links are those of a client id, which no other user gets."""
    broker = broker_of("send,receive,create queue:#")
    with no_harm.beside(broker) as healthy:
        for attach in (attach_sender("healthy"), attach_receiver("healthy", name="sender")):
            mallory = session_as(broker, MALLORY)
            assert refusal_of_attach(mallory, attach) is None
            healthy.exchange()
            mallory.hang_up()
