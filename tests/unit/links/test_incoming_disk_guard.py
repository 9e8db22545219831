"""Credit while the disk is nearly full: none for producers, and all of it afterwards (P9)."""

from __future__ import annotations

import pytest

from broker.amqp.performatives import Flow
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.credit.disk_guard import LOOK_EVERY_MS, MEBIBYTE, DiskGuard
from tests.support.broker import Broker
from tests.support.frames import Disposition, Transfer, attach_receiver, attach_sender
from tests.unit.routing.credit.test_disk_guard import LEAST, Disk


class Setting:
    """A broker on a disk whose free space the test sets."""

    def __init__(self, policy: AddressPolicy | None = None) -> None:
        self.disk = Disk()
        self.broker = Broker(credit=4, policy=policy)
        router = self.broker.router
        guard = DiskGuard(router.context.routing, self.disk, LEAST)
        router.credit_policy.disk_guard = guard
        guard.begin()

    def has_free(self, size: int) -> None:
        """Set the free space of the disk in bytes, and let the broker look at it once."""
        self.disk.free = size
        self.broker.advance(LOOK_EVERY_MS)


POLICIES = [
    pytest.param(None, id="a queue without limits"),
    pytest.param(AddressPolicy(max_messages=100), id="a queue that blocks when it is full"),
]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_producer_gets_no_more_credit_until_there_is_room(policy: AddressPolicy | None) -> None:
    setting = Setting(policy)
    client = setting.broker.session()
    client.attach_sender()
    setting.has_free(0)
    for number in range(4):  # messages within the credit are accepted
        client.transfer(number)
    assert {type(body) for body in client.bodies()} == {Disposition}
    setting.has_free(LEAST)  # not enough for producers to go on
    client.expect_nothing()
    setting.has_free(2 * LEAST)
    assert client.expect_last(Flow).link_credit == 4
    client.transfer(4)
    client.expect_last(Disposition)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_producer_that_comes_meanwhile_waits_for_its_first_credit(
    policy: AddressPolicy | None,
) -> None:
    setting = Setting(policy)
    setting.has_free(0)
    client = setting.broker.session()
    client.attach(attach_sender())
    client.expect_nothing()
    setting.has_free(2 * LEAST)
    assert client.expect_last(Flow).link_credit == 4


def test_the_relay_waits_like_any_other() -> None:
    setting = Setting()
    setting.has_free(0)
    client = setting.broker.session()
    client.attach(attach_sender(None))
    client.expect_nothing()
    setting.has_free(2 * LEAST)
    assert client.expect_last(Flow).link_credit == 4


@pytest.mark.requirement("PIP-15")
def test_who_stages_waits_like_any_other() -> None:
    setting = Setting()
    setting.has_free(0)
    client = setting.broker.session()
    properties: dict[str, object] = {"stage-query": "orders", "stage-batch": 0}
    properties |= {"stage-partition": 0, "stage-attempt": 0}
    client.attach(attach_sender(properties=properties))
    client.expect_nothing()
    setting.has_free(2 * LEAST)
    assert client.expect_last(Flow).link_credit == 4


def test_consumers_go_on() -> None:
    setting = Setting()
    setting.broker.fill("q", 3)
    setting.has_free(0)
    client = setting.broker.session()
    client.attach_receiver(credit=10)
    client.expect(Transfer)
    client.send(Disposition(first=0, last=2))
    assert setting.broker.queue().state.bytes == 0


def test_an_operator_may_still_manage() -> None:
    setting = Setting()
    setting.has_free(0)
    client = setting.broker.session()
    client.attach(attach_sender("$management"))
    assert client.expect_last(Flow).link_credit


def test_one_that_has_gone_is_not_given_credit() -> None:
    setting = Setting()
    setting.has_free(0)
    client = setting.broker.session()
    client.attach(attach_sender())
    client.attach(attach_receiver(name="other", handle=1))
    client.hang_up()
    setting.has_free(2 * LEAST)
    client.expect_nothing()


def test_the_log_says_so() -> None:
    setting = Setting()
    setting.has_free(5 * MEBIBYTE)
    setting.has_free(2 * LEAST)
    low, high = setting.broker.watcher.events
    assert low.startswith("noticed the disk of the store has room for 5 MiB: producers wait")
    assert high == "noticed the store takes messages again: producers go on"
