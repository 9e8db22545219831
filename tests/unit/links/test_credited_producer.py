"""The credit of a producer's link, which depends on the size of its messages if they are large."""

import pytest

from broker.amqp.performatives import Flow
from broker.links.credited_producer import BYTES_AHEAD, FIRST, LARGE_FROM, CreditedProducer
from tests.support.broker import Broker, Client
from tests.support.frames import attach_sender, message

CREDIT = 100

SIZES = {
    # name: size of each message in bytes, credit of its sender
    "small messages count by number alone": (1000, CREDIT),
    "as large as that may be": (LARGE_FROM - 100, CREDIT),
    "a hundred kilobytes": (100_000, BYTES_AHEAD // 100_100),
    "a megabyte": (1_000_000, BYTES_AHEAD // 1_000_100),
}


def credits_told(client: Client) -> list[int]:
    """Return the credit of each flow since the last call."""
    return [body.link_credit or 0 for body in client.bodies() if isinstance(body, Flow)]


@pytest.mark.parametrize(("size", "credit"), SIZES.values(), ids=SIZES.keys())
def test_credit_by_size(size: int, credit: int) -> None:
    broker = Broker(credit=CREDIT)
    sender = broker.session()
    sender.attach_sender()
    payload = message(bytes(size))
    for number in range(CREDIT // 2):
        sender.transfer(number, settled=True, payload=payload)
    told = credits_told(sender)
    assert told[-1] == credit


def test_a_sender_whose_messages_are_small_again_gets_all_its_credit() -> None:
    broker = Broker(credit=CREDIT)
    sender = broker.session()
    sender.attach_sender()
    for number in range(2 * CREDIT):
        size = 100_000 if number < CREDIT else 100
        sender.transfer(number, settled=True, payload=message(bytes(size)))
    told = credits_told(sender)
    assert min(told) == BYTES_AHEAD // 100_100
    assert told[-1] == CREDIT


def test_large_messages_take_credit_from_the_first_on() -> None:
    broker = Broker(credit=CREDIT)
    sender = broker.session()
    sender.attach_sender()
    sender.transfer(0, settled=True, payload=message(bytes(1_000_000)))
    assert credits_told(sender) == [BYTES_AHEAD // 1_000_100], "without waiting to be asked"


def test_a_producer_gets_the_rest_of_its_credit_once_its_first_messages_have_come() -> None:
    broker = Broker(credit=10 * FIRST)
    sender = broker.session()
    sender.attach(attach_sender())
    assert credits_told(sender) == [FIRST]
    for number in range(FIRST // 2):
        sender.transfer(number, settled=True)
    assert credits_told(sender) == [10 * FIRST]


def test_one_message_may_always_come() -> None:
    broker = Broker(credit=CREDIT)
    broker.session().attach_sender()
    (credit,) = broker.queue().producers
    assert isinstance(credit, CreditedProducer)
    credit.learn(2 * BYTES_AHEAD)
    assert credit.most() == 1
