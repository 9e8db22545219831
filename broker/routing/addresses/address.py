"""Addresses: the value that one is parsed into, the rules for texts, temporary addresses."""

from __future__ import annotations

import secrets
from typing import Final, final

from mypy_extensions import i64

from broker.routing.addresses import durability, pattern
from broker.routing.errors import InvalidAddress, NoSuchNode

ADDRESS_BYTES_MAX: Final = 255
"""Maximum bytes of an address in UTF-8: keys of any store take it
(`docs/design/hostile-input.md` S4)."""

KEY_SEPARATOR: Final = "/"
"""In a topic's address the first one precedes the key; a queue's name may have any number."""

TEMPORARY_PREFIX: Final = "$tmp/"
"""Begins addresses of temporary nodes: no client creates one by name, so guesses find no node."""

SUBSCRIPTION_PREFIX: Final = "$sub/"
"""Begins the names under which the store keeps messages of subscriptions: of durable ones, and of
volatile ones for want of memory (`queue_persistence.py`). No node has such a name."""

RESERVED: Final = "$"
"""Begins the broker's own names: no client may create a node with one. Stored ones stay."""

MANAGEMENT: Final = "$management"
"""Address of the broker itself: requests sent here never reach a queue or topic."""


@final
class Address:
    """An address as a value, parsed once where it enters the broker (`Prefixes.parse`).

    `text` is canonical: without a prefix, its kind before its class (DST-10). `kind` is the kind of
    node that the capability, the prefix or the class says, empty if none does. `given` is the
    client's spelling if that has a prefix, else empty. `begins` is the beginning that tells the
    class, such as `/topic/durable/`, or empty, and `durability` that class.

    If the address is a topic's, `name` is the topic's address and `key` the text behind the first
    `/` of its name (DST-05); `words` is that name without `begins`, which may be a pattern.
    """

    def __init__(self, text: str, kind: str = "", *, given: str = "") -> None:
        begins = durability.beginning(text)
        start = len(begins)
        self.text: Final = text
        self.given: Final = given
        self.begins: Final = begins
        self.is_temporary: Final = text.startswith(TEMPORARY_PREFIX)
        promised = durability.Durability.PLAIN
        if begins:
            kind = kind or durability.kind_in(begins)
            promised = durability.durability_of(begins)
        self.kind: Final = kind
        self.durability: Final = promised
        if self.is_temporary:
            start = text.find(KEY_SEPARATOR, len(TEMPORARY_PREFIX)) + 1
        at = text.find(KEY_SEPARATOR, start)
        self.name: Final = text if at < 0 else text[:at]
        self.key: Final = "" if at < 0 else text[at + 1 :]
        self.words: Final = self.name[len(begins) :]
        self.is_pattern: Final = pattern.is_pattern(self.words)

    def of_kind(self, kind: str) -> Address:
        """Return this address as one of a node of `kind`."""
        return self if self.kind == kind else Address(self.text, kind, given=self.given)

    def topic(self) -> Address:
        """Return the address of the topic that this address names, without key."""
        if self.kind == "topic" and self.name == self.text:
            return self
        return Address(self.name, "topic")


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
    if not address.isprintable():  # of the characters that it means, only some are refused
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


def words_part(name: str) -> str:
    """Return a topic's name, or a pattern, without the prefix of its class (DST-10)."""
    return name[len(durability.beginning(name)) :]


def new_temporary(kind: str) -> str:
    """Return a new, unguessable address for a temporary node (TMP-01)."""
    return f"{TEMPORARY_PREFIX}{kind}/{secrets.token_urlsafe(16)}"


def check_node(address: Address, *, owner: i64) -> None:
    """Raise InvalidAddress or NoSuchNode if no node of `address` and its kind can be created.

    `owner` is the connection that asks, below 0 if none does.
    """
    text, kind = address.text, address.kind
    if durability.kind_in(text) not in ("", kind):
        raise InvalidAddress(f"{text} is no {kind}")
    if kind == "topic":
        check_topic(text)
    if address.durability is durability.Durability.TMP and owner < 0:
        raise NoSuchNode(f"{text} is made by the connection that is to have it")
