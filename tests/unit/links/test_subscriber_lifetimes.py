"""The lifetime of a subscription, as its client requests and observes it (SUB-23, SUB-25)."""

from __future__ import annotations

import pytest

from broker.amqp.performatives import Close, Detach, End
from broker.amqp.terminus import (
    CONFIGURATION,
    CONNECTION_CLOSE,
    LINK_DETACH,
    NEVER,
    NOT_DURABLE,
    SESSION_END,
    Source,
)
from tests.support.broker import Broker, Client
from tests.support.frames import attach_receiver
from tests.support.subscriptions import leave, subscribe

KINDS = pytest.mark.parametrize("words", ["", "shared", "durable", "shared global durable"])


def lasting(client: Client, words: str, policy: str, timeout: int = 0) -> Source:
    answer = subscribe(client, words, expiry_policy=policy, timeout=timeout, credit=9)
    assert answer.source is not None
    return answer.source


def end(client: Client, how: str) -> None:
    """End the client's link by `how`: detach, end of the session, close, or loss of the socket."""
    if how == "detach":
        assert leave(client) is None
    elif how == "end":
        client.send(End())
    elif how == "close":
        client.send(Close())
    else:
        client.hang_up()


def lives(broker: Broker) -> bool:
    return len(broker.router.subscriptions.of) == 1


@KINDS
@pytest.mark.requirement("SUB-23", "SUB-25")
@pytest.mark.parametrize("timeout", [0, 30])
@pytest.mark.parametrize("policy", [LINK_DETACH, SESSION_END, CONNECTION_CLOSE, NEVER])
def test_what_was_asked_is_answered(words: str, policy: str, timeout: int) -> None:
    source = lasting(Broker().session(), words, policy, timeout)
    assert (source.expiry_policy, source.timeout) == (policy, timeout)
    assert source.durable == (CONFIGURATION if "durable" in words else NOT_DURABLE)


@pytest.mark.requirement("SUB-23")
def test_the_first_subscriber_is_right() -> None:
    client = Broker().session()
    subscribe(client, "shared", expiry_policy=SESSION_END, timeout=7)
    second = subscribe(client, "shared", "n|2", expiry_policy=NEVER, timeout=9, handle=1)
    assert second.source is not None
    assert (second.source.expiry_policy, second.source.timeout) == (SESSION_END, 7)


ENDS = [
    # policy, action of the client, whether the subscription is left
    pytest.param(LINK_DETACH, "detach", False, id="link-detach, detached"),
    pytest.param(LINK_DETACH, "loss", False, id="link-detach, lost"),
    pytest.param(SESSION_END, "detach", True, id="session-end, detached"),
    pytest.param(SESSION_END, "end", False, id="session-end, ended"),
    pytest.param(SESSION_END, "close", False, id="session-end, closed"),
    pytest.param(CONNECTION_CLOSE, "detach", True, id="connection-close, detached"),
    pytest.param(CONNECTION_CLOSE, "end", True, id="connection-close, session ended"),
    pytest.param(CONNECTION_CLOSE, "close", False, id="connection-close, closed"),
    pytest.param(CONNECTION_CLOSE, "loss", False, id="connection-close, lost"),
    pytest.param(NEVER, "detach", True, id="never, detached"),
    pytest.param(NEVER, "close", True, id="never, closed"),
    pytest.param(NEVER, "loss", True, id="never, lost"),
]


@KINDS
@pytest.mark.requirement("SUB-25")
@pytest.mark.parametrize(("policy", "how", "stays"), ENDS)
def test_it_lasts_as_long_as_was_asked(words: str, policy: str, how: str, stays: bool) -> None:
    broker = Broker()
    client = broker.session()
    lasting(client, words, policy)
    end(client, how)
    assert lives(broker) is stays
    assert broker.router.bindings == (1 if stays else 0)
    if not stays:
        assert broker.router.expiries.waiting() == 0
        return
    broker.fill("t", 1, kind="topic")
    back = broker.session()
    lasting(back, words, policy)
    back.expect_deliveries(b"0")


@KINDS
@pytest.mark.requirement("SUB-25")
@pytest.mark.parametrize(
    ("policy", "how"), [(LINK_DETACH, "loss"), (SESSION_END, "end"), (CONNECTION_CLOSE, "close")]
)
def test_its_timeout_is_waited_for(words: str, policy: str, how: str) -> None:
    broker = Broker()
    client = broker.session()
    lasting(client, words, policy, timeout=2)
    end(client, how)
    broker.fill("t", 1, kind="topic")
    broker.advance(1999)
    back = broker.session()
    lasting(back, words, policy, timeout=2)
    back.expect_deliveries(b"0")
    broker.advance(60_000)
    assert lives(broker)
    end(back, how)
    broker.advance(1999)
    assert lives(broker)
    broker.advance(1)
    assert not lives(broker)
    assert broker.router.expiries.waiting() == 0


@pytest.mark.requirement("SUB-25", "SUB-31")
@pytest.mark.parametrize("words", ["", "shared", "durable"])
def test_a_closing_detach_waits_for_nothing(words: str) -> None:
    broker = Broker()
    client = broker.session()
    lasting(client, words, NEVER, timeout=60)
    assert leave(client, closed=True) is None
    assert not lives(broker)


@pytest.mark.requirement("SUB-25")
def test_a_session_that_ends_takes_only_its_own() -> None:
    broker = Broker()
    client = broker.session()
    client.begin(channel=1)
    for channel in (0, 1):
        source = Source(address="t", expiry_policy=SESSION_END, capabilities=["topic"])
        client.attach(attach_receiver(name=f"n{channel}", source=source), channel=channel)
        client.send(Detach(handle=0), channel=channel)
        client.expect(Detach)
    client.send(End(), channel=1)
    assert lives(broker)
    assert broker.router.subscriptions.kept.find(("client", "n0")) is not None


@pytest.mark.requirement("SUB-25", "SUB-37")
def test_a_link_that_wants_something_else_ends_what_was_kept_for_its_name() -> None:
    broker = Broker()
    client = broker.session()
    lasting(client, "", SESSION_END)
    leave(client)
    subscribe(client, "", address="other", expiry_policy=SESSION_END)
    assert broker.router.topics["t"].subscriptions == []
    thief = broker.session()
    subscribe(thief, "", address="third", expiry_policy=SESSION_END)
    assert broker.router.topics["other"].subscriptions == []
    assert lives(broker)
    assert broker.router.subscriptions.kept.count() == 0


@pytest.mark.requirement("SUB-25", "TMP-04")
def test_a_refused_attach_leaves_what_is_kept() -> None:
    broker = Broker()
    owner = broker.session()
    made = owner.attach_receiver("/topic/tmp/t", name="made", handle=5)
    assert made.source is not None
    asked = Source(address="/topic/tmp/t", expiry_policy=SESSION_END)
    owner.attach(attach_receiver(name="n", source=asked))
    leave(owner)
    other = broker.session()
    other.send(attach_receiver(name="n", source=asked))
    other.expect_refusal("amqp:resource-locked")
    assert broker.router.subscriptions.kept.count() == 1
    owner.hang_up()
    assert broker.router.subscriptions.kept.count() == 0
    assert not broker.router.subscriptions.of


@pytest.mark.requirement("SUB-25", "TMP-01")
def test_a_temporary_topic_goes_on_with_its_subscription() -> None:
    broker = Broker()
    client = broker.session()
    asked = Source(dynamic=True, expiry_policy=SESSION_END, capabilities=["temporary-topic"])
    made = client.attach(attach_receiver(name="made", source=asked)).source
    assert made is not None
    address = made.address or ""
    leave(client)
    broker.fill(address, 1, kind="topic")
    again = client.attach(attach_receiver(name="made", source=asked)).source
    assert again is not None
    assert again.address == address
    client.flow(handle=0, credit=9, delivery_count=0)
    client.expect_deliveries(b"0")
    assert lives(broker)
    client.send(End())
    assert not lives(broker)
    assert broker.router.topics == {}


@pytest.mark.requirement("SUB-25")
def test_a_steal_starts_no_clock() -> None:
    broker = Broker()
    first = broker.session()
    lasting(first, "", LINK_DETACH, timeout=2)
    second = broker.session()
    lasting(second, "", LINK_DETACH, timeout=2)
    assert broker.router.expiries.waiting() == 0
    first.hang_up()
    broker.advance(10_000)
    assert lives(broker)
