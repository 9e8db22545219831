"""The six classes of RFC012 as prefixes of addresses (DST-10), and the promise of each.

`/queue/durable/NAME`, `/topic/transient/NAME` and so on; the two words may be in
either order. The prefix is part of the address: `NAME` alone is another node.
"""

from enum import Enum
from typing import Final

from broker.routing.errors import InvalidAddress


class Durability(Enum):
    """Promise about the storage of a node's messages."""

    PLAIN = "each message's own header says"
    DURABLE = "all are stored, and stay until they are consumed"
    TRANSIENT = "none is stored"
    TMP = "none is stored, and the node ends with the connection that made it"


CLASSES: Final[dict[str, Durability]] = {
    "durable": Durability.DURABLE,
    "transient": Durability.TRANSIENT,
    "tmp": Durability.TMP,
}
KINDS: Final = ("queue", "topic")


def canonical(address: str) -> str:
    """Return `address` with its kind before its class; any other address unchanged.

    Raise InvalidAddress if no name follows the class.
    """
    if not address.startswith("/"):
        return address
    words = address.split("/", 3)
    if len(words) < 3:
        return address
    kind, durability = words[1], words[2]
    if kind in CLASSES and durability in KINDS:
        kind, durability = durability, kind
    elif kind not in KINDS or durability not in CLASSES:
        return address
    if len(words) < 4 or not words[3]:
        raise InvalidAddress(f"{address} is a class of addresses, and lacks a name")
    return f"/{kind}/{durability}/{words[3]}"


def beginning(address: str) -> str:
    """Return the class prefix of a canonical address, such as `/queue/durable/`; empty if none."""
    if not address.startswith("/"):
        return ""
    words = address.split("/", 3)
    if len(words) < 4 or words[1] not in KINDS or words[2] not in CLASSES:
        return ""
    return f"/{words[1]}/{words[2]}/"


def durability_of(address: str) -> Durability:
    """Return the class of a canonical address."""
    words = address.split("/", 3)
    if len(words) < 4 or words[0] or words[1] not in KINDS:
        return Durability.PLAIN
    return CLASSES.get(words[2], Durability.PLAIN)


def kind_in(address: str) -> str:
    """Return the kind of node that a canonical address names, empty for a plain address."""
    begun = beginning(address)
    return begun.split("/")[1] if begun else ""
