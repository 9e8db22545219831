"""A connection that lasts accumulates no objects, whatever its traffic is."""

from collections.abc import Callable
from itertools import count
from typing import Final

import pytest

from broker.amqp.limits import Limits
from broker.amqp.outcomes import ACCEPTED, RELEASED, DeliveryState, Modified, Rejected
from broker.amqp.performatives import RCV_FIRST, RCV_SECOND, SENDER, Begin, Detach, End
from broker.amqp.terminus import COPY, Source, Target
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import Broker
from tests.support.frames import (
    Disposition,
    Transfer,
    attach_receiver,
    attach_sender,
    flow,
    message,
)
from tests.support.memory import Quiet, growth

pytestmark = pytest.mark.attack("R8")

BEGIN: Final = Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)


class Lasting:
    """A client whose connection lasts, with a sender's and a receiver's link."""

    def __init__(self) -> None:
        policy = AddressPolicy(max_delivery_count=1)
        self.broker = Broker(watcher=Quiet(), limits=Limits(idle_time_out_ms=0), policy=policy)
        self.client = self.broker.session(max_frame_size=512)
        # Python keeps small integers for ever: a leaked one would not be noticed
        self.ids = count(100_000)
        self.taken = 0
        self.client.attach_sender(handle=8, name="out", rcv_settle_mode=RCV_SECOND)
        self.client.attach_receiver()

    def send(self, **fields: object) -> int:
        """Send a message, or part of one; return its delivery-id."""
        number = next(self.ids)
        given = {"handle": 8, "payload": message(), **fields}
        self.client.send(Transfer(delivery_id=number, tag=b"%d" % number, **given))  # type: ignore[arg-type]
        return number

    def receive(self) -> int:
        """Receive the one ready message; return its delivery-id."""
        self.client.flow(handle=0, credit=1, delivery_count=self.taken)
        self.taken += 1
        return self.delivered()

    def delivered(self) -> int:
        """Return the delivery-id of the one message that has arrived."""
        transfers = [body for body in self.client.bodies() if isinstance(body, Transfer)]
        (number,) = {transfer.delivery_id for transfer in transfers}
        assert number is not None
        return number


def send_settled(lasting: Lasting) -> None:
    lasting.send(settled=True)
    take(lasting)


def take(lasting: Lasting, state: DeliveryState | None = ACCEPTED) -> None:
    """Receive a message, and give it the outcome `state`."""
    lasting.client.send(Disposition(first=lasting.receive(), state=state))


def send_and_settle_first(lasting: Lasting) -> None:
    number = lasting.send()
    lasting.client.send(Disposition(role=SENDER, first=number, state=None))
    take(lasting)


def send_as_an_exception(lasting: Lasting) -> None:
    """Send one delivery with another rcv-settle-mode than its link."""
    lasting.send(rcv_settle_mode=RCV_FIRST)
    take(lasting)


def send_settled_as_an_exception(lasting: Lasting) -> None:
    lasting.send(rcv_settle_mode=RCV_FIRST, settled=True)
    take(lasting)


def send_settled_late_as_an_exception(lasting: Lasting) -> None:
    number = lasting.send(rcv_settle_mode=RCV_FIRST, more=True)
    lasting.client.send(Transfer(handle=8, delivery_id=number, tag=None, settled=True))
    take(lasting)


def abort_an_exception(lasting: Lasting) -> None:
    number = lasting.send(rcv_settle_mode=RCV_FIRST, more=True)
    lasting.client.send(Transfer(handle=8, delivery_id=number, tag=None, aborted=True))


def abort(lasting: Lasting) -> None:
    number = lasting.send(more=True)
    lasting.client.send(Transfer(handle=8, delivery_id=number, tag=None, aborted=True))


def release_and_take(lasting: Lasting) -> None:
    """Release a message so often that the link has to wait before it gets the message again."""
    lasting.send(settled=True)
    for _ in range(10):
        take(lasting, RELEASED)
    lasting.client.flow(handle=0, credit=1, delivery_count=lasting.taken)
    lasting.taken += 1
    lasting.broker.advance(100)
    lasting.client.send(Disposition(first=lasting.delivered()))


def fail_too_often(lasting: Lasting) -> None:
    lasting.send(settled=True)
    take(lasting, Modified(delivery_failed=True))
    bury(lasting)


def reject(lasting: Lasting) -> None:
    lasting.send(settled=True)
    take(lasting, Rejected())
    bury(lasting)


def bury(lasting: Lasting) -> None:
    """Consume the dead letter, on a link of its own."""
    lasting.client.send(attach_receiver("DLQ", name="bury", handle=1))
    lasting.client.flow(handle=1, credit=1, delivery_count=0)
    lasting.client.send(Disposition(first=lasting.delivered()), Detach(handle=1))


def let_expire(lasting: Lasting) -> None:
    lasting.send(payload=message(ttl=1), settled=True)


def be_rejected(lasting: Lasting) -> None:
    """Send a message with an invalid section, which the broker rejects."""
    lasting.send(payload=b"\x00\x53\x99\x45", rcv_settle_mode=RCV_FIRST)


def attach_and_detach(lasting: Lasting) -> None:
    lasting.client.send(attach_sender(name="more", handle=1), attach_receiver(name="x", handle=2))
    lasting.client.send(Detach(handle=1, closed=True), Detach(handle=2))


def hold_and_detach(lasting: Lasting) -> None:
    """Detach while messages are unsettled, copied by a browser, and unfinished."""
    lasting.send(settled=True)
    sources = [Source(address="q", distribution_mode=COPY), Source(address="q")]
    for handle, source in enumerate(sources, start=1):
        lasting.client.send(attach_receiver(name=f"held-{handle}", handle=handle, source=source))
        lasting.client.flow(handle=handle, credit=1, delivery_count=0)
    lasting.client.send(attach_sender(name="pieces", handle=3, rcv_settle_mode=RCV_SECOND))
    lasting.send(handle=3)
    lasting.send(handle=3, more=True)
    for handle in (1, 2, 3):
        lasting.client.send(Detach(handle=handle))
    lasting.client.frames()
    take(lasting)
    take(lasting)


def hold_a_part_and_detach(lasting: Lasting) -> None:
    """Detach while the session's window holds back the rest of a message."""
    lasting.send(payload=message(b"x" * 2000), settled=True)
    lasting.client.send(attach_receiver(name="part", handle=1))
    lasting.client.flow(handle=1, credit=1, delivery_count=0, incoming_window=2)
    lasting.client.send(Detach(handle=1))
    lasting.client.frames()
    take(lasting)


def subscribe_and_leave(lasting: Lasting) -> None:
    lasting.client.send(attach_receiver("t", name="s", handle=1, kind="topic"))
    lasting.client.send(attach_sender("t", name="p", handle=2, kind="topic"))
    lasting.send(handle=2, settled=True)
    lasting.client.send(Detach(handle=1, closed=True), Detach(handle=2))


def make_temporary_nodes(lasting: Lasting) -> None:
    target = Target(dynamic=True)
    lasting.client.send(attach_sender(name="own", handle=1, target=target))
    lasting.send(handle=1, settled=True)
    source = Source(dynamic=True)
    lasting.client.send(attach_receiver(name="mine", handle=2, source=source))
    lasting.client.send(Detach(handle=1, closed=True), Detach(handle=2))


def begin_and_end(lasting: Lasting) -> None:
    lasting.client.send(BEGIN, channel=1)
    lasting.client.send(attach_receiver(name="x"), flow(handle=0, credit=5), channel=1)
    lasting.client.send(End(), channel=1)


def drain_and_ask(lasting: Lasting) -> None:
    lasting.client.flow(handle=0, credit=1, delivery_count=lasting.taken, drain=True, echo=True)
    lasting.client.flow(echo=True)
    lasting.taken += 1


TRAFFIC: Final = [
    send_settled,
    send_and_settle_first,
    send_as_an_exception,
    send_settled_as_an_exception,
    send_settled_late_as_an_exception,
    abort_an_exception,
    abort,
    release_and_take,
    fail_too_often,
    reject,
    let_expire,
    be_rejected,
    attach_and_detach,
    hold_and_detach,
    hold_a_part_and_detach,
    subscribe_and_leave,
    make_temporary_nodes,
    begin_and_end,
    drain_and_ask,
]


@pytest.mark.usefixtures("heap")
@pytest.mark.parametrize("act", TRAFFIC, ids=lambda act: act.__name__.replace("_", " "))
def test_what_is_over_is_gone(act: Callable[[Lasting], None]) -> None:
    lasting = Lasting()

    def go_on() -> None:
        for _ in range(2):
            act(lasting)
            lasting.broker.advance(10_000)
            lasting.client.frames()

    assert growth(go_on) < 1
    assert lasting.broker.watcher.errors == []
    queue = lasting.broker.queue()
    assert (queue.backlogs.waiting, queue.state.acquired) == (0, 0)
    assert lasting.broker.container.link_count() == 2
    assert not lasting.client.is_closed()
