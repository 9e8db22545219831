"""How a named subscription is told from others."""

from __future__ import annotations

from urllib.parse import quote

Identity = tuple[str | None, str, bool]
"""Scope, name, and whether durable: subscriptions of one name that differ in these coexist
(SUB-24). The scope is a container-id, or None for the one global name space."""


def identity_of(identity: Identity) -> str:
    """`durable/client/name`; the client is empty where the name is global."""
    scope, name, durable = identity
    kind = "durable" if durable else "volatile"
    return f"{kind}/{quote(scope or '', safe='')}/{quote(name, safe='')}"
