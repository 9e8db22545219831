"""The matrix of rights: user, right and path, by two sets of rules, also after a reload.

One table has the rules, and one the expected cells. A path is a way by which a client uses a right:
all paths of a right must come to the same decision, and it must be one of the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast, final
from urllib.parse import urlencode

import pytest

from broker.amqp.terminus import COPY, Source, Target
from broker.security.access import AccessRules
from broker.security.conditions import NO_ENTRANCE
from broker.security.decision import COVER, Decision
from broker.security.entrance import Entrance
from broker.security.identity import Identity
from broker.security.resources import Resource
from broker.security.rules import DENY, Rule, rule_of
from storage.batch import Batch
from storage.memory import MemoryStore
from tests.support.access import (
    OWNER,
    RecordedRules,
    RuledUsers,
    dial_as,
    own_subscriptions,
    recorded,
    refusal_of_open,
    session_as,
)
from tests.support.broker import Broker, Client
from tests.support.frames import attach_receiver
from tests.support.http import ask, basic, served
from tests.support.management import Manager, request
from tests.support.routing import new_message
from tests.support.subscriptions import looking_up, subscribing
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
from tests.unit.links.test_slices import lease_slice, said
from tests.unit.links.test_staging import properties
from tests.unit.management.test_leases import Driver

USERS: Final = ("ann", "bob", "eve", "anonymous", "root")
"""Two users with rules, one without, a client without a login, an administrator."""

CLIENT: Final = "app"
"""The container-id of every client whose rights are tested."""

DAY, NIGHT = "day", "night"

# id, effect, who, verbs, patterns, the sets that have it
RULES: Final = (
    ("orders", "allow", "user:ann", "send receive browse lease", "queue:orders.#", "day"),
    ("orders-n", "allow", "role:night-shift", "send receive browse", "queue:orders.#", "night"),
    ("no-secret", "deny", "authenticated", "*", "queue:orders.secret topic:orders.secret", "day"),
    ("no-secret-n", "deny", "user:bob", "send", "queue:orders.secret", "night"),
    ("news", "allow", "user:ann user:bob", "send subscribe", "topic:orders.#", "day"),
    ("news-eu", "allow", "user:bob", "send subscribe", "topic:orders.paid/eu", "night"),
    ("makes", "allow", "user:ann", "create", "queue:open.# topic:open.#", "day"),
    ("makes-n", "allow", "anonymous", "create", "queue:open.# topic:open.#", "night"),
    ("stages", "allow", "user:bob", "stage", "queue:open.#", "day night"),
    ("names", "allow", "user:ann", "use create", "subscription:{client_id}/mine*", "day"),
    ("names-n", "allow", "user:bob", "use create", "subscription:app/mine*", "night"),
    ("shares", "allow", "user:bob", "share", "subscription:*", "day"),
    ("ends", "allow", "user:ann", "end", "subscription:app/done", "day"),
    ("ends-n", "allow", "authenticated", "end", "subscription:app/done", "night"),
    ("worldwide", "allow", "user:eve", "use", "global-subscription:mine", "day"),
    ("leases", "allow", "user:bob", "lease", "queue:orders.# subscription:app/*", "night"),
    ("purges", "allow", "user:eve", "purge view", "queue:orders.#", "night"),
    ("looks", "allow", "user:bob", "view", "management:topics management:journal", "day"),
    ("edits", "allow", "user:bob", "edit", "management:topics", "night"),
    ("replies", "allow", "user:ann user:bob", "create", "temporary:queue", "day"),
    ("answers", "allow", "authenticated", "send", "temporary:*", "night"),
    ("kept", "allow", "user:ann", "use", "client-id:kept", "day night"),
    # rights that a path needs beside the one that is tested
    (
        *("around", "allow", "authenticated anonymous", "connect send receive subscribe"),
        *("connection:* queue:open.# topic:open.# topic:t", "day night"),
    ),
    (
        *("around-names", "allow", "authenticated anonymous", "use create share"),
        *("subscription:app/done subscription:app/fresh", "day night"),
    ),
    (
        *("around-shared", "allow", "authenticated anonymous", "use share"),
        *("subscription:app/new", "day night"),
    ),
    (
        *("around-leases", "allow", "authenticated anonymous", "view edit"),
        *("management:leases", "day night"),
    ),
)

ROLES: Final = {"night-shift": ["bob", "eve"]}

SENDING = ("attach", "relay", "relay, settled", "transaction")

# the right, the users that have it by day and by night, the paths
CELLS: Final = (
    ("send queue:orders.new", "ann root", "bob eve root", SENDING),
    ("send queue:orders.secret", "", "eve root", SENDING),
    ("send topic:orders.paid", "ann bob root", "root", SENDING),
    ("send topic:orders.paid/eu", "ann bob root", "bob root", SENDING),
    ("send topic:orders.secret/eu", "", "root", SENDING),
    ("receive queue:orders.new", "ann root", "bob eve root", ("receive",)),
    ("receive queue:orders.secret", "", "bob eve root", ("receive",)),
    ("browse queue:orders.new", "ann root", "bob eve root", ("browse", "http")),
    ("browse queue:orders.secret", "", "bob eve root", ("browse", "http")),
    ("create queue:open.new", "ann root", "anonymous root", (*SENDING, "receive")),
    ("create topic:open.new", "ann root", "anonymous root", (*SENDING, "subscribe")),
    ("subscribe topic:orders.paid", "ann bob root", "root", ("subscribe",)),
    ("subscribe topic:orders.paid/eu", "ann bob root", "bob root", ("subscribe",)),
    ("subscribe topic:orders.#", "", "root", ("subscribe",)),
    ("subscribe topic:orders.paid.#", "ann bob root", "root", ("subscribe",)),
    ("use subscription:app/mine", "ann root", "bob root", ("durable", "lookup")),
    ("share subscription:app/mine", "bob root", "root", ("shared",)),
    ("create subscription:app/new", "root", "root", ("durable",)),
    (
        "end subscription:app/done",
        "ann root",
        "ann bob eve root",
        ("leave", "unsubscribe", "change the topic"),
    ),
    ("use global-subscription:mine", "eve root", "root", ("durable", "lookup")),
    ("lease queue:orders.new", "ann root", "bob root", ("open a lease", "slice", "http")),
    ("lease subscription:app/mine", "root", "bob root", ("open a lease", "slice")),
    ("stage queue:open.old", "bob root", "bob root", ("stage",)),
    ("purge queue:orders.new", "root", "eve root", ("purge",)),
    ("view queue:orders.new", "root", "eve root", ("read",)),
    ("view management:topics", "bob root", "root", ("query",)),
    ("edit management:topics", "root", "bob root", ("create",)),
    ("view management:journal", "bob root", "root", ("http",)),
    ("create temporary:queue", "ann bob root", "root", ("dynamic", "dynamic, to send")),
    ("send temporary:queue", "root", "ann bob eve root", ("reply", "relay a reply")),
    ("use client-id:kept", "ann root", "ann root", ("open",)),
)


HTTP: Final = "http"


@dataclass(frozen=True)
class Cell:
    """A right of one user by one path. `before` is the set of rules before a reload, if any."""

    right: str
    path: str
    user: str
    rules: str
    before: str = ""

    @property
    def verb(self) -> str:
        return self.right.split()[0]

    @property
    def kind(self) -> str:
        return self.right.split()[1].partition(":")[0]

    @property
    def name(self) -> str:
        """The name of the resource; for a subscription of a client, its own name."""
        name = self.right.partition(":")[2]
        return name.partition("/")[2] if self.kind == "subscription" else name

    @property
    def login(self) -> str:
        return "" if self.user == "anonymous" else self.user


def rules_of(name: str, *, without: str = "") -> AccessRules:
    """Return the rules of a set, but those of the effect `without`."""
    found: list[Rule] = []
    for id_, effect, who, can, on, sets in RULES:
        if name in sets.split() and effect != without:
            record: dict[str, object] = {"id": id_, "effect": effect, "who": who.split()}
            found.append(rule_of({**record, "can": can.split(), "on": on.split()}, id_))
    return AccessRules(found, ROLES)


def cells(right: str, path: str) -> Iterator[tuple[Cell, bool]]:
    """Yield all cells of a right and path, and whether the user has the right."""
    ((by_day, by_night),) = [each[1:3] for each in CELLS if each[0] == right]
    for user in USERS:
        for rules, other, users in ((DAY, NIGHT, by_day), (NIGHT, DAY, by_night)):
            for before in ("", other):
                yield Cell(right, path, user, rules, before), user in users.split()


# -- paths


def managing(operation: str, type_: str, name: str, **arguments: object) -> Act:
    """Send a request to management."""

    def act(broker: Broker, client: Client) -> str | None:
        payload = request(operation, type_, name, body=arguments)
        reply = Manager(broker, client=client).ask_raw(payload)
        return reply.description if reply.status == 403 else None

    return act


def querying(type_: str) -> Act:
    """Ask management for all entities of a type."""

    def act(broker: Broker, client: Client) -> str | None:
        reply = Manager(broker, client=client).query(type_)
        return reply.description if reply.status == 403 else None

    return act


def opening(container_id: str) -> Act:
    """Open another connection of the same user."""

    def act(broker: Broker, client: Client) -> str | None:
        return refusal_of_open(dial_as(broker, client.peer.identity.user), container_id)

    return act


def replying(*, relays: bool) -> Act:
    """Send to the temporary queue of another connection."""

    def act(broker: Broker, client: Client) -> str | None:
        other = session_as(broker, OWNER, "another")
        made = other.attach(attach_receiver(source=Source(dynamic=True)))
        assert made.source is not None
        address = made.source.address
        assert address is not None
        send = relaying(address) if relays else sending(address)
        return send(broker, client)

    return act


def act_of(cell: Cell) -> Act:
    """Return what a client does that uses the right of a cell by its path."""
    name, kind = cell.name, cell.kind
    number = int(kind == "topic")
    scope = "global " if kind == "global-subscription" else ""
    identity = f"durable/{CLIENT}/{name}"
    is_named = kind == "subscription"
    lease = said(lease="l", fencing_token=1, batch=1, slice=0)
    slices: dict[str, object] = {"distribution_mode": COPY, "filter": [lease_slice(lease)]}
    known: dict[str, Act] = {
        "attach": sending(name, kind),
        "relay": relaying(name, number),
        "relay, settled": relaying(name, number, settled=True),
        "transaction": posting(name, number),
        "receive": receiving(name, capabilities=["queue"]),
        "browse": receiving(name, capabilities=["queue"], distribution_mode=COPY),
        "subscribe": attaching(subscribing(address=name)),
        "durable": attaching(subscribing(f"{scope}durable", name)),
        "shared": attaching(subscribing("shared durable", name)),
        "lookup": attaching(looking_up(scope, name)),
        "leave": leaving(name=name),
        "unsubscribe": unsubscribing(name=name),
        "change the topic": attaching(subscribing("durable", name, address="t/other")),
        "open a lease": managing(
            *("OPEN", "lease", "mine"),
            **({"subscription": identity} if is_named else {"address": name}),
        ),
        "slice": receiving(identity if is_named else name, **slices),
        "stage": sending(name, properties=properties()),
        "purge": managing("PURGE", "queue", name),
        "read": managing("READ", "queue", name),
        "query": querying("topic"),
        "create": managing("CREATE", "topic", "made"),
        "dynamic": receiving(None, dynamic=True),
        "dynamic, to send": sending(target=Target(dynamic=True)),
        "reply": replying(relays=False),
        "relay a reply": replying(relays=True),
        "open": opening(name),
    }
    return known[cell.path]


def prepare(broker: Broker, cell: Cell) -> None:
    """Make what the right of a cell is about, unless that is the right to make it."""
    if cell.kind == "queue" and cell.verb != "create":
        queue(broker, name=cell.name)
    elif cell.kind == "topic" and cell.verb != "create" and "#" not in cell.name:
        topic(broker, name=cell.name.partition("/")[0])
    elif cell.kind.endswith("subscription") and cell.verb != "create":
        scope = "global " if cell.kind == "global-subscription" else ""
        words = f"{scope}{'shared ' if cell.path == 'shared' else ''}durable"
        subscription(broker, words, container_id=CLIENT, name=cell.name)
    else:
        topic(broker)
    if cell.verb == "lease" and cell.path != "open a lease":
        source = {"address": cell.name}
        if cell.kind == "subscription":
            source = {"subscription": f"durable/{CLIENT}/{cell.name}"}
        else:
            broker.router.queues[cell.name].put(new_message(b"\x00\x53\x75\xa0\x01x"), Batch())
        lead = Driver(broker, "lead", OWNER)
        lead.open(**source)
        lead.acquire(slices=1)


def world(cell: Cell, access: AccessRules) -> Broker:
    """Return a broker with `access`, in which a cell is prepared."""
    users = RuledUsers({"root": ["admin"]})
    users.passwords = dict.fromkeys(USERS, "sesame")
    broker = Broker(authenticator=users, access=access)
    prepare(broker, cell)
    own_subscriptions(broker, cell.login)
    return broker


TOLD: Final = {"purge": "edit management:queues", "read": "view management:queues"}
"""The rights that a refusal names instead of the right of the cell: they would do as well."""


def run(cell: Cell, access: AccessRules) -> str | None:
    """Use the right of a cell under `access`; return why that is refused, None if it is not."""
    broker = world(cell, rules_of(cell.before) if cell.before else access)
    client = session_as(broker, cell.login, CLIENT)
    if cell.before:
        broker.container.adopt_access(access)
        broker.container.tick()
    return act_of(cell)(broker, client)


def is_as_expected(cell: Cell, told: str | None, *, allowed: bool) -> bool:
    """Return whether a cell was allowed, or refused for the right of the cell."""
    if told is None:
        return allowed
    return not allowed and told.startswith(f"not allowed to {TOLD.get(cell.path, cell.right)} (")


PLACES = [
    pytest.param(right, path, id=f"{right}: {path}")
    for right, _, _, paths in CELLS
    for path in paths
    if path != HTTP
]


@pytest.mark.parametrize(("right", "path"), PLACES)
def test_every_cell_is_decided_by_the_rules(right: str, path: str) -> None:
    for cell, allowed in cells(right, path):
        rules, access = recorded(rules_of(cell.rules))
        told = run(cell, access)
        assert is_as_expected(cell, told, allowed=allowed), (cell, told)
        decisions = rules.taken(cell.login)
        about = [each for each in decisions if each[0] == right]
        assert about, f"{cell} was decided elsewhere"
        assert all(decision is allowed for _, decision in about), cell
        assert not allowed or all(decision for _, decision in decisions), cell


def test_the_table_has_cells_of_both_kinds_for_every_path() -> None:
    """A path that is always allowed, or always refused, would prove nothing."""
    found: dict[str, set[bool]] = {}
    for right, _, _, paths in CELLS:
        for path in paths:
            found.setdefault(path, set()).update(allowed for _, allowed in cells(right, path))
    assert {path for path, kinds in found.items() if kinds != {True, False}} == set()
    assert len(PLACES) * len(USERS) * 4 > 1000


# -- controls: the matrix finds rules that decide wrongly, and paths that do not ask


@final
class BrokenRules(RecordedRules):
    """Rules that give the right of one cell the same `answer` whatever they say."""

    def __init__(self, rules: AccessRules, cell: Cell, *, answer: bool) -> None:
        super().__init__(rules)
        self._user = cell.login
        self._rights = (cell.right, TOLD.get(cell.path))
        self._answer = answer

    def decide(
        self,
        identity: Identity,
        verb: str,
        resource: Resource,
        *,
        entrance: Entrance = NO_ENTRANCE,
        client_id: str = "",
    ) -> Decision:
        if identity.user == self._user and f"{verb} {resource.text()}" in self._rights:
            return Decision(allowed=self._answer, rule="broken", because=COVER)
        return super().decide(identity, verb, resource, entrance=entrance, client_id=client_id)


@pytest.mark.parametrize(("right", "path"), PLACES)
def test_a_wrong_decision_reaches_the_client_by_every_path(right: str, path: str) -> None:
    """Check that nothing else decides: no second check, and no check that is left out."""
    for cell, allowed in cells(right, path):
        if cell.rules == DAY:
            broken = BrokenRules(rules_of(DAY), cell, answer=not allowed)
            told = run(cell, cast(AccessRules, broken))
            assert not is_as_expected(cell, told, allowed=allowed), cell


def test_the_matrix_finds_deny_rules_that_are_ignored() -> None:
    found: set[str] = set()
    for right, path in (each.values for each in PLACES):
        for cell, allowed in cells(str(right), str(path)):
            if allowed or cell.before:
                continue
            told = run(cell, rules_of(cell.rules, without=DENY))
            if not is_as_expected(cell, told, allowed=allowed):
                found.add(f"{cell.right}: {cell.path}")
    secret = {f"{right}: {path}" for right, _, _, paths in CELLS for path in paths if path != HTTP}
    assert found == {each for each in secret if each.split(":")[1].startswith("orders.secret")} | {
        "subscribe topic:orders.#: subscribe"
    }


# -- HTTP


def target(cell: Cell) -> str:
    """Return the path and query of a request that uses the right of a cell."""
    if cell.verb == "browse":
        return f"/arrow/browse?{urlencode({'address': cell.name})}"
    if cell.verb == "lease":
        asked = {"lease": "l", "fencing_token": 1, "batch": 1, "slice": 0}
        return f"/arrow/lease?{urlencode(asked)}"
    return "/events/bounds"


ON_HTTP = [pytest.param(right, id=right) for right, _, _, paths in CELLS if HTTP in paths]


@pytest.mark.parametrize("right", ON_HTTP)
async def test_every_cell_of_http_is_decided_by_the_rules(right: str) -> None:
    first = Cell(right, HTTP, "root", DAY)
    broker = world(first, rules_of(DAY))
    async with served(MemoryStore(), broker=broker) as url:
        for cell, allowed in cells(right, HTTP):
            rules, access = recorded(rules_of(cell.rules))
            broker.container.adopt_access(access)
            headers = basic(cell.login, "sesame") if cell.login else {}
            answer = await ask(f"{url}{target(cell)}", headers)
            assert answer.status == (200 if allowed else 403), cell
            told = None if allowed else answer.error()
            assert is_as_expected(cell, told, allowed=allowed), (cell, told)
            about = [each for each in rules.taken(cell.login) if each[0] == right]
            assert about, f"{cell} was decided elsewhere"
            assert all(decision is allowed for _, decision in about), cell
