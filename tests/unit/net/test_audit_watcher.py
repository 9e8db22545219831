"""The audit records of connections: logins, refusals, missing rights, and changes by clients."""

from collections.abc import Callable

import pytest

from broker.amqp.limits import Limits
from broker.amqp.performatives import Close, Detach
from broker.audit.record import Actor, time_text
from broker.audit.repeats import Repeats
from broker.links.access import Right
from broker.links.watcher import Watcher
from broker.net.audit_watcher import AuditWatcher
from broker.routing.context import RoutingChange
from broker.routing.queues.node import QUEUE
from broker.security.access import AccessRules
from broker.security.decision import Decision
from broker.security.identity import Identity
from broker.security.resources import Resource
from tests.support.audit import RecordingAudit
from tests.support.broker import Broker, Client, RecordingWatcher
from tests.support.transactions import COORDINATOR_HANDLE, Controller, discharge

pytestmark = pytest.mark.requirement("SEC-08")

CLIENT = Actor(user="", roles=("admin",), via="amqp", address="127.0.0.1:1")

LIFE_MS = 1000


class Watched:
    """A broker without users whose events are recorded, and a client of it."""

    def __init__(self) -> None:
        self.log = RecordingWatcher()
        self.audit = RecordingAudit()
        self.broker = Broker(access=AccessRules(), limits=Limits(transaction_timeout_ms=LIFE_MS))
        self.broker.container.watcher = AuditWatcher(self.log, self.audit)
        self.broker.router.changes.are_recorded = True
        self.client: Client = self.broker.session("shop")


def test_what_is_recorded_is_logged_too() -> None:
    watched = Watched()
    peer, watcher = watched.client.peer, watched.broker.container.watcher
    watcher.rejected(peer, "wrong")
    watcher.undecided(peer, "later")
    watcher.refused(peer, "full")
    decision = Decision(allowed=False, rule="no-a", because="overlap")
    watcher.denied(peer, Right("send", Resource(QUEUE, "a")), decision)
    assert watched.log.events == [
        "opened shop",
        "refused shop: wrong",
        "refused shop: later",
        "refused shop: full",
        "denied shop: not allowed to send queue:a (rule no-a)",
    ]
    *_, denied = watched.audit.events
    assert (denied.rule, denied.after, denied.actor) == ("no-a", {"verb": "send"}, CLIENT)
    assert watched.audit.told() == [
        ("auth.failure", "connection:amqp", "failed"),
        ("auth.throttled", "connection:amqp", "refused"),
        ("connection.refused", "connection:amqp", "refused"),
        ("access.denied", "queue:a", "refused"),
    ]


def test_every_event_is_passed_on_to_the_log() -> None:
    events = {name for name in vars(Watcher) if not name.startswith("_")}
    assert events - set(vars(AuditWatcher)) == set()


def test_a_refused_limit_is_logged() -> None:
    watched = Watched()
    watched.broker.container.watcher.limited(watched.client.peer, "too many queues")
    assert "too many queues" in watched.log.events[-1]


def test_a_renewed_login_and_a_refused_token_are_recorded() -> None:
    watched = Watched()
    peer, watcher = watched.client.peer, watched.broker.container.watcher
    watcher.renewed(peer)
    watcher.not_renewed(peer, "expired")
    assert watched.log.events[-1] == "not renewed shop: expired"
    assert watched.audit.told() == [
        ("auth.refreshed", "user:", "done"),
        ("auth.refreshed", "user:", "refused"),
    ]


def test_a_login_that_ends_by_time_is_recorded() -> None:
    watched = Watched()
    broker, peer = watched.broker, watched.client.peer
    until_ms = int(broker.clock.wall_ms()) + 500
    ada = Identity("ada", roles=peer.identity.roles, issuer="i", valid_until_ms=until_ms)
    broker.container.login_expiries.renewed(peer, ada)
    watched.audit.events.clear()
    broker.advance(499)
    assert watched.audit.events == []
    broker.advance(1)
    (event,) = watched.audit.events
    assert (event.action, event.resource, event.actor.user) == ("auth.expired", "user:ada", "ada")
    assert event.after == {"valid_until": time_text(until_ms)}
    watched.client.hang_up()
    told = watched.log.events[1:]
    assert len(told) == 1, "the log has the end of the connection alone"
    assert "credential expired" in told[0]


def by_client(controller: Controller, txn_id: bytes) -> None:
    controller.roll_back(txn_id)


def by_time(controller: Controller, txn_id: bytes) -> None:  # noqa: ARG001
    controller.client.broker.advance(LIFE_MS)


def by_refusal(controller: Controller, txn_id: bytes) -> None:
    broker = controller.client.broker
    broker.router.delete(broker.queue(), broker.journal.batch)
    controller.transfer(discharge(txn_id), COORDINATOR_HANDLE)


def by_detach(controller: Controller, txn_id: bytes) -> None:  # noqa: ARG001
    controller.client.send(Detach(handle=COORDINATOR_HANDLE, closed=True))


def by_close(controller: Controller, txn_id: bytes) -> None:  # noqa: ARG001
    controller.client.send(Close())


def by_loss(controller: Controller, txn_id: bytes) -> None:  # noqa: ARG001
    controller.client.hang_up()


ROLLBACKS = [
    pytest.param(by_client, "done", "the client rolled it back", id="the client"),
    pytest.param(by_time, "failed", "a transaction has lasted too long", id="its time"),
    pytest.param(by_refusal, "failed", "its commit was refused", id="a refused commit"),
    pytest.param(by_detach, "failed", "the link of its coordinator has ended", id="a detach"),
    pytest.param(by_close, "failed", "its connection has ended", id="a close"),
    pytest.param(by_loss, "failed", "its connection has ended", id="a lost connection"),
]


@pytest.mark.parametrize(("end", "result", "reason"), ROLLBACKS)
def test_a_rollback_is_recorded_with_its_reason(
    end: Callable[[Controller, bytes], None], result: str, reason: str
) -> None:
    watched = Watched()
    controller = Controller(watched.broker, client=watched.client)
    watched.client.attach_sender()
    watched.audit.events.clear()
    controller.declare()  # without work: JMS clients end many of these
    txn_id = controller.declare()
    controller.post(txn_id, b"1")
    controller.post(txn_id, b"2")
    end(controller, txn_id)
    controller.client.hang_up()
    (event,) = [each for each in watched.audit.events if each.action == "transaction.rolled_back"]
    assert (event.resource, event.result, event.actor) == ("connection:amqp", result, CLIENT)
    assert event.after == {"reason": reason, "operations": 2, "container_id": "shop"}


def test_a_commit_is_not_recorded() -> None:
    watched = Watched()
    controller = Controller(watched.broker, client=watched.client)
    watched.client.attach_sender()
    txn_id = controller.declare()
    controller.post(txn_id)
    controller.commit(txn_id)
    controller.client.hang_up()
    assert [event.action for event in watched.audit.events] == ["node.created"]


def test_rollbacks_without_end_are_one_record_and_a_count() -> None:
    watched = Watched()
    controller = Controller(watched.broker, client=watched.client)
    watched.client.attach_sender()
    repeats = Repeats()
    watched.audit.events.clear()
    for _ in range(20):
        txn_id = controller.declare()
        controller.post(txn_id)
        controller.roll_back(txn_id)
    first = [event for event in watched.audit.events if repeats.register(event)]
    (counted,) = repeats.collect()
    assert len(first) == 1
    assert counted.after is not None
    assert counted.after["count"] == 19


def test_a_client_without_a_login_is_no_success() -> None:
    watched = Watched()
    watched.broker.container.watcher.authenticated(watched.client.peer)
    assert watched.audit.told() == []


def test_a_node_that_a_client_creates_is_recorded_as_its_own() -> None:
    watched = Watched()
    watched.client.attach_sender("orders")
    (event,) = watched.audit.events
    assert (event.action, event.resource, event.actor) == ("node.created", "queue:orders", CLIENT)


def test_what_the_broker_does_by_itself_has_no_user() -> None:
    watched = Watched()
    change = RoutingChange("node.deleted", QUEUE, "orders", dropped=3)
    watched.broker.router.changes.found.append(change)
    watched.broker.container.run_round()
    (event,) = watched.audit.events
    assert (event.actor, event.after) == (Actor(), {"dropped": 3})


def test_repeated_events_of_one_client_have_one_key() -> None:
    watched = Watched()
    peer, watcher = watched.client.peer, watched.broker.container.watcher
    for _ in range(2):
        watcher.rejected(peer, "wrong")
    watcher.rejected(peer, "another reason")
    keys = [event.repeat_key for event in watched.audit.events]
    assert None not in keys
    assert keys[0] == keys[1] != keys[2]


def test_an_embedded_broker_records_nothing_and_keeps_no_changes() -> None:
    broker = Broker()
    client = broker.session("shop")
    client.attach_sender("orders")
    assert broker.router.changes.found == []
    assert not broker.container.audit.is_on
