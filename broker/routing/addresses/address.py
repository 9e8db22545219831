"""Which texts are addresses, and the addresses of temporary nodes."""

import secrets
from typing import Final

from mypy_extensions import i64

from broker.routing.addresses import durability, pattern
from broker.routing.errors import InvalidAddress, NoSuchNode

ADDRESS_BYTES_MAX: Final = 255
"""Longest address in UTF-8 (`reliability.md` S4): keys of any store take it."""

KEY_SEPARATOR: Final = "/"
"""Behind the first one a topic's address has a key; a queue's name may have any number."""

TEMPORARY_PREFIX: Final = "$tmp/"
"""Nobody may create a node below it by name, so a guessed name meets no node."""

SUBSCRIPTION_PREFIX: Final = "$sub/"
"""Under such names the store keeps the messages of durable subscriptions; no node has one."""

RESERVED: Final = "$"
"""Names that begin so are the broker's own: no client may create such a node. Stored ones stay."""

MANAGEMENT: Final = "$management"
"""The broker itself: requests sent here never reach a queue or topic."""


def check(address: str) -> str:
    """`address` itself where it can name a node, else InvalidAddress saying why not."""
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
    """`name` itself where it can name a topic, so that a key fits behind it (DST-05, DST-06)."""
    words = words_part(check(name))
    pattern.check(words)
    if KEY_SEPARATOR in words:
        raise InvalidAddress(f"a topic's name has no {KEY_SEPARATOR}: behind it is a key")
    if pattern.is_pattern(words):
        raise InvalidAddress(f"{name} is a pattern, not a topic")
    return name


def check_new(address: str) -> str:
    """`address` itself where a client or operator may create a node of that name.

    InvalidAddress where nothing can be called so; NoSuchNode where only the broker's own are.
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
    """Whether only the broker itself may make a node of this address."""
    return address.startswith(TEMPORARY_PREFIX)


def split_key(address: str) -> tuple[str, str]:
    """The topic that `address` names, and the key behind the first `/` of its name (DST-05)."""
    start = len(durability.beginning(address))
    if is_temporary(address):
        start = address.find(KEY_SEPARATOR, len(TEMPORARY_PREFIX)) + 1
    at = address.find(KEY_SEPARATOR, start)
    return (address, "") if at < 0 else (address[:at], address[at + 1 :])


def words_part(name: str) -> str:
    """A topic's name, or a pattern, without the beginning that tells its class (DST-10)."""
    return name[len(durability.beginning(name)) :]


def new_temporary(kind: str) -> str:
    """A fresh address that nobody can guess (TMP-01)."""
    return f"{TEMPORARY_PREFIX}{kind}/{secrets.token_urlsafe(16)}"


def check_node(address: str, kind: str, *, owner: i64) -> None:
    """Raise InvalidAddress or NoSuchNode if no node of that canonical address and kind can be made.

    `owner` is the connection that asks, below 0 if none does.
    """
    if durability.kind_in(address) not in ("", kind):
        raise InvalidAddress(f"{address} is no {kind}")
    if kind == "topic":
        check_topic(address)
    if durability.durability_of(address) is durability.Durability.TMP and owner < 0:
        raise NoSuchNode(f"{address} is made by the connection that is to have it")
