"""The tables of states: every state with every event, the impossible ones included."""

from itertools import product

import pytest

from broker.amqp.errors import ILLEGAL_STATE, NOT_ALLOWED, ConnectionFault, LinkFault, SessionFault
from broker.amqp.lifecycle import (
    ConnectionEvent,
    ConnectionState,
    LinkEvent,
    LinkState,
    SaslEvent,
    SaslState,
    SessionEvent,
    SessionState,
    connection_after,
    link_after,
    sasl_after,
    session_after,
)

# The paths through the states that the specification draws. The tables may allow no
# other step: every step that is on none of the paths must be refused.

CONNECTIONS = {
    # core 2.4.6 and 5.3.2, at the end that accepted the connection; all may end by LOST
    "in without SASL, closed by the peer": (
        [ConnectionEvent.AMQP_HEADER_IN, ConnectionEvent.OPEN_IN, ConnectionEvent.CLOSE_IN],
        [ConnectionState.HEADERS_EXCHANGED, ConnectionState.OPENED, ConnectionState.ENDED],
    ),
    "in with SASL, closed by us": (
        [
            ConnectionEvent.SASL_HEADER_IN,
            ConnectionEvent.SASL_OUTCOME_OUT,
            ConnectionEvent.AMQP_HEADER_IN,
            ConnectionEvent.OPEN_IN,
            ConnectionEvent.CLOSE_OUT,
            ConnectionEvent.CLOSE_IN,
        ],
        [
            ConnectionState.SASL,
            ConnectionState.AUTHENTICATED,
            ConnectionState.HEADERS_EXCHANGED,
            ConnectionState.OPENED,
            ConnectionState.CLOSE_SENT,
            ConnectionState.ENDED,
        ],
    ),
    "refused before its open": (
        [ConnectionEvent.AMQP_HEADER_IN, ConnectionEvent.CLOSE_OUT, ConnectionEvent.CLOSE_IN],
        [ConnectionState.HEADERS_EXCHANGED, ConnectionState.CLOSE_SENT, ConnectionState.ENDED],
    ),
}

SASL_EXCHANGES = {
    # core 5.3.2, up to the outcome, which ends the exchange
    "of two challenges": (
        [
            SaslEvent.INIT_IN,
            SaslEvent.CHALLENGE_OUT,
            SaslEvent.RESPONSE_IN,
            SaslEvent.CHALLENGE_OUT,
            SaslEvent.RESPONSE_IN,
        ],
        [
            SaslState.DECIDING,
            SaslState.CHALLENGED,
            SaslState.DECIDING,
            SaslState.CHALLENGED,
            SaslState.DECIDING,
        ],
    ),
}

SESSIONS = {
    # core 2.5.5
    "ended by the peer": (
        [SessionEvent.BEGIN_IN, SessionEvent.END_IN],
        [SessionState.MAPPED, SessionState.UNMAPPED],
    ),
    "ended by us": (
        [SessionEvent.BEGIN_IN, SessionEvent.END_OUT, SessionEvent.END_IN],
        [SessionState.MAPPED, SessionState.END_SENT, SessionState.UNMAPPED],
    ),
}

LINKS = {
    # core 2.6.3 to 2.6.6
    "detached by the peer": (
        [LinkEvent.ATTACH_IN, LinkEvent.ATTACH_OUT, LinkEvent.DETACH_IN],
        [LinkState.ATTACH_RECEIVED, LinkState.ATTACHED, LinkState.DETACHED],
    ),
    "detached by us": (
        [
            LinkEvent.ATTACH_IN,
            LinkEvent.ATTACH_OUT,
            LinkEvent.DETACH_OUT,
            LinkEvent.DETACH_IN,
        ],
        [
            LinkState.ATTACH_RECEIVED,
            LinkState.ATTACHED,
            LinkState.DETACH_SENT,
            LinkState.DETACHED,
        ],
    ),
}

CONNECTION_STEPS = {
    (state, event)
    for events, states in CONNECTIONS.values()
    for state, event in zip([ConnectionState.START, *states], events, strict=False)
} | {(state, ConnectionEvent.LOST) for state in ConnectionState}

SASL_STEPS = {
    (state, event)
    for events, states in SASL_EXCHANGES.values()
    for state, event in zip([SaslState.OFFERED, *states], events, strict=False)
}

SESSION_STEPS = {
    (state, event)
    for events, states in SESSIONS.values()
    for state, event in zip([SessionState.UNMAPPED, *states], events, strict=False)
}

LINK_STEPS = {
    (state, event)
    for events, states in LINKS.values()
    for state, event in zip([LinkState.DETACHED, *states], events, strict=False)
}


@pytest.mark.parametrize(("events", "states"), CONNECTIONS.values(), ids=CONNECTIONS.keys())
def test_a_connection_that_is(events: list[ConnectionEvent], states: list[ConnectionState]) -> None:
    state = ConnectionState.START
    for event, expected in zip(events, states, strict=True):
        state = connection_after(state, event)
        assert state is expected


@pytest.mark.parametrize("state", ConnectionState, ids=lambda state: f"a connection {state.value}")
def test_the_end_of_the_stream_ends(state: ConnectionState) -> None:
    assert connection_after(state, ConnectionEvent.LOST) is ConnectionState.ENDED


@pytest.mark.parametrize(
    ("state", "event"),
    [
        pytest.param(state, event, id=f"{event.value} while {state.value}")
        for state, event in product(ConnectionState, ConnectionEvent)
        if (state, event) not in CONNECTION_STEPS
    ],
)
def test_impossible_in_a_connection(state: ConnectionState, event: ConnectionEvent) -> None:
    with pytest.raises(ConnectionFault) as caught:
        connection_after(state, event)
    assert caught.value.condition == ILLEGAL_STATE
    assert caught.value.description == f"{event.value} while {state.value}"


@pytest.mark.parametrize(("events", "states"), SESSIONS.values(), ids=SESSIONS.keys())
def test_a_session_that_is(events: list[SessionEvent], states: list[SessionState]) -> None:
    state = SessionState.UNMAPPED
    for event, expected in zip(events, states, strict=True):
        state = session_after(state, event)
        assert state is expected


@pytest.mark.parametrize(
    ("state", "event"),
    [
        pytest.param(state, event, id=f"{event.value} while {state.value}")
        for state, event in product(SessionState, SessionEvent)
        if (state, event) not in SESSION_STEPS
    ],
)
def test_impossible_in_a_session(state: SessionState, event: SessionEvent) -> None:
    with pytest.raises(SessionFault) as caught:
        session_after(state, event)
    assert caught.value.condition == NOT_ALLOWED
    assert caught.value.description == f"{event.value} while {state.value}"


@pytest.mark.parametrize(("events", "states"), LINKS.values(), ids=LINKS.keys())
def test_a_link_that_is(events: list[LinkEvent], states: list[LinkState]) -> None:
    state = LinkState.DETACHED
    for event, expected in zip(events, states, strict=True):
        state = link_after(state, event)
        assert state is expected


@pytest.mark.parametrize(
    ("state", "event"),
    [
        pytest.param(state, event, id=f"{event.value} while {state.value}")
        for state, event in product(LinkState, LinkEvent)
        if (state, event) not in LINK_STEPS
    ],
)
def test_impossible_on_a_link(state: LinkState, event: LinkEvent) -> None:
    with pytest.raises(LinkFault) as caught:
        link_after(state, event)
    assert caught.value.condition == NOT_ALLOWED
    assert caught.value.description == f"{event.value} while {state.value}"


@pytest.mark.parametrize(("events", "states"), SASL_EXCHANGES.values(), ids=SASL_EXCHANGES.keys())
def test_a_sasl_exchange(events: list[SaslEvent], states: list[SaslState]) -> None:
    state = SaslState.OFFERED
    for event, expected in zip(events, states, strict=True):
        state = sasl_after(state, event)
        assert state is expected


@pytest.mark.parametrize(
    ("state", "event"),
    [step for step in product(SaslState, SaslEvent) if step not in SASL_STEPS],
    ids=lambda each: each.value,
)
def test_out_of_turn_in_a_sasl_exchange(state: SaslState, event: SaslEvent) -> None:
    with pytest.raises(ConnectionFault) as caught:
        sasl_after(state, event)
    assert caught.value.condition == NOT_ALLOWED
