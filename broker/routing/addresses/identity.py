"""Identities of named subscriptions, and the names that a store can keep in a key."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

KEY_BYTES_MAX: Final = 255
"""Maximum bytes of a name that every store can keep in a key."""

SubscriptionIdentity = tuple[str | None, str, bool]
"""Scope, name, and whether durable: subscriptions of one name that differ in the rest coexist
(SUB-24). The scope is a container-id, or None for the one global name space."""


def identity_of(identity: SubscriptionIdentity) -> str:
    """Return `durable/client/name`, or `volatile/…`; the client is empty if the name is global."""
    scope, name, durable = identity
    kind = "durable" if durable else "volatile"
    return f"{kind}/{quote(scope or '', safe='')}/{quote(name, safe='')}"


def identity_in(text: str) -> SubscriptionIdentity | None:
    """Return the identity that `identity_of` writes as `text`; None if it writes none so."""
    parts = text.split("/")
    if len(parts) != 3 or parts[0] not in ("durable", "volatile"):
        return None
    identity = (unquote(parts[1]) or None, unquote(parts[2]), parts[0] == "durable")
    return identity if identity_of(identity) == text else None


def fits_a_key(name: str) -> bool:
    """Return whether every store can keep `name` in a key.

    It is well-formed Unicode without NUL, of at most KEY_BYTES_MAX bytes.
    """
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return False
    return size <= KEY_BYTES_MAX and "\0" not in name
