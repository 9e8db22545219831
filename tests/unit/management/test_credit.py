"""Why producers get no credit, asked of a broker in which that has been brought about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.routing.addresses.policy import BLOCK, AddressPolicy
from broker.routing.credit.blocked_producers import BlockedProducers
from broker.routing.credit.disk_guard import DiskGuard
from broker.routing.credit.store_backpressure import UNWRITTEN_MAX
from broker.security.identity import ADMIN
from tests.support.access import OWNER, RuledUsers
from tests.support.api import PASSWORD, ApiClient, api_of, problem
from tests.support.broker import Broker
from tests.support.frames import attach_sender, message
from tests.unit.routing.credit.test_disk_guard import LEAST, Disk

pytestmark = pytest.mark.requirement("OPS-21")


def site(policy: AddressPolicy | None = None, credit: int = 500) -> Broker:
    users = RuledUsers({"": {ADMIN}})
    users.passwords = {OWNER: PASSWORD}
    return Broker(authenticator=users, policy=policy, credit=credit)


async def told(api: ApiClient, address: str = "q", **more: str) -> dict[str, object]:
    answer = await api.ask("POST", "/explain/credit", {"address": address, **more})
    assert answer.status == 200, answer
    found = json.loads(answer.body)
    assert isinstance(found, dict)
    return found


def reasons(explanation: dict[str, object]) -> dict[str, str]:
    """Return the reason of each producer, by its client."""
    producers = explanation["producers"]
    assert isinstance(producers, list)
    return {each["container_id"]: each["reason"] for each in producers}


async def test_a_node_without_a_producer(tmp_path: Path) -> None:
    async with api_of(tmp_path, broker=site()) as api:
        await api.ask("PUT", "/queues/q")
        found = await told(api)
        assert (found["reason"], found["producers"], found["room"]) == ("no-producer", [], None)
        assert "start one" in str(found["explanation"])


async def test_a_producer_with_credit(tmp_path: Path) -> None:
    async with api_of(tmp_path, broker=site()) as api:
        api.broker.session("shop").attach(attach_sender("q"))
        found = await told(api)
        assert (found["reason"], reasons(found)) == ("has-credit", {"shop": "has-credit"})
        producers = found["producers"]
        assert isinstance(producers, list)
        assert [(each["link"], each["credit"]) for each in producers] == [("sender", 100)]


async def test_a_full_queue_and_producers_that_wait_for_room(tmp_path: Path) -> None:
    """The first producer is promised the room that is left, until its messages fill the queue."""
    limited = AddressPolicy(max_messages=1, full=BLOCK)
    async with api_of(tmp_path, broker=site(limited)) as api:
        first, second = api.broker.session("first"), api.broker.session("second")
        for each in (first, second):
            each.attach(attach_sender("q"))
        found = await told(api)
        assert reasons(found) == {"first": "has-credit", "second": "promised"}
        assert (found["room"], found["promised"]) == (0, 1)
        first.transfer(0, payload=message(), settled=True)
        found = await told(api)
        assert (found["reason"], found["room"], found["promised"]) == ("full", 0, 0)


async def test_a_topic_is_as_full_as_its_fullest_subscription(tmp_path: Path) -> None:
    limited = AddressPolicy(max_messages=1, full=BLOCK)
    async with api_of(tmp_path, broker=site(limited)) as api:
        api.broker.session("stock").attach_receiver("t", kind="topic")
        shop = api.broker.session("shop")
        shop.attach(attach_sender("t", kind="topic"))
        shop.transfer(0, payload=message(), settled=True)
        found = await told(api, "t", kind="topic")
        assert (found["kind"], found["reason"]) == ("topic", "full")


async def test_what_the_whole_broker_is_short_of(tmp_path: Path) -> None:
    async with api_of(tmp_path, broker=site(credit=2)) as api:
        policy = api.broker.router.credit_policy
        shop = api.broker.session("shop")
        shop.attach(attach_sender("q"))
        policy.draining = BlockedProducers()
        for number in range(2):
            shop.transfer(number, payload=message(), settled=True)
        assert (await told(api))["reason"] == "draining"
        policy.draining = None
        policy.store_backpressure.look(UNWRITTEN_MAX + 1)
        assert (await told(api))["reason"] == "store-behind"
        policy.disk_guard = guard = DiskGuard(api.broker.router.context.routing, Disk(), LEAST)
        guard.is_short = True
        assert reasons(await told(api)) == {"shop": "disk"}


async def test_what_is_not_there(tmp_path: Path) -> None:
    async with api_of(tmp_path, broker=site()) as api:
        answer = await api.ask("POST", "/explain/credit", {"address": "missing"})
        assert problem(answer)["status"] == 404
        wrong = await api.ask("POST", "/explain/credit", {"address": "q", "kind": "river"})
        assert problem(wrong)["status"] == 400
