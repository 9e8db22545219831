"""The paths of the matrix of rights: what a client does that uses a right, in a prepared broker."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from broker.amqp.terminus import COPY, Source, Target
from broker.management.management import SELF, Management
from broker.management.users import LoginRules
from broker.security.access import AccessRules
from broker.security.throttle import LoginThrottle
from broker.security.users import Users
from broker.stored_tokens import StoredTokens
from storage.batch import Batch
from tests.scenario.access_matrix import CLIENT, EDITS, HTTP, TYPES, USERS, Cell, rules_of
from tests.support.access import (
    OWNER,
    RuledUsers,
    dial_as,
    own_subscriptions,
    refusal_of_open,
    session_as,
)
from tests.support.broker import Broker, Client
from tests.support.frames import Transfer, attach_receiver, message
from tests.support.management import Manager, read_reply, request
from tests.support.routing import new_message
from tests.support.subscriptions import looking_up, subscribing
from tests.support.websocket_broker import WebSocketBroker
from tests.unit.links.test_access import (
    Act,
    attaching,
    leaving,
    posting,
    queue,
    receiving,
    relaying,
    sending,
    subscription,
    topic,
    unsubscribing,
)
from tests.unit.links.test_slices import browse_slice, lease_slice, said
from tests.unit.links.test_staging import properties
from tests.unit.management.test_leases import Driver

NO_FILE: Final = Path("/nonexistent/users")

SOURCE, TARGET = "orders.new", "open.old"
"""Two queues between which messages are moved."""


def managing(
    operation: str,
    type_: str,
    name: str,
    *,
    entity: str = "",
    body: Mapping[str, object] | None = None,
) -> Act:
    """Send a request to management; `entity` is the type that a query is about.

    A request that waits for the store gets no answer: it was not refused.
    """
    given = {"entityType": entity} if entity else None

    def act(broker: Broker, client: Client) -> str | None:
        manager = Manager(broker, client=client)
        manager.send(request(operation, type_, name, properties=given, body=body))
        replies = [
            read_reply(body.payload) for body in client.bodies() if isinstance(body, Transfer)
        ]
        told = [reply.description for reply in replies if reply.status == 403]
        return told[0] if told else None

    return act


def moving(operation: str, place: Mapping[str, object]) -> Act:
    """Move messages to TARGET, or retry them."""
    to = {"to": TARGET} if operation == "MOVE" else {}
    return managing(operation, "message", "", body={"all": True, **place, **to})


def opening(container_id: str, user: str) -> Act:
    """Open another connection of a user."""
    return lambda broker, _: refusal_of_open(dial_as(broker, user), container_id)


def replying(kind: str, *, relays: bool) -> Act:
    """Send to the temporary queue or topic of another connection."""

    def act(broker: Broker, client: Client) -> str | None:
        other = session_as(broker, OWNER, "another")
        source = Source(dynamic=True, capabilities=[kind])
        made = other.attach(attach_receiver(source=source))
        assert made.source is not None
        address = made.source.address
        assert address is not None
        send = relaying(address) if relays else sending(address)
        return send(broker, client)

    return act


def consuming(kind: str, *, copies: bool = False) -> Act:
    """Receive from a dynamic node of another connection that is no temporary destination."""

    def act(broker: Broker, client: Client) -> str | None:
        other = session_as(broker, OWNER, "another")
        source = Source(dynamic=True, capabilities=[kind])
        made = other.attach(attach_receiver(source=source))
        assert made.source is not None
        address = made.source.address
        assert address is not None
        mode: dict[str, object] = {"distribution_mode": COPY} if copies else {}
        return receiving(address, capabilities=[kind], **mode)(broker, client)

    return act


def act_of(cell: Cell) -> Act:
    """Return what a client does that uses the right of a cell by its path."""
    for acts in (acts_on_management, acts_with_user_id, acts_on_nodes, acts_on_subscriptions):
        found = acts(cell).get(cell.way)
        if found is not None:
            return found
    raise AssertionError(f"{cell.way} is no path")


def acts_on_nodes(cell: Cell) -> dict[str, Act]:
    """Return what clients do with queues, topics and client ids, by path."""
    name, kind = cell.name, cell.kind
    number = int(kind == "topic")
    word = name if kind == "temporary" else kind
    lease = said(lease="l", fencing_token=1, batch=1, slice=0)
    slices: dict[str, object] = {"distribution_mode": COPY, "filter": [lease_slice(lease)]}
    browses: dict[str, object] = {"capabilities": ["queue"]}
    if kind.endswith("subscription"):
        name, browses = cell.identity, {"filter": [browse_slice(said())]}
    return {
        "attach": sending(name, kind),
        "relay": relaying(name, number),
        "relay, settled": relaying(name, number, settled=True),
        "transaction": posting(name, number),
        "receive": receiving(name, capabilities=["queue"]),
        "browse": receiving(name, distribution_mode=COPY, **browses),
        "subscribe": attaching(subscribing(address=name)),
        "slice": receiving(name, **slices),
        "stage": sending(name, kind, properties=properties()),
        "dynamic": receiving(None, dynamic=True, capabilities=[word]),
        "dynamic, to send": sending(target=Target(dynamic=True, capabilities=[word])),
        "reply": replying(word, relays=False),
        "relay a reply": replying(word, relays=True),
        "another's": consuming("queue"),
        "browse another's": consuming("queue", copies=True),
        "another's topic": consuming("topic"),
        "open": opening(name if kind == "client-id" else "another", cell.login),
    }


def acts_on_subscriptions(cell: Cell) -> dict[str, Act]:
    """Return what clients do with named subscriptions, by path."""
    name = cell.name
    scope = "global " if cell.kind == "global-subscription" else ""
    durable = f"{scope}durable"
    return {
        "durable": attaching(subscribing(durable, name)),
        "shared": attaching(subscribing(f"shared {durable}", name)),
        "lookup": attaching(looking_up(scope, name)),
        "leave": leaving(durable, name),
        "unsubscribe": unsubscribing(scope, name),
        "change the topic": attaching(subscribing(durable, name, address="t/other")),
    }


def acts_with_user_id(cell: Cell) -> dict[str, Act]:
    """Return what clients do that send messages of another user, by path."""
    if cell.kind != "user-id":
        return {}
    user_id = cell.name.encode()
    return {
        "attach": relaying(TARGET, address=TARGET, user_id=user_id),
        "relay": relaying(TARGET, 0, user_id=user_id),
        "relay, settled": relaying(TARGET, 0, user_id=user_id, settled=True),
        "transaction": posting(TARGET, 0, user_id=user_id),
    }


def acts_on_management(cell: Cell) -> dict[str, Act]:
    """Return the requests to management, by path."""
    is_named = cell.kind.endswith("subscription")
    type_ = "subscription" if is_named else cell.kind
    name = cell.identity if is_named else cell.name
    place = {"subscription": name} if is_named else {"address": name}
    source = {"subscription": name} if is_named else {"queue": SOURCE}
    found = {
        "open a lease": managing("OPEN", "lease", "mine", body=place),
        "delete": managing("DELETE", type_, name),
        "purge": managing("PURGE", type_, name),
        "read": managing("READ", type_, name),
        "types": managing("GET-TYPES", SELF, "self"),
        "move": moving("MOVE", source),
        "move to": moving("MOVE", {"queue": SOURCE}),
        "retry": moving("RETRY", source),
        "retry to": moving("RETRY", {"queue": SOURCE}),
    }
    if cell.name in TYPES:
        found["query"] = managing("QUERY", SELF, "self", entity=TYPES[cell.name][0])
    if cell.name in EDITS:
        found["edit"] = managing(*EDITS[cell.name], "made")
    return found


def prepare(broker: Broker, cell: Cell) -> None:
    """Make what the right of a cell is about, unless that is the right to make it."""
    if cell.way.startswith(("move", "retry")) or cell.kind == "user-id":
        prepare_moving(broker)
    if cell.kind == "queue" and cell.verb != "create":
        if cell.name not in broker.router.queues:
            queue(broker, name=cell.name)
    elif cell.kind == "topic" and cell.verb != "create" and "#" not in cell.name:
        topic(broker, name=cell.name.partition("/")[0])
    elif cell.kind.endswith("subscription") and cell.verb != "create":
        scope = "global " if cell.kind == "global-subscription" else ""
        words = f"{scope}{'shared ' if cell.way == 'shared' else ''}durable"
        subscription(broker, words, container_id=CLIENT, name=cell.name)
    else:
        topic(broker)
    if cell.verb == "lease" and cell.way != "open a lease":
        prepare_lease(broker, cell)


def prepare_moving(broker: Broker) -> None:
    """Make a queue with a dead letter of another queue, and that queue."""
    queue(broker, name=TARGET)
    sender = session_as(broker, OWNER, "filler")
    sender.attach_sender(SOURCE)
    payload = message(annotations={"x-opt-ORIG-QUEUE": TARGET})
    sender.transfer(payload=payload, settled=True)
    sender.hang_up()


def prepare_lease(broker: Broker, cell: Cell) -> None:
    """Make the lease `l` of the queue or subscription of a cell, with a batch of one message."""
    source = {"address": cell.name}
    if cell.kind.endswith("subscription"):
        source = {"subscription": cell.identity}
    else:
        broker.router.queues[cell.name].put(new_message(b"\x00\x53\x75\xa0\x01x"), Batch())
    lead = Driver(broker, "lead", OWNER)
    lead.open(**source)
    lead.acquire(slices=1)


def world(cell: Cell, access: AccessRules) -> Broker:
    """Return a broker with `access`, in which a cell is prepared."""
    users = RuledUsers({"root": ["admin"]})
    users.passwords = dict.fromkeys(USERS, "sesame")
    kind = WebSocketBroker if cell.is_web else Broker
    broker = kind(authenticator=users, access=access)
    if cell.kind == "management":
        broker.container.service = whole_management(broker)
    prepare(broker, cell)
    own_subscriptions(broker, cell.login)
    return broker


def whole_management(broker: Broker) -> Management:
    """Return management with all types; it drops the work of requests that have to wait."""
    return Management(
        broker.container,
        broker.store,
        Coroutine.close,
        accounts=lambda: LoginRules(Users(NO_FILE), anonymous=True, throttle=LoginThrottle()),
        api_tokens=StoredTokens(broker.store, broker.journal),
        settings=lambda: None,
    )


def run(cell: Cell, access: AccessRules) -> str | None:
    """Use the right of a cell under `access`; return why that is refused, None if it is not."""
    broker = world(cell, rules_of(cell.row, cell.before) if cell.before else access)
    # a client without the right to connect cannot be connected before
    client = session_as(broker, OWNER if cell.kind == "connection" else cell.login, CLIENT)
    if cell.before:
        broker.container.adopt_access(access)
        broker.container.tick()
    return act_of(cell)(broker, client)


def target(cell: Cell) -> str:
    """Return the path and query of a request over HTTP that uses the right of a cell."""
    assert cell.path == HTTP
    if cell.verb == "browse":
        is_queue = cell.kind == "queue"
        place = {"address": cell.name} if is_queue else {"subscription": cell.identity}
        return f"/arrow/browse?{urlencode(place)}"
    if cell.verb == "lease" or cell.name == "leases":
        asked = {"lease": "l", "fencing_token": 1, "batch": 1, "slice": 0}
        return f"/arrow/lease?{urlencode(asked)}"
    return "/events/bounds"
