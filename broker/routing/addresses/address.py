"""Rules for addresses, and the addresses of temporary nodes."""

import secrets
from typing import Final

from mypy_extensions import i64

from broker.routing.addresses import durability, pattern
from broker.routing.errors import InvalidAddress, NoSuchNode

ADDRESS_BYTES_MAX: Final = 255
"""Maximum bytes of an address in UTF-8 (`reliability.md` S4): keys of any store take it."""

KEY_SEPARATOR: Final = "/"
"""In a topic's address the first one precedes the key; a queue's name may have any number."""

TEMPORARY_PREFIX: Final = "$tmp/"
"""Begins addresses of temporary nodes: no client creates one by name, so guesses find no node."""

SUBSCRIPTION_PREFIX: Final = "$sub/"
"""Begins the names under which the store keeps messages of subscriptions: of durable ones, and of
volatile ones for want of memory (`spilling.py`). No node has such a name."""

RESERVED: Final = "$"
"""Begins the broker's own names: no client may create a node with one. Stored ones stay."""

MANAGEMENT: Final = "$management"
"""Address of the broker itself: requests sent here never reach a queue or topic."""


def check(address: str) -> str:
    """Return `address` if it can name a node; else raise InvalidAddress, which says why not."""
    if not address:
        raise InvalidAddress("an address is not empty")
    try:
        size = len(address.encode())
    except UnicodeEncodeError:
        raise InvalidAddress("an address is well-formed Unicode") from None
    if size > ADDRESS_BYTES_MAX:
        raise InvalidAddress(
            f"an address has at most {ADDRESS_BYTES_MAX} bytes, this one has {size}"
        )
    for character in address:
        if character < " " or character == "\x7f":
            raise InvalidAddress("an address has no control characters")
    return address


def check_topic(name: str) -> str:
    """Return `name` if it can name a topic, so that a key fits after it (DST-05, DST-06).

    Raise InvalidAddress otherwise.
    """
    words = words_part(check(name))
    pattern.check(words)
    if KEY_SEPARATOR in words:
        raise InvalidAddress(f"a topic's name has no {KEY_SEPARATOR}: behind it is a key")
    if pattern.is_pattern(words):
        raise InvalidAddress(f"{name} is a pattern, not a topic")
    return name


def check_new(address: str) -> str:
    """Return the canonical form of `address` if a client or operator may create such a node.

    Raise InvalidAddress if no node can have the name, NoSuchNode if only the broker's own can.
    """
    address = durability.canonical(check(address))
    if is_temporary(address):
        raise NoSuchNode(f"no temporary node {address}")
    if address.startswith(RESERVED):
        raise NoSuchNode(
            f"{address} is no queue or topic: names that begin with {RESERVED} are the broker's own"
        )
    return address


def is_temporary(address: str) -> bool:
    """Return whether only the broker itself may create a node of this address."""
    return address.startswith(TEMPORARY_PREFIX)


def split_key(address: str) -> tuple[str, str]:
    """Return the topic in `address`, and the key after the first `/` of its name (DST-05)."""
    start = len(durability.beginning(address))
    if is_temporary(address):
        start = address.find(KEY_SEPARATOR, len(TEMPORARY_PREFIX)) + 1
    at = address.find(KEY_SEPARATOR, start)
    return (address, "") if at < 0 else (address[:at], address[at + 1 :])


def words_part(name: str) -> str:
    """Return a topic's name, or a pattern, without the prefix of its class (DST-10)."""
    return name[len(durability.beginning(name)) :]


def new_temporary(kind: str) -> str:
    """Return a new, unguessable address for a temporary node (TMP-01)."""
    return f"{TEMPORARY_PREFIX}{kind}/{secrets.token_urlsafe(16)}"


def check_node(address: str, kind: str, *, owner: i64) -> None:
    """Raise InvalidAddress or NoSuchNode if no node of that canonical address and kind may exist.

    `owner` is the connection that asks, below 0 if none does.
    """
    if durability.kind_in(address) not in ("", kind):
        raise InvalidAddress(f"{address} is no {kind}")
    if kind == "topic":
        check_topic(address)
    if durability.durability_of(address) is durability.Durability.TMP and owner < 0:
        raise NoSuchNode(f"{address} is made by the connection that is to have it")
