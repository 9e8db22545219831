"""Kinds of resources, the verbs of each kind, and the value that a right is asked for.

Links and management make a `Resource` from an address after they have canonicalised it, so that
each spelling of an address leads to the same resource (`docs/design/hostile-input.md` Z3).
"""

from __future__ import annotations

from typing import Final, final

QUEUE: Final = "queue"
TOPIC: Final = "topic"
SUBSCRIPTION: Final = "subscription"
GLOBAL_SUBSCRIPTION: Final = "global-subscription"
TEMPORARY: Final = "temporary"
CONNECTION: Final = "connection"
CLIENT_ID: Final = "client-id"
MANAGEMENT: Final = "management"
USER_ID: Final = "user-id"

DYNAMIC: Final = "dynamic"
"""Name of dynamic nodes that are no temporary destinations of JMS, to receive from them (TMP-04).

To create them and to send to them, they are named by their kinds like all temporary nodes.
"""

VERBS: Final[dict[str, tuple[str, ...]]] = {
    QUEUE: (
        *("send", "receive", "browse", "create", "delete", "purge", "move", "edit", "view"),
        *("lease", "stage"),
    ),
    TOPIC: ("send", "subscribe", "create", "delete", "edit", "view", "stage"),
    SUBSCRIPTION: ("create", "use", "share", "end", "browse", "purge", "view", "lease"),
    GLOBAL_SUBSCRIPTION: ("create", "use", "share", "end", "browse", "purge", "view", "lease"),
    TEMPORARY: ("create", "send", "receive"),
    CONNECTION: ("connect",),
    CLIENT_ID: ("use",),
    MANAGEMENT: ("view", "edit"),
    USER_ID: ("impersonate",),
}
"""The verbs that rules can name, by the kind of resource."""

EVERY: Final = "*"
"""The set of all verbs, and as a name of a closed list all names."""

VERB_SETS: Final[dict[str, tuple[str, ...]]] = {
    "produce": ("send", "create"),
    "consume": ("receive", "browse"),
}
"""Short names for several verbs."""

ALL_VERBS: Final = tuple(dict.fromkeys(verb for verbs in VERBS.values() for verb in verbs))

NAMES: Final[dict[str, tuple[str, ...]]] = {
    TEMPORARY: (QUEUE, TOPIC, DYNAMIC),
    MANAGEMENT: (
        *("queues", "topics", "subscriptions", "messages", "connections", "leases", "sinks"),
        *("events", "store", "users", "tokens", "acl", "config", "metrics", "audit"),
        *("definitions", "bridges"),
    ),
}
"""The only names of kinds whose names are a closed list."""


def names_with(kind: str, verb: str) -> tuple[str, ...]:
    """Return the names of a kind with a closed list for which rules decide about `verb`."""
    if kind == TEMPORARY:
        return (DYNAMIC,) if verb == "receive" else (QUEUE, TOPIC)
    return NAMES[kind]


def verbs_of_name(kind: str, name: str) -> tuple[str, ...]:
    """Return the verbs that rules can name for a resource or pattern of that kind and name."""
    verbs = VERBS[kind]
    if kind != TEMPORARY or name == EVERY:
        return verbs
    return tuple(verb for verb in verbs if name in names_with(kind, verb))


KEYED_VERBS: Final = ("send", "subscribe")
"""Verbs that concern the messages of a topic, and so the keys that a rule names.

The other verbs of topics concern the node: a rule with a key neither allows nor denies them.
"""

OWNED_VERBS: Final = ("receive", "browse", "subscribe", "purge", "delete", "move")
"""Verbs on a temporary node that only its connection has (TMP-04), whatever the rules say.

Rules give `receive` on `temporary:dynamic`. For all else another connection needs the right to
edit queues or topics by management.
"""

RESERVED: Final = "$"
"""Begins the broker's own names. The role `application` has no right on them."""

OWN_NAMES: Final = ("$tmp/", "$sub/")
"""Beginnings of names that are no queue and no topic; their resources are of other kinds."""

OWN_NODE: Final = "$management"
"""The name of the broker's own node; its resources are of the kind `management`."""


def is_own_name(name: str) -> bool:
    """Return whether a queue or topic of that `name` is the broker's own: rules do not apply."""
    return name.startswith(OWN_NAMES) or name == OWN_NODE


class ResourceError(ValueError):
    """A text names no resource. The message says what is allowed."""


@final
class Resource:
    """A canonical resource: a node, a subscription, or something else that rules protect.

    `kind` is one of `VERBS`. `name` is:

    - for a queue or topic, its name without the prefix of a class (DST-10: `Address.words`);
    - for a subscription its client id, and `key` is the subscription's name: a client id may
      contain `/`, so the two are never joined;
    - for a temporary node `queue` or `topic`, or `dynamic` (DYNAMIC) to receive from it.

    `key` of a topic is the key of the messages; empty means messages of any key, and so do the
    broker's bindings. `is_pattern`: the words `*` and `#` of `name` and `key` are wildcards, as in
    the address of a subscriber (DST-06). All others are literal. `creator` of `temporary:dynamic`
    is the user whose connection made the node, None if that is not known.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        key: str = "",
        *,
        is_pattern: bool = False,
        creator: str | None = None,
    ) -> None:
        self.kind: Final = kind
        self.name: Final = name
        self.key: Final = key
        self.is_pattern: Final = is_pattern
        self.creator: Final = creator

    def text(self) -> str:
        """Return the resource as it is shown to operators and clients, such as `queue:orders`."""
        if self.kind == SUBSCRIPTION or self.key:
            return f"{self.kind}:{self.name}/{self.key}"
        return f"{self.kind}:{self.name}"


def resource_of(text: str, verb: str) -> Resource:
    """Return the resource that an operator writes as `KIND:NAME`; the name must be canonical.

    Raise ResourceError if the kind is unknown, has no such verb, or the name is not allowed.
    """
    kind, colon, name = text.partition(":")
    if not colon or kind not in VERBS:
        raise ResourceError(f"{text!r} is no resource: write KIND:NAME with a KIND of {names()}")
    verbs = (*VERBS[kind], *(OWNED_VERBS if kind == TEMPORARY else ()))
    if verb not in verbs:
        raise ResourceError(f"{kind} has no verb {verb!r}, only: {', '.join(verbs)}")
    if not name:
        raise ResourceError(f"{text!r} lacks a name behind the colon")
    known = NAMES.get(kind)
    if known is not None and name not in (EVERY, *known):
        raise ResourceError(f"{kind} has no {name!r}, only: {', '.join(known)}, {EVERY}")
    if kind == TEMPORARY and name == DYNAMIC and verb != "receive":
        raise ResourceError(f"{text} has only the verb receive: {verb} names queue or topic")
    if kind == SUBSCRIPTION:
        client_id, slash, subscription = name.partition("/")
        if not slash:
            raise ResourceError(f"{text!r}: a subscription is written subscription:CLIENT/NAME")
        return Resource(kind, client_id, subscription)
    if kind == TOPIC:
        topic, _, key = name.partition("/")
        return Resource(kind, topic, key, is_pattern=verb == "subscribe")
    return Resource(kind, name)


def names() -> str:
    """Return the kinds of resources as a list for an error."""
    return ", ".join(VERBS)
