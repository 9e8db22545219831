"""A link on which the peer sends (core 2.6.7, 2.6.14, 2.7.5): credit, deliveries in many frames."""

from typing import Final

import pytest

from broker.amqp.incoming_link import IncomingLink
from broker.amqp.limits import TRANSFERS_PER_DELIVERY_MIN, Limits
from broker.amqp.outcomes import ACCEPTED, State
from broker.amqp.performatives import RCV_FIRST, RCV_SECOND, Attach, Detach, Flow
from broker.amqp.terminus import Source, Target
from tests.support.broker import Broker, Client
from tests.support.engine import Engine, Inbox
from tests.support.frames import Body, Disposition, Transfer, attach_sender, flow, frame, message

LAST: Final = 0xFFFF_FFFF
PAYLOAD: Final = message()


def open_inbox(limits: Limits | None = None, *, credit: int = 10) -> tuple[Engine, Inbox]:
    engine = Engine(limits)
    return engine, engine.attach_sender(attach_sender(), credit=credit)


def detached_with(bodies: list[Body | None]) -> str:
    """Return the error condition of the closing detach that `bodies` consists of."""
    (detach,) = bodies
    assert isinstance(detach, Detach)
    assert detach.closed
    assert detach.error is not None
    return detach.error.condition


# -- credit


def test_the_first_credit_comes_behind_the_attach() -> None:
    client = Broker(credit=7).session()
    client.attach(attach_sender(handle=4))
    told = client.expect_last(Flow)
    assert (told.handle, told.delivery_count, told.link_credit) == (4, 0, 7)
    assert not told.drain
    assert not told.echo
    assert told.incoming_window == 2048


def test_credit_is_filled_up_when_half_is_used() -> None:
    client = Broker(credit=4).session()
    client.attach_sender()
    client.transfer(0, settled=True)
    client.expect_nothing()
    client.transfer(1, settled=True)
    told = client.expect_last(Flow)
    assert (told.handle, told.delivery_count, told.link_credit) == (0, 2, 4)


def test_what_was_sent_before_its_credit_was_reduced_is_taken() -> None:
    """A reduced credit and messages that used the old one cross on the wire."""
    broker = Broker(credit=10)
    client = broker.session()
    client.attach_sender()
    (link,) = broker.container.links()
    assert isinstance(link, IncomingLink)
    link.grant(2)
    for number in range(10):
        client.transfer(number, settled=True)
    assert not any(isinstance(body, Detach) for body in client.bodies())
    assert broker.queue().backlogs.waiting == 10


def test_a_credit_that_was_reduced_ends_where_it_would_have() -> None:
    engine, inbox = open_inbox(credit=3)
    inbox.link.grant(1)
    engine.frames()
    for number in range(3):
        assert engine.send(Transfer(delivery_id=number, payload=PAYLOAD)) == []
    told = detached_with(engine.send(Transfer(delivery_id=3, payload=PAYLOAD)))
    assert told == "amqp:link:transfer-limit-exceeded"


def test_a_delivery_in_many_frames_uses_one_credit() -> None:
    client = Broker(credit=4).session()
    client.attach_sender()
    client.send(*[Transfer(more=number < 9, payload=PAYLOAD[:1]) for number in range(10)])
    client.frames()
    client.flow(handle=0, delivery_count=1, echo=True)
    told = client.expect_last(Flow)
    assert (told.delivery_count, told.link_credit) == (1, 3)


@pytest.mark.parametrize("last", [False, True], ids=["in one frame", "in several"])
def test_delivery_counts_wrap(last: bool) -> None:
    client = Broker(credit=4).session()
    attach = Attach(
        name="s",
        handle=0,
        role=False,
        source=Source(),
        target=Target(address="q"),
        initial_delivery_count=LAST,
    )
    client.attach(attach)
    assert client.expect_last(Flow).delivery_count == LAST
    for number in range(2):
        if last:
            client.send(Transfer(delivery_id=number, settled=True, more=True))
            client.send(Transfer(delivery_id=None, tag=None, payload=PAYLOAD))
        else:
            client.transfer(number, settled=True)
    assert client.expect_last(Flow).delivery_count == 1


@pytest.mark.parametrize("more", [False, True], ids=["whole", "the first frame"])
def test_a_transfer_without_credit_detaches(more: bool) -> None:
    engine, inbox = open_inbox(credit=1)
    assert engine.send(Transfer(payload=PAYLOAD)) == []
    told = detached_with(engine.send(Transfer(delivery_id=1, payload=PAYLOAD, more=more)))
    assert told == "amqp:link:transfer-limit-exceeded"
    assert inbox.delivered_ids == [0]
    assert inbox.ends == [False]


def test_a_delivery_that_has_begun_needs_no_more_credit() -> None:
    engine, inbox = open_inbox(credit=1)
    engine.send(Transfer(more=True, payload=b"a"))
    assert inbox.asked_for_credit == 0
    inbox.link.grant(0)
    engine.frames()
    engine.send(Transfer(payload=b"b"))
    assert inbox.payloads == [b"ab"]


def test_the_owner_is_asked_for_credit_by_half_and_below() -> None:
    engine, inbox = open_inbox(credit=4)
    asked = []
    for number in range(4):
        engine.send(Transfer(delivery_id=number, payload=PAYLOAD))
        asked.append(inbox.asked_for_credit)
    assert asked == [0, 1, 2, 3]
    inbox.link.grant(4)
    (told,) = engine.bodies()
    assert isinstance(told, Flow)
    assert (told.delivery_count, told.link_credit) == (4, 4)


@pytest.mark.parametrize(
    ("count", "left", "asked"),
    [
        pytest.param(None, 10, 0, id="unsaid"),
        pytest.param(0, 10, 0, id="where it was"),
        pytest.param(3, 7, 1, id="some credit given up"),
        pytest.param(10, 0, 1, id="all credit given up"),
    ],
)
def test_a_sender_may_give_credit_up(count: int | None, left: int, asked: int) -> None:
    engine, inbox = open_inbox()
    engine.send(flow(handle=0, delivery_count=count, credit=0))
    assert inbox.link.credit == left
    assert inbox.link.delivery_count == 10 - left
    assert inbox.asked_for_credit == asked


@pytest.mark.parametrize("count", [11, 0x7FFF_FFFF, LAST], ids=["ahead", "far ahead", "behind"])
def test_a_delivery_count_that_cannot_be_detaches(count: int) -> None:
    engine, inbox = open_inbox()
    assert detached_with(engine.send(flow(handle=0, delivery_count=count))) == "amqp:invalid-field"
    assert inbox.ends == [False]


# -- the first frame


@pytest.mark.parametrize(
    ("transfer", "condition"),
    [
        pytest.param(Transfer(delivery_id=None), "amqp:invalid-field", id="no delivery-id"),
        pytest.param(Transfer(tag=None), "amqp:invalid-field", id="no delivery-tag"),
        pytest.param(Transfer(state=ACCEPTED), "amqp:not-implemented", id="with a state"),
        pytest.param(
            Transfer(rcv_settle_mode=RCV_SECOND), "amqp:invalid-field", id="settled second here"
        ),
    ],
)
@pytest.mark.parametrize("more", [False, True], ids=["whole", "the first of several"])
def test_a_delivery_that_cannot_be_detaches(transfer: Transfer, condition: str, more: bool) -> None:
    engine, inbox = open_inbox()
    whole = Transfer(
        delivery_id=transfer.delivery_id,
        tag=transfer.tag,
        state=transfer.state,
        rcv_settle_mode=transfer.rcv_settle_mode,
        more=more,
        payload=PAYLOAD,
    )
    assert detached_with(engine.send(whole)) == condition
    assert inbox.delivered_ids == []
    assert inbox.ends == [False]


@pytest.mark.parametrize(
    ("mode", "settled"),
    [
        pytest.param(RCV_FIRST, None, id="first, as the link"),
        pytest.param(RCV_SECOND, True, id="second, which means nothing where it is settled"),
    ],
)
def test_a_settle_mode_that_may_be_said(mode: int, settled: bool | None) -> None:
    engine, inbox = open_inbox()
    engine.send(Transfer(rcv_settle_mode=mode, settled=settled, payload=PAYLOAD))
    assert inbox.delivered_ids == [0]


def test_tags_may_repeat_and_be_empty() -> None:
    """JMS clients take tags from a pool, and send settled messages without any.

    `docs/design/jms-clients.md` 13.13.
    """
    engine, inbox = open_inbox()
    tags = [b"", b"", b"a", b"a", b"x" * 32]
    engine.send(*[Transfer(delivery_id=n, tag=tag, payload=PAYLOAD) for n, tag in enumerate(tags)])
    assert inbox.tags == tags


def test_a_tag_of_more_than_32_bytes_closes_the_connection() -> None:
    client = Broker().session()
    client.attach_sender()
    client.transfer(tag=b"x" * 33)
    client.expect_close("amqp:invalid-field")


def test_a_transfer_on_the_handle_of_a_receiver_ends_the_session() -> None:
    client = Broker().session()
    client.attach_receiver()
    client.transfer()
    client.expect_end("amqp:not-allowed")


# -- deliveries in several frames


@pytest.mark.parametrize(
    "frames",
    [
        pytest.param([Transfer(payload=b"abc")], id="one frame"),
        pytest.param(
            [Transfer(more=True, payload=b"ab"), Transfer(payload=b"c")], id="all repeated"
        ),
        pytest.param(
            [
                Transfer(more=True, payload=b"ab"),
                Transfer(delivery_id=None, tag=None, message_format=None, payload=b"c"),
            ],
            id="nothing repeated",
        ),
        pytest.param(
            [
                Transfer(more=True),
                Transfer(more=True, payload=b"abc"),
                Transfer(more=True),
                Transfer(),
            ],
            id="frames without payload",
        ),
    ],
)
@pytest.mark.parametrize("settled", [False, True])
def test_a_delivery_is_joined_from_its_frames(frames: list[Transfer], settled: bool) -> None:
    engine, inbox = open_inbox()
    *first, last = frames
    engine.send(*first)
    assert inbox.delivered_ids == []
    engine.send(
        Transfer(
            delivery_id=last.delivery_id,
            tag=last.tag,
            message_format=last.message_format,
            settled=settled,
            payload=last.payload,
        )
    )
    assert (inbox.delivered_ids, inbox.payloads) == ([0], [b"abc"])
    assert (inbox.tags, inbox.settled) == ([b"tag"], [settled])


@pytest.mark.parametrize(
    ("flags", "settled"),
    [
        ([None, None, None], False),
        ([False, False, False], False),
        ([True, None, None], True),
        ([None, True, None], True),
        ([None, None, True], True),
        ([True, False, False], True),
        ([False, False, True], True),
    ],
)
def test_settled_on_any_frame_is_settled(flags: list[bool | None], settled: bool) -> None:
    engine, inbox = open_inbox()
    engine.send(*[Transfer(settled=flag, more=n < 2) for n, flag in enumerate(flags)])
    assert inbox.settled == [settled]


def test_deliveries_on_two_links_may_alternate() -> None:
    engine, inbox = open_inbox()
    other = engine.attach_sender(attach_sender(name="b", handle=1))
    engine.send(
        Transfer(delivery_id=0, more=True, payload=b"a"),
        Transfer(delivery_id=1, handle=1, tag=b"1", more=True, payload=b"1"),
        Transfer(delivery_id=0, more=True, payload=b"b"),
        Transfer(delivery_id=1, handle=1, tag=b"1", payload=b"2"),
        Transfer(delivery_id=2, handle=1, tag=b"2", payload=b"3"),
        Transfer(delivery_id=None, tag=None, payload=b"c"),
        Transfer(delivery_id=3, payload=b"d"),
    )
    assert (inbox.delivered_ids, inbox.payloads) == ([0, 3], [b"abc", b"d"])
    assert (other.delivered_ids, other.payloads) == ([1, 2], [b"12", b"3"])
    assert other.tags == [b"1", b"2"]


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(Transfer(delivery_id=1, message_format=1), id="another delivery-id"),
        pytest.param(Transfer(tag=b"other", message_format=1), id="another tag"),
        pytest.param(Transfer(tag=b"", message_format=1), id="an empty tag"),
        pytest.param(Transfer(message_format=2), id="another message-format"),
        pytest.param(Transfer(message_format=0), id="the usual message-format"),
    ],
)
def test_a_delivery_that_changes_underway_detaches(second: Transfer) -> None:
    engine, inbox = open_inbox()
    engine.send(Transfer(message_format=1, more=True, payload=b"a"))
    assert detached_with(engine.send(second)) == "amqp:not-allowed"
    assert inbox.delivered_ids == []


@pytest.mark.parametrize(
    ("formats", "expected"),
    [
        pytest.param([None], 0, id="none"),
        pytest.param([0], 0, id="the usual one"),
        pytest.param([LAST], LAST, id="another"),
        pytest.param([7, None, 7], 7, id="several frames, some without"),
        pytest.param([None, 0], 0, id="the usual one, told later"),
    ],
)
def test_a_delivery_has_the_message_format_of_its_first_frame(
    formats: list[int | None], expected: int
) -> None:
    engine, inbox = open_inbox()
    engine.send(Transfer(message_format=9))
    for number, each in enumerate(formats):
        more = number < len(formats) - 1
        engine.send(Transfer(delivery_id=1, message_format=each, more=more))
    assert inbox.formats == [9, expected]


def test_a_delivery_inside_of_another_leaves_the_rest_of_the_session_alone() -> None:
    client = Broker().session()
    client.attach_sender()
    client.attach_sender("p", handle=1, name="another")
    client.send(
        Transfer(delivery_id=0, more=True, payload=PAYLOAD),
        Transfer(delivery_id=1, payload=PAYLOAD),
        Transfer(delivery_id=2, handle=1, payload=PAYLOAD),
    )
    client.expect_detach("amqp:not-allowed")
    assert client.expect_last(Disposition) == Disposition(first=2, last=2)


@pytest.mark.parametrize("frames", [1, 2, 3])
def test_an_aborted_delivery_never_was(frames: int) -> None:
    engine, inbox = open_inbox(credit=2)
    engine.send(
        *[Transfer(more=True, payload=b"lost")] * (frames - 1),
        Transfer(aborted=True, more=frames == 2, payload=b"lost"),
    )
    assert inbox.delivered_ids == []
    assert inbox.link.credit == 1
    assert inbox.asked_for_credit == 1
    engine.send(Transfer(delivery_id=1, payload=b"kept"))
    assert (inbox.delivered_ids, inbox.payloads) == ([1], [b"kept"])
    assert engine.bodies() == []


def test_an_abort_leaves_credit_enough_alone() -> None:
    engine, inbox = open_inbox(credit=10)
    engine.send(Transfer(aborted=True))
    assert (inbox.link.credit, inbox.asked_for_credit) == (9, 0)


@pytest.mark.parametrize("state", [None, ACCEPTED], ids=["without a state", "with a state"])
@pytest.mark.parametrize("frames", [1, 2, 3])
def test_a_resumed_delivery_that_nobody_knows_is_ignored(frames: int, state: State | None) -> None:
    engine, inbox = open_inbox(credit=2)
    first = Transfer(resume=True, state=state, more=frames > 1, payload=b"unknown")
    rest = [Transfer(more=each > 2, payload=b"unknown") for each in range(frames, 1, -1)]
    engine.send(first, *rest)
    assert (inbox.delivered_ids, inbox.link.credit, inbox.asked_for_credit) == ([], 1, 1)
    engine.send(Transfer(delivery_id=1, payload=b"kept"))
    assert (inbox.delivered_ids, inbox.payloads) == ([1], [b"kept"])
    assert engine.bodies() == []


# -- limits


@pytest.mark.parametrize("over", [0, 1], ids=["the largest message", "one byte more"])
@pytest.mark.parametrize("frames", [1, 2, 10])
def test_a_message_has_a_largest_size(over: int, frames: int) -> None:
    engine, inbox = open_inbox(Limits(max_message_size=100))
    payload = b"x" * (100 + over)
    step = -(-len(payload) // frames)
    pieces = [payload[at : at + step] for at in range(0, len(payload), step)]
    answer = engine.send(
        *[
            Transfer(payload=piece, more=number < len(pieces) - 1)
            for number, piece in enumerate(pieces)
        ]
    )
    if over:
        assert detached_with(answer) == "amqp:link:message-size-exceeded"
        assert inbox.delivered_ids == []
    else:
        assert answer == []
        assert inbox.payloads == [payload]


def test_a_message_that_grows_too_large_is_refused_before_its_end() -> None:
    engine, inbox = open_inbox(Limits(max_message_size=100))
    assert engine.send(Transfer(more=True, payload=bytes(100))) == []
    told = detached_with(engine.send(Transfer(more=True, payload=b"x")))
    assert told == "amqp:link:message-size-exceeded"
    assert engine.send(Transfer(more=True, payload=b"x"), Transfer()) == []
    assert inbox.delivered_ids == []


def test_a_message_far_too_large_costs_its_link_and_not_the_connection() -> None:
    engine, _ = open_inbox(Limits(max_message_size=100, partial_bytes_max=200))
    answer = engine.send(Transfer(more=True, payload=bytes(201)))
    assert detached_with(answer) == "amqp:link:message-size-exceeded"


def test_frames_without_payload_must_end_some_time() -> None:
    engine, inbox = open_inbox(Limits(max_message_size=100))
    most = TRANSFERS_PER_DELIVERY_MIN
    engine.send_bytes(frame(Transfer(more=True)) * (most - 1) + frame(Transfer()))
    assert inbox.delivered_ids == [0]
    engine.frames()
    engine.send_bytes(frame(Transfer(delivery_id=1, more=True)) * (most + 2))
    told = [body for body in engine.bodies() if isinstance(body, Detach)]
    assert detached_with([*told]) == "amqp:resource-limit-exceeded"
    assert inbox.delivered_ids == [0]


PIECE: Final = bytes(400)


@pytest.mark.parametrize(
    "free",
    [
        pytest.param(Transfer(more=False), id="one is complete"),
        pytest.param(Transfer(aborted=True), id="one is aborted"),
        pytest.param(Transfer(tag=b"changed"), id="the link of one is detached by us"),
        pytest.param(Detach(handle=0, closed=True), id="the link of one is detached"),
    ],
)
def test_unfinished_deliveries_of_a_connection_have_one_limit(free: Body) -> None:
    limits = Limits(max_message_size=500, partial_bytes_max=1000)

    def begun() -> Client:
        client = Broker(limits=limits).session()
        for handle in range(3):
            client.attach_sender(handle=handle, name=f"s{handle}")
        client.send(Transfer(more=True, payload=PIECE))
        client.send(Transfer(delivery_id=1, handle=1, more=True, payload=PIECE))
        client.expect_nothing()
        return client

    third = Transfer(delivery_id=2, handle=2, more=True, payload=PIECE)
    client = begun()
    client.send(third)
    client.expect_close("amqp:resource-limit-exceeded")
    client = begun()
    client.send(free)
    client.frames()
    client.send(third)
    client.expect_nothing()


def test_an_unfinished_delivery_ends_with_its_link() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender()
    client.send(Transfer(more=True, payload=PAYLOAD[:5]), Detach(handle=0, closed=True))
    client.expect_detach()
    client.attach_sender()
    client.transfer(1)
    assert client.expect_last(Disposition) == Disposition(first=1, last=1)
    assert broker.queue().backlogs.waiting == 1
