"""The beginning of a connection: the answer to the peer's header, and the broker's open."""

from typing import Final

from broker.amqp.errors import FRAME_SIZE_TOO_SMALL, ConnectionFault
from broker.amqp.frames import AMQP_HEADER, SASL_HEADER
from broker.amqp.lifecycle import ConnectionEvent, ConnectionState
from broker.amqp.limits import FRAME_SIZE_MIN, Limits
from broker.amqp.performatives import Open

HEADERS_IN: Final[dict[bytes, ConnectionEvent]] = {
    SASL_HEADER: ConnectionEvent.SASL_HEADER_IN,
    AMQP_HEADER: ConnectionEvent.AMQP_HEADER_IN,
}


def expects_header(state: ConnectionState) -> bool:
    """Return whether the next eight bytes are a protocol header."""
    return state is ConnectionState.START or state is ConnectionState.AUTHENTICATED


def header_event(
    header: bytes, state: ConnectionState, *, requires_sasl: bool
) -> ConnectionEvent | None:
    """Return the event of a header that arrives in `state`; None if it is refused (2.2, 5.3.1).

    SASL is allowed once, first, and may be left out only if authentication is not required.
    """
    event = HEADERS_IN.get(header)
    if event is ConnectionEvent.SASL_HEADER_IN and state is not ConnectionState.START:
        return None
    if (
        event is ConnectionEvent.AMQP_HEADER_IN
        and wanted_header(state, requires_sasl=requires_sasl) != AMQP_HEADER
    ):
        return None
    return event


def wanted_header(state: ConnectionState, *, requires_sasl: bool) -> bytes:
    """Return the header that answers a refused one: the one that the broker expects."""
    if requires_sasl and state is ConnectionState.START:
        return SASL_HEADER
    return AMQP_HEADER


def check_open(open: Open) -> None:
    """Raise ConnectionFault if the peer's open states a max-frame-size below the minimum (2.7.1).

    The condition is that of the specification for a frame that cannot fit; RabbitMQ uses it, too.
    """
    if open.max_frame_size < FRAME_SIZE_MIN:
        raise ConnectionFault(
            FRAME_SIZE_TOO_SMALL,
            f"max-frame-size is at least {FRAME_SIZE_MIN}, not {open.max_frame_size}",
        )


def our_open(
    container_id: str,
    limits: Limits,
    *,
    offered_capabilities: list[str],
    properties: dict[str, object],
) -> Open:
    """Return the open that the broker sends to every peer (2.7.1)."""
    patience_ms = limits.idle_time_out_ms
    return Open(
        container_id=container_id,
        max_frame_size=limits.max_frame_size,
        channel_max=limits.channel_max,
        # half of the time that the broker waits, so that a punctual peer is never late (2.4.5)
        idle_time_out=patience_ms >> 1 if patience_ms > 0 else -1,
        offered_capabilities=offered_capabilities,
        properties=properties,
    )
