"""Every way in which a link comes to its end while a client is in the middle of its work."""

from collections.abc import Callable
from typing import Final

from broker.amqp.errors import CONNECTION_FORCED, ConnectionFault
from broker.amqp.performatives import Begin, Close, Detach, End
from tests.support.broker import Client
from tests.support.frames import attach_receiver, raw_frame

Ending = Callable[[Client], None]
"""Ends the link with handle 0 of a client: a receiver with the usual name, on channel 0."""


def detach(client: Client) -> None:
    client.send(Detach(handle=0))


def detach_closed(client: Client) -> None:
    client.send(Detach(handle=0, closed=True))


def end(client: Client) -> None:
    client.send(End())


def close(client: Client) -> None:
    client.send(Close())


def hang_up(client: Client) -> None:
    client.hang_up()


def be_stolen(client: Client) -> None:
    """Another session of the same container attaches the link."""
    client.send(Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9), channel=9)
    client.send(attach_receiver(), channel=9)


def break_the_link(client: Client) -> None:
    client.flow(handle=0, credit=5, delivery_count=99)


def break_the_session(client: Client) -> None:
    client.flow(handle=99, credit=5)


def break_the_connection(client: Client) -> None:
    client.send_bytes(raw_frame(b"\x00"))


def be_silent(client: Client) -> None:
    client.broker.advance(60_000)


def be_forced(client: Client) -> None:
    client.peer.connection.close(ConnectionFault(CONNECTION_FORCED, "the broker is stopping"))
    client.broker.container.run_round()


ENDINGS: Final[dict[str, Ending]] = {
    "detached": detach,
    "detached for good": detach_closed,
    "session ended": end,
    "connection closed": close,
    "socket lost": hang_up,
    "link stolen": be_stolen,
    "a fault of the link": break_the_link,
    "a fault of the session": break_the_session,
    "a fault of the connection": break_the_connection,
    "silence": be_silent,
    "closed by the broker": be_forced,
}
