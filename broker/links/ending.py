"""What ended a link, in the words of `routing.lifetime`: itself, its session or its connection."""

from broker.amqp.connection import Connection
from broker.amqp.lifecycle import SessionState
from broker.amqp.link import Link
from broker.routing.topics.lifetime import Ending


def ending_of(link: Link, *, closed: bool) -> Ending:
    """Why `link` ends, asked while its owner is being told; `closed` is what the peer said."""
    session = link.session
    if session.connection.is_ending:
        return ending_of_connection(session.connection)
    if session.state is not SessionState.MAPPED:
        return Ending.SESSION_ENDED
    return Ending.LINK_CLOSED if closed else Ending.LINK_DETACHED


def ending_of_connection(connection: Connection) -> Ending:
    """How a connection ends. Good order is a close of the peer's without an error.

    All else is a loss to the client, our own close included: it will come back.
    """
    return Ending.CONNECTION_CLOSED if connection.closed_in_order else Ending.CONNECTION_LOST
