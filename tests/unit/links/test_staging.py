"""Properties of an attach that name a stage, and the handling of messages on such a link."""

import pytest

from broker.amqp.errors import LinkFault
from broker.amqp.outcomes import Accepted, Rejected
from broker.amqp.terminus import Target
from broker.amqp.types import Char, Int, Integer, ULong
from broker.links.staging import ATTEMPT, BATCH, PARTITION, QUERY, QUERY_BYTES_MAX, task_of
from broker.routing.addresses.policy import REJECT, AddressPolicy
from storage.stages import STAGED
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, attach_sender, message
from tests.support.transactions import Controller, condition_of

TARGET = Target(address="q")


def properties(**changes: object) -> dict[str, object]:
    """Return the four stage properties with `changes`; None leaves a property out."""
    given: dict[str, object] = {QUERY: "orders", BATCH: 7, PARTITION: 3, ATTEMPT: 11}
    given |= {f"stage-{name}": value for name, value in changes.items()}
    return {name: value for name, value in given.items() if value is not None}


def staged(client: Client, address: str = "q", **changes: object) -> None:
    client.attach_sender(address, properties=properties(**changes))


@pytest.mark.requirement("PIP-12")
def test_a_task_is_read() -> None:
    task = task_of(properties(batch=ULong(7), partition=Int(3)), TARGET)
    assert task is not None
    assert (task.query, task.batch, task.partition, task.attempt) == ("orders", 7, 3, 11)
    assert task_of({"priority": 3}, TARGET) is None


BAD = [
    pytest.param({"query": 3}, "stage-query is a string", id="a query that is a number"),
    pytest.param({"query": ""}, "stage-query is a string", id="an empty query"),
    pytest.param({"query": "a\0b"}, "stage-query has no control", id="a query with NUL"),
    pytest.param(
        {"query": "√" * (QUERY_BYTES_MAX // 3) + "a"}, "stage-query has at most", id="a long query"
    ),
    pytest.param({"query": "\ud800"}, "stage-query is well-formed", id="half a character"),
    pytest.param({"batch": "7"}, "stage-batch is an integer", id="a batch that is a text"),
    pytest.param({"batch": True}, "stage-batch is an integer", id="a batch that is a flag"),
    pytest.param({"batch": -1}, "stage-batch is a number from 0", id="a batch below 0"),
    pytest.param({"batch": ULong(2**63)}, "stage-batch is a number from 0", id="a huge batch"),
    pytest.param({"partition": Char(97)}, "stage-partition is an integer", id="a character"),
    pytest.param({"partition": 2**31}, "stage-partition is a number", id="a huge partition"),
    pytest.param({"attempt": 1.5}, "stage-attempt is an integer", id="half an attempt"),
    *(
        pytest.param({name: None}, f"stage-{name}", id=f"no {name}")
        for name in ("query", "batch", "partition", "attempt")
    ),
]


@pytest.mark.requirement("PIP-12")
@pytest.mark.parametrize(("changes", "said"), BAD)
def test_a_bad_property_is_named(changes: dict[str, object], said: str) -> None:
    with pytest.raises(LinkFault, match=said) as refused:
        task_of(properties(**changes), TARGET)
    assert refused.value.condition == "amqp:invalid-field"


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(Target(address=None), id="the relay"),
        pytest.param(Target(dynamic=True), id="a dynamic node"),
        pytest.param(Target(address="$management"), id="the broker itself"),
    ],
)
def test_only_a_node_that_is_named_has_stages(target: Target) -> None:
    with pytest.raises(LinkFault, match="names a queue or topic"):
        task_of(properties(), target)


@pytest.mark.requirement("PIP-12")
def test_an_attach_with_a_bad_property_is_refused() -> None:
    broker = Broker()
    client = broker.session()
    client.send(attach_sender(properties=properties(attempt=-1)))
    client.expect_refusal("amqp:invalid-field")
    assert broker.router.staging_area.sinks == {}


@pytest.mark.requirement("PIP-12")
def test_the_answer_says_that_messages_are_staged() -> None:
    broker = Broker()
    client = broker.session()
    answer = client.attach_sender(properties=properties() | {"colour": "red"})
    assert answer.properties == properties()
    answer = client.attach_sender(name="other", handle=1, properties={"colour": "red"})
    assert answer.properties == {}


@pytest.mark.requirement("PIP-12")
def test_messages_are_accepted_and_seen_by_nobody() -> None:
    broker = Broker()
    consumer = broker.session("consumer")
    consumer.attach_receiver(credit=10)
    client = broker.session()
    staged(client)
    for number in range(3):
        client.transfer(number, payload=message(b"%d" % number))
    for body in client.bodies():
        assert isinstance(body, Disposition)
        assert isinstance(body.state, Accepted)
    consumer.expect_nothing()
    kept = broker.store.load_now([1, 2, 3])
    assert {each.queue for each in kept} == {STAGED}
    assert broker.queue().staged == 3
    sink = broker.router.staging_area.sinks["orders"]
    assert (sink.messages(), [each.task.partition for each in sink.stages.values()]) == (3, [3])


@pytest.mark.requirement("PIP-15")
def test_a_message_without_room_is_rejected() -> None:
    broker = Broker(policy=AddressPolicy(max_messages=1, full=REJECT))
    client = broker.session()
    staged(client)
    client.transfer(0)
    client.transfer(1)
    *_, last = client.bodies()
    assert isinstance(last, Disposition)
    assert isinstance(last.state, Rejected)
    assert condition_of(last.state) == "amqp:resource-limit-exceeded"
    assert broker.queue().staged == 1


def test_a_stage_takes_no_part_in_transactions() -> None:
    broker = Broker()
    controller = Controller(broker)
    staged(controller.client)
    outcome = controller.try_to_post(controller.declare())
    assert condition_of(outcome) == "amqp:not-implemented"
    assert broker.router.staging_area.sinks["orders"].messages() == 0


def test_a_link_that_is_attached_again_goes_on() -> None:
    broker = Broker()
    first = broker.session("a")
    staged(first)
    first.transfer(0)
    first.hang_up()
    again = broker.session("a")
    staged(again)
    again.transfer(0)
    again.hang_up()
    sink = broker.router.staging_area.sinks["orders"]
    assert (sink.messages(), len(sink.stages)) == (2, 1)
    assert broker.queue().producers == []


def test_a_temporary_node_has_no_stages() -> None:
    broker = Broker()
    client = broker.session()
    client.send(attach_sender("/queue/tmp/mine", properties=properties()))
    client.expect_refusal("amqp:invalid-field")


def test_the_kinds_of_integers_are_all_taken() -> None:
    for kind in (Int, ULong):
        value: Integer = kind(5)
        task = task_of(properties(attempt=value), TARGET)
        assert task is not None
        assert task.attempt == 5
