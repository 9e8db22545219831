"""The page `/metrics/detailed`: metrics of single queues and subscriptions."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from broker.http.metric_table import DETAILED
from broker.http.node_metrics import LIMIT, LIMIT_MAX
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.queues.queue import Queue
from tests.support.broker import Broker
from tests.support.http import Answer, ask, served, socket_to
from tests.support.metrics import Page, read_page
from tests.support.subscriptions import subscribe
from tests.unit.http.test_metric_text import HOSTILE

pytestmark = pytest.mark.requirement("OPS-05")


async def answer_of(broker: Broker, **arguments: object) -> Answer:
    async with served(broker.store, broker=broker) as url:
        return await ask(f"{url}/metrics/detailed?{urlencode(arguments)}")


async def page_of(broker: Broker, **arguments: object) -> Page:
    answer = await answer_of(broker, **arguments)
    assert (answer.status, answer.is_whole) == (200, True), answer.body
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return read_page(answer.body.decode())


def queues_in(page: Page, name: str = "queue_consumers") -> list[str]:
    return [labels["queue"] for labels in page.labels(name)]


async def test_a_queue_has_its_messages_their_age_and_its_consumers() -> None:
    broker = Broker()
    broker.fill("orders", 3)
    broker.fill("other")
    client = broker.session()
    client.attach_receiver("orders", credit=1)
    broker.advance(1500)
    page = await page_of(broker)
    assert page.value("queue_messages", queue="orders", state="ready") == 2
    assert page.value("queue_messages", queue="orders", state="unsettled") == 1
    assert page.value("queue_messages", queue="orders", state="scheduled") == 0
    assert page.value("queue_oldest_seconds", queue="orders") == 1.5
    assert page.value("queue_consumers", queue="orders") == 1
    assert page.value("queue_consumers", queue="other") == 0
    assert page.value("queue_received_total", queue="orders") == 3
    assert page.value("detailed_truncated", kind="queue") == 0
    assert set(page.types) >= {each.full_name().removesuffix("_total") for each in DETAILED}


@pytest.mark.parametrize("name", [case for case in HOSTILE if case.id != "nothing"])
async def test_a_hostile_name_of_a_queue_is_one_label(name: str) -> None:
    broker = Broker()
    # clients cannot create all of these: the page relies on no check of names
    context = broker.router.context
    queue = Queue(address=name, policy=AddressPolicy(), context=context)
    broker.router.queues[name] = queue
    page = await page_of(broker, family="queue_consumers")
    assert queues_in(page) == [name]
    assert len(page.types) == 2


async def test_a_name_that_a_client_may_choose() -> None:
    broker = Broker()
    name = 'a"} 1 \\ {b="'
    broker.fill(name)
    page = await page_of(broker)
    assert page.value("queue_messages", queue=name, state="ready") == 1


async def test_subscriptions_of_a_topic_and_name_are_one_sample_without_client_ids() -> None:
    broker = Broker()
    for number in range(3):
        client = broker.session(f"client-{number}")
        subscribe(client, "durable", "reports", address="news")
        subscribe(client, "", "mine", address="news", handle=1)
    broker.fill("news", 2, kind="topic")
    page = await page_of(broker)
    names = [labels["subscription"] for labels in page.labels("subscription_consumers")]
    assert names == ["reports", ""]
    reports = {"topic": "news", "subscription": "reports"}
    assert page.value("subscription_messages", state="ready", **reports) == 6
    assert page.value("subscription_consumers", **reports) == 3
    assert "client-" not in str(page.values)


async def test_temporary_queues_are_left_out() -> None:
    broker = Broker()
    broker.fill("q")
    broker.router.create_temporary("queue", 1)
    assert queues_in(await page_of(broker)) == ["q"]


MATCHES = [
    pytest.param("orders.#", ["orders", "orders.eu", "orders.eu.late"], id="any words"),
    pytest.param("orders.*", ["orders.eu"], id="one word"),
    pytest.param("bills", ["bills"], id="a name"),
    pytest.param("nothing", [], id="a name that is not there"),
    pytest.param("", ["orders", "orders.eu", "orders.eu.late", "bills"], id="everything"),
]


@pytest.mark.parametrize(("match", "expected"), MATCHES)
async def test_a_pattern_chooses_queues(match: str, expected: list[str]) -> None:
    broker = Broker()
    for name in ("orders", "orders.eu", "orders.eu.late", "bills"):
        broker.fill(name)
    assert queues_in(await page_of(broker, match=match)) == expected


async def test_the_page_says_how_many_nodes_a_limit_has_left_out() -> None:
    broker = Broker()
    for number in range(4):
        broker.fill(f"q{number}")
        client = broker.session(f"c{number}")
        subscribe(client, "durable", f"s{number}", address="news")
    page = await page_of(broker, limit=3)
    assert queues_in(page) == ["q0", "q1", "q2"]
    assert len(page.labels("subscription_consumers")) == 3
    assert page.value("detailed_truncated", kind="queue") == 1
    assert page.value("detailed_truncated", kind="subscription") == 1
    assert (LIMIT, LIMIT_MAX) == (1000, 100_000)


@pytest.mark.parametrize("family", [metric.name for metric in DETAILED])
async def test_a_family_alone(family: str) -> None:
    broker = Broker()
    broker.fill("q")
    client = broker.session()
    subscribe(client, "", "s", address="news")
    assert (await page_of(broker, family=family)).names() == {family, "detailed_truncated"}


async def test_two_families() -> None:
    broker = Broker()
    broker.fill("q")
    page = await page_of(broker, family="queue_consumers,queue_messages")
    assert page.names() == {"queue_consumers", "queue_messages", "detailed_truncated"}


WRONG = [
    pytest.param(
        {"family": "queue_consumers,x"}, "no family x; known are queue_messages", id="family"
    ),
    pytest.param({"limit": "0"}, "limit must be a number from 1 to 100000", id="no limit"),
    pytest.param({"limit": "100001"}, "limit must be a number from 1", id="a limit too high"),
    pytest.param({"match": "#.#.#"}, "a pattern has at most 2 times #", id="a costly pattern"),
    pytest.param({"match": ".".join("a" * 33)}, "at most 32 words", id="a long pattern"),
    pytest.param(
        {"queue": "q"}, "no argument queue; known are family, match, limit", id="argument"
    ),
]


@pytest.mark.parametrize(("arguments", "told"), WRONG)
async def test_a_wrong_argument_is_told(arguments: dict[str, str], told: str) -> None:
    answer = await answer_of(Broker(), **arguments)
    assert answer.status == 400
    assert told in answer.error()


async def test_it_counts_as_a_stream_and_a_client_that_leaves_ends_it() -> None:
    broker = Broker()
    for number in range(30):
        broker.fill(f"q{number}.{'x' * 200}")
    shared = broker.queues()
    broker.router.queues.update({f"{at}": shared[at % 30] for at in range(60_000)})
    async with served(broker.store, broker=broker, streams_max=1) as url:
        async with socket_to(url) as (reader, writer):
            path = f"/metrics/detailed?limit={LIMIT_MAX}"
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            second = await ask(f"{url}/metrics/detailed")
            assert (second.status, second.error()) == (
                503,
                "1 streams are under way; ask again later",
            )
        while (await ask(f"{url}/metrics/detailed?limit=1")).status == 503:
            pass
