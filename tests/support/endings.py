"""All ways in which a link may end while its client is in the middle of its work."""

from collections.abc import Callable
from typing import Final

from broker.amqp.errors import CONNECTION_FORCED, ConnectionFault
from broker.amqp.performatives import Begin, Close, Detach, End
from tests.support.broker import Client
from tests.support.frames import attach_receiver, raw_frame

Ending = Callable[[Client], None]
"""Ends the client's link with handle 0: a receiver with the default name, on channel 0."""


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
    """Let another session of the same container steal the link."""
    client.send(Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9), channel=9)
    client.send(attach_receiver(), channel=9)


def break_the_link(client: Client) -> None:
    """Send an invalid delivery-count."""
    client.flow(handle=0, credit=5, delivery_count=99)


def break_the_session(client: Client) -> None:
    """Send a flow for a handle that is not attached."""
    client.flow(handle=99, credit=5)


def break_the_connection(client: Client) -> None:
    """Send a frame with an invalid body."""
    client.send_bytes(raw_frame(b"\x00"))


def be_silent(client: Client) -> None:
    """Send nothing for 60 s, the default idle time-out."""
    client.broker.advance(60_000)


def be_forced(client: Client) -> None:
    """Let the broker close the connection, as when it stops."""
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
