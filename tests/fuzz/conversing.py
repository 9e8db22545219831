"""Entry points with a whole broker behind them: a connection before and after its open."""

from __future__ import annotations

from typing import Final

from broker.amqp.lifecycle import ConnectionState
from broker.amqp.limits import FRAME_SIZE_MIN
from broker.amqp.performatives import Begin
from tests.fuzz.manners import Manners
from tests.support.broker import Broker, Client, Doorman
from tests.support.frames import (
    Body,
    Transfer,
    attach_receiver,
    attach_sender,
    flow,
    frame,
    message,
    opening,
)
from tests.support.memory import Quiet

HANDSHAKE_MS: Final = 10_000
CLOSE_GRACE_MS: Final = 2_000

USER: Final = "admin"
PASSWORD: Final = "secret"
RESPONSE: Final = f"\0{USER}\0{PASSWORD}".encode()


def _frames(*bodies: Body) -> bytes:
    return b"".join(frame(body) for body in bodies)


BEGIN: Final = Begin(next_outgoing_id=0, incoming_window=1000, outgoing_window=1000)

NEIGHBOUR: Final = opening("neighbour") + _frames(
    BEGIN,
    attach_receiver("q"),
    flow(handle=0, credit=100, delivery_count=0),
    attach_sender("p", handle=1),
)
CLIENT: Final = opening("client", max_frame_size=FRAME_SIZE_MIN) + _frames(
    BEGIN,
    attach_sender("q"),
    attach_receiver("p", handle=1),
    flow(handle=1, credit=10, delivery_count=0),
)
DELIVERIES: Final = _frames(
    *(
        Transfer(handle=1, delivery_id=number, tag=b"n", payload=message(b"x" * number * 300))
        for number in range(3)
    )
)
"""The frames of the deliveries to the client; the last needs more than one frame to it."""


def connection(data: bytes) -> None:
    """Run bytes after open, on a session with a link in each direction and unsettled deliveries."""
    broker, client, neighbour = scene()
    send(client, pieces_of(data) if len(data) % 2 else [data])
    manners = Manners(frame_size_max=FRAME_SIZE_MIN)
    manners.check(bytes(client.transport.data), begun={0: {0, 1}})
    _is_fine(broker)
    _is_closed_as_told(client, manners)
    assert neighbour.peer.is_live(), "another connection has ended"
    Manners().check(bytes(neighbour.transport.data), begun={0: {0}})
    broker.advance(10)
    broker.advance(HANDSHAKE_MS)
    _is_fine(broker)
    if manners.closed:
        assert client.is_closed(), "a connection that was closed stays"
    _ends_with_nothing_left(broker, client, neighbour)


def pieces_of(data: bytes) -> list[bytes]:
    """Return `data` in up to forty pieces, whose size depends on the size of `data`."""
    size = max(1 + len(data) % 13, len(data) // 40)
    return [data[at : at + size] for at in range(0, len(data), size)]


def send(client: Client, pieces: list[bytes]) -> None:
    """Send the pieces until the socket is closed."""
    for piece in pieces:
        if not client.is_closed():
            client.send_bytes(piece)


def scene() -> tuple[Broker, Client, Client]:
    """Return a broker, the client whose input is fuzzed, and another that consumes its messages.

    The client has a sender to `q` on handle 0, a receiver from `p` on handle 1, and three
    deliveries that it has not settled. Frames to it have 512 bytes at most.
    """
    broker = Broker(watcher=Quiet())
    neighbour = broker.dial()
    neighbour.send_bytes(NEIGHBOUR)
    client = broker.dial()
    client.send_bytes(CLIENT)
    neighbour.send_bytes(DELIVERIES)
    client.transport.data.clear()
    neighbour.transport.data.clear()
    return broker, client, neighbour


def sasl(data: bytes) -> None:
    """Run bytes before open, on a broker that requires a login and on one that does not."""
    for anonymous in (False, True):
        doorman = Doorman({USER: PASSWORD}, anonymous=anonymous)
        broker = Broker(watcher=Quiet(), authenticator=doorman)
        client = broker.dial()
        client.send_bytes(data)
        _is_fine(broker)
        manners = Manners()
        manners.check(bytes(client.transport.data))
        if not anonymous:
            _has_logged_in(client, data)
        if not client.peer.is_open:
            _comes_in_pieces(client, data, anonymous=anonymous)
        _is_closed_as_told(client, manners)
        unknown = client.peer.connection.state in (ConnectionState.START, ConnectionState.SASL)
        broker.advance(CLOSE_GRACE_MS)
        broker.advance(HANDSHAKE_MS)
        if unknown or manners.closed:
            assert client.is_closed(), "a stranger may stay for ever"
        _is_fine(broker)
        _ends_with_nothing_left(broker, client)


def _has_logged_in(client: Client, data: bytes) -> None:
    if client.peer.is_open or client.peer.identity.user:
        assert RESPONSE in data or USER.encode() + RESPONSE in data, "let in without a password"
        assert client.peer.identity.user == USER


def _comes_in_pieces(whole: Client, data: bytes, *, anonymous: bool) -> None:
    """Check that the same bytes in several pieces get the same answer."""
    broker = Broker(watcher=Quiet(), authenticator=Doorman({USER: PASSWORD}, anonymous=anonymous))
    client = broker.dial()
    send(client, pieces_of(data))
    assert client.transport.data == whole.transport.data, "it matters how bytes are cut"
    _ends_with_nothing_left(broker, client)


def _is_fine(broker: Broker) -> None:
    for error in broker.watcher.errors:
        raise error


def _is_closed_as_told(client: Client, manners: Manners) -> None:
    """Check that the socket is closed if and only if the conversation is over."""
    connection = client.peer.connection
    assert client.is_closed() == connection.is_over
    assert manners.closed == (connection.state is ConnectionState.CLOSE_SENT) or connection.is_over


def _ends_with_nothing_left(broker: Broker, *clients: Client) -> None:
    """Disconnect all clients and delete all nodes; check that nothing is left.

    Entries that no collector sees must be freed with their nodes.
    """
    for client in clients:
        client.hang_up()
    assert broker.container.peer_count() == 0, "a connection is left"
    assert broker.container.link_count() == 0, "a link is left"
    assert broker.stats.connections_opened == broker.stats.connections_closed
    for node in [*broker.router.queues.values(), *broker.router.topics.values()]:
        assert not node.is_temporary, "a temporary node has outlived its connection"
        broker.router.delete(node, broker.journal.batch)
    broker.container.run_round()
    _is_fine(broker)
