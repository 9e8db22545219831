"""Why consumers get nothing, asked of a broker in which that has been brought about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.amqp.descriptors import SELECTOR_FILTER
from broker.amqp.encode import BytesWriter, put_value
from broker.amqp.outcomes import Modified
from broker.amqp.terminus import Source, SourceFilter
from broker.amqp.types import Described, ULong
from broker.routing.addresses.policy import AddressPolicy
from broker.security.identity import ADMIN
from tests.support.access import OWNER, RuledUsers
from tests.support.api import PASSWORD, ApiClient, api_of, problem
from tests.support.broker import Broker
from tests.support.frames import Disposition, attach_sender, message
from tests.support.selected import selectable

pytestmark = pytest.mark.requirement("OPS-19")


def site(policy: AddressPolicy | None = None) -> Broker:
    users = RuledUsers({"": {ADMIN}})
    users.passwords = {OWNER: PASSWORD}
    return Broker(authenticator=users, policy=policy)


def selecting(selector: str) -> Source:
    """Return the source of a consumer of `q` with a selector."""
    out = BytesWriter()
    put_value(out, Described(ULong(SELECTOR_FILTER), selector))
    one = SourceFilter(
        key="jms-selector", descriptor=SELECTOR_FILTER, value=selector, encoded=out.getvalue()
    )
    return Source(address="q", filter=[one])


async def told(api: ApiClient, **place: str) -> dict[str, object]:
    """Return the explanation of a queue or subscription."""
    answer = await api.ask("POST", "/explain/flow", place or {"queue": "q"})
    assert answer.status == 200, answer
    found = json.loads(answer.body)
    assert isinstance(found, dict)
    return found


def reasons(explanation: dict[str, object]) -> dict[str, str]:
    """Return the reason of each consumer, by its client."""
    consumers = explanation["consumers"]
    assert isinstance(consumers, list)
    return {each["container_id"]: each["reason"] for each in consumers}


def facts_of(explanation: dict[str, object], client: str) -> tuple[object, object, object]:
    """Return the selector of a client's consumer, and the group and consumer that it waits for."""
    consumers = explanation["consumers"]
    assert isinstance(consumers, list)
    found = next(each for each in consumers if each["container_id"] == client)
    return found["selector"], found["group"], found["served"]


async def test_nothing_there_and_nobody(tmp_path: Path) -> None:
    async with api_of(tmp_path, broker=site()) as api:
        await api.ask("PUT", "/queues/q")
        assert (await told(api))["reason"] == "empty"
        api.broker.fill()
        found = await told(api)
        assert (found["reason"], found["ready"]) == ("no-consumer", 1)
        assert "start one" in str(found["explanation"])


async def test_a_consumer_without_credit(tmp_path: Path) -> None:
    async with api_of(tmp_path, broker=site()) as api:
        api.broker.fill()
        client = api.broker.session("stock")
        client.attach_receiver("q")
        found = await told(api)
        assert (found["reason"], reasons(found)) == ("no-credit", {"stock": "no-credit"})
        client.flow(handle=0, credit=1, delivery_count=0)
        found = await told(api)
        assert (found["reason"], found["unsettled"]) == ("unsettled", 1)


async def test_a_selector_that_selects_nothing(tmp_path: Path) -> None:
    async with api_of(tmp_path, broker=site()) as api:
        api.broker.fill(count=3)
        client = api.broker.session("stock")
        client.attach_receiver(credit=10, source=selecting("colour = 'red'"))
        found = await told(api)
        assert (found["reason"], found["examined"]) == ("not-selected", 3)
        assert facts_of(found, "stock") == ("colour = 'red'", None, None)


async def test_a_consumer_that_stands_by(tmp_path: Path) -> None:
    async with api_of(tmp_path, broker=site(AddressPolicy(exclusive=True))) as api:
        first, second = api.broker.session("first"), api.broker.session("second")
        first.attach_receiver("q")
        second.attach_receiver("q", credit=10)
        api.broker.fill()
        found = await told(api)
        assert reasons(found) == {"first": "no-credit", "second": "stands-by"}
        assert found["reason"] == "different"
        assert facts_of(found, "second") == (None, None, "first/receiver")


async def test_a_consumer_that_stands_by_though_the_other_one_keeps_up(tmp_path: Path) -> None:
    async with api_of(tmp_path, broker=site(AddressPolicy(exclusive=True))) as api:
        for name in ("first", "second"):
            api.broker.session(name).attach_receiver("q", credit=10)
        found = await told(api)
        assert found["reason"] == "empty"
        assert reasons(found) == {"first": "empty", "second": "stands-by"}


async def test_a_group_of_another_consumer(tmp_path: Path) -> None:
    async with api_of(tmp_path, broker=site()) as api:
        owner, other = api.broker.session("owner"), api.broker.session("other")
        owner.attach_receiver("q", credit=1)
        sender = api.broker.session("shop")
        sender.attach(attach_sender("q"))
        for number in range(2):
            sender.transfer(number, payload=selectable(group_id="g").encoded, settled=True)
        other.attach_receiver("q", credit=10)
        found = await told(api)
        assert reasons(found) == {"owner": "no-credit", "other": "group-held"}
        assert facts_of(found, "other") == (None, "g", "owner/receiver")


async def test_a_message_that_is_not_due(tmp_path: Path) -> None:
    async with api_of(tmp_path, broker=site()) as api:
        sender = api.broker.session("shop")
        sender.attach(attach_sender("q"))
        sender.transfer(
            0, payload=message(annotations={"x-opt-delivery-time": 2**50}), settled=True
        )
        api.broker.session("stock").attach_receiver("q", credit=10)
        found = await told(api)
        assert (found["reason"], found["scheduled"]) == ("scheduled", 1)
        assert reasons(found) == {"stock": "scheduled"}


async def test_a_message_that_waits_for_its_redelivery_delay(tmp_path: Path) -> None:
    async with api_of(tmp_path, broker=site(AddressPolicy(redelivery_delay_ms=5000))) as api:
        api.broker.fill()
        client = api.broker.session("stock")
        client.attach_receiver("q", credit=10)
        client.send(Disposition(first=0, state=Modified(delivery_failed=True)))
        found = await told(api)
        assert (found["reason"], found["paused"], found["held"]) == ("paused", 1, 0)
        assert reasons(found) == {"stock": "paused"}


async def test_what_is_not_there(tmp_path: Path) -> None:
    async with api_of(tmp_path, broker=site()) as api:
        for place in ({"queue": "missing"}, {"subscription": "missing"}):
            answer = await api.ask("POST", "/explain/flow", place)
            assert problem(answer)["status"] == 404


async def test_a_topic_is_not_a_queue(tmp_path: Path) -> None:
    async with api_of(tmp_path, broker=site()) as api:
        await api.ask("PUT", "/topics/prices")
        answer = await api.ask("POST", "/explain/flow", {"queue": "prices"})
        assert problem(answer)["status"] == 404
        assert "no queue prices, only a topic" in str(problem(answer)["detail"])
