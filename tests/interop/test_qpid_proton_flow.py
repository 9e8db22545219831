"""Credit, drain, session windows and browsing, driven by python-qpid-proton."""

from __future__ import annotations

import pytest
from proton import Delivery, Link, Message, Receiver, Terminus, symbol

from tests.interop.broker_process import PASSWORD, USER, Broker
from tests.interop.proton_peer import Peer

pytestmark = pytest.mark.slow


def texts(taken: list[tuple[Delivery, Message]]) -> list[object]:
    return [message.body for _, message in taken]


def browser(peer: Peer, address: str, *, settled: bool = True) -> Receiver:
    receiver = peer.new_receiver(address)
    receiver.source.distribution_mode = Terminus.DIST_MODE_COPY
    if settled:
        receiver.snd_settle_mode = Link.SND_SETTLED
    return peer.attach(receiver)


# ---- credit


def test_never_more_messages_than_credit(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, *"abcdef")
        receiver = peer.receiver(address, credit=3)
        for body in "abc":
            assert peer.take(receiver)[1].body == body
        peer.round_trip()
        assert receiver.current is None
        receiver.flow(1)
        assert peer.take(receiver)[1].body == "d"
        peer.round_trip()
        assert receiver.current is None


def test_credit_given_to_an_empty_queue_is_used_by_what_comes(broker: Broker, address: str) -> None:
    with Peer(broker.url) as consuming, Peer(broker.url) as producing:
        receiver = consuming.receiver(address, credit=2)
        consuming.round_trip()
        producing.fill(address, *"abc")
        for body in "ab":
            assert consuming.take(receiver)[1].body == body
        consuming.round_trip()
        assert receiver.current is None


@pytest.mark.requirement("DST-01")
def test_competing_consumers_take_turns_by_credit(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        receivers = [peer.receiver(address, credit=5) for _ in range(3)]
        peer.round_trip()
        peer.fill(address, *(str(n) for n in range(15)))
        taken = [[str(peer.take(receiver)[1].body) for _ in range(5)] for receiver in receivers]
        together = sorted((body for part in taken for body in part), key=int)
        assert together == [str(n) for n in range(15)]
        assert all(part == sorted(part, key=int) for part in taken)


def test_the_broker_gives_a_sender_new_credit_as_it_is_used(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        sender = peer.new_sender(address)
        sender.snd_settle_mode = Link.SND_SETTLED
        peer.attach(sender)
        for _ in range(10_000):
            peer.post(sender, b"\x00\x53\x77\x41")
        peer.until(lambda: sender.queued == 0)
        peer.round_trip()
        receiver = peer.receiver(address, credit=10_000)
        for _ in range(10_000):
            peer.take_bytes(receiver)
        assert peer.drain(receiver) == []


def test_a_queue_that_is_full_refuses_a_message_until_one_is_taken(
    strict_broker: Broker, address: str
) -> None:
    with Peer(strict_broker.url, user=USER, password=PASSWORD) as peer:
        full = f"small.{address}"
        relay = peer.sender(None)
        peer.send(relay, *(Message(address=full, body=body) for body in "abc"))
        refused = peer.post(relay, Message(address=full, body="d"))
        assert peer.outcome(refused) == Delivery.REJECTED
        condition = refused.remote.condition
        assert condition is not None
        assert condition.name == "amqp:resource-limit-exceeded"
        receiver = peer.receiver(full, credit=1)
        delivery, _ = peer.take(receiver)
        peer.accept(delivery)
        peer.send(relay, Message(address=full, body="e"))
        assert texts(peer.drain(receiver)) == ["b", "c", "e"]


# ---- drain


def test_draining_an_empty_queue_ends_at_once(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        receiver = peer.receiver(address)
        for credit in (1, 100, 1):
            assert peer.drain(receiver, credit) == []
            assert receiver.credit == 0


def test_draining_delivers_what_is_there_and_takes_the_rest_of_the_credit(
    broker: Broker, address: str
) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, *"abc")
        receiver = peer.receiver(address)
        assert texts(peer.drain(receiver, 2)) == ["a", "b"]
        assert texts(peer.drain(receiver, 10)) == ["c"]
        assert receiver.credit == 0
        peer.fill(address, "d")
        peer.round_trip()
        assert receiver.current is None
        receiver.flow(1)
        assert peer.take(receiver)[1].body == "d"


def test_draining_takes_back_credit_given_before(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        receiver = peer.receiver(address, credit=50)
        peer.round_trip()
        assert peer.drain(receiver, 0) == []
        assert receiver.credit == 0
        peer.fill(address, "a")
        peer.round_trip()
        assert receiver.current is None
        receiver.flow(1)
        assert peer.take(receiver)[1].body == "a"


def test_draining_sees_what_was_accepted_before_on_another_connection(
    broker: Broker, address: str
) -> None:
    with Peer(broker.url) as consuming, Peer(broker.url) as producing:
        receiver = consuming.receiver(address)
        sender = producing.sender(address)
        for n in range(100):
            producing.send(sender, str(n))
            assert texts(consuming.drain(receiver, 1)) == [str(n)]


# ---- session windows


def test_a_backlog_larger_than_the_session_window_arrives_as_the_window_opens(
    broker: Broker, address: str
) -> None:
    with Peer(broker.url, max_frame_size=1024) as peer:
        body = b"x" * 3000
        peer.fill(address, *(Message(body=body) for _ in range(100)))
        session = peer.connection.session()
        session.incoming_capacity = 4096
        session.open()
        receiver = peer.receiver(address, credit=100, session=session)
        for _ in range(100):
            assert peer.take(receiver)[1].body == body


def test_two_sessions_do_not_share_a_window(broker: Broker, address: str) -> None:
    """The first session reads nothing and has no window left; the second one is not held up."""
    with Peer(broker.url, max_frame_size=1024) as peer:
        peer.fill(f"{address}-1", *(Message(body=b"x" * 900) for _ in range(50)))
        peer.fill(f"{address}-2", *(Message(body=b"y" * 900) for _ in range(50)))
        narrow = peer.connection.session()
        narrow.incoming_capacity = 2048
        narrow.open()
        stuck = peer.receiver(f"{address}-1", credit=50, session=narrow)
        flowing = peer.receiver(f"{address}-2", credit=50)
        for _ in range(50):
            assert peer.take(flowing)[1].body == b"y" * 900
        for _ in range(50):
            assert peer.take(stuck)[1].body == b"x" * 900


def test_many_sessions_and_links_come_and_go(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        for _ in range(50):
            session = peer.session()
            senders = [peer.sender(address, session=session) for _ in range(5)]
            peer.close(senders[0])
            peer.end(session)
        peer.fill(address, "a")
        assert peer.bodies(address) == ["a"]


# ---- browsing


@pytest.mark.requirement("RCV-04")
def test_a_browser_sees_every_message_once_and_leaves_it(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, *"abc")
        looking = browser(peer, address)
        assert looking.remote_source.distribution_mode == Terminus.DIST_MODE_COPY
        taken = peer.drain(looking)
        assert texts(taken) == ["a", "b", "c"]
        assert all(delivery.settled for delivery, _ in taken)
        assert peer.drain(looking) == []
        peer.close(looking)
        assert peer.bodies(address) == ["a", "b", "c"]


@pytest.mark.requirement("RCV-04")
def test_a_browser_sees_later_arrivals_and_goes_by_its_credit(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, *"abc")
        looking = browser(peer, address)
        assert texts(peer.drain(looking, 2)) == ["a", "b"]
        looking.flow(10)
        assert peer.take(looking)[1].body == "c"
        peer.fill(address, "d")
        assert peer.take(looking)[1].body == "d"


@pytest.mark.requirement("RCV-04")
@pytest.mark.parametrize("state", [Delivery.ACCEPTED, Delivery.REJECTED, Delivery.MODIFIED])
def test_whatever_a_browser_answers_changes_nothing(
    broker: Broker, address: str, state: int
) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, *"ab")
        looking = browser(peer, address, settled=False)
        for delivery, _ in peer.drain(looking):
            delivery.local.failed = True
            delivery.local.undeliverable = True
            delivery.update(state)
            delivery.settle()
        peer.close(looking)
        found = peer.drain(peer.receiver(address))
        assert [(message.body, message.delivery_count) for _, message in found] == [
            ("a", 0),
            ("b", 0),
        ]


@pytest.mark.requirement("RCV-04")
def test_browsing_does_not_disturb_a_consumer(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, *"abcd")
        looking = browser(peer, address)
        receiver = peer.receiver(address, credit=2)
        first, _ = peer.take(receiver)
        peer.accept(first)
        assert peer.take(receiver)[1].body == "b"
        seen = texts(peer.drain(looking))
        assert seen[-2:] == ["c", "d"]
        assert texts(peer.drain(receiver)) == ["c", "d"]


@pytest.mark.requirement("RCV-04")
@pytest.mark.requirement("RCV-03")
def test_a_browser_sees_higher_priorities_first(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, *(Message(body=str(p), priority=p) for p in (1, 5, 9)))
        assert texts(peer.drain(browser(peer, address))) == ["9", "5", "1"]


# ---- topics


@pytest.mark.requirement("SUB-01")
def test_a_topic_copies_to_every_subscriber(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        subscribers = []
        for _ in range(3):
            receiver = peer.new_receiver(address)
            receiver.source.capabilities.put_object(symbol("topic"))
            subscribers.append(peer.attach(receiver))
        sender = peer.new_sender(address)
        sender.target.capabilities.put_object(symbol("topic"))
        peer.attach(sender)
        peer.send(sender, *"abc")
        for receiver in subscribers:
            assert texts(peer.drain(receiver)) == ["a", "b", "c"]
        assert peer.drain(peer.receiver(address)) == [], "the queue of that name is another node"
