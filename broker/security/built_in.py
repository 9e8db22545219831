"""Built-in roles, as rules in one table. Deny rules of the operator win over them."""

from __future__ import annotations

from typing import Final

from broker.security.patterns import RulePattern, all_but_reserved, parse
from broker.security.resources import (
    CLIENT_ID,
    CONNECTION,
    EVERY,
    GLOBAL_SUBSCRIPTION,
    MANAGEMENT,
    NAMES,
    QUEUE,
    SUBSCRIPTION,
    TEMPORARY,
    TOPIC,
    USER_ID,
)
from broker.security.rules import OF_ROLE, Rule

ADMIN: Final = "admin"
MONITOR: Final = "monitor"
APPLICATION: Final = "application"
PIPELINE: Final = "pipeline"
BUILT_IN_ROLES: Final = (ADMIN, MONITOR, APPLICATION, PIPELINE)

BUILT_IN: Final = "built-in:"
"""Begins the ids of these rules. Ids of operators have no colon."""

EVERYTHING: Final = f"{BUILT_IN}{ADMIN}-everything"
"""Id of the rule that lets admins do everything."""

UNSEEN_BY_MONITORS: Final = ("users", "tokens", "acl", "audit", "messages")
"""Parts of management that the role `monitor` does not see; `messages` has their bodies."""

SEEN_BY_MONITORS: Final = tuple(
    f"{MANAGEMENT}:{name}" for name in NAMES[MANAGEMENT] if name not in UNSEEN_BY_MONITORS
)

SUBSCRIBING: Final = ("create", "use", "share", "end")
"""Verbs on subscriptions that a JMS application needs."""

NODES: Final = (f"{QUEUE}:#", f"{TOPIC}:#")
SUBSCRIPTIONS: Final = (f"{SUBSCRIPTION}:*", f"{GLOBAL_SUBSCRIPTION}:*")
ALL: Final = (
    *NODES,
    *SUBSCRIPTIONS,
    *(f"{kind}:*" for kind in (TEMPORARY, CONNECTION, CLIENT_ID, MANAGEMENT, USER_ID)),
)

PIPELINE_EDITS: Final = tuple(f"{MANAGEMENT}:{name}" for name in ("leases", "sinks", "events"))

# every role may connect, and create the temporary queue that gets the answers of management
ENTERING: Final = (f"{CONNECTION}:*", f"{TEMPORARY}:*")

TABLE: Final[tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...]] = (
    (ADMIN, "everything", (EVERY,), ALL),
    (MONITOR, "views", ("view",), (*NODES, *SUBSCRIPTIONS, *SEEN_BY_MONITORS)),
    (MONITOR, "connects", ("connect", "create"), ENTERING),
    (APPLICATION, "subscribes", SUBSCRIBING, (f"{SUBSCRIPTION}:{{client_id}}/*",)),
    (APPLICATION, "shares", SUBSCRIBING, (f"{GLOBAL_SUBSCRIPTION}:*",)),
    (APPLICATION, "connects", ("connect", "produce"), ENTERING),
    (PIPELINE, "reads", ("lease", "stage", "browse", "view"), (*NODES, *SUBSCRIPTIONS)),
    (PIPELINE, "edits", ("view", "edit"), PIPELINE_EDITS),
    # messages that it sends again keep the user-id of their first sender
    (PIPELINE, "impersonates", ("impersonate",), (f"{USER_ID}:*",)),
    (PIPELINE, "connects", ("connect", "create"), ENTERING),
)
"""Role, id, verbs, patterns. Rules on all but reserved nodes are not here: no text has these."""


def built_in_rules() -> list[Rule]:
    """Return the rules of all built-in roles."""
    found = [
        _rule(role, name, can=can, on=tuple(parse(text) for text in on))
        for role, name, can, on in TABLE
    ]
    nodes = (all_but_reserved(QUEUE), all_but_reserved(TOPIC))
    found.append(_rule(APPLICATION, "messages", can=("produce", "consume", "subscribe"), on=nodes))
    # a replay sends; a browse or a lease of a queue that does not exist creates it
    found.append(_rule(PIPELINE, "sends", can=("produce",), on=nodes))
    return found


def _rule(role: str, name: str, *, can: tuple[str, ...], on: tuple[RulePattern, ...]) -> Rule:
    return Rule(
        f"{BUILT_IN}{role}-{name}", who=(f"{OF_ROLE}{role}",), can=can, on=on, is_built_in=True
    )
