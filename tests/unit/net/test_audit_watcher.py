"""The audit records of connections: logins, refusals, missing rights, and changes by clients."""

import pytest

from broker.audit.record import Actor
from broker.links.access import Right
from broker.links.container import Watcher
from broker.net.audit_watcher import AuditWatcher
from broker.routing.context import RoutingChange
from broker.routing.queues.node import QUEUE
from broker.security.access import AccessRules
from broker.security.decision import Decision
from broker.security.resources import Resource
from tests.support.audit import RecordingAudit
from tests.support.broker import Broker, Client, RecordingWatcher

pytestmark = pytest.mark.requirement("SEC-08")

CLIENT = Actor(user="", roles=("admin",), via="amqp", address="127.0.0.1:1")


class Watched:
    """A broker without users whose events are recorded, and a client of it."""

    def __init__(self) -> None:
        self.log = RecordingWatcher()
        self.audit = RecordingAudit()
        self.broker = Broker(access=AccessRules())
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
