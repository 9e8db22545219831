"""Identities of named subscriptions."""

from __future__ import annotations

from urllib.parse import quote

Identity = tuple[str | None, str, bool]
"""Scope, name, and whether durable: subscriptions of one name that differ in the rest coexist
(SUB-24). The scope is a container-id, or None for the one global name space."""


def identity_of(identity: Identity) -> str:
    """Return `durable/client/name`, or `volatile/…`; the client is empty if the name is global."""
    scope, name, durable = identity
    kind = "durable" if durable else "volatile"
    return f"{kind}/{quote(scope or '', safe='')}/{quote(name, safe='')}"
