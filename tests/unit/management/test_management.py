"""The management node: who may ask, how requests arrive, where responses go, failing requests."""

import random

import pytest

from broker.amqp.outcomes import Rejected
from broker.amqp.performatives import Flow
from broker.amqp.terminus import Source, Target
from tests.support.broker import Broker, Doorman
from tests.support.frames import Disposition, Transfer, attach_receiver, attach_sender, message
from tests.support.management import MANAGEMENT, Manager, read_reply, request

SELF = "org.amqp.management"


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def manager(broker: Broker) -> Manager:
    return Manager(broker)


# -- who may ask


ANYTHING = [
    ("READ", "queue"),
    ("CREATE", "queue"),
    ("DELETE", "queue"),
    ("PURGE", "queue"),
    ("DELETE", "connection"),
    ("QUERY", SELF),
    ("GET-TYPES", SELF),
    ("no such", "thing"),
]


@pytest.mark.attack("Z9")
@pytest.mark.parametrize(("operation", "kind"), ANYTHING)
def test_others_than_administrators_may_do_nothing_and_learn_nothing(
    operation: str, kind: str
) -> None:
    broker = Broker(authenticator=Doorman(administrators=["alice"]))
    broker.fill(count=1)
    bob = Manager(broker, user="bob")
    reply = bob.ask(operation, kind, "q")
    assert (reply.status, reply.body) == (403, {})
    assert reply.description.startswith("not allowed to ")
    assert broker.queue().backlogs.waiting == 1
    assert Manager(broker, "other", user="alice").ask("READ", "queue", "q").status == 200


@pytest.mark.attack("Z2")
@pytest.mark.requirement("TMP-04")
@pytest.mark.parametrize("operation", ["DELETE", "PURGE"])
def test_a_temporary_queue_of_others_is_for_administrators(operation: str) -> None:
    broker = Broker(authenticator=Doorman(administrators=["alice"]))
    owner = broker.session("owner")
    answer = owner.attach_sender(None, target=Target(dynamic=True))
    assert isinstance(answer.target, Target)
    assert answer.target.address is not None
    owner.transfer(0)
    queue = broker.queue(answer.target.address)
    bob, alice = Manager(broker, "b", user="bob"), Manager(broker, "a", user="alice")
    assert bob.ask(operation, "queue", queue.address).status == 403
    assert queue.backlogs.waiting == 1
    assert alice.ask(operation, "queue", queue.address).status in (200, 204)
    assert queue.backlogs.waiting == 0


def test_a_role_that_is_taken_away_is_gone_once_rights_were_reviewed() -> None:
    doorman = Doorman(administrators=["alice"])
    broker = Broker(authenticator=doorman)
    alice = Manager(broker, user="alice")
    assert alice.query("queue").status == 200
    doorman.administrators = ()
    broker.container.rights_review.begin()
    broker.advance(0)
    assert alice.query("queue").status == 403


# -- where responses go


def test_a_response_on_the_link_whose_target_the_request_names(manager: Manager) -> None:
    reply = manager.ask_raw(request("READ", "queue", "none", correlation_id="c"))
    assert (reply.status, reply.correlation_id, reply.to) == (404, "c", "here")


def test_a_response_in_a_queue_of_the_clients(broker: Broker, manager: Manager) -> None:
    client = broker.session("client")
    answer = client.attach(attach_receiver(source=Source(dynamic=True)))
    assert answer.source is not None
    assert answer.source.address is not None
    client.flow(handle=0, credit=5, delivery_count=0)
    manager.send(request("GET-TYPES", SELF, reply_to=answer.source.address, message_id="m"))
    reply = read_reply(client.expect_last(Transfer).payload)
    assert (reply.status, reply.correlation_id) == (200, "m")


def test_a_request_by_the_relay(broker: Broker) -> None:
    client = broker.session("client")
    client.attach_sender(None)
    client.attach(attach_receiver(MANAGEMENT, handle=1, target=Target(address="mine")))
    client.flow(handle=1, credit=5, delivery_count=0)
    payload = request("GET-TYPES", SELF, reply_to="mine", to=MANAGEMENT)
    client.send(Transfer(payload=payload))
    found = [body for body in client.bodies() if isinstance(body, Transfer)]
    assert read_reply(found[0].payload).status == 200
    assert MANAGEMENT not in broker.router.queues


def test_a_link_without_a_target_is_named_by_the_node(broker: Broker) -> None:
    client = broker.session("client")
    client.attach_sender(MANAGEMENT)
    client.attach(attach_receiver(MANAGEMENT, handle=1, target=Target()))
    client.flow(handle=1, credit=5, delivery_count=0)
    client.send(Transfer(payload=request("GET-TYPES", SELF, reply_to=MANAGEMENT)))
    assert any(isinstance(body, Transfer) for body in client.bodies())


def test_links_of_others_are_not_found(broker: Broker, manager: Manager) -> None:
    client = broker.session("client")
    client.attach_sender(MANAGEMENT)
    client.send(Transfer(payload=request("GET-TYPES", SELF)))
    answer = client.expect_last(Disposition)
    assert isinstance(answer.state, Rejected)
    manager.client.expect_nothing()


@pytest.mark.attack("R9")
def test_responses_that_nobody_takes_stop_requests(broker: Broker) -> None:
    client = broker.session("client")
    client.attach_sender(MANAGEMENT)
    client.attach(attach_receiver(MANAGEMENT, handle=1, target=Target(address="here")))
    states = []
    for number in range(102):
        payload = request("GET-TYPES", SELF)
        client.send(Transfer(delivery_id=number, tag=b"%d" % number, payload=payload))
        states += [each.state for each in client.bodies() if isinstance(each, Disposition)]
    refused = [state for state in states if isinstance(state, Rejected)]
    assert len(refused) == 2
    assert refused[0].error is not None
    assert refused[0].error.condition == "amqp:resource-limit-exceeded"


def test_responses_end_with_the_link_they_wait_for(broker: Broker, manager: Manager) -> None:
    peer = manager.client.peer
    assert len(peer.replies) == 1
    manager.client.hang_up()
    assert not peer.replies
    assert broker.container.link_count() == 0


# -- requests that are not carried out


UNANSWERABLE = [
    pytest.param(request("READ", "queue", "q", reply_to=None), "amqp:invalid-field", id="no reply"),
    pytest.param(
        request("CREATE", "queue", "made", reply_to="none"), "amqp:not-found", id="no such reply-to"
    ),
    pytest.param(message(b"x"), "amqp:invalid-field", id="no request at all"),
]


@pytest.mark.parametrize(("payload", "condition"), UNANSWERABLE)
def test_a_request_that_cannot_be_answered_is_rejected_and_not_done(
    broker: Broker, manager: Manager, payload: bytes, condition: str
) -> None:
    manager.send(payload)
    answer = manager.client.expect_last(Disposition)
    assert isinstance(answer.state, Rejected)
    assert answer.state.error is not None
    assert answer.state.error.condition == condition
    assert not broker.router.queues
    assert manager.ask("GET-TYPES", SELF).status == 200


REFUSED = [
    pytest.param(request("READ", "thing"), 400, "no type thing", id="a type nobody knows"),
    pytest.param(request("JUMP", "queue"), 501, "no operation JUMP", id="an operation"),
    pytest.param(request("QUERY", SELF), 400, "entityType", id="a query for nothing"),
    pytest.param(request(None, "queue"), 400, "operation", id="no operation"),
    pytest.param(
        request("QUERY", SELF, properties={"entityType": "thing"}), 400, "no type", id="a query"
    ),
]


@pytest.mark.parametrize(("payload", "status", "told"), REFUSED)
def test_what_is_refused(manager: Manager, payload: bytes, status: int, told: str) -> None:
    reply = manager.ask_raw(payload)
    assert reply.status == status
    assert told in reply.description


def test_no_bytes_end_the_connection(manager: Manager) -> None:
    """Requests with bytes changed at random are answered or rejected; the broker goes on."""
    chance = random.Random(5)
    whole = request("CREATE", "queue", "q", body={"if_empty": True, "x": [1, "a"]})
    for _ in range(1000):
        payload = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            payload[chance.randrange(len(payload))] = chance.randrange(256)
        manager.send(bytes(payload))
        manager.client.bodies()
        assert manager.client.peer.is_live()
        if manager.broker.container.link_count() < 2:
            manager.client.hang_up()
            manager = Manager(manager.broker)
    assert manager.broker.watcher.errors == []


# -- what the node reports about itself


def test_types_attributes_and_operations(manager: Manager) -> None:
    types = manager.ask("GET-TYPES", SELF, "self").map
    assert {"queue", "topic", "connection", "link"} <= set(types)
    attributes = manager.ask("GET-ATTRIBUTES", SELF, "self").map
    assert set(attributes) == set(types)
    assert "messages" in attributes["queue"]  # type: ignore[operator]
    only = {"entityType": "queue"}
    assert manager.ask("GET-OPERATIONS", SELF, "self", properties=only).map == {
        "queue": {"CREATE": [], "READ": [], "DELETE": [], "PURGE": []}
    }
    assert manager.ask("GET-MGMT-NODES", SELF, "self").body == []


def test_every_kind_of_entity_can_be_listed(manager: Manager) -> None:
    manager.ask("CREATE", "queue", "q")
    for kind in manager.ask("GET-TYPES", SELF, "self").map:
        within = {"queue": "q"} if kind == "message" else {}
        assert manager.look(str(kind), within).status == 200


def test_a_settled_request_is_answered_too(manager: Manager) -> None:
    manager.send(request("GET-TYPES", SELF), settled=True)
    assert read_reply(manager.client.expect_last(Transfer).payload).status == 200


@pytest.mark.attack("R9")
def test_few_requests_may_be_sent_ahead(broker: Broker) -> None:
    client = broker.session("client")
    client.attach(attach_sender(MANAGEMENT))
    assert client.expect(Flow).link_credit == 8


# -- what is logged

LOGGED = [
    ("a queue is made", ("CREATE", "queue", "new", {}), ["CREATE queue new"]),
    ("a queue is purged", ("PURGE", "queue", "q", {}), ["PURGE queue q {'purged': 2"]),
    (
        "messages are moved",
        ("MOVE", "message", None, {"queue": "q", "to": "r", "all": True}),
        ["MOVE message  {'queue': 'q', 'to': 'r', 'all': True} {'moved': 2"],
    ),
    ("a queue is looked at", ("READ", "queue", "q", {}), []),
    ("what is refused", ("DELETE", "queue", "none", {}), []),
    ("a lease is read", ("ACQUIRE", "lease", "none", {}), []),
]


@pytest.mark.parametrize(
    ("asked", "logged"), [case[1:] for case in LOGGED], ids=[case[0] for case in LOGGED]
)
def test_each_change_is_logged_with_who_made_it(
    asked: tuple[str, str, str | None, dict[str, object]], logged: list[str]
) -> None:
    broker = Broker(authenticator=Doorman(administrators=["alice"]))
    broker.fill(count=2)
    broker.fill("r", count=1)
    alice = Manager(broker, "desk", user="alice")
    operation, kind, name, arguments = asked
    alice.ask_raw(request(operation, kind, name, body=arguments))
    managed = [event for event in broker.watcher.events if event.startswith("managed")]
    assert len(managed) == len(logged)
    for event, expected in zip(managed, logged, strict=True):
        assert event.startswith(f"managed alice: {expected}")
