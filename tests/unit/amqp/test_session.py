"""Sessions (core 2.5): begin and end, handles, the delivery-ids of incoming transfers.

Windows are in `test_session_flow.py`, echoes in `test_echoes.py`, and outcomes in
`test_session_dispositions.py`.
"""

from collections.abc import Callable
from typing import Final

import pytest

from broker.amqp.limits import Limits
from broker.amqp.performatives import Attach, Begin, Detach, End, Flow
from tests.support.broker import Broker, Client
from tests.support.frames import (
    Body,
    Disposition,
    Transfer,
    attach_receiver,
    attach_sender,
    flow,
    message,
)

LAST: Final = 0xFFFF_FFFF
HANDLE_MAX: Final = int(Limits().handle_max)
PAYLOAD: Final = message()


def begin(**fields: object) -> Begin:
    given = {"next_outgoing_id": 0, "incoming_window": 1000, "outgoing_window": 1000, **fields}
    return Begin(**given)  # type: ignore[arg-type]


def kinds(bodies: list[Body | None]) -> list[str]:
    return [type(body).__name__ for body in bodies]


# -- begin and end


def test_begin_is_answered_with_our_limits() -> None:
    client = Broker(limits=Limits(incoming_window=77, handle_max=9)).connect()
    client.send(begin(next_outgoing_id=1), channel=5)
    channel, answer = client.expect_frame(Begin)
    assert channel == 5
    assert answer.remote_channel == 5
    assert answer.incoming_window == 77
    assert answer.handle_max == 9
    assert answer.next_outgoing_id == 0
    client.expect_nothing()


def test_a_whole_session_may_be_sent_before_any_answer() -> None:
    client = Broker().connect()
    client.send(
        begin(),
        attach_sender(),
        Transfer(delivery_id=0, payload=PAYLOAD),
        Transfer(delivery_id=1, payload=PAYLOAD),
        Detach(handle=0, closed=True),
        End(),
    )
    bodies = client.bodies()
    assert kinds(bodies) == ["Begin", "Attach", "Flow", "Disposition", "Detach", "End"]
    assert bodies[3] == Disposition(first=0, last=1)
    assert client.broker.queue().backlogs.waiting == 2


def test_a_channel_is_free_as_soon_as_its_session_has_ended() -> None:
    client = Broker().session()
    client.send(End(), begin(), attach_receiver(), End(), begin())
    assert kinds(client.bodies()) == ["End", "Begin", "Attach", "End", "Begin"]


def test_what_was_accepted_is_told_before_the_answer_to_end() -> None:
    client = Broker().session()
    client.attach_sender()
    client.send(Transfer(payload=PAYLOAD), End())
    assert client.expect(Disposition) == Disposition(first=0, last=0)
    client.expect_end()


def test_what_was_accepted_is_told_before_our_own_end() -> None:
    client = Broker().session()
    client.attach_sender()
    client.send(Transfer(payload=PAYLOAD), flow(handle=9, credit=1, next_outgoing_id=1))
    assert client.expect(Disposition) == Disposition(first=0, last=0)
    client.expect_end("amqp:session:unattached-handle")


@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize(
    "leave",
    [
        pytest.param(lambda client: client.send(End()), id="the peer ends it"),
        pytest.param(lambda client: client.send(Detach(handle=7)), id="we end it"),
        pytest.param(lambda client: client.hang_up(), id="the connection is lost"),
    ],
)
def test_links_and_deliveries_end_with_their_session(leave: Callable[[Client], None]) -> None:
    broker = Broker()
    broker.fill(count=2)
    client = broker.session()
    client.attach_receiver(credit=10)
    client.expect_deliveries(b"0", b"1")
    client.attach_sender("other", handle=1)
    assert broker.container.link_count() == 2
    leave(client)
    assert broker.container.link_count() == 0
    queue = broker.queue()
    assert (queue.backlogs.waiting, queue.state.acquired, queue.consumers.attached) == (2, 0, [])
    other = broker.session("other")
    other.attach_receiver(credit=10)
    other.expect_deliveries(b"0", b"1")


def test_a_fault_ends_one_session_and_leaves_the_others() -> None:
    broker = Broker()
    client = broker.session()
    client.begin(1)
    client.send(attach_receiver(name="kept"), channel=1)
    client.expect(Attach)
    client.send(Detach(handle=0))
    client.expect_end("amqp:session:unattached-handle")
    broker.fill(count=1)
    client.flow(channel=1, handle=0, credit=1, delivery_count=0)
    assert client.expect_frame(Transfer)[0] == 1


def test_frames_that_cross_our_end_are_ignored() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender()
    client.send(
        Detach(handle=3),
        Transfer(payload=PAYLOAD),
        attach_receiver(handle=0),
        attach_receiver(handle=5000),
        flow(handle=8),
        Disposition(first=0, last=LAST),
        Detach(handle=0),
        End(),
    )
    client.expect_end("amqp:session:unattached-handle")
    assert broker.queue().backlogs.waiting == 0
    client.begin()
    client.expect_nothing()


def test_both_ends_may_end_a_session_at_once() -> None:
    client = Broker().session()
    client.send(Detach(handle=3), End())
    client.expect_end("amqp:session:unattached-handle")
    client.send(End())
    client.expect_close("amqp:not-allowed")


def test_a_session_that_we_have_ended_may_be_lost() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender()
    client.send(Detach(handle=3))
    client.expect_end("amqp:session:unattached-handle")
    client.hang_up()
    assert broker.container.peer_count() == 0
    assert broker.watcher.errors == []


# -- handles


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(Transfer(handle=1, payload=PAYLOAD), id="transfer"),
        pytest.param(flow(handle=1, credit=1), id="flow"),
        pytest.param(Detach(handle=1), id="detach"),
        pytest.param(
            Transfer(handle=HANDLE_MAX, payload=PAYLOAD), id="transfer on the largest handle"
        ),
        pytest.param(flow(handle=HANDLE_MAX), id="flow on the largest handle"),
        pytest.param(Detach(handle=HANDLE_MAX), id="detach of the largest handle"),
    ],
)
def test_an_unattached_handle_ends_the_session(body: Body) -> None:
    client = Broker().session()
    client.attach_sender()
    client.send(body)
    client.expect_end("amqp:session:unattached-handle")


def test_a_handle_is_unattached_again_after_its_detach() -> None:
    client = Broker().session()
    client.attach_sender()
    client.send(Detach(handle=0, closed=True), Transfer(payload=PAYLOAD))
    client.expect_detach()
    client.expect_end("amqp:session:unattached-handle")


@pytest.mark.parametrize("detached", [False, True], ids=["attached", "that we have detached"])
def test_a_handle_in_use_ends_the_session(detached: bool) -> None:
    client = Broker().session()
    client.attach_sender()
    if detached:
        client.send(Transfer(tag=None))
        client.expect_detach("amqp:invalid-field")
    client.send(attach_receiver(name="another"))
    client.expect_end("amqp:session:handle-in-use")


def test_a_handle_may_be_used_again_at_once() -> None:
    client = Broker().session()
    client.attach_sender()
    client.send(Detach(handle=0, closed=True), attach_receiver(), Detach(handle=0))
    client.expect_detach()
    client.expect(Attach)
    assert not client.expect_last(Detach).closed


def test_sessions_have_handles_of_their_own() -> None:
    client = Broker().session()
    client.begin(1)
    client.attach_sender()
    client.send(attach_sender("p", name="another"), channel=1)
    assert client.expect_frame(Attach)[0] == 1
    client.expect(Flow)
    client.send(Transfer(payload=PAYLOAD), channel=1)
    assert client.expect_frame(Disposition)[0] == 1
    assert client.broker.queue("p").backlogs.waiting == 1
    assert client.broker.queue("q").backlogs.waiting == 0


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(attach_receiver(handle=8), id="attach"),
        pytest.param(Transfer(handle=8, payload=PAYLOAD), id="transfer"),
        pytest.param(flow(handle=8, credit=1), id="flow"),
        pytest.param(Detach(handle=LAST), id="detach"),
    ],
)
def test_a_handle_above_ours_closes_the_connection(body: Body) -> None:
    client = Broker(limits=Limits(handle_max=7)).session()
    client.attach_sender(handle=7)
    client.send(body)
    client.expect_close("amqp:connection:framing-error")


def test_our_handles_stay_within_the_peers_handle_max() -> None:
    client = Broker().connect()
    client.begin(handle_max=1)
    assert client.attach_sender(handle=500).handle == 0
    assert client.attach_receiver(handle=0).handle == 1
    client.send(Transfer(handle=500, tag=None))  # the peer's handle; the answer has the broker's
    client.expect_detach("amqp:invalid-field", handle=0)
    client.send(Detach(handle=500, closed=True))
    assert client.attach_sender(handle=300, name="another").handle == 0
    client.send(attach_receiver(name="too many", handle=2))
    client.expect_end("amqp:resource-limit-exceeded")


# -- the ids of incoming deliveries


@pytest.mark.parametrize("first", [0, 1, 77, LAST], ids="from {:#x}".format)
def test_delivery_ids_go_up_by_one_over_all_links(first: int) -> None:
    client = Broker().session()
    client.attach_sender()
    client.attach_sender("p", name="another", handle=1)
    client.send(
        Transfer(delivery_id=first, payload=PAYLOAD),
        Transfer(delivery_id=(first + 1) & LAST, payload=PAYLOAD, handle=1),
        Transfer(delivery_id=(first + 2) & LAST, payload=PAYLOAD),
    )
    told = client.expect_last(Disposition)
    assert (told.first, told.last) == (first, (first + 2) & LAST)


@pytest.mark.parametrize(
    "number", [pytest.param(0, id="the same again"), 2, LAST, 0x8000_0001], ids=str
)
@pytest.mark.parametrize("handle", [0, 1], ids=["on its link", "on another link"])
def test_a_delivery_id_out_of_order_ends_the_session(number: int, handle: int) -> None:
    client = Broker().session()
    client.attach_sender()
    client.attach_sender("p", name="another", handle=1)
    client.transfer(0, settled=True)
    client.transfer(number, handle=handle)
    client.expect_end("amqp:invalid-field")


@pytest.mark.parametrize("number", [1, LAST])
def test_an_id_out_of_order_at_the_wrap_ends_the_session(number: int) -> None:
    client = Broker().session()
    client.attach_sender()
    client.transfer(LAST, settled=True)
    client.transfer(number)
    client.expect_end("amqp:invalid-field")


def test_a_delivery_that_is_ignored_has_an_id_all_the_same() -> None:
    """Transfers that were sent before the broker's detach was seen count (2.6.5), whether they
    begin a delivery or continue it.
    """
    client = Broker().session()
    client.attach_sender()
    client.attach_sender("p", name="another", handle=1)
    client.send(
        Transfer(delivery_id=0, tag=None),
        Transfer(delivery_id=1, more=True),
        Transfer(delivery_id=1, more=True),
        Transfer(delivery_id=None, tag=None, more=True),
        Transfer(delivery_id=2, handle=1, payload=PAYLOAD),
        Transfer(delivery_id=1),
        Transfer(delivery_id=3),
        Transfer(delivery_id=4, handle=1, payload=PAYLOAD),
    )
    client.expect_detach("amqp:invalid-field")
    assert client.expect(Disposition) == Disposition(first=2, last=2)
    assert client.expect_last(Disposition) == Disposition(first=4, last=4)


def test_the_first_delivery_of_a_session_may_be_ignored() -> None:
    client = Broker().session()
    client.send(attach_sender("$tmp/unknown"), Transfer(delivery_id=7, payload=PAYLOAD))
    client.expect_refusal("amqp:not-found")
    client.attach_sender(handle=1)
    client.transfer(8, handle=1)
    assert client.expect_last(Disposition) == Disposition(first=8, last=8)
