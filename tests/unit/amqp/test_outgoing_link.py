"""A link on which the peer receives (core 2.6.7, 2.6.14, 2.7.5): credit, drain, transfers out."""

from typing import Final

import pytest

from broker.amqp.limits import FRAME_SIZE_MIN
from broker.amqp.outcomes import ACCEPTED, Released
from broker.amqp.outgoing_link import REFERENCED_FROM
from broker.amqp.performatives import SND_SETTLED, Begin, Detach, Flow
from broker.amqp.terminus import COPY, MOVE, Source
from tests.support.broker import Broker
from tests.support.engine import Engine, Outbox
from tests.support.frames import (
    Body,
    Disposition,
    Transfer,
    attach_receiver,
    flow,
    frame,
    frames_in,
)

LAST: Final = 0xFFFF_FFFF


def open_outbox(
    credit: int = 100, *, window: int = 1000, max_frame_size: int = FRAME_SIZE_MIN
) -> tuple[Engine, Outbox]:
    """Attach a receiver with this credit, incoming window and max-frame-size of the peer."""
    engine = Engine(max_frame_size=max_frame_size)
    first = flow(handle=0, credit=credit, delivery_count=0, incoming_window=window)
    outbox = engine.attach_receiver(attach_receiver(), first)
    return engine, outbox


def window_of(window: int, *, seen: int) -> Flow:
    return flow(next_incoming_id=seen, incoming_window=window)


def transfers(bodies: list[Body | None]) -> list[Transfer]:
    found = [body for body in bodies if isinstance(body, Transfer)]
    assert len(found) == len(bodies)
    return found


def joined(pieces: list[Transfer]) -> bytes:
    """Return the payload of the one complete delivery whose frames are `pieces`."""
    assert [piece.more for piece in pieces] == [True] * (len(pieces) - 1) + [False]
    assert {(piece.handle, piece.delivery_id, piece.tag) for piece in pieces} == {
        (pieces[0].handle, pieces[0].delivery_id, pieces[0].tag)
    }
    return b"".join(piece.payload for piece in pieces)


# -- transfers


@pytest.mark.parametrize("settled", [False, True])
def test_a_transfer_has_what_a_client_needs(settled: bool) -> None:
    """Transfers have consecutive delivery-ids, a tag and a message-format.

    `docs/design/jms-clients.md` 5.6, 13.8.
    """
    engine, outbox = open_outbox()
    for number in range(3):
        outbox.send(b"body", settled=settled, header=b"head")
        (told,) = transfers(engine.bodies())
        assert told == Transfer(
            delivery_id=number,
            tag=number.to_bytes(4),
            message_format=0,
            settled=settled,
            payload=b"headbody",
        )


@pytest.mark.parametrize("message_format", [1, LAST])
@pytest.mark.parametrize("handle", [0, 256])
@pytest.mark.parametrize("size", [0, 467, 468, 469, 3000])
def test_every_frame_has_the_message_format(size: int, handle: int, message_format: int) -> None:
    engine = Engine(max_frame_size=FRAME_SIZE_MIN)
    credit = flow(handle=handle, credit=9, delivery_count=0)
    outbox = engine.attach_receiver(attach_receiver(handle=handle), credit)
    outbox.send(bytes(size), message_format=message_format)
    frames = engine.frames()
    assert all(each.size <= FRAME_SIZE_MIN for each in frames)
    pieces = transfers([each.body for each in frames])
    assert {piece.message_format for piece in pieces} == {message_format}
    assert joined(pieces) == bytes(size)
    outbox.send(b"next")
    assert transfers(engine.bodies())[0].message_format == 0


def test_delivery_ids_are_those_of_the_session() -> None:
    engine, outbox = open_outbox()
    other = engine.attach_receiver(
        attach_receiver(name="b", handle=1), flow(handle=1, credit=9, delivery_count=0)
    )
    for each in (outbox, other, other, outbox):
        each.send(b"")
    told = transfers(engine.bodies())
    assert [(each.handle, each.delivery_id) for each in told] == [(0, 0), (1, 1), (1, 2), (0, 3)]
    engine.send(Disposition(first=1, last=3), Disposition(first=0, state=Released()))
    assert outbox.accepted_ids == [3]
    assert other.accepted_ids == [1, 2]
    assert [delivery_id for delivery_id, _ in outbox.states] == [0]


@pytest.mark.parametrize("handle", [0, 255, 256, 4095])
def test_a_handle_is_written_in_as_many_bytes_as_it_takes(handle: int) -> None:
    engine = Engine()
    outbox = engine.attach_receiver(
        attach_receiver(handle=handle), flow(handle=handle, credit=9, delivery_count=0)
    )
    for payload in (b"abc", bytes(1000), bytes(REFERENCED_FROM)):
        outbox.send(payload)
        (told,) = transfers(engine.bodies())
        assert (told.handle, told.payload) == (handle, payload)


def test_settled_deliveries_are_never_heard_of_again() -> None:
    engine, outbox = open_outbox()
    outbox.send(b"", settled=True)
    outbox.send(b"")
    engine.send(Disposition(first=0, last=1))
    assert outbox.accepted_ids == [1]
    engine.send(Detach(handle=0))
    assert outbox.ends == [(False, [])]


@pytest.mark.parametrize(
    "size", [0, 1, 255, 470, 471, 472, 473, 474, 512, 513, 943, 944, 945, 5000, 10_000]
)
@pytest.mark.parametrize("settled", [False, True])
def test_a_message_is_cut_into_frames_that_the_peer_takes(size: int, settled: bool) -> None:
    engine, outbox = open_outbox()
    payload = bytes(number % 251 for number in range(size))
    outbox.send(payload, settled=settled, header=b"head")
    frames = engine.frames()
    assert all(each.size <= FRAME_SIZE_MIN for each in frames)
    pieces = transfers([each.body for each in frames])
    assert joined(pieces) == b"head" + payload
    assert {piece.settled for piece in pieces} == {settled}
    outbox.send(b"next")
    (told,) = transfers(engine.bodies())
    assert told.delivery_id == 1


@pytest.mark.parametrize(
    "size", [REFERENCED_FROM - 1, REFERENCED_FROM, 30_000, 100_000], ids="{} bytes".format
)
@pytest.mark.parametrize("max_frame_size", [8192, LAST], ids=["small frames", "large frames"])
def test_large_payloads_come_out_in_their_place(size: int, max_frame_size: int) -> None:
    engine, outbox = open_outbox(max_frame_size=max_frame_size)
    payloads = [bytes([number]) * size for number in range(3)]
    for payload in payloads:
        outbox.send(payload, header=b"head")
    pieces = transfers(engine.bodies())
    for number, payload in enumerate(payloads):
        mine = [piece for piece in pieces if piece.delivery_id == number]
        assert joined(mine) == b"head" + payload


# -- credit


def test_no_more_is_sent_than_credit_allows() -> None:
    engine, outbox = open_outbox(2)
    outbox.send(b"")
    outbox.send(b"")
    assert not outbox.link.has_room()
    engine.send(flow(handle=0, credit=1, delivery_count=2, next_incoming_id=2))
    assert outbox.link.has_room()
    outbox.send(b"")
    assert not outbox.link.has_room()


CREDITS: Final = [
    pytest.param(0, 5, 2, id="nothing has arrived"),
    pytest.param(2, 5, 4, id="some has arrived"),
    pytest.param(3, 5, 5, id="everything has arrived"),
    pytest.param(0, 2, 0, id="less than is on the wire"),
    pytest.param(3, 0, 0, id="taken back"),
    pytest.param(None, 5, 2, id="no delivery-count: none of ours has been seen"),
    pytest.param(3, LAST, LAST, id="the largest"),
    pytest.param(3, None, 7, id="no credit: as it was"),
]


@pytest.mark.parametrize(("count", "given", "left"), CREDITS)
def test_credit_counts_from_what_the_peer_has_seen(
    count: int | None, given: int | None, left: int
) -> None:
    engine, outbox = open_outbox(10)
    for _ in range(3):
        outbox.send(b"")
    engine.frames()
    assert engine.send(flow(handle=0, credit=given, delivery_count=count)) == []
    assert outbox.link.credit == left
    assert outbox.link.has_room() is (left > 0)


@pytest.mark.parametrize("count", [4, 0x7FFF_FFFF, LAST], ids=["one more", "many more", "behind 0"])
def test_a_peer_cannot_have_seen_more_deliveries_than_there_were(count: int) -> None:
    engine, outbox = open_outbox(10)
    for _ in range(3):
        outbox.send(b"")
    engine.frames()
    answer = engine.send(flow(handle=0, credit=1, delivery_count=count))
    if count == LAST:  # a count that lags behind: sent messages have used up the credit
        assert answer == []
        assert outbox.link.credit == 0
        return
    (detach,) = answer
    assert isinstance(detach, Detach)
    assert detach.error is not None
    assert detach.error.condition == "amqp:invalid-field"
    assert outbox.ends == [(False, [0, 1, 2])]


def test_every_flow_is_told_to_the_owner() -> None:
    engine, outbox = open_outbox(0)
    engine.send(flow(handle=0, credit=1, delivery_count=0))
    engine.send(flow(handle=0, credit=0, delivery_count=0))
    engine.send(flow(handle=0, credit=1, delivery_count=0, drain=True))
    assert outbox.credit_changes == [False, False, False, True]
    engine.send(flow(), flow(echo=True))
    assert outbox.credit_changes == [False, False, False, True]


# -- drain


def told_credit(bodies: list[Body | None]) -> tuple[int, int, bool]:
    """Return delivery-count, credit and drain of the flow that `bodies` consists of."""
    (told,) = bodies
    assert isinstance(told, Flow)
    assert told.handle == 0
    return told.delivery_count, told.link_credit, told.drain


@pytest.mark.parametrize("copies", [False, True], ids=["a consumer", "a browser"])
@pytest.mark.parametrize(("count", "credit"), [(0, 5), (3, 5), (0, 1), (0, LAST)])
def test_a_drain_uses_all_credit_up(copies: bool, count: int, credit: int) -> None:
    """Clients see the end of a drain by the delivery-count alone.

    `docs/design/jms-clients.md` 5.5.
    """
    broker = Broker()
    broker.fill(count=count)
    client = broker.session()
    client.attach_receiver(source=Source(address="q", distribution_mode=COPY if copies else MOVE))
    client.flow(handle=0, credit=credit, delivery_count=0, drain=True)
    for number in range(count):
        assert client.expect(Transfer).delivery_id == number
    assert told_credit([client.expect_last(Flow)]) == (credit, 0, True)
    broker.fill(count=1)
    client.expect_nothing()
    client.flow(handle=0, credit=2, delivery_count=credit)
    assert isinstance(client.bodies()[0], Transfer)


def test_a_drain_that_ends_with_the_credit_needs_no_flow() -> None:
    broker = Broker()
    broker.fill(count=2)
    client = broker.session()
    client.attach_receiver()
    client.flow(handle=0, credit=1, delivery_count=0, drain=True)
    client.expect_deliveries(b"0")
    client.flow(handle=0, credit=1, delivery_count=1, drain=False)
    client.expect_deliveries(b"1")


@pytest.mark.parametrize("credit", [0, 5, 2**31 - 1, 2**31, LAST])
def test_a_drain_is_answered_as_often_as_it_is_asked(credit: int) -> None:
    client = Broker().session()
    client.attach_receiver()
    for _ in range(3):
        client.flow(handle=0, credit=credit, delivery_count=0, drain=True)
        assert told_credit([client.expect_last(Flow)]) == (credit, 0, True)


def test_a_drain_of_credit_that_is_on_its_way_back_is_answered() -> None:
    """The peer asked before it saw the message that used up its last credit."""
    engine, outbox = open_outbox(1)
    outbox.send(b"")
    engine.frames()
    assert told_credit(engine.send(flow(handle=0, credit=1, delivery_count=0, drain=True))) == (
        1,
        0,
        True,
    )


def test_without_a_drain_no_credit_is_given_up() -> None:
    engine, outbox = open_outbox(5)
    outbox.link.drained()
    assert engine.bodies() == []
    assert outbox.link.credit == 5


def test_a_drain_may_be_taken_back() -> None:
    engine, outbox = open_outbox(5)
    engine.send(flow(handle=0, credit=5, delivery_count=0, drain=True))
    engine.send(flow(handle=0, credit=5, delivery_count=0, drain=False))
    outbox.link.drained()
    assert engine.bodies() == []
    assert outbox.link.credit == 5


def test_a_drain_waits_for_the_rest_of_a_delivery() -> None:
    """A message of which a part was sent is completed before credit is given up.

    `docs/design/jms-clients.md` 5.5.
    """
    engine, outbox = open_outbox(5, window=1)
    outbox.send(bytes(1000))
    assert len(transfers(engine.bodies())) == 1
    asked = flow(
        handle=0, credit=5, delivery_count=0, drain=True, next_incoming_id=1, incoming_window=0
    )
    assert engine.send(asked) == []
    outbox.link.drained()
    assert engine.bodies() == []
    changes = len(outbox.credit_changes)
    rest = transfers(engine.send(window_of(9, seen=1)))
    assert [piece.more for piece in rest] == [True, False]
    assert outbox.credit_changes[changes:] == [True]
    outbox.link.drained()
    assert told_credit(engine.bodies()) == (5, 0, True)


def test_a_drain_asked_twice_within_a_delivery_waits_for_its_rest() -> None:
    engine, outbox = open_outbox(1, window=1)
    outbox.send(bytes(1000))
    engine.frames()
    asked = flow(
        handle=0, credit=1, delivery_count=0, drain=True, next_incoming_id=1, incoming_window=0
    )
    assert engine.send(asked) == []
    assert len(transfers(engine.send(window_of(9, seen=1)))) == 2


def test_a_detached_link_drains_nothing() -> None:
    engine, outbox = open_outbox(5)
    engine.send(flow(handle=0, credit=5, delivery_count=0, drain=True))
    outbox.link.detach(None)
    engine.frames()
    outbox.link.drained()
    assert engine.bodies() == []


# -- the session window, and output that is full


def test_a_message_larger_than_the_window_goes_on_when_that_opens() -> None:
    engine, outbox = open_outbox(window=2)
    payload = bytes(number % 251 for number in range(3000))
    outbox.send(payload)
    pieces = transfers(engine.bodies())
    assert len(pieces) == 2
    assert not outbox.link.has_room()
    seen = 2
    for window in (0, 1, 3, 99):
        more = transfers(engine.send(window_of(window, seen=seen)))
        assert len(more) <= window
        seen += len(more)
        pieces += more
    assert joined(pieces) == payload
    assert outbox.link.has_room()


def test_a_message_under_way_comes_before_those_of_other_links() -> None:
    engine, outbox = open_outbox(window=1)
    first = flow(handle=1, credit=9, delivery_count=0, incoming_window=1)
    other = engine.attach_receiver(attach_receiver(name="b", handle=1), first)
    outbox.send(b"a" * 1000)
    assert not other.link.has_room()
    pieces = transfers(engine.bodies())
    pieces += transfers(engine.send(window_of(3, seen=1)))
    other.send(b"b" * 1000)
    pieces += transfers(engine.bodies())
    pieces += transfers(engine.send(window_of(9, seen=4)))
    assert [piece.delivery_id for piece in pieces] == [0, 0, 0, 1, 1, 1]
    assert joined(pieces[:3]) == b"a" * 1000
    assert joined(pieces[3:]) == b"b" * 1000


def test_messages_of_two_links_may_alternate() -> None:
    """They do if the second link sends before the first is told that the output has room again."""
    engine, outbox = open_outbox(window=1000, max_frame_size=65_536)
    first = flow(handle=1, credit=9, delivery_count=0)
    other = engine.attach_receiver(attach_receiver(name="b", handle=1), first)
    size = 2 * 1024 * 1024
    outbox.send(b"a" * size)
    data = b"".join(engine.connection.data_to_send(0))
    other.send(b"b" * size)
    pieces = transfers([each.body for each in frames_in(data)])
    while not (outbox.link.has_room() and other.link.has_room()):
        more = transfers(engine.bodies())
        assert more
        pieces += more
    pieces += transfers(engine.bodies())
    ids = [piece.delivery_id for piece in pieces]
    assert ids != sorted(ids, key=lambda number: number or 0)
    assert joined([piece for piece in pieces if piece.delivery_id == 0]) == b"a" * size
    assert joined([piece for piece in pieces if piece.delivery_id == 1]) == b"b" * size


def test_a_delivery_may_be_settled_before_its_last_frame() -> None:
    engine, outbox = open_outbox(window=1)
    outbox.send(b"a" * 1000)
    pieces = transfers(engine.bodies())
    engine.send(Disposition(first=0, state=ACCEPTED))
    assert outbox.accepted_ids == [0]
    pieces += transfers(engine.send(window_of(9, seen=1)))
    assert joined(pieces) == b"a" * 1000


@pytest.mark.parametrize("ours", [True, False], ids=["detached by us", "detached by the peer"])
def test_a_message_under_way_ends_with_its_link(ours: bool) -> None:
    engine, outbox = open_outbox(window=1)
    outbox.send(b"a" * 1000)
    engine.frames()
    if ours:
        outbox.link.detach(None)
    else:
        engine.send_bytes(frame(Detach(handle=0, closed=True)))
    (detach,) = engine.bodies()
    assert isinstance(detach, Detach)
    assert outbox.ends == [(not ours, [0])]
    assert engine.send(window_of(9, seen=1)) == []


def test_messages_wait_for_output_that_is_blocked() -> None:
    engine, outbox = open_outbox(100)
    engine.connection.output_blocked()
    assert not outbox.link.has_room()
    changes = len(outbox.credit_changes)
    engine.connection.output_drained()
    assert outbox.credit_changes[changes:] == [False]
    assert outbox.link.has_room()


def test_a_message_larger_than_the_output_goes_out_in_parts() -> None:
    engine, outbox = open_outbox(window=100_000, max_frame_size=65_536)
    payload = bytes(3 * 1024 * 1024)
    outbox.send(payload)
    pieces = transfers(engine.bodies())
    for _ in range(9):
        if pieces[-1].more:
            pieces += transfers(engine.bodies())
    assert joined(pieces) == payload
    assert len(outbox.credit_changes) > 1


@pytest.mark.parametrize("what", ["credit", "drain"])
def test_room_is_told_to_those_alone_who_have_credit(what: str) -> None:
    engine, outbox = open_outbox(1 if what == "drain" else 0, window=0)
    if what == "drain":
        asked = flow(handle=0, credit=1, delivery_count=0, drain=True, incoming_window=0)
        engine.send(asked)
    engine.send(attach_receiver(name="refused", handle=1))
    changes = len(outbox.credit_changes)
    engine.send(window_of(1, seen=0))
    assert outbox.credit_changes[changes:] == ([True] if what == "drain" else [])


def test_a_presettled_link_needs_no_dispositions() -> None:
    broker = Broker()
    broker.fill(count=3)
    client = broker.session()
    client.attach_receiver(credit=5, snd_settle_mode=SND_SETTLED)
    deliveries = client.expect_deliveries(b"0", b"1", b"2")
    assert all(each.settled for each in deliveries)
    client.send(Disposition(first=0, last=2, state=Released()))
    client.expect_nothing()
    assert (broker.queue().backlogs.waiting, broker.queue().state.acquired) == (0, 0)


def test_credit_may_come_with_the_attach_in_one_piece() -> None:
    broker = Broker()
    broker.fill()
    client = broker.connect()
    client.send(
        Begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10),
        attach_receiver(),
        flow(handle=0, credit=1, next_incoming_id=None),
    )
    kinds = [type(body).__name__ for body in client.bodies()]
    assert kinds == ["Begin", "Attach", "Transfer"]
