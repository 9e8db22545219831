"""Prefixes by which some clients give the kind of a destination, such as `topic://news`.

Camel and the clients of ActiveMQ write them. `topic://news` is the address `news` with the
capability `topic` (DST-01). The setting `address_prefixes` says which prefixes are understood.
"""

from typing import Final, final

from broker.routing.addresses import durability
from broker.routing.addresses.address import TEMPORARY_PREFIX, Address
from broker.routing.errors import InvalidAddress, NoSuchNode

KINDS: Final[dict[str, str]] = {
    "queue://": "queue",
    "topic://": "topic",
    "temp-queue://": "queue",
    "temp-topic://": "topic",
}
"""Every prefix that can be understood, and the kind of node that it means."""

TEMPORARY: Final = "temp-"
"""Beginning of the prefixes of temporary nodes."""


@final
class Prefixes:
    """The prefixes that one broker understands.

    `literal` are addresses of stored nodes that begin with a prefix and could not be merged
    into the node that they mean now: they still name the stored node.
    """

    def __init__(self, understood: tuple[str, ...] = tuple(KINDS)) -> None:
        self.understood: Final = understood
        self.literal: Final[set[str]] = set()

    def parse(self, text: str, kind: str = "") -> Address:
        """Return the address that `text` is; `kind` is what a capability says, or empty.

        Raise InvalidAddress if prefix and capability contradict each other, or no name follows a
        prefix or class; NoSuchNode as `canonical`.
        """
        if not self.of(text):
            return Address(durability.canonical(text), kind)
        meant = self.kind_meant(text, kind)
        return Address(self.canonical(text), meant, given=text)

    def of(self, address: str) -> str:
        """Return the prefix of `address`, empty if it has none that is understood."""
        if "://" in address and address not in self.literal:
            for prefix in self.understood:
                if address.startswith(prefix):
                    return prefix
        return ""

    def kind_in(self, address: str) -> str:
        """Return the kind of node that the prefix of `address` means, empty without a prefix."""
        prefix = self.of(address)
        return KINDS[prefix] if prefix else ""

    def strip(self, address: str) -> str:
        """Return `address` without its prefix; the rest is not checked."""
        return address[len(self.of(address)) :]

    def canonical(self, address: str) -> str:
        """Return `address` without its prefix, and with its kind before its class (DST-10).

        Raise InvalidAddress if no name follows the prefix or class, NoSuchNode if a prefix of
        temporary nodes is followed by any other name than the broker gives them.
        """
        prefix = self.of(address)
        if not prefix:
            return durability.canonical(address)
        name = address[len(prefix) :]
        if not name or self.of(name):
            raise InvalidAddress(f"{address}: behind {prefix} is the name of one {KINDS[prefix]}")
        if prefix.startswith(TEMPORARY) and not name.startswith(TEMPORARY_PREFIX):
            raise NoSuchNode(
                f"no temporary {KINDS[prefix]} {name}: a client makes one by attaching a dynamic"
                " terminus, and is told its address"
            )
        return durability.canonical(name)

    def kind_meant(self, address: str, kind: str) -> str:
        """Return the kind that capability `kind` or the prefix of `address` gives, empty for none.

        Raise InvalidAddress if they contradict each other.
        """
        said = self.kind_in(address)
        if said and kind and said != kind:
            raise InvalidAddress(f"{address} is a {said}, and the capability says {kind}")
        return said or kind
