"""Conditions of a rule on how a client is connected: `when = {listener, from, tls}`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final, final

from broker.security.entrance import Entrance

Network = IPv4Network | IPv6Network


class ConditionError(ValueError):
    """A condition is invalid. The message says what is allowed."""


NO_ENTRANCE: Final = Entrance(listener="", kind="", host="")
"""The entrance of a request that did not come through a listener."""

ADDRESSES_MAX: Final = 1024
"""Maximum addresses of clients that are kept parsed."""


@lru_cache(maxsize=ADDRESSES_MAX)
def _ip_of(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address of a client, None if it has none, as within the process."""
    try:
        found = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    # one machine must not leave a network by the other spelling of its address
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found


@final
class Conditions:
    """Conditions that must all hold; one that is empty or None always does."""

    def __init__(
        self,
        *,
        listeners: Iterable[str] = (),
        networks: Iterable[Network] = (),
        tls: bool | None = None,
    ) -> None:
        self.listeners: Final = frozenset(listeners)
        self.networks: Final = tuple(networks)
        self.tls: Final = tls

    def hold(self, entrance: Entrance, *, if_unknown: bool) -> bool:
        """Return whether all hold; `if_unknown` is the answer for a client without an IP address.

        It is True for deny rules and False for allow rules, so that an unknown address never
        gives more rights.
        """
        if self.listeners and entrance.listener not in self.listeners:
            return False
        if self.tls is not None and entrance.is_tls is not self.tls:
            return False
        if not self.networks:
            return True
        ip = _ip_of(entrance.host)
        return if_unknown if ip is None else any(ip in network for network in self.networks)

    def include(self, other: Conditions | None) -> bool:
        """Return whether these hold whenever `other` hold; None are those that always hold."""
        if other is None:
            return not self.listeners and not self.networks and self.tls is None
        if self.listeners and not (other.listeners and other.listeners <= self.listeners):
            return False
        if self.tls is not None and other.tls is not self.tls:
            return False
        if not self.networks:
            return True
        return bool(other.networks) and all(
            any(_lies_in(inner, outer) for outer in self.networks) for inner in other.networks
        )

    def text(self) -> str:
        """Return the conditions as the rules file writes them."""
        parts: list[str] = []
        if self.listeners:
            parts.append(f"listener = {sorted(self.listeners)}")
        if self.networks:
            parts.append(f"from = {[str(each) for each in self.networks]}")
        if self.tls is not None:
            parts.append(f"tls = {str(self.tls).lower()}")
        return ", ".join(parts).replace("'", '"')


def _lies_in(inner: Network, outer: Network) -> bool:
    if isinstance(inner, IPv4Network):
        return isinstance(outer, IPv4Network) and inner.subnet_of(outer)
    return isinstance(outer, IPv6Network) and inner.subnet_of(outer)


def network_of(text: str) -> Network:
    """Return the network that `text` is, such as `10.0.0.0/8` or one address.

    Raise ConditionError otherwise.
    """
    try:
        network = ip_network(text)
    except ValueError as error:
        raise ConditionError(f"{text!r} is no network such as 10.0.0.0/8: {error}") from None
    if isinstance(network, IPv6Network) and network.network_address.ipv4_mapped is not None:
        raise ConditionError(f"{text!r}: write the IPv4 network, without ::ffff:")
    return network
