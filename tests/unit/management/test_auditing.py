"""The audit records of requests to management: which ones there are, and what is in them."""

import pytest

from broker.management.management import Management
from broker.security.access import AccessRules
from tests.support.audit import RecordingAudit
from tests.support.broker import Broker
from tests.support.management import Manager, request

pytestmark = pytest.mark.requirement("SEC-08")


class Audited:
    """A broker whose requests are recorded, and an administrator."""

    def __init__(self) -> None:
        self.broker = Broker(access=AccessRules())
        self.audit = RecordingAudit()
        self.broker.container.audit = self.audit
        self.broker.router.changes.are_recorded = True
        self.broker.container.service = Management(self.broker.container)
        self.manager = Manager(self.broker)


@pytest.fixture
def audited() -> Audited:
    return Audited()


ALL = {"queue": "q", "all": True}

OPERATIONS = [
    # operation, type, name, body, the record
    ("CREATE", "queue", "new", {}, ("node.created", "queue:new", "done")),
    ("CREATE", "queue", "q", {}, ("queue.create", "queue:q", "failed")),
    ("DELETE", "queue", "q", {}, ("node.deleted", "queue:q", "done")),
    ("DELETE", "queue", "none", {}, ("queue.delete", "queue:none", "failed")),
    ("PURGE", "queue", "q", {}, ("node.purged", "queue:q", "done")),
    ("CREATE", "topic", "t", {}, ("node.created", "topic:t", "done")),
    ("DELETE", "message", None, ALL, ("message.deleted", "queue:q", "done")),
    ("MOVE", "message", None, {**ALL, "to": "other"}, ("message.moved", "queue:q", "done")),
    ("READ", "message", "1", {"queue": "q"}, ("message.browsed", "queue:q", "failed")),
    ("DELETE", "connection", "99", {}, ("connection.closed", "connection:99", "failed")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "kind", "name", "body", "record"),
    OPERATIONS,
    ids=[f"{case[0]} {case[1]} {case[2] or ''}" for case in OPERATIONS],
)
def test_an_operation_is_one_record(
    audited: Audited,
    operation: str,
    kind: str,
    name: str | None,
    body: dict[str, object],
    record: tuple[str, str, str],
) -> None:
    for queue in ("q", "other"):
        audited.manager.ask("CREATE", "queue", queue)
    audited.audit.told()
    audited.manager.ask_raw(request(operation, kind, name, body=body))
    (event,) = audited.audit.events
    assert event.request_id is not None
    assert event.actor.via == "amqp"
    assert event.actor.roles == ("admin",)
    assert audited.audit.told() == [record]


def test_what_only_reads_is_not_recorded(audited: Audited) -> None:
    audited.manager.ask("CREATE", "queue", "q")
    audited.audit.told()
    audited.manager.ask("READ", "queue", "q")
    audited.manager.ask("QUERY", "org.amqp.management", "self", properties={"entityType": "queue"})
    assert audited.audit.told() == []


def test_listing_messages_is_browsing_them(audited: Audited) -> None:
    audited.manager.ask("CREATE", "queue", "q")
    audited.audit.told()
    for _ in range(2):
        audited.manager.ask(
            "QUERY",
            "org.amqp.management",
            "self",
            properties={"entityType": "message"},
            queue="q",
        )
    first, second = audited.audit.events
    assert (first.action, first.resource) == ("message.browsed", "queue:q")
    assert first.repeat_key == second.repeat_key, "each page is a request"
