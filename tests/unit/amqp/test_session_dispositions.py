"""Dispositions (core 2.6.12, 2.7.6): outcomes of outgoing and of incoming deliveries.

The effect of each outcome on a queue is decided in `broker/links/outcome.py`.
"""

from typing import Final

import pytest

from broker.amqp.errors import RESOURCE_LIMIT_EXCEEDED, SessionFault
from broker.amqp.limits import UNSETTLED_IN_MAX
from broker.amqp.outcomes import (
    ACCEPTED,
    DeliveryState,
    Error,
    Modified,
    Received,
    Rejected,
    Released,
    TransactionalState,
)
from broker.amqp.performatives import RCV_FIRST, RCV_SECOND, RECEIVER, SENDER, Detach, End
from broker.amqp.terminus import LINK_DETACH, Source
from tests.support.broker import Broker, Client
from tests.support.engine import Engine
from tests.support.frames import (
    Body,
    Disposition,
    Transfer,
    attach_sender,
    flow,
    frame,
    message,
)

LAST: Final = 0xFFFF_FFFF
PAYLOAD: Final = message()
DURABLE: Final = message(durable=True)
RELEASED: Final = Released()


def received(count: int = 5, *, max_frame_size: int = 0xFFFF_FFFF) -> Client:
    """Return a client that holds deliveries 0 to `count` - 1, unsettled."""
    broker = Broker()
    broker.fill(count=count)
    client = broker.session(max_frame_size=max_frame_size)
    client.attach_receiver(credit=count)
    client.expect_deliveries(*[b"%d" % number for number in range(count)])
    return client


def counts(client: Client) -> tuple[int, int]:
    """Return the number of ready and the number of acquired messages in the queue."""
    queue = client.broker.queue()
    return queue.backlogs.waiting, queue.state.acquired


# -- outcomes of outgoing deliveries


@pytest.mark.requirement("RCV-02")
@pytest.mark.parametrize(
    ("disposition", "gone"),
    [
        pytest.param(Disposition(first=0), 1, id="one, without last"),
        pytest.param(Disposition(first=4, last=4), 1, id="the last"),
        pytest.param(Disposition(first=1, last=3), 3, id="a range"),
        pytest.param(Disposition(first=0, last=4), 5, id="all of them"),
        pytest.param(Disposition(first=3, last=1000), 2, id="more than was sent"),
        pytest.param(Disposition(first=LAST - 9, last=1), 2, id="from before the first"),
        pytest.param(Disposition(first=3, last=0x7FFF_FFFF), 2, id="the longest range"),
        pytest.param(Disposition(first=5), 0, id="an id that has not been sent"),
        pytest.param(Disposition(first=5, last=LAST), 0, id="ids that have not been sent"),
        pytest.param(Disposition(first=LAST), 0, id="the largest id"),
        pytest.param(Disposition(first=3, last=2), 0, id="the last before the first"),
        pytest.param(Disposition(first=0, last=LAST), 0, id="all ids: the last before the first"),
        pytest.param(Disposition(role=SENDER, first=0, last=4), 0, id="of a sender"),
        pytest.param(
            Disposition(first=0, last=4, settled=False, state=None), 0, id="nothing said yet"
        ),
        pytest.param(
            Disposition(
                first=0,
                last=4,
                settled=False,
                state=Received(section_number=0, section_offset=0),
            ),
            0,
            id="received, unsettled",
        ),
    ],
)
def test_a_settled_disposition(disposition: Disposition, gone: int) -> None:
    client = received()
    client.send(disposition)
    client.expect_nothing()
    assert counts(client) == (0, 5 - gone)
    client.send(disposition)
    client.expect_nothing()
    assert counts(client) == (0, 5 - gone)


def test_a_range_passes_over_what_is_settled() -> None:
    client = received()
    client.send(Disposition(first=1), Disposition(first=3), Disposition(first=0, last=4))
    client.expect_nothing()
    assert counts(client) == (0, 0)


def test_a_range_may_reach_over_links() -> None:
    broker = Broker()
    broker.fill("q", count=2)
    broker.fill("p", count=2)
    client = broker.session()
    client.attach_receiver("q")
    client.attach_receiver("p", handle=1, name="another")
    client.flow(handle=0, credit=1, delivery_count=0)
    client.flow(handle=1, credit=2, delivery_count=0)
    client.flow(handle=0, credit=1, delivery_count=1)
    told = [body for body in client.bodies() if isinstance(body, Transfer)]
    assert [(each.delivery_id, each.handle) for each in told] == [(0, 0), (1, 1), (2, 1), (3, 0)]
    client.send(Disposition(first=0, last=2))
    assert broker.queue("q").state.acquired == 1
    assert broker.queue("p").state.acquired == 0
    client.send(Disposition(first=2, last=3, state=RELEASED))
    assert broker.queue("q").backlogs.waiting == 1
    assert broker.queue("p").backlogs.waiting == 0


def test_each_session_has_ids_of_its_own() -> None:
    client = received()
    client.begin(1)
    client.send(Disposition(first=0, last=4), channel=1)
    client.expect_nothing()
    assert counts(client) == (0, 5)


@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize(
    ("outcome", "left"),
    [
        pytest.param(None, 2, id="none: released"),
        pytest.param(ACCEPTED, 0, id="accepted"),
        pytest.param(RELEASED, 2, id="released"),
    ],
)
def test_settled_without_a_state_is_the_default_outcome(
    outcome: Released | None, left: int
) -> None:
    broker = Broker()
    broker.fill(count=2)
    client = broker.session()
    client.attach_receiver(source=Source(address="q", default_outcome=outcome), credit=2)
    client.expect_deliveries(b"0", b"1")
    client.send(Disposition(first=0, state=None), Disposition(first=1, last=9, state=None))
    client.expect_nothing()
    assert counts(client) == (left, 0)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(ACCEPTED, id="accepted"),
        pytest.param(RELEASED, id="released"),
        pytest.param(Modified(delivery_failed=True), id="modified"),
        pytest.param(Rejected(Error(condition="app:bad", description="no")), id="rejected"),
    ],
)
def test_a_receiver_may_settle_second(state: DeliveryState) -> None:
    client = received()
    client.send(Disposition(first=0, settled=False, state=state))
    client.send(Disposition(first=1, last=3, settled=False, state=state))
    one, more = client.expect(Disposition), client.expect_last(Disposition)
    assert (one.role, one.first, one.last, one.settled) == (SENDER, 0, 0, True)
    assert (more.role, more.first, more.last, more.settled) == (SENDER, 1, 3, True)
    assert [type(each.state) for each in (one, more)] == [type(state)] * 2
    assert counts(client)[1] == 1
    client.send(Disposition(first=0, last=3, state=state))  # the end of the exchange
    client.expect_nothing()


@pytest.mark.parametrize("last", [5, 9], ids=["one", "several"])
def test_what_is_not_held_is_not_settled_again(last: int) -> None:
    client = received()
    client.send(Disposition(first=5, last=last, settled=False))
    client.expect_nothing()


@pytest.mark.parametrize("over", [0, 1], ids=["the largest frame", "one byte more"])
def test_a_state_that_is_more_than_the_peer_takes_is_not_repeated(over: int) -> None:
    def rejected(text: int) -> Disposition:
        error = Error(condition="app:bad", description="x" * text)
        return Disposition(first=0, settled=False, state=Rejected(error))

    whole = rejected(300 + 512 + over - len(frame(rejected(300))))
    assert len(frame(whole)) == 512 + over
    client = received(1, max_frame_size=512)
    client.send(whole)
    answer = client.expect_last(Disposition)
    assert (answer.role, answer.settled) == (SENDER, True)
    assert isinstance(answer.state, type(None) if over else Rejected)
    assert counts(client) == (0, 0)


def test_settlements_are_told_behind_what_was_accepted_before() -> None:
    client = received()
    client.attach_sender("p", handle=1)
    client.send(
        Transfer(handle=1, settled=False, payload=PAYLOAD),
        Disposition(first=0, settled=False),
    )
    assert client.expect(Disposition).role is RECEIVER
    assert client.expect_last(Disposition).role is SENDER


@pytest.mark.parametrize("last", [1, 4], ids=["one", "several"])
@pytest.mark.parametrize("settled", [True, False], ids=["settled", "unsettled"])
def test_an_outcome_that_we_cannot_honour_detaches_and_loses_nothing(
    last: int, settled: bool
) -> None:
    client = received()
    state = TransactionalState(txn_id=b"x", outcome=ACCEPTED)
    client.send(Disposition(first=1, last=last, settled=settled, state=state))
    client.expect_detach("amqp:transaction:unknown-id")
    assert counts(client) == (5, 0)
    client.broker.advance(60_000)
    other = client.broker.session("other")
    other.attach_receiver(credit=5)
    other.expect_deliveries(b"0", b"1", b"2", b"3", b"4")


def test_the_node_of_a_range_may_go_with_its_link() -> None:
    """The fault of the first delivery ends the link, and its temporary queue with it."""
    broker = Broker()
    client = broker.session()
    answer = client.attach_receiver(
        source=Source(dynamic=True, expiry_policy=LINK_DETACH), credit=9
    )
    assert answer.source is not None
    broker.fill(answer.source.address or "", count=3)
    client.expect_deliveries(b"0", b"1", b"2")
    state = TransactionalState(txn_id=b"x", outcome=ACCEPTED)
    client.send(Disposition(first=0, last=2, state=state))
    client.expect_detach("amqp:transaction:unknown-id")
    assert answer.source.address not in broker.router.queues
    assert broker.watcher.errors == []


@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize(
    "state",
    [
        pytest.param(RELEASED, id="released"),
        pytest.param(ACCEPTED, id="accepted"),
        pytest.param(Modified(delivery_failed=True), id="failed"),
    ],
)
def test_dispositions_behind_a_detach_are_ignored(state: DeliveryState) -> None:
    """JMS clients release prefetched messages after the link is gone.

    `docs/design/jms-clients.md` 13.7.
    """
    client = received()
    client.send(Detach(handle=0, closed=True))
    client.expect_detach()
    assert counts(client) == (5, 0)
    client.send(Disposition(first=0, state=state), Disposition(first=1, last=4, state=state))
    client.send(Disposition(first=0, last=4, state=state, settled=False))
    client.expect_nothing()
    client.attach_receiver(credit=5)
    deliveries = client.expect_deliveries(b"0", b"1", b"2", b"3", b"4")
    assert [each.delivery_id for each in deliveries] == [5, 6, 7, 8, 9]


# -- outcomes of incoming deliveries


def test_accepted_deliveries_are_told_in_ranges() -> None:
    client = Broker().session()
    client.attach_sender()
    client.attach_sender("p", name="another", handle=1)
    client.send(
        Transfer(delivery_id=0, payload=PAYLOAD),
        Transfer(delivery_id=1, payload=PAYLOAD, handle=1),
        Transfer(delivery_id=2, payload=PAYLOAD, settled=True),
        Transfer(delivery_id=3, payload=PAYLOAD),
    )
    assert client.expect(Disposition) == Disposition(first=0, last=1)
    assert client.expect_last(Disposition) == Disposition(first=3, last=3)
    client.transfer(4)
    assert client.expect_last(Disposition) == Disposition(first=4, last=4)


@pytest.mark.requirement("PRD-02")
def test_a_rejection_comes_behind_what_was_accepted_before() -> None:
    client = Broker().session()
    client.attach_sender(None)
    client.send(
        Transfer(delivery_id=0, payload=message(to="q")),
        Transfer(delivery_id=1, payload=message()),
        Transfer(delivery_id=2, payload=message(to="q")),
    )
    assert client.expect(Disposition) == Disposition(first=0, last=0)
    rejected = client.expect(Disposition)
    assert (rejected.first, rejected.last, rejected.settled) == (1, 1, True)
    assert isinstance(rejected.state, Rejected)
    assert client.expect_last(Disposition) == Disposition(first=2, last=2)


def test_what_becomes_durable_after_its_link_has_gone_is_not_told() -> None:
    client = Broker().session()
    client.attach_sender()
    client.send(Transfer(payload=DURABLE), Detach(handle=0, closed=True))
    client.expect_detach()
    client.expect_nothing()
    assert client.broker.queue().backlogs.waiting == 1


def test_what_becomes_durable_after_its_session_has_ended_is_not_told() -> None:
    client = Broker().session()
    client.attach_sender()
    client.send(Transfer(payload=DURABLE), End())
    client.expect_end()
    assert client.broker.queue().backlogs.waiting == 1


# -- the sender settles first


def settling(*frames: Body) -> list[Disposition]:
    """Send `frames` on a link with rcv-settle-mode second; return the broker's dispositions."""
    client = Broker().session()
    client.attach_sender(rcv_settle_mode=RCV_SECOND)
    client.send(*frames)
    return [body for body in client.bodies() if isinstance(body, Disposition)]


def test_where_the_sender_settles_first_our_outcome_does_not_settle() -> None:
    pieces = [
        Transfer(delivery_id=0, payload=PAYLOAD),
        Transfer(delivery_id=1, payload=DURABLE),
        Transfer(delivery_id=2, payload=PAYLOAD, rcv_settle_mode=RCV_SECOND),
        Transfer(delivery_id=3, payload=PAYLOAD[:5], more=True),
        Transfer(delivery_id=3, payload=PAYLOAD[5:]),
    ]
    told = settling(*pieces)
    assert {each.settled for each in told} == {False}
    ids = [number for each in told for number in range(each.first, (each.last or 0) + 1)]
    assert sorted(ids) == [0, 1, 2, 3]


def test_a_rejection_does_not_settle_either() -> None:
    client = Broker().session()
    client.attach_sender(None, rcv_settle_mode=RCV_SECOND)
    client.transfer()
    told = client.expect_last(Disposition)
    assert isinstance(told.state, Rejected)
    assert not told.settled


@pytest.mark.parametrize(
    "transfers",
    [
        pytest.param([Transfer(payload=PAYLOAD, rcv_settle_mode=RCV_FIRST)], id="in one frame"),
        pytest.param(
            [
                Transfer(payload=PAYLOAD[:5], rcv_settle_mode=RCV_FIRST, more=True),
                Transfer(payload=PAYLOAD[5:]),
            ],
            id="in several frames",
        ),
    ],
)
def test_one_delivery_may_be_settled_by_us(transfers: list[Transfer]) -> None:
    assert settling(*transfers) == [Disposition(first=0, last=0, settled=True)]


@pytest.mark.parametrize("mode", [None, RCV_FIRST, RCV_SECOND])
def test_nothing_is_said_of_a_settled_delivery(mode: int | None) -> None:
    transfer = Transfer(payload=PAYLOAD, settled=True, rcv_settle_mode=mode)
    assert settling(transfer) == []
    halves = Transfer(payload=PAYLOAD[:5], more=True, rcv_settle_mode=mode)
    assert settling(halves, Transfer(payload=PAYLOAD[5:], settled=True)) == []


def test_settled_and_unsettled_outcomes_are_not_told_in_one_range() -> None:
    client = Broker().session()
    client.attach_sender(rcv_settle_mode=RCV_SECOND)
    client.attach_sender("p", name="another", handle=1)
    client.send(*[Transfer(delivery_id=n, handle=n % 2, payload=PAYLOAD) for n in range(3)])
    assert [client.expect(Disposition) for _ in range(3)] == [
        Disposition(first=0, last=0, settled=False),
        Disposition(first=1, last=1, settled=True),
        Disposition(first=2, last=2, settled=False),
    ]
    client.send(Disposition(role=SENDER, first=0, last=2))
    client.expect_nothing()


def test_a_delivery_that_its_sender_has_settled_early_is_not_waited_for() -> None:
    """A sender may settle before it has the outcome (2.6.12): here, before the commit."""
    told = settling(
        Transfer(payload=DURABLE), Disposition(role=SENDER, first=0, settled=True, state=None)
    )
    assert told == [Disposition(first=0, last=0, settled=True)]


@pytest.mark.parametrize(
    ("disposition", "left"),
    [
        pytest.param(Disposition(role=SENDER, first=1), [LAST, 0, 2], id="one"),
        pytest.param(Disposition(role=SENDER, first=LAST, last=1), [2], id="a range"),
        pytest.param(Disposition(role=SENDER, first=5, last=9), [LAST, 0, 1, 2], id="unknown ids"),
        pytest.param(Disposition(role=SENDER, first=1, last=0), [LAST, 0, 1, 2], id="backwards"),
        pytest.param(
            Disposition(role=SENDER, first=0, last=1, settled=False), [LAST, 0, 1, 2], id="no end"
        ),
        pytest.param(Disposition(first=0, last=1), [LAST, 0, 1, 2], id="of a receiver"),
    ],
)
def test_a_senders_settlement_is_final(disposition: Disposition, left: list[int]) -> None:
    engine = Engine()
    inbox = engine.attach_sender(attach_sender(rcv_settle_mode=RCV_SECOND))
    ids = [LAST, 0, 1, 2]
    engine.send(*[Transfer(delivery_id=number, payload=PAYLOAD) for number in ids])
    session = inbox.link.session
    assert engine.send(disposition) == []
    assert [number for number in ids if session.awaited.has(number)] == left
    assert engine.send(Detach(handle=0)) != []
    assert not any(session.awaited.has(number) for number in ids)


def test_a_sender_may_not_leave_everything_unsettled() -> None:
    engine = Engine()
    inbox = engine.attach_sender(attach_sender(rcv_settle_mode=RCV_SECOND))
    other = engine.attach_sender(attach_sender(name="b", handle=1, rcv_settle_mode=RCV_SECOND))
    session = inbox.link.session
    for number in range(1, UNSETTLED_IN_MAX):
        session.awaited.put(number, inbox.link)
    assert engine.send(Transfer(delivery_id=0, handle=1, payload=PAYLOAD)) == []
    with pytest.raises(SessionFault, match=RESOURCE_LIMIT_EXCEEDED):
        session.awaited.put(UNSETTLED_IN_MAX, inbox.link)
    (end,) = engine.send(Transfer(delivery_id=1, handle=1, payload=PAYLOAD), flow(handle=0))
    assert isinstance(end, End)
    assert end.error is not None
    assert end.error.condition == RESOURCE_LIMIT_EXCEEDED
    assert other.delivered_ids == [0]
    assert other.ends == [False]
