"""Audit records of single messages: of which queues, and who did what."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.amqp.outcomes import Accepted, Rejected, Released
from broker.app import App
from broker.management.message_audit import AuditedQueues
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.batches.lease import Wanted
from broker.security.identity import Identity
from broker.security.patterns import PatternError
from broker.settings import MEMORY, SettingsError, given_settings
from tests.support.audit import RecordingAudit
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, message
from tests.support.leases import HOUR_MS, RecordingAcquirer

pytestmark = pytest.mark.requirement("SEC-08")

Told = tuple[str, str, str]


class Audited:
    """A broker that records the messages of some queues, and clients of the users ann and ben."""

    def __init__(self, *patterns: str, policy: AddressPolicy | None = None) -> None:
        self.broker = Broker(policy=policy)
        self.audit = RecordingAudit()
        container = self.broker.container
        container.audit = self.audit
        self.broker.router.context.observer_choice = AuditedQueues(patterns, container)
        self.ann = self.client("ann")
        self.ben = self.client("ben")

    def client(self, user: str) -> Client:
        client = self.broker.session(f"of {user}")
        client.peer.identity = Identity(user, roles=client.peer.identity.roles)
        return client

    def told(self) -> list[Told]:
        """Return actor, action and resource of each event, and forget them."""
        found = [(each.actor.user, each.action, each.resource) for each in self.audit.events]
        self.audit.events.clear()
        return found

    def received(self, outcome: Accepted | Rejected | Released, address: str = "hr.pay") -> None:
        """Have ann send a message, which ben receives and settles."""
        self.ann.attach_sender(address)
        self.ann.transfer()
        self.ben.attach_receiver(address, credit=1)
        self.ben.send(Disposition(first=0, settled=True, state=outcome))


def test_the_way_of_a_message_is_recorded_with_its_users() -> None:
    audited = Audited("queue:hr.#")
    audited.received(Accepted())
    assert audited.told() == [
        ("ann", "message.enqueued", "queue:hr.pay"),
        ("ben", "message.delivered", "queue:hr.pay"),
        ("ben", "message.accepted", "queue:hr.pay"),
    ]


def test_a_record_has_the_consumer() -> None:
    audited = Audited("queue:hr.#")
    audited.received(Released())
    released = next(each for each in audited.audit.events if each.action == "message.released")
    assert released.after is not None
    assert released.after["container_id"] == "of ben"
    assert released.actor.address == "127.0.0.1:1"
    assert released.repeat_key is None, "each message has records of its own"


def test_what_the_broker_does_by_itself_has_no_user() -> None:
    audited = Audited("queue:hr.#")
    audited.ann.attach_sender("hr.pay")
    audited.ann.transfer(payload=message(b"x", ttl=1000))
    for _ in range(5):
        audited.broker.advance(1000)
    assert audited.told() == [
        ("ann", "message.enqueued", "queue:hr.pay"),
        ("", "message.expired", "queue:hr.pay"),
    ]


def test_a_client_that_is_lost_returned_its_message() -> None:
    audited = Audited("queue:hr.#")
    audited.ann.attach_sender("hr.pay")
    audited.ann.transfer()
    audited.ben.attach_receiver("hr.pay", credit=1)
    audited.ben.hang_up()
    assert audited.told()[-1] == ("ben", "message.released", "queue:hr.pay")


def test_a_lease_is_told_by_its_name() -> None:
    audited = Audited("queue:hr.#")
    broker = audited.broker
    broker.fill("hr.pay", 1)
    audited.audit.events.clear()
    leases = broker.router.leases
    lease = leases.open(
        "nightly",
        broker.queue("hr.pay"),
        selector=None,
        ttl_ms=HOUR_MS,
        batch=broker.journal.batch,
    )
    leases.acquire("nightly", lease.fencing_token, 1, wanted=Wanted(), acquirer=RecordingAcquirer())
    broker.container.run_round()
    (event,) = audited.audit.events
    assert (event.action, event.actor.user) == ("message.leased", "")
    assert event.after == {"lease": "nightly"}


NAMES = [
    pytest.param(["queue:hr.#"], "hr.pay.eu", True, id="words below"),
    pytest.param(["queue:hr.#"], "hr", True, id="no word below"),
    pytest.param(["queue:hr.*"], "hr.pay.eu", False, id="one word"),
    pytest.param(["queue:hr.pay"], "hr.pay", True, id="a name"),
    pytest.param(["queue:hr.pay"], "hr.Pay", False, id="another name"),
    pytest.param(["queue:hr.#", "queue:pay"], "pay", True, id="one of several"),
    pytest.param(["queue:#"], "$tmp/x", False, id="a temporary queue"),
    pytest.param([], "hr", False, id="nothing is listed"),
]


@pytest.mark.parametrize(("patterns", "address", "expected"), NAMES)
def test_which_queues_are_audited(patterns: list[str], address: str, expected: bool) -> None:
    choice = AuditedQueues(patterns, Broker().container)
    assert (choice.observer_of(address, None) is not None) is expected


def test_a_queue_that_is_not_listed_has_no_observer() -> None:
    audited = Audited("queue:hr.#")
    audited.received(Accepted(), "sales")
    assert audited.broker.queue("sales").state.observer is None
    assert audited.told() == []


async def test_the_event_log_goes_on_beside_it() -> None:
    audited = Audited("queue:hr.#", policy=AddressPolicy(event_log=True))
    audited.received(Accepted())
    assert await audited.broker.store.event_bounds() == (1, 3)
    assert len(audited.told()) == 3


def test_messages_that_are_dropped_together_are_one_record() -> None:
    audited = Audited("queue:hr.#")
    audited.broker.fill("hr.pay", 3)
    audited.audit.events.clear()
    queue = audited.broker.queue("hr.pay")
    audited.broker.router.delete(queue, audited.broker.journal.batch)
    (event,) = audited.audit.events
    assert (event.action, event.actor.user) == ("message.purged", "")
    assert event.after == {"messages": 3, "reason": "with their queue"}


WRONG = [
    pytest.param("topic:hr", "only queue:NAME", id="a topic"),
    pytest.param("queue:{user}.#", "only queue:NAME", id="a variable"),
    pytest.param("hr.#", "a pattern is KIND:TEXT", id="no kind"),
    pytest.param("queue:", "is empty", id="no name"),
]


@pytest.mark.parametrize(("pattern", "told"), WRONG)
def test_a_wrong_pattern_stops_the_start(tmp_path: Path, pattern: str, told: str) -> None:
    with pytest.raises(PatternError, match=told):
        AuditedQueues([pattern], Broker().container)
    audit = {"directory": tmp_path, "messages": (pattern,)}
    with pytest.raises(SettingsError, match=rf"audit\.messages: .*{told}"):
        App(given_settings(port=0, users_file=tmp_path / "users", store=MEMORY, audit=audit))


def test_without_audit_records_no_messages_can_be_listed(tmp_path: Path) -> None:
    given = {"users_file": tmp_path / "users", "audit": {"messages": ("queue:hr.#",)}}
    with pytest.raises(SettingsError, match=r"audit\.messages is set"):
        given_settings(store=MEMORY, **given)
    App(given_settings(store=f"sqlite:///{tmp_path / 'store.db'}", **given))


def test_the_settings_list_the_queues(tmp_path: Path) -> None:
    audit = {"directory": tmp_path / "audit", "messages": ("queue:hr.#",)}
    app = App(
        given_settings(
            port=0,
            users_file=tmp_path / "users",
            store=MEMORY,
            audit=audit,
            queue=({"name": "hr.pay"}, {"name": "sales"}),
        )
    )
    observers = {name: queue.state.observer for name, queue in app.container.router.queues.items()}
    assert observers["hr.pay"] is not None
    assert observers["sales"] is None
