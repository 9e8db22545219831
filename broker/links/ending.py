"""Why a link ended, in the terms of `routing.topics.lifetime`: link, session or connection."""

from broker.amqp.connection import Connection
from broker.amqp.errors import STOLEN
from broker.amqp.lifecycle import SessionState
from broker.amqp.link import Link
from broker.routing.topics.lifetime import Ending


def ending_of(link: Link, *, closed: bool) -> Ending:
    """Return why `link` ends. Call it while the owner of the link is notified of the end.

    `closed`: the peer sent detach(closed=true).
    """
    session = link.session
    if session.connection.is_ending:
        return ending_of_connection(session.connection)
    if session.state is not SessionState.MAPPED:
        return Ending.SESSION_ENDED
    return Ending.LINK_CLOSED if closed else Ending.LINK_DETACHED


def ending_of_connection(connection: Connection) -> Ending:
    """Return how a connection ends: in good order only if the peer closed it without an error.

    Every other end, a close by the broker included, is a loss to the client: it will reconnect.
    """
    return Ending.CONNECTION_CLOSED if connection.closed_in_order else Ending.CONNECTION_LOST


def ends_terminus(link: Link, *, closed: bool) -> bool:
    """Return whether the terminus of `link` ends with it: either end has closed the link (2.6.4).

    A link that is stolen closes, too, but its terminus goes on with the other link.
    """
    fault = link.ended_by
    return closed or (fault is not None and fault.condition != STOLEN)
