"""Queues and topics as an operator sees and changes them."""

import asyncio

import pytest

from broker.amqp.performatives import Detach
from broker.amqp.terminus import Target
from broker.amqp.types import Timestamp
from broker.management.nodes import PURGE_MAX, QUEUE_NUMBERS, record_of
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import Broker
from tests.support.frames import attach_receiver, message
from tests.support.management import Manager, Reply, request


@pytest.fixture
def broker() -> Broker:
    return Broker(patterns=[("small", AddressPolicy(max_messages=3, dead_letter="lost"))])


@pytest.fixture
def manager(broker: Broker) -> Manager:
    return Manager(broker)


def test_a_queue_is_created_with_the_settings_of_its_name(broker: Broker, manager: Manager) -> None:
    reply = manager.ask("CREATE", "queue", "small")
    assert reply.status == 201
    assert reply.map["max_messages"] == 3
    assert reply.map["dead_letter"] == "lost"
    assert "small" in broker.router.queues


def test_a_queue_and_a_topic_of_one_name_are_two(broker: Broker, manager: Manager) -> None:
    assert manager.ask("CREATE", "queue", "a").status == 201
    assert manager.ask("CREATE", "topic", "a").status == 201
    assert manager.ask("DELETE", "queue", "a").status == 204
    assert (list(broker.router.queues), list(broker.router.topics)) == ([], ["a"])


def test_a_class_of_addresses_may_be_written_either_way(manager: Manager) -> None:
    assert manager.ask("CREATE", "queue", "/durable/queue/a").map["name"] == "/queue/durable/a"
    assert manager.ask("CREATE", "queue", "/queue/durable/a").status == 409
    assert manager.ask("READ", "queue", "/durable/queue/a").status == 200
    assert manager.ask("CREATE", "topic", "/queue/durable/a").status == 400


def test_a_created_node_is_stored_and_a_deleted_one_is_not(
    broker: Broker, manager: Manager
) -> None:
    manager.ask("CREATE", "topic", "a")
    manager.ask("CREATE", "queue", "b")
    manager.ask("DELETE", "topic", "a")
    assert [node.address for node in asyncio.run(broker.store.nodes())] == ["b"]


def test_what_a_queue_holds(broker: Broker, manager: Manager) -> None:
    broker.fill(count=3)
    consumer = broker.session("consumer")
    consumer.attach_receiver(credit=1)
    producer = broker.session("producer")
    producer.attach_sender()
    told = manager.ask("READ", "queue", "q").map
    assert (told["messages"], told["acquired"], told["published"]) == (2, 1, 3)
    assert (told["consumers"], told["producers"], told["subscriptions"]) == (1, 1, 0)
    assert (told["temporary"], told["connection"]) == (False, None)
    assert told["bytes"] == broker.queue().state.bytes > 0


@pytest.mark.requirement("OPS-18")
def test_the_age_of_the_oldest_ready_message(broker: Broker, manager: Manager) -> None:
    broker.fill(count=1)
    broker.clock.advance(700)
    broker.fill(count=1)
    broker.clock.advance(50)
    assert manager.ask("READ", "queue", "q").map["oldest_ms"] == 750
    broker.session("consumer").attach_receiver(credit=1)
    assert manager.ask("READ", "queue", "q").map["oldest_ms"] == 50
    broker.session("another").attach_receiver(credit=1)
    assert manager.ask("READ", "queue", "q").map["oldest_ms"] == 0


def test_numbers_by_which_queues_are_sorted_are_those_of_their_records(broker: Broker) -> None:
    broker.fill("q", 3)
    broker.session("consumer").attach_receiver("q", credit=1)
    broker.session("producer").attach_sender("q")
    queue = broker.router.queues["q"]
    record = record_of(queue).as_map()
    found = {name: number(queue) for name, number in QUEUE_NUMBERS.items()}
    assert found == {name: record[name] for name in QUEUE_NUMBERS}
    assert (found["messages"], found["acquired"], found["producers"]) == (2, 1, 1)


def test_a_topic_tells_the_sum_of_its_subscriptions(broker: Broker, manager: Manager) -> None:
    for number in range(2):
        client = broker.session(f"subscriber {number}")
        client.attach_receiver("t", kind="topic")
    broker.fill("t", 3, kind="topic")
    told = manager.ask("READ", "topic", "t").map
    assert (told["messages"], told["subscriptions"], told["consumers"]) == (6, 2, 2)


def test_a_temporary_queue_names_the_connection_it_belongs_to(
    broker: Broker, manager: Manager
) -> None:
    client = broker.session("owner")
    client.attach_sender(None, target=Target(dynamic=True))
    (row,) = manager.query("queue").rows
    assert (row["temporary"], row["connection"]) == (True, str(client.peer.id))


def test_a_page_of_the_queues_of_a_pattern(manager: Manager) -> None:
    for name in ("b.2", "a", "b.1", "b.3"):
        manager.ask("CREATE", "queue", name)
    reply = manager.query("queue", offset=1, count=1, filter="b.*", attributeNames=["name"])
    assert reply.rows == [{"name": "b.2"}]
    assert reply.properties["count"] == 1


def test_links_to_a_deleted_queue_are_told(broker: Broker, manager: Manager) -> None:
    consumer = broker.session("consumer")
    consumer.attach_receiver(credit=1)
    manager.ask("DELETE", "queue", "q")
    detach = consumer.expect_last(Detach)
    assert detach.error is not None
    assert detach.error.condition == "amqp:resource-deleted"


def test_conditions_of_a_deletion(broker: Broker, manager: Manager) -> None:
    broker.fill(count=1)
    assert "holds 1 messages" in conflict(manager.ask("DELETE", "queue", "q", if_empty=True))
    manager.ask("PURGE", "queue", "q")
    producer = broker.session("producer")
    producer.attach_sender()
    assert "1 producers" in conflict(manager.ask("DELETE", "queue", "q", if_unused=True))
    producer.hang_up()
    assert manager.ask("DELETE", "queue", "q", if_unused=True, if_empty=True).status == 204


@pytest.mark.requirement("PIP-15")
def test_a_queue_with_something_staged_is_not_empty(broker: Broker, manager: Manager) -> None:
    sender = broker.session("task")
    properties: dict[str, object] = {"stage-query": "orders", "stage-batch": 0}
    sender.attach_sender(properties=properties | {"stage-partition": 0, "stage-attempt": 0})
    sender.transfer()
    told = manager.ask("READ", "queue", "q").map
    assert (told["messages"], told["staged"], told["producers"]) == (0, 1, 1)
    assert "holds 1 messages" in conflict(manager.ask("DELETE", "queue", "q", if_empty=True))
    assert manager.ask("DELETE", "queue", "q").status == 204
    assert broker.router.staging_area.sinks == {}


def conflict(reply: Reply) -> str:
    assert reply.status == 409
    return reply.description


def test_a_purge_takes_what_waits_and_leaves_what_is_acquired(
    broker: Broker, manager: Manager
) -> None:
    broker.fill(count=4)
    consumer = broker.session("consumer")
    consumer.attach_receiver(credit=1)
    assert manager.ask("PURGE", "queue", "q").map == {"purged": 3, "left": 0}
    queue = broker.queue()
    assert (queue.backlogs.waiting, queue.state.acquired) == (0, 1)
    assert queue.state.bytes > 0
    consumer.hang_up()
    assert queue.backlogs.waiting == 1


def test_a_purge_takes_what_is_scheduled(broker: Broker, manager: Manager) -> None:
    moment = Timestamp(int(broker.clock.wall_ms()) + 1000)
    later = message(annotations={"x-opt-delivery-time": moment})
    sender = broker.session("sender")
    sender.attach_sender()
    for number in range(2):
        sender.transfer(number, payload=later)
    told = manager.ask("READ", "queue", "q").map
    assert (told["messages"], told["held"]) == (0, 2)
    assert "holds 2 messages" in conflict(manager.ask("DELETE", "queue", "q", if_empty=True))
    assert manager.ask("PURGE", "queue", "q").map == {"purged": 2, "left": 0}
    broker.advance(1000)
    assert broker.queue().backlogs.waiting == 0


def test_a_purge_is_done_piece_by_piece(broker: Broker, manager: Manager) -> None:
    broker.fill(count=PURGE_MAX + 5)
    assert manager.ask("PURGE", "queue", "q").map == {"purged": PURGE_MAX, "left": 5}
    assert manager.ask("PURGE", "queue", "q").map == {"purged": 5, "left": 0}


def test_a_purge_of_a_topic_is_one_of_its_subscriptions(broker: Broker, manager: Manager) -> None:
    for number in range(2):
        broker.session(f"subscriber {number}").attach_receiver("t", kind="topic")
    broker.fill("t", 2, kind="topic")
    assert manager.ask("PURGE", "topic", "t").map == {"purged": 4, "left": 0}


def test_a_queue_goes_on_after_a_purge(broker: Broker, manager: Manager) -> None:
    broker.fill(count=3)
    manager.ask("PURGE", "queue", "q")
    broker.fill(count=1)
    consumer = broker.session("consumer")
    consumer.send(attach_receiver())
    consumer.flow(handle=0, credit=5, delivery_count=0)
    assert broker.queue().state.acquired == 1


REFUSED = [
    pytest.param("CREATE", "q", {}, 409, "there is a queue q", id="one that is there"),
    pytest.param("CREATE", None, {}, 400, "a name", id="without a name"),
    pytest.param("CREATE", "a\nb", {}, 400, "control characters", id="a name that cannot be"),
    pytest.param("CREATE", "$tmp/queue/x", {}, 404, "temporary", id="a temporary one by name"),
    pytest.param("CREATE", "$management", {}, 404, "no queue or topic", id="the broker itself"),
    pytest.param("CREATE", "x", {"max": 1}, 400, "no argument max", id="an unknown argument"),
    pytest.param("READ", "none", {}, 404, "no queue none", id="to show what is not there"),
    pytest.param("DELETE", "none", {}, 404, "no queue none", id="to delete what is not there"),
    pytest.param("PURGE", "none", {}, 404, "no queue none", id="to purge what is not there"),
    pytest.param("UPDATE", "q", {}, 501, "known are CREATE", id="an operation that is not there"),
]


@pytest.mark.parametrize(("operation", "name", "arguments", "status", "told"), REFUSED)
def test_what_is_refused(
    manager: Manager,
    operation: str,
    name: str | None,
    arguments: dict[str, object],
    status: int,
    told: str,
) -> None:
    manager.ask("CREATE", "queue", "q")
    reply = manager.ask_raw(request(operation, "queue", name, body=arguments))
    assert reply.status == status
    assert told in reply.description
