"""Conditions that need an operator: which are found, for how long, and who is shown them."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.http.console.attention import (
    CERTIFICATE_DAYS,
    DAY_S,
    NAMED_MAX,
    OLD_MS,
    VALID_MS,
    Attention,
    Concern,
)
from broker.http.console.sampling import Sampler
from broker.management.connections import STALLED_MS
from broker.stats import ListenerStats
from tests.support.access import ADA
from tests.support.api import api_of
from tests.support.broker import Broker
from tests.support.console import Browser
from tests.support.subscriptions import leave, subscribe

pytestmark = pytest.mark.requirement("OPS-06")


async def concerns_of(broker: Broker) -> list[Concern]:
    return list(await Attention(broker.container, Sampler(broker.container)).concerns())


async def texts_of(broker: Broker) -> list[str]:
    return [each.text for each in await concerns_of(broker)]


async def test_a_broker_without_messages_needs_nothing() -> None:
    broker = Broker()
    broker.session().attach_receiver("q")
    assert await texts_of(broker) == []


async def test_queues_without_consumers_are_named_by_their_messages() -> None:
    broker = Broker()
    for number in range(NAMED_MAX + 2):
        broker.fill(f"q{number}", number + 1)
    broker.session().attach_receiver("q3")
    (found,) = await concerns_of(broker)
    assert found.text == "6 queues have ready messages and no consumer"
    assert found.names == ["q6", "q5", "q4", "q2", "q1"]
    assert (found.part, found.page, found.query) == ("queues", "/queues", "sort=-messages")


async def test_dead_letter_queues_are_told_apart() -> None:
    broker = Broker()
    broker.session().attach_receiver("orders")
    broker.fill(broker.router.queues["orders"].policy.dead_letter)
    assert await texts_of(broker) == ["1 dead-letter queues have messages"]


async def test_a_message_that_has_waited_long() -> None:
    broker = Broker()
    broker.fill("q")
    broker.advance(OLD_MS - 1)
    assert len(await texts_of(broker)) == 1
    broker.advance(1)
    found = (await concerns_of(broker))[-1]
    assert found.text == "the oldest ready message of a queue has waited for 1 h 0 min"
    assert found.names == ["q"]


async def test_durable_subscriptions_without_their_subscriber() -> None:
    broker = Broker()
    client = broker.session()
    subscribe(client, "durable", "news", address="t")
    broker.fill("t", kind="topic")
    assert await texts_of(broker) == []
    leave(client)
    (found,) = await concerns_of(broker)
    assert found.text == "1 subscriptions have ready messages and no consumer"
    assert found.part == "subscriptions"


async def test_links_and_clients_that_do_not_go_on() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_receiver("q", credit=1)
    broker.fill("q")
    for _ in range(3):  # within the idle time-out of its connection
        assert await texts_of(broker) == []
        broker.advance(STALLED_MS // 3)
        client.flow(handle=0, credit=0, delivery_count=1)
    assert await texts_of(broker) == ["1 links have not settled a delivery for a minute"]
    client.peer.output_blocked()
    assert "1 clients do not read what the broker sends" in await texts_of(broker)


async def test_a_certificate_that_ends_soon() -> None:
    broker = Broker()
    now_s = int(broker.clock.wall_ms()) // 1000
    for name, days in (("amqps", CERTIFICATE_DAYS - 1), ("wss", CERTIFICATE_DAYS)):
        listener = ListenerStats()
        listener.certificate_end_s = now_s + days * DAY_S
        broker.container.stats.listeners[name] = listener
    assert await texts_of(broker) == ["the certificate of the listener amqps ends in 29 days"]


async def test_damaged_messages_and_fresh_dead_letters() -> None:
    broker = Broker()
    sampler = Sampler(broker.container)
    sampler.sample()
    broker.container.stats.dead_lettered += 2
    broker.container.stats.quarantined += 1
    found = await Attention(broker.container, sampler).concerns()
    assert [(each.text, each.part) for each in found] == [
        ("2 messages became dead letters in the last ten minutes", "messages"),
        ("1 stored messages are damaged", "store"),
    ]


async def test_a_survey_serves_all_viewers_for_some_seconds() -> None:
    broker = Broker()
    attention = Attention(broker.container, Sampler(broker.container))
    assert await attention.concerns() == []
    broker.fill("q")
    broker.advance(VALID_MS - 1)
    assert await attention.concerns() == []
    broker.advance(1)
    assert len(await attention.concerns()) == 1


@pytest.mark.parametrize(
    ("rights", "is_shown"),
    [
        pytest.param(("view management:metrics", "view management:queues"), True, id="both"),
        pytest.param(("view management:metrics",), False, id="without the right on queues"),
    ],
)
async def test_a_concern_needs_the_right_of_its_part(
    rights: tuple[str, ...], is_shown: bool, tmp_path: Path
) -> None:
    async with api_of(tmp_path, *rights) as api:
        api.broker.fill("secret-name")
        browser = Browser(api)
        await browser.log_in(ADA)
        assert ("secret-name" in await browser.page("/")) is is_shown
