"""Core 5.3.3.3 and 5.3.3.4: challenges and responses, by SCRAM, which most brokers share."""

from __future__ import annotations

from broker.amqp.frames import AMQP_HEADER
from broker.amqp.performatives import Close, Open
from broker.amqp.sasl_frames import SASL_OK, SaslChallenge, SaslInit, SaslOutcome, SaslResponse

from .conversation import Conversation
from .core_5_3_sasl import SASL_SIZE_MAX
from .frames import described, frame
from .harness import case
from .logins import (
    CHALLENGES_MAX,
    PAUSES_S,
    SCRAM,
    ScramLogin,
    TryLaterError,
    check_checked,
    login_of,
    pause,
)
from .verdict import Failed, Kind, NotApplicable, require

LONG_NONCE = 430
"""Characters of a nonce that fits into a sasl-init, and with the server's own not into a challenge:
the server's first message repeats it."""


async def _scram(peer: Conversation, *, nonce: str | None = None) -> ScramLogin:
    """Return a login by the first SCRAM mechanism that is offered."""
    if peer.options.user is None:
        raise NotApplicable("needs --user", Kind.OPTION_MISSING)
    offered = await peer.mechanisms()
    mechanism = next((each for each in SCRAM if each in offered), None)
    if mechanism is None:
        raise NotApplicable(f"the broker offers {', '.join(offered)}, not SCRAM", Kind.NOT_OFFERED)
    return ScramLogin(mechanism, peer.options, nonce=nonce)


async def _expect_kept_out(peer: Conversation) -> None:
    """Check that the client is refused, after CHALLENGES_MAX challenges at most, and others not.

    Each challenge is answered by nothing.
    """
    await _expect_refusal(peer)
    await _expect_still_let_in(peer)


async def _expect_still_let_in(peer: Conversation) -> None:
    """Check that the user is let in on another connection; a server may delay that."""
    for pause_s in PAUSES_S:
        try:
            async with peer.another() as other:
                await other.login()
                return
        except TryLaterError:
            await pause(pause_s)
    raise Failed("a login that is checked", "the outcome sys-temp (4), always")


async def _expect_refusal(peer: Conversation) -> None:
    for _ in range(CHALLENGES_MAX + 1):
        try:
            came = await peer.receive()
        except Failed as failed:
            if failed.is_end:
                return
            raise
        if isinstance(came.body, SaslOutcome):
            check_checked(came.body)
            require(came.body.code != SASL_OK, "a refusal", described(came.raw))
            await peer.expect_eof()
            return
        require(isinstance(came.body, SaslChallenge), "a refusal", described(came.raw))
        peer.send_sasl(SaslResponse(b""))
    raise Failed(f"a refusal after {CHALLENGES_MAX} challenges at most", "another challenge")


async def _expect_nothing_opened(peer: Conversation) -> None:
    """Check that the connection ends without an open, whatever the outcome was."""
    peer.send_bytes(AMQP_HEADER + frame(peer.our_open()))
    opened = ""
    try:
        while True:
            came = await peer.receive()
            if isinstance(came.body, Open):
                opened = described(came.raw)
            if isinstance(came.body, Close):
                return
    except Failed as failed:
        if opened or not failed.is_end:
            raise Failed("the end of the stream", opened or failed.got) from None


@case("core", "5.3.3.3", "SCRAM lets a client in after challenges, and the server proves itself.")
async def each_scram_mechanism_lets_a_user_in(peer: Conversation) -> None:
    offered = await peer.mechanisms()
    tried = [each for each in SCRAM if each in offered]
    if peer.options.user is None or not tried:
        raise NotApplicable(
            f"the broker offers {', '.join(offered)}, or no --user is given", Kind.NOT_OFFERED
        )
    for mechanism in tried:
        async with peer.another() as other:
            await other.mechanisms()
            login = ScramLogin(mechanism, other.options)
            other.send_sasl(login.init)
            await other.expect_let_in(login)


@case("core", "5.3.1", "A challenge has 512 bytes at most, however long the client's nonce is.")
async def challenges_are_short(peer: Conversation) -> None:
    login = await _scram(peer, nonce="n" * LONG_NONCE)
    peer.send_sasl(login.init)
    try:
        came = await peer.receive()
    except Failed as failed:
        if not failed.is_end:
            raise
    else:
        kinds = (SaslChallenge, SaslOutcome)
        require(isinstance(came.body, kinds), "a challenge or the outcome", described(came.raw))
        require(len(came.raw) <= SASL_SIZE_MAX, "a frame of 512 bytes at most", len(came.raw))
    await _expect_still_let_in(peer)


@case("core", "5.3.3.4", "A response that answers the challenge wrongly lets nobody in.")
async def empty_responses_let_nobody_in(peer: Conversation) -> None:
    login = await _scram(peer)
    peer.send_sasl(login.init)
    await peer.expect(SaslChallenge)
    peer.send_sasl(SaslResponse(b""))
    await _expect_kept_out(peer)


@case("core", "5.3.3.4", "A response that repeats the client's first message lets nobody in.")
async def repeated_first_message_lets_nobody_in(peer: Conversation) -> None:
    login = await _scram(peer)
    peer.send_sasl(login.init)
    await peer.expect(SaslChallenge)
    peer.send_sasl(SaslResponse(login.init.initial_response or b""))
    await _expect_kept_out(peer)


@case("core", "5.3.3.4", "A proof for another exchange lets nobody in.")
async def proof_of_another_exchange_lets_nobody_in(peer: Conversation) -> None:
    login = await _scram(peer)
    async with peer.another() as other:
        earlier = await _scram(other)
        other.send_sasl(earlier.init)
        stolen = earlier.answer((await other.expect(SaslChallenge)).challenge)
    peer.send_sasl(login.init)
    await peer.expect(SaslChallenge)
    peer.send_sasl(SaslResponse(stolen))
    await _expect_kept_out(peer)


@case("core", "5.3.2", "A second sasl-init in place of the response to a challenge lets nobody in.")
async def init_in_place_of_a_response_lets_nobody_in(peer: Conversation) -> None:
    login = await _scram(peer)
    peer.send_sasl(login.init)
    await peer.expect(SaslChallenge)
    peer.send_sasl(login.init)
    await _expect_kept_out(peer)


@case("core", "5.3.2", "After a second sasl-init nothing is opened.")
async def init_cannot_come_twice(peer: Conversation) -> None:
    login = login_of(peer.options, await peer.mechanisms())
    peer.send_sasl(login.init)
    peer.send_sasl(login.init)
    await _expect_nothing_opened(peer)


@case("core", "5.3.2", "After a response without a challenge nothing is opened.")
async def response_to_no_challenge_lets_nobody_in(peer: Conversation) -> None:
    login = login_of(peer.options, await peer.mechanisms())
    peer.send_sasl(login.init)
    peer.send_sasl(SaslResponse(b"x"))
    await _expect_nothing_opened(peer)


@case("core", "5.3.2", "A challenge is the server's: a client that sends one is not let in.")
async def challenge_from_the_client_lets_nobody_in(peer: Conversation) -> None:
    await peer.mechanisms()
    peer.send_sasl(SaslChallenge(b"x"))
    try:
        await _expect_refusal(peer)
    except Failed as failed:
        # a server that waits for the client's mechanism has let nobody in
        if not failed.is_silence:
            raise
    await _expect_still_let_in(peer)


@case("core", "5.3.3.2", "A first message of SCRAM that is none lets nobody in.")
async def malformed_first_message_lets_nobody_in(peer: Conversation) -> None:
    mechanism = (await _scram(peer)).init.mechanism
    peer.send_sasl(SaslInit(mechanism=mechanism, initial_response=b"\xff\x00n=,r=,"))
    await _expect_kept_out(peer)
