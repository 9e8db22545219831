"""The server's end of the frames of a SASL exchange (core 5.3.2): whose turn it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.amqp.descriptors import SASL_INIT, SASL_RESPONSE
from broker.amqp.encode import BytesWriter
from broker.amqp.errors import NOT_ALLOWED, ConnectionFault
from broker.amqp.frames import put_sasl_frame
from broker.amqp.lifecycle import SaslEvent, SaslState, sasl_after
from broker.amqp.limits import SASL_CHALLENGE_SIZE_MAX, SASL_CHALLENGES_MAX
from broker.amqp.sasl_frames import (
    SaslChallenge,
    SaslMechanisms,
    SaslOutcome,
    read_sasl_init,
    read_sasl_response,
)

if TYPE_CHECKING:
    from broker.amqp.events import ConnectionOwner


@final
class SaslServer:
    """The exchange of one connection, until its outcome."""

    def __init__(self, mechanisms: list[str]) -> None:
        self._mechanisms: Final = mechanisms
        self._state: SaslState = SaslState.OFFERED
        self._challenges: i64 = 0

    def offer(self, out: BytesWriter) -> None:
        """Write the mechanisms from which the client chooses one."""
        put_sasl_frame(out, SaslMechanisms(self._mechanisms))

    def receive(self, code: i64, data: bytes, at: i64, end: i64, *, owner: ConnectionOwner) -> None:
        """Pass a frame of the client on to `owner`. Raise ConnectionFault if it is not due."""
        if code == SASL_INIT:
            self._state = sasl_after(self._state, SaslEvent.INIT_IN)
            init = read_sasl_init(data, at, end)
            owner.authenticate(init.mechanism, init.initial_response)
        elif code == SASL_RESPONSE:
            self._state = sasl_after(self._state, SaslEvent.RESPONSE_IN)
            owner.challenge_answered(read_sasl_response(data, at, end).response)
        else:
            raise ConnectionFault(NOT_ALLOWED, "sasl-init or sasl-response was expected")

    def is_deciding(self) -> bool:
        """Return whether the client waits for a challenge or the outcome."""
        return self._state is SaslState.DECIDING

    def challenge(self, out: BytesWriter, challenge: bytes) -> bool:
        """Write a challenge. Return False, and write nothing, if it is one too many or too long."""
        if not self.is_deciding():
            return False
        self._challenges += 1
        if self._challenges > SASL_CHALLENGES_MAX or len(challenge) > SASL_CHALLENGE_SIZE_MAX:
            return False
        self._state = sasl_after(self._state, SaslEvent.CHALLENGE_OUT)
        put_sasl_frame(out, SaslChallenge(challenge))
        return True

    def decide(self, out: BytesWriter, code: i64) -> None:
        """Write the outcome, which ends the exchange."""
        put_sasl_frame(out, SaslOutcome(code))
