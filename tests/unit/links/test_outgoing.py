"""Receiving links: the answer to the attach, browsers, and the end of a link."""

import pytest

from broker.amqp.errors import RESOURCE_DELETED, STOLEN
from broker.amqp.outcomes import RELEASED
from broker.amqp.performatives import (
    RCV_SECOND,
    SND_MIXED,
    SND_SETTLED,
    SND_UNSETTLED,
    Detach,
    End,
)
from broker.amqp.terminus import COPY, LINK_DETACH, MOVE, Source
from tests.support.broker import Broker, Client
from tests.support.deliveries import browser, fields_of, publish
from tests.support.frames import (
    Disposition,
    Transfer,
    attach_receiver,
    message,
)

TEMPORARY = Source(dynamic=True, expiry_policy=LINK_DETACH, capabilities=["temporary-queue"])


# -- the attach


@pytest.mark.parametrize(
    ("source", "distribution_mode", "capabilities"),
    [
        pytest.param(Source(address="q"), MOVE, ["queue"], id="a queue"),
        pytest.param(Source(address="q", distribution_mode=COPY), COPY, ["queue"], id="a browser"),
        pytest.param(
            Source(address="t", distribution_mode=COPY, capabilities=["topic"]),
            MOVE,
            ["topic"],
            id="a topic is not browsed",
        ),
        pytest.param(TEMPORARY, MOVE, ["temporary-queue"], id="a temporary queue"),
    ],
)
def test_the_answer_has_the_real_source(
    source: Source, distribution_mode: str, capabilities: list[str]
) -> None:
    client = Broker().session()
    answer = client.attach(attach_receiver(source=source))
    assert answer.source is not None
    assert answer.source.address
    assert answer.source.dynamic is source.dynamic
    assert answer.source.distribution_mode == distribution_mode
    assert answer.source.capabilities == capabilities
    assert answer.initial_delivery_count == 0


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        pytest.param(SND_UNSETTLED, SND_UNSETTLED, id="unsettled"),
        pytest.param(SND_SETTLED, SND_SETTLED, id="settled"),
        pytest.param(SND_MIXED, SND_UNSETTLED, id="mixed: as we choose"),
    ],
)
def test_the_answer_says_whether_we_settle(asked: int, answered: int) -> None:
    client = Broker().session()
    assert client.attach(attach_receiver(snd_settle_mode=asked)).snd_settle_mode == answered


@pytest.mark.parametrize("address", ["$tmp/gone", "$sub/anything"])
def test_what_only_the_broker_makes_is_not_found(address: str) -> None:
    broker = Broker()
    client = broker.session()
    client.send(attach_receiver(address))
    client.expect_refusal("amqp:not-found")
    assert broker.container.link_count() == 0
    assert broker.router.find_named(address, "") is None


@pytest.mark.requirement("TMP-04")
@pytest.mark.parametrize("mode", [MOVE, COPY])
def test_a_temporary_queue_is_its_connections_own(mode: str) -> None:
    broker = Broker()
    address = temporary(broker.session("owner"))
    other = broker.session("other")
    other.send(attach_receiver(source=Source(address=address, distribution_mode=mode)))
    other.expect_refusal("amqp:resource-locked")


def temporary(owner: Client) -> str:
    """Create a temporary queue with a receiver of `owner`; return its address."""
    answer = owner.attach_receiver(None, name="temporary", source=TEMPORARY)
    assert answer.source is not None
    assert answer.source.address is not None
    return answer.source.address


# -- browsing


@pytest.mark.requirement("RCV-04")
@pytest.mark.parametrize("mode", [SND_UNSETTLED, SND_SETTLED], ids=["unsettled", "settled"])
def test_a_browser_sees_each_message_once_and_takes_none(mode: int) -> None:
    broker = Broker()
    broker.fill(count=3)
    client = broker.session()
    client.attach(browser(snd_settle_mode=mode))
    client.flow(handle=0, credit=2, delivery_count=0)
    one, _ = client.expect_deliveries(b"0", b"1")
    assert one.settled is (mode == SND_SETTLED)
    client.flow(handle=0, credit=9, delivery_count=2)
    client.expect_deliveries(b"2")
    publish(broker, message(b"late"))
    client.expect_deliveries(b"late")
    client.hang_up()
    assert (broker.queue().backlogs.waiting, broker.queue().state.acquired) == (4, 0)


@pytest.mark.requirement("RCV-04")
@pytest.mark.parametrize("settled", [True, False], ids=["settled", "settles second"])
@pytest.mark.parametrize("last", [0, 1], ids=["one", "in a range"])
def test_outcomes_of_a_browser_change_nothing(settled: bool, last: int) -> None:
    broker = Broker()
    broker.fill(count=2)
    client = broker.session()
    client.attach(browser(rcv_settle_mode=RCV_SECOND))
    client.flow(handle=0, credit=5, delivery_count=0)
    client.expect_deliveries(b"0", b"1")
    client.send(Disposition(first=0, last=last, settled=settled))
    client.send(Disposition(first=1, state=RELEASED, settled=settled))
    assert all(isinstance(body, Disposition) for body in client.bodies())
    client.send(Detach(handle=0))
    client.expect_last(Detach)
    assert (broker.queue().backlogs.waiting, broker.queue().state.acquired) == (2, 0)
    assert broker.stats.acknowledged == 0


@pytest.mark.requirement("RCV-04")
def test_a_browser_does_not_keep_a_consumer_from_anything() -> None:
    broker = Broker()
    broker.fill(count=2)
    client = broker.session()
    client.attach(browser())
    client.flow(handle=0, credit=5, delivery_count=0)
    client.expect_deliveries(b"0", b"1")
    consumer = broker.session("consumer")
    consumer.attach_receiver(credit=5)
    (first, _) = consumer.expect_deliveries(b"0", b"1")
    assert fields_of(first)[3] is True, "a browser acquires nothing"


# -- the end of a link


@pytest.mark.requirement("TMP-02", "TMP-03")
def test_a_temporary_queue_ends_with_the_link_that_made_it() -> None:
    broker = Broker()
    owner = broker.session("owner")
    address = temporary(owner)
    publish(broker, message(), address)
    second = owner.attach_receiver(address, name="second", handle=1)
    assert second.source is not None
    owner.flow(handle=1, credit=1, delivery_count=0)
    owner.expect(Transfer)
    sender = broker.session("sender")
    sender.attach_sender(address)
    owner.send(Detach(handle=0))
    gone, answer = owner.expect(Detach), owner.expect_last(Detach)
    assert (gone.handle, answer.handle) == (1, 0)
    assert gone.error is not None
    assert gone.error.condition == RESOURCE_DELETED
    told = sender.expect_last(Detach)
    assert told.error is not None
    assert told.error.condition == RESOURCE_DELETED
    assert broker.router.find_named(address, "") is None
    assert broker.container.link_count() == 0
    owner.send(Disposition(first=0, state=RELEASED), End())
    owner.expect_last(End)


@pytest.mark.requirement("SUB-37")
def test_a_stolen_link_gives_back_what_it_holds() -> None:
    broker = Broker()
    broker.fill(count=2)
    first = broker.session()
    first.attach_receiver(credit=2)
    first.expect_deliveries(b"0", b"1")
    second = broker.session()
    second.attach_receiver(credit=2)
    stolen = first.expect_last(Detach)
    assert stolen.error is not None
    assert stolen.error.condition == STOLEN
    second.expect_deliveries(b"0", b"1")
    first.send(Disposition(first=0, last=1))
    assert broker.queue().state.acquired == 2


@pytest.mark.requirement("SUB-32")
@pytest.mark.parametrize("closed", [True, False])
def test_a_detach_from_a_queue_is_answered_in_kind(closed: bool) -> None:
    broker = Broker()
    broker.fill()
    client = broker.session()
    client.attach_receiver()
    client.send(Detach(handle=0, closed=closed))
    assert client.expect_last(Detach).closed is closed
    assert broker.queue().backlogs.waiting == 1
