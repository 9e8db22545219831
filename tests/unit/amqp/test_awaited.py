"""Deliveries that a sender leaves unsettled: an end, or a range, costs what it has, or settles."""

import time

import pytest

from broker.amqp.performatives import RCV_SECOND, SENDER, Detach, End
from tests.support.engine import Engine
from tests.support.frames import Body, Disposition, attach_sender, frame


def send_all(engine: Engine, frames: list[Body]) -> None:
    """Send frames, a hundred of them in a turn of the event loop."""
    engine.send_bytes(b"".join(frame(body) for body in frames))
    while engine.rests:
        engine.rests -= 1
        engine.connection.go_on(0)


def leaving_unsettled(links: int, count: int) -> Engine:
    """Return an engine with `links` links, and `count` deliveries unsettled on the last of them."""
    engine = Engine()
    send_all(
        engine,
        [attach_sender(name=f"s{n}", handle=n, rcv_settle_mode=RCV_SECOND) for n in range(links)],
    )
    engine.frames()
    link = engine.inboxes[-1].link
    for number in range(count):
        link.session.awaited.put(number, link)
    return engine


@pytest.mark.attack("R3")
@pytest.mark.parametrize("how", ["end", "eof", "detach"])
def test_the_end_of_a_link_costs_what_it_holds(how: str) -> None:
    """4,095 links and 65,000 deliveries on the last: if each walked over them all, minutes."""
    links = 300
    engine = leaving_unsettled(links, 65_000)
    awaited = engine.inboxes[-1].link.session.awaited
    began_s = time.process_time()
    if how == "end":
        engine.send(End())
    elif how == "eof":
        engine.connection.receive_eof()
    else:
        send_all(engine, [Detach(handle=handle) for handle in range(links - 1)])
        assert awaited.has(64_999)
        engine.send(Detach(handle=links - 1))
    assert time.process_time() - began_s < 1
    assert [inbox.ends for inbox in engine.inboxes] == [[False]] * links
    assert not any(awaited.has(number) for number in range(65_000))


@pytest.mark.attack("C12")
@pytest.mark.parametrize(
    ("first", "last"),
    [
        pytest.param(0x7000_0000, 0x7000_0001, id="two ids"),
        pytest.param(65_000, 65_000 + 0x7FFF_FFFF, id="half of all ids"),
        pytest.param(1, 64_999, id="those that it settled before"),
    ],
)
def test_a_senders_range_costs_what_it_settles(first: int, last: int) -> None:
    engine = leaving_unsettled(1, 65_000)
    disposition = frame(Disposition(role=SENDER, first=first, last=last, state=None))
    engine.send_bytes(disposition)
    began_s = time.process_time()
    engine.send_bytes(disposition * 100)
    assert time.process_time() - began_s < 1
    assert engine.inboxes[0].link.session.awaited.has(0)
