"""The matrix of rights as data: users, rights, paths, and the sets of rules that decide.

A path is a way by which a client uses a right. `CELLS` has rights that the rules of `RULES` give
together, with roles, deny rules, wildcards and variables. `SINGLE` has the rights of which one rule
is enough: each row has sets of rules of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from broker.security.access import AccessRules
from broker.security.resources import MANAGEMENT, NAMES
from broker.security.rules import DENY, rule_of
from tests.support.websocket_broker import WEB

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
    ("looks", "allow", "user:bob", "view", "management:topics management:events", "day"),
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

HTTP: Final = "http"
WEBSOCKET: Final = " over WebSocket"
"""Ends the name of a path that is used over WebSocket."""

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
    ("lease subscription:app/mine", "root", "bob root", ("open a lease", "slice", "http")),
    ("stage queue:open.old", "bob root", "bob root", ("stage",)),
    ("purge queue:orders.new", "root", "eve root", ("purge",)),
    ("view queue:orders.new", "root", "eve root", ("read",)),
    ("view management:topics", "bob root", "root", ("query",)),
    ("edit management:topics", "root", "bob root", ("edit",)),
    ("view management:events", "bob root", "root", ("query", "http")),
    ("create temporary:queue", "ann bob root", "root", ("dynamic", "dynamic, to send")),
    ("send temporary:queue", "root", "ann bob eve root", ("reply", "relay a reply")),
    ("use client-id:kept", "ann root", "ann root", ("open",)),
)

TYPES: Final = {
    "queues": ("queue",),
    "topics": ("topic",),
    "subscriptions": ("subscription",),
    "messages": ("message",),
    "connections": ("connection", "link", "transaction", "suspended-link"),
    "leases": ("lease",),
    "sinks": ("sink",),
    "bridges": ("bridge",),
    "events": ("events",),
    "store": ("store", "quarantined-message", "backup"),
    "users": ("user", "login-source"),
    "tokens": ("token",),
    "config": ("settings", "drain", "member"),
    "definitions": ("definitions",),
    "acl": ("acl", "role"),
    "metrics": ("broker",),
    "audit": ("audit-record",),
}
"""The types of requests of each part of management; the other parts have none."""

EDITS: Final = {
    "queues": ("CREATE", "queue"),
    "topics": ("CREATE", "topic"),
    "subscriptions": ("DELETE", "subscription"),
    "messages": ("DELETE", "message"),
    "connections": ("DELETE", "connection"),
    "leases": ("RELEASE", "lease"),
    "sinks": ("ABORT", "sink"),
    "bridges": ("PAUSE", "bridge"),
    "store": ("CREATE", "backup"),
    "users": ("DELETE", "user"),
    "tokens": ("DELETE", "token"),
    "config": ("RELOAD", "settings"),
    "definitions": ("IMPORT", "definitions"),
}
"""An operation and a type of each part that can be edited."""

LEASES = ("view management:leases", "edit management:leases")
MOVES = ("edit management:messages", "send queue:open.old")

# the right, the paths, the rights that each user has beside it
SINGLE: Final = (
    ("delete queue:orders.new", ("delete",), ()),
    ("move queue:orders.new", ("move", "retry"), MOVES),
    (
        *("send queue:open.old", ("move to", "retry to")),
        ("edit management:messages", "move queue:orders.new"),
    ),
    ("delete topic:orders.paid", ("delete",), ()),
    ("view topic:orders.paid", ("read",), ()),
    ("stage topic:open.old", ("stage",), ("send topic:open.old",)),
    ("browse subscription:app/mine", ("browse", "http"), ()),
    ("purge subscription:app/mine", ("purge", "move"), MOVES),
    ("view subscription:app/mine", ("read",), ()),
    (
        *("create global-subscription:new", ("durable",)),
        ("subscribe topic:t", "use global-subscription:new"),
    ),
    ("share global-subscription:mine", ("shared",), ("subscribe topic:t",)),
    (
        *("end global-subscription:mine", ("leave", "unsubscribe", "change the topic")),
        ("subscribe topic:t", "use global-subscription:mine"),
    ),
    ("lease global-subscription:mine", ("open a lease", "slice", "http"), LEASES),
    ("browse global-subscription:mine", ("browse", "http"), ()),
    ("purge global-subscription:mine", ("purge", "move"), MOVES),
    ("view global-subscription:mine", ("read",), ()),
    ("create temporary:topic", ("dynamic", "dynamic, to send"), ()),
    ("send temporary:topic", ("reply", "relay a reply"), ("send queue:open.old",)),
    (
        *("receive temporary:dynamic", ("another's", "browse another's", "another's topic")),
        ("subscribe topic:t",),
    ),
    ("connect connection:amqp", ("open",), ()),
    (f"connect connection:{WEB}", (f"open{WEBSOCKET}",), ()),
    (
        *("impersonate user-id:zoe", ("attach", "relay", "relay, settled", "transaction")),
        ("send queue:open.old",),
    ),
    *(
        (f"view management:{part}", ("query",) if part in TYPES else ("types",), ())
        for part in NAMES[MANAGEMENT]
        if part not in ("topics", "events", "leases")
    ),
    ("view management:leases", ("query", "http"), ()),
    *((f"edit management:{part}", ("edit",), ()) for part in EDITS if part != "topics"),
)
"""Rights by one rule: by day `ann` has it, and `eve` by a rule that a deny rule defeats; by night
`bob` and clients without a login have it.
"""

SINGLE_DAY, SINGLE_NIGHT = "ann root", "bob anonymous root"


@dataclass(frozen=True)
class Row:
    """A right, its users by day and by night, and its paths.

    If `is_single`, sets of rules of its own decide, which give each user the rights `needs`, too.
    """

    right: str
    by_day: str
    by_night: str
    paths: tuple[str, ...]
    needs: tuple[str, ...] = ()
    is_single: bool = False

    @property
    def verb(self) -> str:
        return self.right.split()[0]

    @property
    def kind(self) -> str:
        return self.right.split()[1].partition(":")[0]


@dataclass(frozen=True)
class Cell:
    """A right of one user by one path. `before` is the set of rules before a reload, if any."""

    row: Row
    path: str
    user: str
    rules: str
    before: str = ""

    @property
    def right(self) -> str:
        return self.row.right

    @property
    def verb(self) -> str:
        return self.row.verb

    @property
    def kind(self) -> str:
        return self.row.kind

    @property
    def name(self) -> str:
        """The name of the resource; for a subscription of a client, its own name."""
        name = self.right.partition(":")[2]
        return name.partition("/")[2] if self.kind == "subscription" else name

    @property
    def identity(self) -> str:
        """The identity of a named subscription."""
        scope = CLIENT if self.kind == "subscription" else ""
        return f"durable/{scope}/{self.name}"

    @property
    def way(self) -> str:
        """The path, whether it is used over WebSocket or not."""
        return self.path.removesuffix(WEBSOCKET)

    @property
    def is_web(self) -> bool:
        """Whether the path is used over WebSocket."""
        return self.path.endswith(WEBSOCKET)

    @property
    def login(self) -> str:
        return "" if self.user == "anonymous" else self.user

    @property
    def told(self) -> str:
        """The right that a refusal names: that on a part of management if it would do as well."""
        if self.way == "types":
            return "view any part of management"
        part = "subscriptions" if self.kind.endswith("subscription") else f"{self.kind}s"
        verbs = {"purge": "edit", "delete": "edit", "read": "view"}
        return f"{verbs[self.way]} management:{part}" if self.way in verbs else self.right


def with_websocket(row: Row) -> Row:
    """Return a row with a further path: its first one of AMQP, used over WebSocket."""
    ways = [path for path in row.paths if path != HTTP]
    if not ways or row.kind == "connection":
        return row
    return replace(row, paths=(*row.paths, f"{ways[0]}{WEBSOCKET}"))


ROWS: Final = tuple(
    with_websocket(row)
    for row in (
        *(Row(*each) for each in CELLS),
        *(
            Row(right, SINGLE_DAY, SINGLE_NIGHT, paths, needs, is_single=True)
            for right, paths, needs in SINGLE
        ),
    )
)


@cache
def rules_of(row: Row, name: str, *, without: str = "") -> AccessRules:
    """Return the set of rules `name` of a row, but those of the effect `without`."""
    records = single_records(row, name) if row.is_single else shared_records(name)
    found = [rule_of(record, "rule") for record in records if record["effect"] != without]
    return AccessRules(found, ROLES)


def shared_records(name: str) -> Iterator[dict[str, object]]:
    """Yield the rules of `RULES` in the set `name`."""
    for id_, effect, who, can, on, sets in RULES:
        if name in sets.split():
            yield record_of(id_, effect, who, can, on)


def single_records(row: Row, name: str) -> Iterator[dict[str, object]]:
    """Yield the rules of a row of `SINGLE` in the set `name`."""
    around = row.needs if row.kind == "connection" else (*row.needs, "connect connection:*")
    for number, right in enumerate(around):
        yield record_of(f"around-{number}", "allow", "authenticated anonymous", *right.split())
    if name == DAY:
        yield record_of("single", "allow", "user:ann user:eve", *row.right.split())
        yield record_of("denied", DENY, "user:eve", *row.right.split())
    else:
        yield record_of("single-n", "allow", "user:bob anonymous", *row.right.split())


def record_of(id_: str, effect: str, who: str, can: str, on: str) -> dict[str, object]:
    """Return a rule as a rules file has it."""
    lists = {"who": who.split(), "can": can.split(), "on": on.split()}
    return {"id": id_, "effect": effect, **lists}


def cells(row: Row, path: str) -> Iterator[tuple[Cell, bool]]:
    """Yield all cells of a right and path, and whether the user has the right."""
    for user in USERS:
        for rules, other, users in ((DAY, NIGHT, row.by_day), (NIGHT, DAY, row.by_night)):
            for before in ("", other):
                yield Cell(row, path, user, rules, before), user in users.split()
