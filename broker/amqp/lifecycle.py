"""Every rule on the life cycle of a connection, its SASL exchange, a session and a link.

Tables without side effects: the state that follows each event. Callers ask `..._after`
before they act; it raises the fault that the specification names if the event is not allowed.
"""

from enum import Enum
from typing import Final

from broker.amqp.errors import ILLEGAL_STATE, NOT_ALLOWED, ConnectionFault, LinkFault, SessionFault


class ConnectionState(Enum):
    """States of a connection (core 2.4.6) at the end that is connected to. SASL is first (5.3)."""

    START = "waiting for a protocol header"
    SASL = "authenticating"
    AUTHENTICATED = "waiting for the AMQP header"
    HEADERS_EXCHANGED = "waiting for open"
    OPENED = "open"
    CLOSE_SENT = "closing"
    ENDED = "ended"


class ConnectionEvent(Enum):
    """Events that change a connection's state: `IN` from the peer, `OUT` from the broker."""

    SASL_HEADER_IN = "SASL header"
    AMQP_HEADER_IN = "AMQP header"
    SASL_OUTCOME_OUT = "SASL outcome"
    OPEN_IN = "open"
    CLOSE_IN = "close"
    CLOSE_OUT = "our close"
    LOST = "end of the stream"


class SaslState(Enum):
    """States of a SASL exchange at the server (core 5.3.2), from the broker's mechanisms on."""

    OFFERED = "waiting for sasl-init"
    DECIDING = "deciding"
    CHALLENGED = "waiting for sasl-response"


class SaslEvent(Enum):
    """Events that change the state of a SASL exchange; its outcome ends it."""

    INIT_IN = "sasl-init"
    RESPONSE_IN = "sasl-response"
    CHALLENGE_OUT = "sasl-challenge"


class SessionState(Enum):
    """States of a session (core 2.5.5). A begin is answered at once: no intermediate states."""

    UNMAPPED = "unmapped"
    MAPPED = "mapped"
    END_SENT = "ending"


class SessionEvent(Enum):
    """Events that change a session's state."""

    BEGIN_IN = "begin"
    END_IN = "end"
    END_OUT = "our end"


class LinkState(Enum):
    """States of a link (core 2.6.3 to 2.6.6). The broker answers attaches and never begins one."""

    DETACHED = "detached"
    ATTACH_RECEIVED = "attach received"
    ATTACHED = "attached"
    DETACH_SENT = "detaching"


class LinkEvent(Enum):
    """Events that change a link's state."""

    ATTACH_IN = "attach"
    ATTACH_OUT = "our attach"
    DETACH_IN = "detach"
    DETACH_OUT = "our detach"


CONNECTION: Final[dict[tuple[ConnectionState, ConnectionEvent], ConnectionState]] = {
    (ConnectionState.START, ConnectionEvent.SASL_HEADER_IN): ConnectionState.SASL,
    (ConnectionState.START, ConnectionEvent.AMQP_HEADER_IN): ConnectionState.HEADERS_EXCHANGED,
    (ConnectionState.SASL, ConnectionEvent.SASL_OUTCOME_OUT): ConnectionState.AUTHENTICATED,
    (
        ConnectionState.AUTHENTICATED,
        ConnectionEvent.AMQP_HEADER_IN,
    ): ConnectionState.HEADERS_EXCHANGED,
    (ConnectionState.HEADERS_EXCHANGED, ConnectionEvent.OPEN_IN): ConnectionState.OPENED,
    (ConnectionState.HEADERS_EXCHANGED, ConnectionEvent.CLOSE_OUT): ConnectionState.CLOSE_SENT,
    (ConnectionState.OPENED, ConnectionEvent.CLOSE_IN): ConnectionState.ENDED,
    (ConnectionState.OPENED, ConnectionEvent.CLOSE_OUT): ConnectionState.CLOSE_SENT,
    (ConnectionState.CLOSE_SENT, ConnectionEvent.CLOSE_IN): ConnectionState.ENDED,
}

SASL: Final[dict[tuple[SaslState, SaslEvent], SaslState]] = {
    (SaslState.OFFERED, SaslEvent.INIT_IN): SaslState.DECIDING,
    (SaslState.DECIDING, SaslEvent.CHALLENGE_OUT): SaslState.CHALLENGED,
    (SaslState.CHALLENGED, SaslEvent.RESPONSE_IN): SaslState.DECIDING,
}

SESSION: Final[dict[tuple[SessionState, SessionEvent], SessionState]] = {
    (SessionState.UNMAPPED, SessionEvent.BEGIN_IN): SessionState.MAPPED,
    (SessionState.MAPPED, SessionEvent.END_IN): SessionState.UNMAPPED,
    (SessionState.MAPPED, SessionEvent.END_OUT): SessionState.END_SENT,
    (SessionState.END_SENT, SessionEvent.END_IN): SessionState.UNMAPPED,
}

LINK: Final[dict[tuple[LinkState, LinkEvent], LinkState]] = {
    (LinkState.DETACHED, LinkEvent.ATTACH_IN): LinkState.ATTACH_RECEIVED,
    (LinkState.ATTACH_RECEIVED, LinkEvent.ATTACH_OUT): LinkState.ATTACHED,
    (LinkState.ATTACHED, LinkEvent.DETACH_IN): LinkState.DETACHED,
    (LinkState.ATTACHED, LinkEvent.DETACH_OUT): LinkState.DETACH_SENT,
    (LinkState.DETACH_SENT, LinkEvent.DETACH_IN): LinkState.DETACHED,
}


def connection_after(state: ConnectionState, event: ConnectionEvent) -> ConnectionState:
    """Return the state after `event`. Raise ConnectionFault if it is not allowed in `state`."""
    if event is ConnectionEvent.LOST:
        return ConnectionState.ENDED
    new = CONNECTION.get((state, event))
    if new is None:
        raise ConnectionFault(ILLEGAL_STATE, f"{event.value} while {state.value}")
    return new


def sasl_after(state: SaslState, event: SaslEvent) -> SaslState:
    """Return the state after `event`. Raise ConnectionFault if it is not allowed in `state`."""
    new = SASL.get((state, event))
    if new is None:
        raise ConnectionFault(NOT_ALLOWED, f"{event.value} while {state.value}")
    return new


def session_after(state: SessionState, event: SessionEvent) -> SessionState:
    """Return the state after `event`. Raise SessionFault if it is not allowed in `state`."""
    new = SESSION.get((state, event))
    if new is None:
        raise SessionFault(NOT_ALLOWED, f"{event.value} while {state.value}")
    return new


def link_after(state: LinkState, event: LinkEvent) -> LinkState:
    """Return the state after `event`. Raise LinkFault if it is not allowed in `state`."""
    new = LINK.get((state, event))
    if new is None:
        raise LinkFault(NOT_ALLOWED, f"{event.value} while {state.value}")
    return new
