"""The coordinator: declare and discharge, and the ends of transactions without a discharge."""

import asyncio
from collections.abc import Callable

import pytest

from broker.amqp.limits import Limits
from broker.amqp.outcomes import ACCEPTED, TransactionalState
from broker.amqp.performatives import Attach, Detach, End, Flow
from broker.amqp.terminus import Coordinator, Source
from broker.journal import Journal
from broker.routing.addresses.policy import REJECT, AddressPolicy
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, Transfer, attach_sender, header_of, message
from tests.support.stores import GatedStore
from tests.support.transactions import (
    COORDINATOR_HANDLE,
    Controller,
    condition_of,
    declare,
    discharge,
)

pytestmark = pytest.mark.requirement("RCV-06")

ONLY_ACCEPTED = Source(outcomes=["amqp:accepted:list"])


def sending(broker: Broker | None = None, container_id: str = "client") -> Controller:
    """Return a controller with a sending link to `q` at handle 0."""
    controller = Controller(broker or Broker(), container_id)
    controller.client.attach_sender()
    return controller


def waiting(controller: Controller, address: str = "q") -> tuple[int, int]:
    queue = controller.client.broker.queue(address)
    return int(queue.backlogs.waiting), int(queue.state.acquired)


def receiving(broker: Broker, count: int) -> Controller:
    """Return a controller that holds `count` messages of `q`, by a link at handle 0."""
    broker.fill(count=count)
    controller = Controller(broker)
    controller.client.attach_receiver(credit=count)
    controller.client.expect_deliveries(*[b"%d" % number for number in range(count)])
    return controller


# -- the link


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param([], id="nothing"),
        pytest.param(["amqp:local-transactions"], id="local ones"),
        pytest.param(["amqp:distributed-transactions", "amqp:promotable-transactions"], id="more"),
    ],
)
def test_the_answer_says_what_is_offered(asked: list[str]) -> None:
    client = Broker().session()
    answer = client.attach(attach_sender(target=Coordinator(capabilities=asked)))
    assert isinstance(answer.target, Coordinator)
    assert answer.target.capabilities == [
        "amqp:local-transactions",
        "amqp:multi-txns-per-ssn",
        "amqp:multi-ssns-per-txn",
    ]
    assert client.expect_last(Flow).link_credit >= 2


def test_credit_is_given_again() -> None:
    controller = Controller(Broker())
    granted = 0
    for _ in range(300):
        controller.transfer(discharge(b"no such"), COORDINATOR_HANDLE)
        granted += sum(isinstance(body, Flow) for body in controller.client.bodies())
    assert granted >= 300 // 100
    controller.declare()


def test_ids_are_short_and_never_the_same() -> None:
    broker = Broker()
    one, other = Controller(broker, "one"), Controller(broker, "other")
    restarted = Controller(Broker())
    ids = [each.declare() for each in (one, other, one, restarted)]
    assert len(set(ids)) == 4
    assert all(0 < len(txn_id) <= 32 for txn_id in ids)


def test_discharge_and_the_next_declare_may_be_sent_together() -> None:
    controller = sending()
    txn_id = controller.declare()
    controller.post(txn_id, b"1")
    first = controller.sent
    controller.sent += 2
    controller.client.send(
        Transfer(handle=COORDINATOR_HANDLE, delivery_id=first, payload=discharge(txn_id)),
        Transfer(handle=COORDINATOR_HANDLE, delivery_id=first + 1, payload=declare()),
    )
    told = {controller.client.expect(Disposition).first: 1 for _ in range(2)}
    assert sorted(told) == [first, first + 1]
    assert waiting(controller) == (1, 0)


def test_several_transactions_are_open_at_once() -> None:
    controller = sending()
    one, other = controller.declare(), controller.declare()
    controller.post(one, b"one")
    controller.post(other, b"other")
    controller.client.transfer(controller.sent, b"plain")
    controller.sent += 1
    controller.client.expect(Disposition)
    controller.roll_back(one)
    controller.commit(other)
    consumer = controller.client.broker.session("consumer")
    consumer.attach_receiver(credit=5)
    consumer.expect_deliveries(b"plain", b"other")


def test_links_of_other_sessions_take_part() -> None:
    broker = Broker()
    broker.fill()
    controller = sending(broker)
    controller.client.begin(1)
    controller.client.send(attach_sender("other", handle=0, name="second"), channel=1)
    controller.client.expect(Attach)
    controller.client.expect(Flow)
    txn_id = controller.declare()
    state = TransactionalState(txn_id=txn_id)
    controller.client.send(Transfer(state=state, payload=message(b"2")), channel=1)
    told = controller.client.expect(Disposition).state
    assert isinstance(told, TransactionalState)
    assert broker.queue("other").backlogs.waiting == 0
    controller.commit(txn_id)
    assert broker.queue("other").backlogs.waiting == 1


def test_a_transaction_is_discharged_by_another_coordinator_of_the_connection() -> None:
    controller = sending()
    txn_id = controller.declare()
    controller.post(txn_id, b"1")
    controller.client.attach(attach_sender(name="second", handle=8, target=Coordinator()))
    controller.client.expect(Flow)
    number = controller.transfer(discharge(txn_id), 8)
    assert controller.answer(number) is ACCEPTED
    assert waiting(controller) == (1, 0)


def test_another_connection_knows_nothing_of_a_transaction() -> None:
    broker = Broker()
    controller, stranger = sending(broker), sending(broker, "stranger")
    txn_id = controller.declare()
    assert stranger.fail_to_commit(txn_id) == "amqp:transaction:unknown-id"
    stranger.transfer(message(b"x"), state=TransactionalState(txn_id=txn_id))
    stranger.client.expect_detach("amqp:transaction:unknown-id")
    controller.post(txn_id, b"1")
    controller.commit(txn_id)


# -- commands that are refused

NONSENSE = [
    pytest.param(message(b"hello"), "amqp:decode-error", id="a plain message"),
    pytest.param(b"", "amqp:decode-error", id="nothing"),
    pytest.param(bytes.fromhex("005377 005324 45"), "amqp:decode-error", id="accepted"),
    pytest.param(b"\xff", "amqp:decode-error", id="no message at all"),
]


@pytest.mark.parametrize(("payload", "condition"), NONSENSE)
def test_nonsense_ends_the_coordinator_and_its_transactions(payload: bytes, condition: str) -> None:
    controller = sending()
    controller.post(controller.declare(), b"1")
    controller.transfer(payload, COORDINATOR_HANDLE)
    controller.client.expect_detach(condition, handle=COORDINATOR_HANDLE)
    assert controller.client.broker.stats.rolled_back == 1


def test_a_command_is_not_settled_before() -> None:
    controller = sending()
    controller.transfer(declare(), COORDINATOR_HANDLE, settled=True)
    controller.client.expect_detach("amqp:invalid-field", handle=COORDINATOR_HANDLE)


def test_a_command_is_part_of_no_transaction() -> None:
    controller = sending()
    state = TransactionalState(txn_id=controller.declare())
    controller.transfer(declare(), COORDINATOR_HANDLE, state=state)
    controller.client.expect_detach("amqp:not-allowed", handle=COORDINATOR_HANDLE)


def test_a_distributed_transaction_is_refused() -> None:
    controller = sending()
    assert condition_of(controller.command(declare(b"global"))) == "amqp:not-implemented"
    controller.declare()


def test_an_unknown_transaction_cannot_be_discharged() -> None:
    controller = sending()
    assert controller.fail_to_commit(b"x") == "amqp:transaction:unknown-id"
    txn_id = controller.declare()
    controller.commit(txn_id)
    assert controller.fail_to_commit(txn_id) == "amqp:transaction:unknown-id"


def test_a_sender_that_takes_no_rejection_is_detached() -> None:
    controller = sending()
    controller.client.send(Detach(handle=COORDINATOR_HANDLE, closed=True))
    controller.client.expect(Detach)
    controller.coordinate(source=ONLY_ACCEPTED)
    controller.transfer(discharge(b"x"), COORDINATOR_HANDLE)
    controller.client.expect_detach("amqp:transaction:unknown-id", handle=COORDINATOR_HANDLE)


def test_a_discharge_in_the_middle_of_a_message_ends_the_coordinator() -> None:
    controller = sending()
    state = TransactionalState(txn_id=controller.declare())
    controller.transfer(message(b"1"), state=state, more=True)
    controller.transfer(discharge(state.txn_id), COORDINATOR_HANDLE)
    controller.client.expect_detach("amqp:transaction:rollback", handle=COORDINATOR_HANDLE)
    controller.client.send(Transfer(delivery_id=None, tag=None))
    controller.client.expect_detach("amqp:transaction:unknown-id")


# -- commits that fail


def test_a_commit_tells_its_first_cause_and_is_no_doubt_to_jms_clients() -> None:
    """JMS clients take a rejection with transaction:rollback for an outcome in doubt (10.2)."""
    broker = Broker(patterns=[("full", AddressPolicy(max_messages=1, full=REJECT, dead_letter=""))])
    broker.fill("full")
    controller = sending(broker)
    controller.client.attach(attach_sender("full", name="full", handle=1))
    controller.client.expect(Flow)
    txn_id = controller.declare()
    controller.post(txn_id, b"1")
    controller.post(txn_id, b"2", handle=1)
    assert controller.fail_to_commit(txn_id) == "amqp:resource-limit-exceeded"
    assert waiting(controller) == (0, 0)
    assert waiting(controller, "full") == (1, 0)
    controller.commit(controller.declare())


def test_a_rollback_of_what_cannot_be_committed_succeeds() -> None:
    broker = Broker(policy=AddressPolicy(auto_create=False))
    controller = Controller(broker)
    controller.client.attach_sender(None)
    txn_id = controller.declare()
    refused = controller.try_to_post(txn_id, to="nowhere")
    assert condition_of(refused) == "amqp:not-found"
    controller.roll_back(txn_id)


# -- ends without a discharge


def end_of_coordinator(client: Client) -> None:
    client.send(Detach(handle=COORDINATOR_HANDLE, closed=True))
    client.expect(Detach)


def end_of_session(client: Client) -> None:
    client.send(End())
    client.expect(End)


def end_of_connection(client: Client) -> None:
    client.hang_up()


def theft(client: Client) -> None:
    client.begin(1)
    client.send(attach_sender(name="coordinator", handle=3, target=Coordinator()), channel=1)
    client.expect_detach("amqp:link:stolen", handle=COORDINATOR_HANDLE)


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(end_of_coordinator, id="the coordinator's link"),
        pytest.param(end_of_session, id="its session"),
        pytest.param(end_of_connection, id="the connection"),
        pytest.param(theft, id="the link, by a thief"),
    ],
)
def test_a_transaction_ends_with(end: Callable[[Client], None]) -> None:
    broker = Broker()
    controller = receiving(broker, 2)
    controller.client.attach(attach_sender("other", name="other", handle=1))
    controller.client.expect(Flow)
    txn_id = controller.declare()
    controller.retire(txn_id, 0)
    controller.post(txn_id, b"never", handle=1)
    end(controller.client)
    assert broker.queue("other").backlogs.waiting == 0
    assert broker.stats.rolled_back == 1
    controller.client.hang_up()
    assert broker.queue().state.acquired == 0
    other = broker.session("other")
    other.attach_receiver(credit=5)
    transfers = other.expect_deliveries(b"0", b"1")
    counts = [len(header_of(each.payload)) for each in transfers]
    assert counts[0] >= 4, "the count of the first is told"


def test_acknowledgements_outlive_their_link() -> None:
    broker = Broker()
    controller = receiving(broker, 2)
    txn_id = controller.declare()
    controller.retire(txn_id, 0)
    controller.client.send(Detach(handle=0, closed=True))
    controller.client.expect_detach()
    assert waiting(controller) == (1, 1)
    controller.commit(txn_id)
    assert waiting(controller) == (1, 0)


def test_a_thief_does_not_get_what_is_acknowledged() -> None:
    broker = Broker()
    controller = receiving(broker, 2)
    txn_id = controller.declare()
    controller.retire(txn_id, 0)
    thief = broker.session("client")
    thief.attach_receiver(credit=5)
    thief.expect_deliveries(b"1")
    controller.client.expect_detach("amqp:link:stolen")
    controller.roll_back(txn_id)
    thief.expect_deliveries(b"0")


# -- time


def test_the_time_runs_from_the_first_operation() -> None:
    """`transaction_timeout_ms` begins there: idle JMS sessions have open transactions, too."""
    broker = Broker(limits=Limits(idle_time_out_ms=0))
    controller = sending(broker)
    idle, busy = controller.declare(), controller.declare()
    broker.advance(1_000_000)
    controller.client.expect_nothing()
    controller.post(busy, b"1")
    broker.advance(299_999)
    controller.post(busy, b"2")
    broker.advance(1)
    controller.client.expect_detach("amqp:transaction:rollback", handle=COORDINATOR_HANDLE)
    assert waiting(controller) == (0, 0)
    controller.client.send(Detach(handle=COORDINATOR_HANDLE, closed=True))
    controller.coordinate()
    assert controller.fail_to_commit(idle) == "amqp:transaction:unknown-id"
    txn_id = controller.declare()
    controller.post(txn_id, b"3")
    controller.commit(txn_id)
    assert waiting(controller) == (1, 0)


# -- durability


async def test_a_commit_is_told_once_it_is_durable() -> None:
    store = GatedStore()
    broker = Broker(store=store)
    broker.fill()
    committing = asyncio.get_running_loop().create_task(
        broker.journal.run(broker.container.run_round)
    )
    controller = sending(broker)
    await settle(broker.journal, store)
    txn_id = controller.declare()
    controller.post(txn_id, b"1", durable=True)
    controller.transfer(discharge(txn_id), COORDINATOR_HANDLE)
    controller.client.expect_nothing()
    await settle(broker.journal, store)
    assert controller.client.expect_last(Disposition).state is ACCEPTED
    broker.journal.close()
    await settle(broker.journal, store)
    await committing


async def settle(journal: Journal, store: GatedStore) -> None:
    """Let every commit that has begun end."""
    for _ in range(5):
        await asyncio.sleep(0)
        if store.commits:
            store.commits.clear()
            store.let_through()
    assert journal.batch.is_empty()
