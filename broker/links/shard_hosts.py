"""Clients that ask for a host of another shard: they are sent there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from broker.links.redirect import redirect


@final
class ShardHosts:
    """The hosts of the other shards, in lower case, each with its ports by the listener's name."""

    def __init__(self, ports: Mapping[str, Mapping[str, int]]) -> None:
        self._ports: Final = ports

    def check(self, hostname: str | None, listener: str) -> None:
        """Raise ConnectionFault, a redirect, if an open names a host of another shard.

        The client is sent to the listener of the same name, which speaks the same protocol. Other
        hosts are those of this shard, or of none.
        """
        host = (hostname or "").lower()
        port = self._ports.get(host, {}).get(listener)
        if port is not None:
            raise redirect(f"{host:.50} is the host of another shard", host, port)
