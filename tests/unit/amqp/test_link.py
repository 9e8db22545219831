"""One end of a link (core 2.6): attach and its answer, refusal, detach by both sides, re-attach."""

from typing import Final

import pytest

from broker.amqp.errors import DETACH_FORCED, LinkFault
from broker.amqp.lifecycle import LinkState
from broker.amqp.outcomes import ACCEPTED, Error
from broker.amqp.performatives import (
    RCV_FIRST,
    RCV_SECOND,
    RECEIVER,
    SENDER,
    SND_MIXED,
    SND_SETTLED,
    SND_UNSETTLED,
    Attach,
    Detach,
    End,
    Flow,
)
from broker.amqp.terminus import Coordinator, Source, Target
from tests.support.broker import Broker, Client
from tests.support.engine import Engine
from tests.support.frames import (
    Body,
    Disposition,
    Transfer,
    attach_receiver,
    attach_sender,
    flow,
    message,
)

PAYLOAD: Final = message()
NO_DELIVERIES: Final = b"\xc1\x01\x00"
ONE_DELIVERY: Final = b"\xc1\x0a\x02" + b"\xa0\x03tag" + b"\x00\x53\x24\x45"


# -- attach and its answer


def test_a_sender_is_answered_by_a_receiver() -> None:
    client = Broker().session()
    answer = client.attach(attach_sender("q", name="s", handle=3))
    assert (answer.name, answer.handle, answer.role) == ("s", 3, RECEIVER)
    assert answer.source is not None
    assert answer.source.address == "client"
    assert isinstance(answer.target, Target)
    assert answer.target.address == "q"
    assert answer.max_message_size == 128 * 1024 * 1024
    assert answer.initial_delivery_count == -1  # absent: only a sender sets it
    assert client.expect_last(Flow).handle == 3


def test_a_receiver_is_answered_by_a_sender() -> None:
    client = Broker().session()
    answer = client.attach(attach_receiver("q", name="r", handle=3))
    assert (answer.name, answer.handle, answer.role) == ("r", 3, SENDER)
    assert answer.source is not None
    assert answer.source.address == "q"
    assert isinstance(answer.target, Target)
    assert answer.initial_delivery_count == 0
    assert answer.max_message_size == 0
    client.expect_nothing()


@pytest.mark.parametrize("snd", [SND_UNSETTLED, SND_SETTLED, SND_MIXED])
@pytest.mark.parametrize("rcv", [RCV_FIRST, RCV_SECOND])
def test_a_sender_settles_as_it_wants_to(snd: int, rcv: int) -> None:
    client = Broker().session()
    answer = client.attach_sender(snd_settle_mode=snd, rcv_settle_mode=rcv)
    assert (answer.snd_settle_mode, answer.rcv_settle_mode) == (snd, rcv)


@pytest.mark.parametrize(
    ("snd", "told"),
    [(SND_UNSETTLED, SND_UNSETTLED), (SND_SETTLED, SND_SETTLED), (SND_MIXED, SND_UNSETTLED)],
)
@pytest.mark.parametrize("rcv", [RCV_FIRST, RCV_SECOND])
def test_a_receiver_gets_its_messages_settled_or_not(snd: int, told: int, rcv: int) -> None:
    broker = Broker()
    broker.fill()
    client = broker.session()
    answer = client.attach_receiver(credit=1, snd_settle_mode=snd, rcv_settle_mode=rcv)
    assert (answer.snd_settle_mode, answer.rcv_settle_mode) == (told, rcv)
    (delivery,) = client.expect_deliveries(b"0")
    assert delivery.settled is (told == SND_SETTLED)
    assert broker.queue().state.acquired == (0 if delivery.settled else 1)


def test_both_roles_may_have_one_name() -> None:
    """Name and direction together identify a link between two containers (2.6.1)."""
    broker = Broker()
    client = broker.session()
    client.attach_sender(name="one")
    client.attach_receiver(name="one", handle=1)
    client.expect_nothing()
    assert broker.container.link_count() == 2


def test_the_terminus_of_the_other_side_is_repeated() -> None:
    client = Broker().session()
    sender = client.attach_sender()
    assert sender.source is not None
    assert sender.source.address == "client"
    attach = Attach(
        name="r",
        handle=1,
        role=RECEIVER,
        source=Source(address="q"),
        target=Target(address="mine", capabilities=["x"]),
    )
    receiver = client.attach(attach)
    assert isinstance(receiver.target, Target)
    assert receiver.target.address == "mine"


# -- refusal


@pytest.mark.parametrize(
    ("attach", "condition"),
    [
        pytest.param(attach_sender("$tmp/x"), "amqp:not-found", id="a sender to nowhere"),
        pytest.param(attach_receiver("$tmp/x"), "amqp:not-found", id="a receiver from nowhere"),
        pytest.param(
            Attach(name="x", handle=0, role=SENDER, initial_delivery_count=0),
            "amqp:invalid-field",
            id="a sender without a target",
        ),
        pytest.param(
            Attach(name="x", handle=0, role=RECEIVER),
            "amqp:invalid-field",
            id="no source, no target",
        ),
        pytest.param(
            Attach(
                name="x",
                handle=0,
                role=RECEIVER,
                source=Source(address="$tmp/x"),
                target=Coordinator(),
            ),
            "amqp:not-found",
            id="a receiver with a coordinator",
        ),
    ],
)
def test_a_refusal_is_an_attach_and_a_closing_detach(attach: Attach, condition: str) -> None:
    """After any other answer a JMS client waits for ever (`docs/design/jms-clients.md` 13.1)."""
    broker = Broker()
    client = broker.session()
    client.send(attach)
    answer = client.expect_refusal(condition)
    assert answer.name == attach.name
    assert answer.role is not attach.role
    if attach.role is RECEIVER:
        assert answer.initial_delivery_count == 0
    client.expect_nothing()
    assert broker.container.link_count() == 0
    client.send(Detach(handle=0, closed=True))
    client.expect_nothing()
    client.attach_sender()  # the handle is free


def test_a_terminus_that_cannot_be_read_refuses_the_link_alone() -> None:
    client = Broker().session()
    client.send(attach_receiver(source=Source(address="q", expiry_policy="whenever")))
    client.expect_refusal("amqp:invalid-field")
    client.attach_sender(handle=1)


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param(
            [
                attach_sender("$tmp/x"),
                Transfer(payload=PAYLOAD),
                Transfer(delivery_id=1, more=True),
                Transfer(delivery_id=1),
                flow(handle=0, delivery_count=2, next_outgoing_id=3),
                flow(handle=0, delivery_count=999, next_outgoing_id=3),
            ],
            id="a sender",
        ),
        pytest.param(
            [
                attach_receiver("$tmp/x"),
                flow(handle=0, credit=10, delivery_count=0),
                flow(handle=0, credit=10, delivery_count=5, drain=True),
                Disposition(first=0, last=9),
            ],
            id="a receiver",
        ),
    ],
)
def test_what_follows_an_attach_that_is_refused_is_ignored(frames: list[Body]) -> None:
    client = Broker().session()
    client.send(*frames, Detach(handle=0, closed=True))
    client.expect_refusal("amqp:not-found")
    client.expect_nothing()
    assert client.broker.router.queues == {}


# -- detach by the peer


@pytest.mark.requirement("SUB-32")
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "detached only"])
@pytest.mark.parametrize("error", [None, Error(condition="app:bad")], ids=["", "with an error"])
@pytest.mark.parametrize("attach", [attach_sender(), attach_receiver()], ids=["sender", "receiver"])
def test_a_detach_is_answered_in_kind(attach: Attach, closed: bool, error: Error | None) -> None:
    broker = Broker()
    client = broker.session()
    client.attach(attach)
    client.frames()
    client.send(Detach(handle=0, closed=closed, error=error))
    answer = client.expect_last(Detach)
    assert (answer.handle, answer.closed, answer.error) == (0, closed, None)
    assert broker.container.link_count() == 0
    assert "q" in broker.router.queues


def test_what_was_accepted_is_told_before_the_answer() -> None:
    client = Broker().session()
    client.attach_sender()
    client.send(Transfer(payload=PAYLOAD), Detach(handle=0))
    client.expect(Disposition)
    client.expect_last(Detach)


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "detached only"])
def test_the_owner_is_told_how_its_link_ended(closed: bool) -> None:
    engine = Engine()
    inbox = engine.attach_sender(attach_sender())
    outbox = engine.attach_receiver(
        attach_receiver(handle=1), flow(handle=1, credit=3, delivery_count=0)
    )
    outbox.send(b"a")
    outbox.send(b"b", settled=True)
    outbox.send(b"c")
    engine.send(Detach(handle=0, closed=closed), Detach(handle=1, closed=closed))
    assert inbox.ends == [closed]
    assert outbox.ends == [(closed, [0, 2])]
    assert inbox.link.state is outbox.link.state is LinkState.DETACHED


def test_an_end_is_no_close_of_a_link() -> None:
    engine = Engine()
    inbox = engine.attach_sender(attach_sender())
    outbox = engine.attach_receiver(
        attach_receiver(handle=1), flow(handle=1, credit=1, delivery_count=0)
    )
    outbox.send(b"a")
    engine.send(End())
    inbox.link.grant(9)
    inbox.link.accept_delivery(0)
    inbox.link.detach(None)
    outbox.link.detach(None)
    assert engine.bodies() == []
    assert inbox.ends == [False]
    assert outbox.ends == [(False, [0])]


# -- detach by the broker


def test_our_detach_may_leave_the_link_open() -> None:
    engine = Engine()
    inbox = engine.attach_sender(attach_sender())
    inbox.link.detach(None, closed=False)
    (detach,) = engine.bodies()
    assert isinstance(detach, Detach)
    assert (detach.handle, detach.closed, detach.error) == (0, False, None)
    assert inbox.ends == [False]
    assert engine.send(Detach(handle=0)) == []


def test_a_link_is_detached_once() -> None:
    engine = Engine()
    outbox = engine.attach_receiver(attach_receiver())
    for _ in range(2):
        outbox.link.detach(LinkFault(DETACH_FORCED, "go", None))
    (detach,) = engine.bodies()
    assert isinstance(detach, Detach)
    assert detach.closed
    assert detach.error is not None
    assert (detach.error.condition, detach.error.description) == (DETACH_FORCED, "go")
    assert outbox.ends == [(False, [])]
    assert engine.send(Detach(handle=0, closed=True)) == []
    outbox.link.detach(LinkFault(DETACH_FORCED, "too late"))
    assert engine.bodies() == []


def test_what_was_accepted_is_told_before_our_detach() -> None:
    client = Broker().session()
    client.attach_sender()
    client.send(Transfer(payload=PAYLOAD), Transfer(delivery_id=1, tag=None, payload=PAYLOAD))
    assert client.expect(Disposition) == Disposition(first=0, last=0)
    client.expect_detach("amqp:invalid-field")
    client.expect_nothing()


def test_both_ends_may_detach_at_once() -> None:
    """The peer's own detach answers the broker's, and gets no answer itself.

    `docs/design/jms-clients.md` 13.27.
    """
    client = Broker().session()
    client.attach_sender()
    client.send(Transfer(tag=None, payload=PAYLOAD), Detach(handle=0, closed=True))
    client.expect_detach("amqp:invalid-field")
    client.expect_nothing()
    client.attach_sender()


def test_nothing_is_told_of_a_detached_link_to_its_owner() -> None:
    engine = Engine()
    inbox = engine.attach_sender(attach_sender())
    outbox = engine.attach_receiver(
        attach_receiver(handle=1), flow(handle=1, credit=3, delivery_count=0)
    )
    changes = len(outbox.credit_changes)
    outbox.send(b"a")
    inbox.link.detach(None)
    outbox.link.detach(None)
    engine.frames()
    engine.send(
        Transfer(payload=PAYLOAD),
        flow(handle=0, delivery_count=7, next_outgoing_id=1),
        flow(handle=1, credit=9, delivery_count=1, next_outgoing_id=1, drain=True),
        Disposition(first=0, state=ACCEPTED),
    )
    inbox.link.grant(5)
    inbox.link.accept_delivery(0)
    assert engine.bodies() == []
    assert inbox.delivered_ids == []
    assert inbox.asked_for_credit == 0
    assert outbox.accepted_ids == []
    assert len(outbox.credit_changes) == changes


# -- attach again


@pytest.mark.requirement("SUB-37", "RCV-08")
def test_a_receiver_that_attaches_again_elsewhere_steals_its_link() -> None:
    broker = Broker()
    broker.fill(count=2)
    client = broker.session()
    client.attach_receiver(name="one", credit=1)
    client.expect_deliveries(b"0")
    client.send(attach_receiver(name="one", handle=1))
    client.expect_detach("amqp:link:stolen", handle=0)
    client.expect(Attach)
    client.flow(handle=1, credit=9, delivery_count=0)
    deliveries = client.expect_deliveries(b"0", b"1")
    assert [each.handle for each in deliveries] == [1, 1]
    client.send(Detach(handle=0, closed=True), Disposition(first=0))
    client.expect_nothing()
    assert broker.queue().state.acquired == 2


@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize("unsettled", [None, NO_DELIVERIES, ONE_DELIVERY], ids=repr)
def test_a_receiver_that_comes_back_resumes_nothing(unsettled: bytes | None) -> None:
    """The broker's attach has no unsettled map: all deliveries in the peer's map are sent anew."""
    broker = Broker()
    broker.fill(count=2)
    client = broker.session()
    client.attach_receiver(credit=2)
    client.expect_deliveries(b"0", b"1")
    client.send(Detach(handle=0, closed=False))
    assert not client.expect_last(Detach).closed
    answer = client.attach_receiver(credit=2, unsettled=unsettled)
    assert not answer.has_unsettled
    assert not answer.incomplete_unsettled
    assert answer.initial_delivery_count == 0
    deliveries = client.expect_deliveries(b"0", b"1")
    assert [each.resume for each in deliveries] == [False, False]


@pytest.mark.parametrize("unsettled", [NO_DELIVERIES, ONE_DELIVERY], ids=repr)
def test_a_sender_that_comes_back_sends_again(unsettled: bytes) -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender()
    client.transfer()
    client.expect_last(Disposition)
    client.send(Detach(handle=0, closed=False))
    client.expect_last(Detach)
    answer = client.attach_sender(unsettled=unsettled)
    assert not answer.has_unsettled
    client.transfer(1)
    assert client.expect_last(Disposition) == Disposition(first=1, last=1)
    assert broker.queue().backlogs.waiting == 2


def test_a_receiver_whose_unsettled_map_goes_on_gets_nothing_new() -> None:
    broker = Broker()
    broker.fill(count=1)
    client = broker.session()
    client.attach_receiver(credit=1, unsettled=ONE_DELIVERY, incomplete_unsettled=True)
    client.expect_nothing()


def test_a_link_name_is_free_after_its_detach() -> None:
    client = Broker().session()
    for _ in range(3):
        client.attach_sender()
        client.send(Detach(handle=0, closed=True))
        client.expect_detach()
    client.expect_nothing()


def test_links_of_two_sessions_do_not_meet() -> None:
    broker = Broker()
    client = broker.session()
    client.begin(1)
    client.attach_sender()
    client.send(attach_sender("q", name="other"), channel=1)
    client.frames()
    client.send(Detach(handle=0), channel=1)
    channel, _ = client.expect_frame(Detach)
    assert channel == 1
    client.transfer()
    client.expect_last(Disposition)


def still_serves(client: Client) -> bool:
    client.attach_sender("health", handle=50, name="health")
    return True


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param([Transfer(tag=None)], id="missing tag"),
        pytest.param([Transfer(delivery_id=None)], id="missing delivery-id"),
        pytest.param([flow(handle=0, delivery_count=101)], id="delivery-count beyond the credit"),
    ],
)
def test_a_fault_of_a_link_leaves_its_session_alone(frames: list[Body]) -> None:
    client = Broker().session()
    client.attach_sender()
    client.send(*frames)
    detach = client.expect_last(Detach)
    assert detach.closed
    assert detach.error is not None
    assert still_serves(client)
