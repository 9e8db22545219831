"""Reviews of rights: after new rules or changed users, which connections and links go on."""

from __future__ import annotations

import pytest

from broker.amqp.errors import CONNECTION_FORCED, UNAUTHORIZED_ACCESS
from broker.amqp.performatives import Attach, Detach, Flow, Open
from broker.amqp.terminus import COPY, Source, Target
from broker.links.rights_review import LOGIN_ENDED, STRETCH
from broker.security.wildcards import UNION_MAX
from tests.support.access import (
    ADA,
    OWNER,
    SOMEWHERE,
    RuledUsers,
    access_of,
    dial_as,
    guarded,
    refusal,
    refusal_of_attach,
    refusal_of_open,
    session_as,
    things,
)
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, Header, attach_receiver, attach_sender, opening
from tests.support.subscriptions import looking_up, subscribing
from tests.unit.links.test_staging import properties

pytestmark = pytest.mark.attack("Z7")

NODES = ("create queue:#", "create topic:#", "create temporary:*")
NAMED = ("create subscription:ada/n", "end subscription:ada/n")


def users_of(broker: Broker) -> RuledUsers:
    found = broker.container.authenticator
    assert isinstance(found, RuledUsers)
    return found


def attached(broker: Broker, attach: Attach, user: str = ADA) -> Client:
    """Return a client of `user` that has attached a link."""
    client = session_as(broker, user)
    assert refusal_of_attach(client, attach) is None
    return client


def review(broker: Broker, *rights: str) -> None:
    """Adopt rules in which `ada` has these rights, and let the review end."""
    broker.container.adopt_access(access_of(*rights))
    broker.container.tick()
    assert not broker.container.rights_review.is_going_on()


def expect_revoked(client: Client, right: str) -> None:
    """Expect a closing detach whose error names the lost right, and answer it."""
    detach = client.expect_detach(UNAUTHORIZED_ACCESS)
    assert detach.error is not None
    assert detach.error.description == refusal(right)
    client.send(Detach(handle=0, closed=True))
    client.expect_nothing()
    assert client.peer.is_live(), "only the link has ended"


LINKS = [
    # name, attach, the rights that it needs for as long as it lives
    ("a sender", attach_sender(), ["send queue:q"]),
    ("a sender to a topic", attach_sender("t/eu", kind="topic"), ["send topic:t/eu"]),
    ("a stage", attach_sender(properties=properties()), ["send queue:q", "stage queue:q"]),
    ("a receiver", attach_receiver(), ["receive queue:q"]),
    (
        "a browser",
        attach_receiver(source=Source(address="q", distribution_mode=COPY)),
        ["browse queue:q"],
    ),
    ("a subscriber", subscribing(), ["subscribe topic:t"]),
    ("a subscriber to a pattern", subscribing(address="t.#"), ["subscribe topic:t.#"]),
    (
        "a durable subscriber",
        subscribing("durable"),
        ["subscribe topic:t", "use subscription:ada/n"],
    ),
    (
        "a shared subscriber",
        subscribing("shared"),
        ["subscribe topic:t", "share subscription:ada/n"],
    ),
]

LOST = [
    pytest.param(attach, needed, lost, id=f"{name}, {lost.split()[0]}")
    for name, attach, needed in LINKS
    for lost in needed
]


@pytest.mark.parametrize(("attach", "needed", "lost"), LOST)
def test_a_link_that_loses_a_right_is_detached(
    attach: Attach, needed: list[str], lost: str
) -> None:
    broker = guarded(*needed, *NODES, *NAMED)
    client = attached(broker, attach)
    review(broker, *(right for right in needed if right != lost))
    expect_revoked(client, lost)
    assert broker.container.link_count() == 0
    assert broker.stats.links_revoked == 1


@pytest.mark.parametrize(
    ("attach", "needed"), [case[1:] for case in LINKS], ids=[case[0] for case in LINKS]
)
def test_a_link_goes_on_without_the_rights_to_create_and_end(
    attach: Attach, needed: list[str]
) -> None:
    broker = guarded(*needed, *NODES, *NAMED)
    client = attached(broker, attach)
    review(broker, *needed)
    client.expect_nothing()
    assert broker.container.link_count() == 1
    assert broker.stats.links_revoked == 0


FREE = [
    pytest.param(attach_sender(None), id="the relay, which asks for each message"),
    pytest.param(attach_sender("$management"), id="management, which asks for each request"),
    pytest.param(attach_receiver(source=Source(dynamic=True)), id="its own temporary queue"),
    pytest.param(attach_sender(target=Target(dynamic=True)), id="a sender to its own queue"),
]


@pytest.mark.parametrize("attach", FREE)
def test_a_link_that_needs_no_right_goes_on(attach: Attach) -> None:
    broker = guarded(*NODES, SOMEWHERE)
    client = attached(broker, attach)
    review(broker)
    client.expect_nothing()
    assert broker.container.link_count() == 1


def test_a_lookup_that_loses_its_right_is_detached_and_ends_nothing() -> None:
    broker = guarded("use subscription:ada/n", *NAMED)
    other = attached(broker, subscribing("durable"), OWNER)
    other.hang_up()
    broker.container.adopt_access(
        access_of("use,create subscription:ada/n", "subscribe,create topic:t")
    )
    client = attached(broker, subscribing("durable"))
    client.send(Detach(handle=0))
    client.expect(Detach)
    assert refusal_of_attach(client, looking_up()) is None
    there = things(broker)["subscriptions"]
    review(broker, "end subscription:ada/n")
    expect_revoked(client, "use subscription:ada/n")
    assert things(broker)["subscriptions"] == there


def test_a_durable_subscription_outlives_its_revoked_link() -> None:
    broker = guarded("subscribe,create topic:t", "use,create,end subscription:ada/n")
    client = attached(broker, subscribing("durable"))
    client.flow(handle=0, credit=1, delivery_count=0)
    sender = session_as(broker, OWNER, "sender")
    sender.attach_sender("t", kind="topic")
    sender.transfer(0, settled=True)
    sender.transfer(1, settled=True)
    client.expect_deliveries(b"hello")
    review(broker, "use,end subscription:ada/n")
    expect_revoked(client, "subscribe topic:t")
    (queue,) = broker.router.topics["t"].subscriptions
    assert queue.backlogs.waiting == 2, "the message that was delivered is back"


def test_links_of_others_go_on() -> None:
    broker = guarded("send,create queue:q")
    revoked = attached(broker, attach_sender())
    other = attached(broker, attach_sender(), OWNER)
    anonymous = session_as(broker, "", "anonymous")
    review(broker)
    expect_revoked(revoked, "send queue:q")
    other.transfer(settled=True)
    other.expect_nothing()
    anonymous.expect_nothing()
    assert broker.queue().contents() == 1


def test_a_link_that_is_attached_again_has_the_rights_of_now() -> None:
    broker = guarded("send,create queue:q")
    client = attached(broker, attach_sender())
    review(broker)
    expect_revoked(client, "send queue:q")
    assert refusal_of_attach(client, attach_sender()) == refusal("send queue:q")
    review(broker, "send queue:q")
    assert refusal_of_attach(client, attach_sender(handle=1)) is None


# -- users


def test_a_user_that_loses_a_role_loses_its_links() -> None:
    broker = guarded()
    users_of(broker).roles[ADA] = frozenset({"application"})
    client = attached(broker, attach_sender())
    users_of(broker).roles[ADA] = frozenset()
    broker.container.rights_review.begin()
    broker.container.tick()
    expect_revoked(client, "send queue:q")


def test_a_login_that_has_ended_closes_its_connections() -> None:
    broker = guarded("send,create queue:q")
    client = attached(broker, attach_sender())
    twin = session_as(broker)
    other = session_as(broker, OWNER)
    users_of(broker).ended.add(ADA)
    broker.container.rights_review.begin()
    broker.container.tick()
    for each in (client, twin):
        close = each.expect_close(CONNECTION_FORCED)
        assert close.error is not None
        assert close.error.description == LOGIN_ENDED
    other.expect_nothing()
    assert broker.stats.connections_revoked == 2
    assert broker.stats.links_revoked == 0, "its links ended with the connection"


def test_a_connection_that_may_not_connect_any_more_is_closed() -> None:
    broker = guarded()
    client = session_as(broker)
    other = session_as(broker, OWNER)
    broker.container.adopt_access(access_of(connecting=()))
    broker.container.tick()
    close = client.expect_close(CONNECTION_FORCED)
    assert close.error is not None
    assert close.error.description == refusal("connect connection:amqp")
    other.expect_nothing()


def test_a_login_that_ends_before_the_open_is_refused() -> None:
    """A review finds only connections that are open; a late open must not escape it."""
    broker = guarded()
    client = dial_as(broker, ADA)
    users_of(broker).ended.add(ADA)
    broker.container.rights_review.begin()
    broker.container.tick()
    client.send_bytes(opening("c"))
    client.expect(Header)
    client.expect(Open)
    close = client.expect_close(CONNECTION_FORCED)
    assert close.error is not None
    assert close.error.description == LOGIN_ENDED
    assert not client.peer.is_open


def test_an_open_has_the_roles_of_now() -> None:
    broker = guarded()
    client = dial_as(broker, ADA)
    users_of(broker).roles[ADA] = frozenset({"application"})
    assert refusal_of_open(client, ADA) is None
    client.begin()
    assert refusal_of_attach(client, attach_sender()) is None


# -- stretches


def many(count: int) -> tuple[Broker, Client]:
    """Return a broker in which a client of `ada` has `count` senders."""
    broker = guarded("send,create queue:q", credit=1)
    client = session_as(broker)
    for handle in range(count):
        client.send(attach_sender(name=f"sender {handle}", handle=handle))
    client.frames()
    assert broker.container.link_count() == count
    return broker, client


def turns(broker: Broker) -> list[int]:
    """Let the review end; return the numbers of links after each turn of the event loop."""
    found: list[int] = []
    timer_queue, clock = broker.router.timer_queue, broker.clock
    while broker.container.rights_review.is_going_on():
        timer_queue.tick(clock.now_ms())
        found.append(broker.container.link_count())
    return found


STRETCHES = [
    # links, beside one connection; those that are left after each turn
    pytest.param(0, [0], id="a connection alone"),
    pytest.param(STRETCH - 1, [0], id="as many as one stretch"),
    pytest.param(STRETCH, [1, 0], id="one more"),
    pytest.param(2 * STRETCH, [STRETCH + 1, 1, 0], id="more than two stretches"),
]


@pytest.mark.parametrize(("links", "left"), STRETCHES)
def test_a_review_is_cut_in_stretches(links: int, left: list[int]) -> None:
    broker, client = many(links)
    broker.container.adopt_access(access_of())
    assert broker.container.link_count() == links, "nothing is judged in the turn of the change"
    assert turns(broker) == left
    assert broker.stats.links_revoked == links
    broker.container.run_round()
    assert len(client.frames()) == links


def test_messages_pass_between_stretches() -> None:
    broker, _ = many(2 * STRETCH)
    other = session_as(broker, OWNER)
    other.attach_sender()
    broker.container.adopt_access(access_of())
    broker.router.timer_queue.tick(broker.clock.now_ms())
    assert broker.container.rights_review.is_going_on()
    other.transfer()
    assert [type(body) for body in other.bodies() if not isinstance(body, Flow)] == [Disposition]


def test_a_review_that_begins_during_another_has_the_new_rules() -> None:
    broker, client = many(2 * STRETCH)
    broker.container.adopt_access(access_of())
    broker.router.timer_queue.tick(broker.clock.now_ms())
    left = broker.container.link_count()
    assert 0 < left < 2 * STRETCH
    broker.container.adopt_access(access_of("send queue:q"))
    turns(broker)
    assert broker.container.link_count() == left, "those not judged yet keep the right"
    broker.container.run_round()
    assert len(client.frames()) == 2 * STRETCH - left


def test_a_review_that_begins_during_another_judges_everything_again() -> None:
    broker, _ = many(2 * STRETCH)
    broker.container.adopt_access(access_of("send queue:q"))
    broker.router.timer_queue.tick(broker.clock.now_ms())
    assert broker.container.link_count() == 2 * STRETCH, "those that are judged keep the right"
    broker.container.adopt_access(access_of())
    assert turns(broker)[-1] == 0


def test_what_ends_during_a_review_is_left_out() -> None:
    broker, client = many(STRETCH + 5)
    broker.container.adopt_access(access_of())
    broker.router.timer_queue.tick(broker.clock.now_ms())
    revoked = broker.stats.links_revoked
    client.hang_up()
    turns(broker)
    assert broker.stats.links_revoked == revoked
    assert broker.container.link_count() == 0


def test_undecided_requests_are_counted_over_reloads() -> None:
    """Too many patterns would have to be compared together: `*`, `*.*`, `*.*.*`, …"""
    lengths = [f"subscribe topic:{'.'.join(['*'] * words)}" for words in range(1, UNION_MAX + 2)]
    broker = guarded(*lengths)
    undecided = subscribing(address="#")
    assert refusal_of_attach(session_as(broker), undecided) is not None
    assert broker.stats.access_undecided == 1
    review(broker, *lengths, "send queue:q")
    assert refusal_of_attach(session_as(broker), undecided) is not None
    assert broker.stats.as_dict()["access_undecided"] == 2
    assert refusal_of_attach(session_as(broker), attach_sender("p")) is not None, (
        "decided, and refused"
    )
    assert broker.stats.access_undecided == 2
