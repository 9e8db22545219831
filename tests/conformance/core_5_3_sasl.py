"""Core 5.3: the SASL security layer."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from broker.amqp.descriptors import SASL_INIT
from broker.amqp.frames import AMQP_HEADER, SASL_FRAME, SASL_HEADER
from broker.amqp.performatives import Begin, Close, Open
from broker.amqp.sasl_frames import (
    SASL_AUTH,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from broker.amqp.types import Array, Symbol, UInt

from .conversation import Conversation
from .frames import Body, Frame, Header, described, frame, raw_frame, sasl_frame
from .harness import case
from .logins import WITH_USER, login_of
from .messages import section
from .verdict import Failed, Kind, NotApplicable, require

B = TypeVar("B", bound=Body)

SASL_SIZE_MAX = 512


async def _expect_kept_out(peer: Conversation) -> None:
    """Check that the server does not let the client in, however it refuses."""
    opened = False
    try:
        while True:
            came = await peer.receive()
            let_in = isinstance(came.body, SaslOutcome) and came.body.code == 0
            require(not let_in, "a refusal, or the end of the stream", described(came.raw))
            # a server may send its open before it closes, but then it must close
            opened = opened or isinstance(came.body, Open)
            if isinstance(came.body, Close):
                return
    except Failed as failed:
        if not failed.is_end and (opened or not failed.is_silence):
            raise


async def _expect_closed(peer: Conversation) -> None:
    """Check for a SASL refusal, or nothing, and then the end of the stream."""
    try:
        came = await peer.receive()
        # some servers send the header of the next layer in advance, which does not count
        while isinstance(came.body, Header) or (
            isinstance(came.body, SaslOutcome) and came.body.code != 0
        ):
            came = await peer.receive()
    except Failed as failed:
        if failed.is_end:
            return
        raise Failed("a refusal, then the end of the stream", failed.got) from None
    raise Failed("a refusal, then the end of the stream", described(came.raw))


@case("core", "5.3.2", "The server declares its mechanisms first, at least one.")
async def mechanisms_are_declared_first(peer: Conversation) -> None:
    offered = await peer.mechanisms()
    require(offered, "a list that is not empty", offered)


@case("core", "5.3.3.1", "The mechanisms are a symbol or an array of symbols.")
async def mechanisms_are_symbols(peer: Conversation) -> None:
    peer.send_bytes(SASL_HEADER)
    await peer.expect_header(SASL_HEADER)
    held = (await peer.receive()).fields()[0]
    values = held.values if isinstance(held, Array) else [held]
    require(values and all(isinstance(each, Symbol) for each in values), "symbols", held)


@case("core", "5.3.1", "The frames of the security layer have type 1, and 512 bytes at most.")
async def sasl_frames_have_their_type_and_size(peer: Conversation) -> None:
    peer.send_bytes(SASL_HEADER)
    await peer.expect_header(SASL_HEADER)
    login = login_of(peer.options, _checked(await peer.receive(), SaslMechanisms).mechanisms)
    peer.send_sasl(login.init)
    while True:
        came = await peer.receive()
        if not isinstance(came.body, SaslChallenge):
            break
        peer.send_sasl(SaslResponse(login.answer(_checked(came, SaslChallenge).challenge)))
    _checked(came, SaslOutcome)


def _checked(came: Frame, kind: type[B]) -> B:
    """Return the body of a SASL frame, which must be of `kind`."""
    require(came.kind == SASL_FRAME, "a frame of type 1", came.kind)
    require(len(came.raw) <= SASL_SIZE_MAX, "a frame of 512 bytes at most", len(came.raw))
    if not isinstance(came.body, kind):
        raise Failed(kind.__name__.lower(), described(came.raw))
    return came.body


@case("core", "5.3.2", "After the outcome ok the connection begins with a header of its own.")
async def connection_begins_behind_the_outcome(peer: Conversation) -> None:
    await peer.open()
    await peer.begin()
    await peer.close()


@case("core", "5.3.3.2", "A mechanism that was not offered: authentication fails, then close.")
async def unknown_mechanism_is_refused(peer: Conversation) -> None:
    await peer.mechanisms()
    peer.send_sasl(SaslInit(mechanism="CONFORMANCE-UNKNOWN", initial_response=b""))
    await _expect_closed(peer)


@case("core", "5.3.3.6", "A wrong password: the outcome is auth (1), then close.")
async def wrong_password_is_refused(peer: Conversation) -> None:
    if peer.options.user is None:
        raise NotApplicable("needs --user", Kind.OPTION_MISSING)
    await _wrong_password(peer, peer.options.user, (peer.options.password or "") + "x")


@case("core", "5.3.3.6", "An unknown user: the outcome is auth (1), then close.")
async def unknown_user_is_refused(peer: Conversation) -> None:
    if peer.options.user is None:
        raise NotApplicable("needs --user", Kind.OPTION_MISSING)
    await _wrong_password(peer, peer.name("nobody"), "x")


async def _wrong_password(peer: Conversation, user: str, password: str) -> None:
    offered = await peer.mechanisms()
    if "ANONYMOUS" in offered:
        raise NotApplicable(
            "the broker lets anybody in, so it may not care for names", Kind.NOT_OFFERED
        )
    login = login_of(replace(peer.options, user=user, password=password), offered)
    if login.init.mechanism not in WITH_USER:
        raise NotApplicable(f"{login.init.mechanism} has no password", Kind.NOT_OFFERED)
    peer.send_sasl(login.init)
    outcome = await peer.expect_outcome(login)
    require(outcome.code == SASL_AUTH, "the outcome auth (1)", f"the code {int(outcome.code)}")
    await peer.expect_eof()


@case("core", "5.3.2", "After an outcome other than ok nothing is served on the connection.")
async def nothing_is_served_after_a_refusal(peer: Conversation) -> None:
    await peer.mechanisms()
    peer.send_sasl(SaslInit(mechanism="CONFORMANCE-UNKNOWN", initial_response=b""))
    peer.send_bytes(AMQP_HEADER + frame(peer.our_open()))
    await _expect_closed(peer)


@case("core", "5.3.2", "No frame of a connection gets past a security layer that is not finished.")
async def open_within_the_security_layer_is_not_answered(peer: Conversation) -> None:
    await peer.mechanisms()
    peer.send(peer.our_open())
    await _expect_kept_out(peer)


@case("core", "5.3.2", "An AMQP header in place of sasl-init is no way past the security layer.")
async def header_within_the_security_layer_lets_nobody_in(peer: Conversation) -> None:
    await peer.mechanisms()
    peer.send_bytes(AMQP_HEADER + frame(peer.our_open()))
    await _expect_kept_out(peer)


@case("core", "5.3.1", "An empty frame within the security layer cannot be recovered from.")
async def empty_sasl_frame_is_refused(peer: Conversation) -> None:
    await peer.mechanisms()
    peer.send_bytes(raw_frame(b"", kind=SASL_FRAME))
    await _expect_closed(peer)


@case("core", "5.3.1", "Bytes 6 and 7 of the frame header and the extended header are ignored.")
async def rest_of_the_sasl_header_is_ignored(peer: Conversation) -> None:
    login = login_of(peer.options, await peer.mechanisms())
    body = sasl_frame(login.init)[8:]
    peer.send_bytes(raw_frame(b"\xff\xff\xff\xff" + body, 0x1234, kind=SASL_FRAME, doff=3))
    await peer.expect_let_in(login)


@case("core", "5.3.3.2", "A sasl-init without mechanism, which is mandatory, lets nobody in.")
async def sasl_init_without_mechanism_lets_nobody_in(peer: Conversation) -> None:
    await peer.mechanisms()
    peer.send_bytes(raw_frame(section(SASL_INIT, []), kind=SASL_FRAME))
    await _expect_kept_out(peer)


@case("core", "5.3.3.2", "A sasl-init whose mechanism is a number lets nobody in.")
async def mechanism_of_a_wrong_type_lets_nobody_in(peer: Conversation) -> None:
    await peer.mechanisms()
    peer.send_bytes(raw_frame(section(SASL_INIT, [UInt(1)]), kind=SASL_FRAME))
    await _expect_kept_out(peer)


@case("core", "5.3.2", "A response before any mechanism was chosen lets nobody in.")
async def response_before_init_lets_nobody_in(peer: Conversation) -> None:
    await peer.mechanisms()
    peer.send_sasl(SaslResponse(b"\0a\0b"))
    await _expect_kept_out(peer)


@case("core", "5.3.2", "A client cannot tell the server the outcome.")
async def outcome_from_the_client_lets_nobody_in(peer: Conversation) -> None:
    await peer.mechanisms()
    peer.send_sasl(SaslOutcome(0))
    await _expect_kept_out(peer)


@case("core", "5.3.1", "A frame of the security layer is refused once the connection is open.")
async def sasl_frame_in_an_open_connection_is_refused(peer: Conversation) -> None:
    await peer.open()
    peer.send_sasl(SaslInit(mechanism="ANONYMOUS", initial_response=b"x"))
    await peer.expect_closed(or_eof=True)


@case("core", "5.3.2", "The security layer is passed once: its header cannot come again.")
async def sasl_header_cannot_come_twice(peer: Conversation) -> None:
    await peer.login()
    peer.send_bytes(SASL_HEADER)
    header = (await peer.expect(Header)).data
    require(header != SASL_HEADER, "another header than SASL's", header.hex(" "))
    await peer.expect_eof()


@case("core", "5.3.3.1", "A server that offers ANONYMOUS lets anybody in with it.")
async def anonymous_is_let_in_where_it_is_offered(peer: Conversation) -> None:
    offered = await peer.mechanisms()
    if "ANONYMOUS" not in offered:
        raise NotApplicable(
            f"the broker offers {', '.join(offered)}, not ANONYMOUS", Kind.NOT_OFFERED
        )
    peer.send_sasl(SaslInit(mechanism="ANONYMOUS"))
    await peer.expect(SaslOutcome, code=0)


@case("core", "5.3.2", "Frames behind a header that should have been SASL's get nothing begun.")
async def nothing_is_begun_without_the_security_layer(peer: Conversation) -> None:
    if peer.options.user is None:
        raise NotApplicable(
            "needs --user: without one nobody must authenticate", Kind.OPTION_MISSING
        )
    begin = Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    peer.send_bytes(AMQP_HEADER + frame(peer.our_open()) + frame(begin))
    header = (await peer.expect(Header)).data
    if header == AMQP_HEADER:
        raise NotApplicable("the broker lets clients in without a security layer", Kind.NOT_OFFERED)
    await peer.expect_eof()
