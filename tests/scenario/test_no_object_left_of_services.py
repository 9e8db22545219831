"""Transactions, subscriptions, groups and the schedule leave no object behind.

Like `test_no_object_left.py`, for objects in queues and registries that accompany a connection, or
outlive it: all of them must be gone after their own end.
"""

import gc
from typing import Final

import pytest

from broker.amqp.descriptors import NO_LOCAL_FILTER, SELECTOR_FILTER
from broker.amqp.encode import BytesWriter, put_value
from broker.amqp.outcomes import ACCEPTED, Modified
from broker.amqp.performatives import SENDER
from broker.amqp.terminus import CONNECTION_CLOSE, SourceFilter
from broker.amqp.types import Described, ULong
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import Broker, Client
from tests.support.clock import WALL_START_MS
from tests.support.endings import ENDINGS, Ending
from tests.support.frames import Disposition, Transfer, message
from tests.support.memory import Quiet, engine_objects, growth, objects_per_message
from tests.support.routing import groups_of
from tests.support.selected import selectable
from tests.support.subscriptions import names, subscribe, unsubscribe
from tests.support.transactions import Controller

pytestmark = pytest.mark.usefixtures("heap")

DELAY_MS: Final = 100_000
RESULTS, TOPIC, LATER = 2, 7, 8
"""Handles of the sending links."""


def stated(key: str, code: int, value: object) -> SourceFilter:
    out = BytesWriter()
    put_value(out, Described(ULong(code), value))
    return SourceFilter(key=key, descriptor=code, value=value, encoded=out.getvalue())


SELECTOR: Final = stated("selector", SELECTOR_FILTER, "x = 1")
NO_LOCAL: Final = stated("no-local", NO_LOCAL_FILTER, [])


def new_broker() -> Broker:
    """Return a broker that delays a message by a second after a failed delivery."""
    return Broker(watcher=Quiet(), policy=AddressPolicy(redelivery_delay_ms=1000))


def be_engaged(broker: Broker) -> Client:
    """Return a client that uses every service of the broker and has finished none of it."""
    controller = Controller(broker, "engaged")
    client = controller.client
    client.attach_sender("results", name="results", handle=RESULTS)
    client.attach_sender("t", name="publisher", handle=TOPIC, kind="topic")
    client.attach_sender("later", name="later", handle=LATER)
    begin_subscriptions(broker, client)
    begin_groups(broker, client)
    begin_transactions(controller)
    publish(broker, controller)
    # a failed delivery, whose message waits for its next attempt
    client.send(Disposition(first=2, settled=True, state=Modified(delivery_failed=True)))
    return client


def begin_groups(broker: Broker, client: Client) -> None:
    """Begin two groups of five messages; one consumer owns both, another waits for one of them."""
    group_ids = [f"{name} of {broker.clock.now_ms()}" for name in "ab"]
    filler = broker.session("filler")
    filler.attach_sender()
    for number in range(10):
        payload = selectable(group_id=group_ids[number % 2]).encoded
        filler.send(Transfer(delivery_id=number, settled=True, payload=payload))
    filler.hang_up()
    client.attach_receiver("q")
    client.attach_receiver("q", name="second", handle=1)
    for handle in (0, 1):
        client.flow(handle=handle, credit=4, delivery_count=0)
    assert [client.expect(Transfer).handle for _ in range(4)] == [0] * 4


def begin_transactions(controller: Controller) -> None:
    """Begin an open transaction with sends and acknowledgements, an empty one, and two that end."""
    is_open = controller.declare()
    controller.post(is_open, handle=RESULTS)
    controller.post(is_open, handle=TOPIC)
    delayed: dict[str, object] = {"x-opt-delivery-time": WALL_START_MS + 10 * DELAY_MS}
    controller.post(is_open, handle=LATER, annotations=delayed)
    controller.retire(is_open, 0)
    controller.retire(is_open, 1, settled=False)
    committed, undone = controller.declare(), controller.declare()
    for txn_id in (committed, undone):
        controller.post(txn_id, handle=RESULTS)
    controller.commit(committed)
    controller.roll_back(undone)
    controller.declare()


def begin_subscriptions(broker: Broker, client: Client) -> None:
    """Subscribe: durable, shared, volatile, timed, exclusive; another client joins one of them."""
    subscribe(client, "durable", "lasting", handle=3, credit=1, filter=[SELECTOR])
    subscribe(client, "durable shared global", "common", handle=4, credit=1)
    subscribe(client, "shared", "passing", handle=5, credit=1)
    subscribe(client, "", "own", handle=6, filter=[NO_LOCAL])
    subscribe(client, "durable", "timed", handle=10, expiry_policy=CONNECTION_CLOSE, timeout=150)
    partner = broker.session("partner")
    subscribe(partner, "durable shared global", "common", credit=1)
    partner.hang_up()


def publish(broker: Broker, controller: Controller) -> None:
    """Publish to all of the subscriptions, now and delayed, and send a delayed message."""
    due = broker.clock.wall_ms() + DELAY_MS
    delayed = message(annotations={"x-opt-delivery-time": due})
    for payload in (selectable({"x": 1}).encoded, selectable({"x": 2}).encoded) * 2:
        controller.transfer(payload, TOPIC, settled=True)
    controller.transfer(delayed, TOPIC, settled=True)
    controller.transfer(delayed, LATER, settled=True)


def restore(broker: Broker) -> None:
    """Unsubscribe from what outlives its client, and consume all remaining messages."""
    broker.advance(2 * DELAY_MS)
    heir = broker.session("engaged")
    assert unsubscribe(heir, "", "lasting") is None
    assert unsubscribe(heir, "shared global", "common") is None
    for handle, address in enumerate(("q", "results", "later")):
        heir.attach_receiver(address, name=address, handle=handle)
    for handle in range(3):
        heir.flow(handle=handle, credit=50, delivery_count=0)
    taken = len([each for each in heir.bodies() if isinstance(each, Transfer)])
    heir.send(Disposition(first=0, last=taken - 1, settled=True, state=ACCEPTED))
    heir.hang_up()
    broker.advance(2 * DELAY_MS)


def left_in(broker: Broker) -> dict[str, int]:
    """Return the number of messages of every queue that is not empty."""
    return {
        queue.address: int(queue.contents())
        for queue in broker.router.queues.values()
        if queue.contents()
    }


def test_an_engaged_client_is_in_the_middle_of_everything() -> None:
    """Without this, the tests below would prove less than they claim."""
    broker = new_broker()
    client = be_engaged(broker)
    assert broker.watcher.errors == []
    assert names(broker) == ["common", "lasting", "passing", "timed"]
    assert broker.router.topics["t"].backlog() > 4
    queue = broker.queue()
    assert groups_of(queue).size() == 2
    assert (queue.state.acquired, queue.contents()) == (3, 10)
    assert left_in(broker) == {"q": 10, "results": 1, "later": 1}
    assert broker.queue("later").backlogs.waiting == 0
    dispositions = [each for each in client.bodies() if isinstance(each, Disposition)]
    assert all(each.role is not SENDER for each in dispositions)


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
def test_services_leave_nothing_behind(ending: Ending) -> None:
    broker = new_broker()

    def live_and_end() -> None:
        client = be_engaged(broker)
        ending(client)
        client.hang_up()
        restore(broker)

    left = growth(live_and_end)
    assert broker.watcher.errors == []
    assert names(broker) == []
    assert left_in(broker) == {}
    assert left < 1


@pytest.mark.incompatible_with_mypyc
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
def test_their_messages_go_without_the_collector(ending: Ending) -> None:
    broker = new_broker()
    found = list[int]()
    for _ in range(4):
        client = be_engaged(broker)
        assert objects_per_message() > 20
        ending(client)
        client.hang_up()
        restore(broker)
        found.append(objects_per_message())
    assert len(set(found[1:])) == 1


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
def test_services_hold_on_to_no_connection(ending: Ending) -> None:
    """Subscriptions, timeouts and owned groups outlive the connection without a reference to it."""
    broker = new_broker()
    client = be_engaged(broker)
    assert engine_objects() > 15
    ending(client)
    client.hang_up()
    del client
    gc.collect()
    assert engine_objects() == 0
    assert names(broker) == ["common", "lasting", "timed"]
