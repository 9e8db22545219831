"""Requests that are awaited: by the same rights, entities and audit as those over AMQP."""

import asyncio
from functools import partial

import pytest

from broker.audit.record import HTTP
from broker.management.entity import Caller
from broker.management.executor import Executor
from broker.management.management import Management
from broker.management.request import Request
from broker.security.entrance import Entrance
from broker.security.identity import Identity
from storage.api import Store
from storage.memory import MemoryStore
from tests.support.access import ADA, access_of
from tests.support.audit import RecordingAudit
from tests.support.broker import Broker
from tests.support.frames import Transfer, attach_sender, message
from tests.support.routing import page_out
from tests.support.stores import GatedStore

WEB = Entrance(listener="http", kind="http", host="192.0.2.1")


def refuse_tasks(work: object) -> None:
    """Fail: an executor awaits by itself."""
    raise AssertionError(work)


class Office:
    """A broker, and an executor of requests to its management."""

    def __init__(self, *rights: str, store: Store | None = None) -> None:
        self.store = store or MemoryStore()
        self.broker = Broker(store=self.store, access=access_of(*rights))
        self.audit = self.broker.container.audit = RecordingAudit()
        self.broker.router.changes.are_recorded = True
        management = Management(self.broker.container, self.store, refuse_tasks)
        self.executor = Executor(management, self.broker.container)

    def caller(self, user: str = ADA) -> Caller:
        """Return a client that asks over HTTP."""
        identity = Identity(user, roles=frozenset())
        return Caller(
            identity=identity,
            address="192.0.2.1:1",
            may=partial(self.broker.container.decide, identity, entrance=WEB),
            via=HTTP,
            request_id="r1",
        )

    async def ask(self, operation: str, kind: str, name: str, **said: object) -> tuple[int, object]:
        """Return status and body of the response."""
        request = Request(operation=operation, type=kind, name=name, arguments=said)
        response = await self.executor.execute(self.caller(), request)
        return response.status, response.body


@pytest.mark.requirement("OPS-01")
async def test_a_change_is_made_with_its_rights_and_recorded() -> None:
    office = Office("edit management:queues")
    assert (await office.ask("CREATE", "queue", "a"))[0] == 201
    assert office.broker.queue("a").address == "a"
    assert office.audit.told() == [("node.created", "queue:a", "done")]


@pytest.mark.requirement("OPS-01")
@pytest.mark.parametrize(
    ("operation", "kind", "status"),
    [
        pytest.param("READ", "queue", 404, id="no such entity"),
        pytest.param("READ", "store", 200, id="a response of the store"),
        pytest.param("READ", "lease", 410, id="no such lease"),
        pytest.param("ACQUIRE", "lease", 400, id="an argument that is missing"),
        pytest.param("READ", "connection", 403, id="without the right"),
        pytest.param("SINK", "queue", 501, id="no such operation"),
        pytest.param("READ", "nothing", 400, id="no such type"),
        pytest.param("RENEW", "login", 409, id="a login, which is one of AMQP alone"),
    ],
)
async def test_each_result_is_a_status(operation: str, kind: str, status: int) -> None:
    parts = ("queues", "store", "leases")
    office = Office(*(f"view,edit management:{part}" for part in parts))
    assert (await office.ask(operation, kind, "x"))[0] == status


async def test_a_refusal_is_recorded() -> None:
    office = Office()
    assert (await office.ask("DELETE", "queue", "a"))[0] == 403
    assert [each.request_id for each in office.audit.events] == ["r1"]
    assert office.audit.told() == [("access.denied", "management:queues", "refused")]


async def test_a_response_that_the_operation_sends_itself_is_awaited() -> None:
    office = Office("view,edit management:leases", "lease,create queue:q")
    office.broker.fill("q")
    _, opened = await office.ask("OPEN", "lease", "x", address="q")
    assert isinstance(opened, dict)
    token = opened["fencing_token"]
    asked = asyncio.ensure_future(
        office.ask("ACQUIRE", "lease", "x", fencing_token=token, batch=1, max_messages=1)
    )
    status, body = await asked
    assert isinstance(body, dict)
    assert (status, body["messages"]) == (200, 1)


async def test_messages_that_are_not_in_memory_are_loaded() -> None:
    office = Office("view management:messages")
    sender = office.broker.session("filler")
    sender.attach(attach_sender("q"))
    for number in range(100):
        payload = message(b"%d" % number, durable=True)
        sender.send(Transfer(delivery_id=number, settled=True, payload=payload))
    page_out(office.broker.queue())
    asked = asyncio.ensure_future(office.ask("READ", "message", "994", queue="q"))
    status, body = await asked
    assert isinstance(body, dict)
    assert (status, body["identity"]) == (200, "994")


async def test_a_response_follows_the_commit_of_its_change() -> None:
    store = GatedStore()
    office = Office("edit management:queues", store=store)
    committing = asyncio.ensure_future(office.broker.journal.run(lambda: None))
    asked = asyncio.ensure_future(office.ask("CREATE", "queue", "a"))
    for _ in range(8):  # the task of the request, and that of the journal
        await asyncio.sleep(0)
    assert (len(store.commits), asked.done()) == (1, False)
    store.let_through()
    assert (await asked)[0] == 201
    office.broker.journal.close()
    await committing
