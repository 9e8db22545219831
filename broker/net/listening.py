"""Opens the listening sockets of a host and port, as the event loop's own server does."""

from __future__ import annotations

import asyncio
import os
import socket


async def listening_sockets(host: str, port: int, *, backlog: int) -> list[socket.socket]:
    """Return a non-blocking listening socket for each address of `host`, all on one port.

    The kernel chooses the port for 0. Raises OSError, with the address in its text, if one of them
    cannot be listened on; then none is open.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE, proto=socket.IPPROTO_TCP
    )
    opened: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((each[0], each[4]) for each in found):
            here = (address[0], port, *address[2:])
            made = _listening(family, here, backlog=backlog)
            opened.append(made)
            port = int(made.getsockname()[1])
    except OSError:
        for each in opened:
            each.close()
        raise
    return opened


def _listening(
    family: socket.AddressFamily, address: tuple[str | int, ...], *, backlog: int
) -> socket.socket:
    # asyncio sets TCP_NODELAY only on sockets that name the protocol
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # else it would take the port of IPv4, too, which has a socket of its own
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(backlog)
        made.setblocking(False)
    except OSError as error:
        made.close()
        raise OSError(
            error.errno, f"{os.strerror(error.errno or 0)}: {address[0]} port {address[1]}"
        ) from None
    return made
