"""A connection leaves no object behind, whenever and however it ends.

Classes with an instance per message are acyclic: once compiled, they are invisible to the cyclic
collector, so an entry that a session forgot would stay for ever. Two measures: the number of memory
blocks over many repetitions, which holds for compiled code too; and, where the classes are
Python's, that every message is freed before the collector has run at all.
"""

import gc
from typing import Final

import pytest

from broker.amqp.frames import AMQP_HEADER, SASL_HEADER
from broker.amqp.outcomes import Modified
from broker.amqp.performatives import RCV_FIRST, RCV_SECOND, Begin
from broker.amqp.sasl_frames import SaslInit
from broker.amqp.terminus import COPY, Source, Target
from tests.support.broker import Broker, Client, Doorman
from tests.support.endings import ENDINGS, Ending
from tests.support.frames import (
    Disposition,
    Transfer,
    attach_receiver,
    attach_sender,
    frame,
    message,
    opening,
    sasl_frame,
)
from tests.support.memory import Quiet, engine_objects, growth, objects_per_message

pytestmark = [pytest.mark.usefixtures("heap"), pytest.mark.attack("R8")]

BEGIN: Final = Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)

# -- connections in the middle of everything


def busy_broker() -> Broker:
    """Return a broker with 20 messages in `q` and a large one, each of another publisher.

    A message keeps its publisher's data. Each arrived at a time of its own, as their later
    replacements will.
    """
    broker = Broker(watcher=Quiet())
    for _ in range(20):
        broker.fill()
        broker.advance(1)
    sender = broker.session("sender")
    sender.attach_sender("large")
    sender.transfer(0, b"x" * 100_000, settled=True)
    sender.hang_up()
    return broker


def be_busy(broker: Broker) -> Client:
    """Return a client with links of all kinds, each in the middle of its work."""
    client = broker.connect("busy", max_frame_size=4096)
    client.begin(incoming_window=20)
    begin_to_receive(client)
    begin_to_send(client)
    # browsed copies; a message of which the window admits a part; output that the client does not
    # read
    client.send(
        attach_receiver(name="copies", handle=6, source=Source(address="q", distribution_mode=COPY))
    )
    client.flow(handle=6, credit=3, delivery_count=0, incoming_window=20)
    client.send(attach_receiver("large", name="large", handle=7))
    client.flow(handle=7, credit=3, delivery_count=0, incoming_window=5, drain=True, echo=True)
    client.peer.connection.output_blocked()
    client.flow(handle=0, credit=9, delivery_count=5, incoming_window=20, drain=True)
    client.flow(echo=True)
    return client


def begin_to_receive(client: Client) -> None:
    """Receive five messages on handle 0, and settle one of them."""
    source = Source(address="q", default_outcome=Modified(delivery_failed=True))
    client.send(attach_receiver(source=source))
    client.flow(handle=0, credit=5, delivery_count=0, incoming_window=20)
    client.send(Disposition(first=1))


def begin_to_send(client: Client) -> None:
    """Send unsettled messages in pieces, to nodes of its own, and to itself as a subscriber."""
    client.send(attach_sender(name="pieces", handle=1))
    client.send(Transfer(handle=1, more=True, payload=message()[:9]))
    client.send(attach_sender("other", name="second", handle=2, rcv_settle_mode=RCV_SECOND))
    client.send(Transfer(handle=2, delivery_id=1, payload=message(durable=True)))
    client.send(Transfer(handle=2, delivery_id=2, rcv_settle_mode=RCV_FIRST, more=True))
    client.send(attach_sender(name="own", handle=3, target=Target(dynamic=True)))
    client.send(Transfer(handle=3, delivery_id=3, settled=True, payload=message()))
    client.send(attach_receiver(None, name="mine", handle=8, source=Source(dynamic=True)))
    client.send(attach_receiver("t", name="subscriber", handle=4, kind="topic"))
    client.send(attach_sender("t", name="publisher", handle=5, kind="topic"))
    client.send(Transfer(handle=5, delivery_id=4, settled=True, payload=message(ttl=60_000)))


def restore(broker: Broker) -> None:
    """Consume the sent messages, replace the consumed ones, and let every deadline pass."""
    cleaner = broker.session("cleaner")
    cleaner.attach_receiver("other", credit=9)
    cleaner.send(Disposition(first=0, last=9))
    cleaner.hang_up()
    broker.fill()
    broker.advance(200_000)


def test_a_busy_client_is_in_the_middle_of_everything() -> None:
    """Without this, the tests below would prove less than they claim."""
    broker = busy_broker()
    client = be_busy(broker)
    assert broker.watcher.errors == []
    assert broker.container.link_count() == 9
    assert (broker.queue().state.acquired, broker.queue("large").state.acquired) == (4, 1)
    assert broker.queue("other").backlogs.waiting == 1
    assert broker.router.topics["t"].backlog() == 1
    transfers = [body for body in client.bodies() if isinstance(body, Transfer)]
    assert [each.handle for each in transfers if not each.more] == [0, 0, 0, 0, 0, 6, 6, 6]
    assert len([each for each in transfers if each.more]) == 5


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
def test_a_connection_leaves_nothing_behind(ending: Ending) -> None:
    broker = busy_broker()

    def live_and_end() -> None:
        client = be_busy(broker)
        ending(client)
        client.hang_up()
        restore(broker)

    left = growth(live_and_end)
    assert broker.watcher.errors == []
    assert broker.container.link_count() == 0
    assert (broker.queue().backlogs.waiting, broker.queue().state.acquired) == (20, 0)
    assert left < 1


@pytest.mark.incompatible_with_mypyc
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
def test_messages_go_without_the_collector(ending: Ending) -> None:
    """Messages are freed although their connection, garbage in a cycle, is still in memory."""
    broker = busy_broker()
    found = list[int]()
    for _ in range(4):
        client = be_busy(broker)
        assert objects_per_message() > 40
        ending(client)
        client.hang_up()
        restore(broker)
        found.append(objects_per_message())
    # the first round leaves objects that later rounds replace, as for released messages
    assert len(set(found[1:])) == 1


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
def test_deadlines_hold_on_to_no_connection(ending: Ending) -> None:
    """Timers stay in the timer queue until they are due, but must not refer to the connection."""
    broker = busy_broker()
    client = be_busy(broker)
    assert engine_objects() > 15
    ending(client)
    client.hang_up()
    del client
    gc.collect()
    assert engine_objects() == 0


# -- connections that do not get far


def be_refused(client: Client) -> None:
    """Open while another connection claims the container-id for itself alone."""
    holder = client.broker.dial()
    holder.send_bytes(opening(desired_capabilities=["sole-connection-for-container"]))
    client.send_bytes(opening())
    holder.hang_up()


def log_in(client: Client, password: bytes = b"sesame") -> None:
    login = SaslInit(mechanism="PLAIN", initial_response=b"\0alice\0" + password)
    client.send_bytes(SASL_HEADER + sasl_frame(login) + opening())


def ask_too_late(client: Client) -> None:
    """Hang up before the login is answered."""
    log_in(client)
    client.hang_up()


EARLY_ENDS: Final[dict[str, Ending]] = {
    "nothing was sent": lambda _: None,
    "half of a header": lambda client: client.send_bytes(AMQP_HEADER[:4]),
    "no open": lambda client: client.send_bytes(AMQP_HEADER),
    "a strange header": lambda client: client.send_bytes(b"GET / HTTP/1.1"),
    "half of a frame": lambda client: client.send_bytes(opening()[:20]),
    "a frame too large": lambda client: client.send_bytes(AMQP_HEADER + b"\xff" * 8),
    "a refused open": be_refused,
    "a wrong password": lambda client: log_in(client, b"guess"),
    "an open too soon": log_in,
    "nobody waits for the login": ask_too_late,
    "a session only": lambda client: client.send_bytes(opening() + frame(BEGIN)),
    "an attach refused": lambda client: client.send_bytes(
        opening() + frame(BEGIN) + frame(attach_receiver("$tmp/none"))
    ),
    "an attach never answered": lambda client: client.send_bytes(
        opening() + frame(BEGIN) + frame(attach_receiver())[:-1]
    ),
}


@pytest.mark.parametrize("early_end", EARLY_ENDS.values(), ids=EARLY_ENDS.keys())
@pytest.mark.parametrize("lost", [True, False], ids=["then lost", "then silent"])
def test_a_connection_that_does_not_get_far_leaves_nothing_behind(
    early_end: Ending, lost: bool
) -> None:
    doorman = Doorman({"alice": "sesame"}, slow=True)
    broker = Broker(watcher=Quiet(), authenticator=doorman)

    def begin_and_end() -> None:
        client = broker.dial()
        early_end(client)
        while doorman.waiting:
            doorman.answer()
        if lost:
            client.hang_up()
        broker.advance(300_000)
        client.hang_up()

    assert growth(begin_and_end) < 1
    assert broker.watcher.errors == []
    assert broker.container.peer_count() == 0


@pytest.mark.incompatible_with_mypyc
@pytest.mark.parametrize("lost", [True, False], ids=["then lost", "then silent"])
@pytest.mark.parametrize("early_end", EARLY_ENDS.values(), ids=EARLY_ENDS.keys())
def test_a_connection_that_does_not_get_far_goes_without_the_collector(
    early_end: Ending, lost: bool
) -> None:
    """Else a flood of refused logins would leave it so much that it stops the event loop."""
    doorman = Doorman({"alice": "sesame"}, slow=True)
    broker = Broker(watcher=Quiet(), authenticator=doorman)
    gc.collect()
    gc.disable()
    try:
        client = broker.dial()
        early_end(client)
        while doorman.waiting:
            doorman.answer()
        if lost:
            client.hang_up()
        broker.advance(300_000)
        client.hang_up()
        del client
        assert engine_objects() == 0
    finally:
        gc.enable()
