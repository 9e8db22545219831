"""The frame bodies of the SASL security layer (core spec 5.3.3), each as its field table."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.composite import FieldReader, FieldWriter, Performative
from broker.amqp.descriptors import (
    SASL_CHALLENGE,
    SASL_INIT,
    SASL_MECHANISMS,
    SASL_OUTCOME,
    SASL_RESPONSE,
)
from broker.amqp.encode import BytesWriter
from broker.amqp.errors import INVALID_FIELD, ConnectionFault

# sasl-code, 5.3.3.6
SASL_OK: Final = 0
SASL_AUTH: Final = 1
SASL_SYS: Final = 2
SASL_SYS_PERM: Final = 3
SASL_SYS_TEMP: Final = 4


@final
class SaslMechanisms(Performative):
    """The performative sasl-mechanisms, 5.3.3.1."""

    def __init__(self, mechanisms: list[str]) -> None:
        self.mechanisms: Final = mechanisms

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.symbols(self.mechanisms)
        fields.close(out, SASL_MECHANISMS)


def read_sasl_mechanisms(data: bytes, at: i64, end: i64) -> SaslMechanisms:
    """Read sasl-mechanisms, 5.3.3.1. Raise ConnectionFault if it is malformed or names none."""
    fields = FieldReader(data, at, end, "sasl-mechanisms")
    mechanisms = fields.symbols()
    fields.close()
    if not mechanisms:
        raise ConnectionFault(INVALID_FIELD, "sasl-mechanisms without sasl-server-mechanisms")
    return SaslMechanisms(mechanisms)


@final
class SaslInit(Performative):
    """The performative sasl-init, 5.3.3.2."""

    def __init__(
        self, *, mechanism: str, initial_response: bytes | None = None, hostname: str | None = None
    ) -> None:
        self.mechanism: Final = mechanism
        self.initial_response: Final = initial_response
        self.hostname: Final = hostname

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.symbol(self.mechanism)
        fields.binary(self.initial_response)
        fields.string(self.hostname)
        fields.close(out, SASL_INIT)


def read_sasl_init(data: bytes, at: i64, end: i64) -> SaslInit:
    fields = FieldReader(data, at, end, "sasl-init")
    performative = SaslInit(
        mechanism=fields.require_symbol("mechanism"),
        initial_response=fields.binary(),
        hostname=fields.string(),
    )
    fields.close()
    return performative


@final
class SaslChallenge(Performative):
    """The performative sasl-challenge, 5.3.3.3."""

    def __init__(self, challenge: bytes) -> None:
        self.challenge: Final = challenge

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.binary(self.challenge)
        fields.close(out, SASL_CHALLENGE)


def read_sasl_challenge(data: bytes, at: i64, end: i64) -> SaslChallenge:
    fields = FieldReader(data, at, end, "sasl-challenge")
    challenge = fields.require_binary("challenge")
    fields.close()
    return SaslChallenge(challenge)


@final
class SaslResponse(Performative):
    """The performative sasl-response, 5.3.3.4."""

    def __init__(self, response: bytes) -> None:
        self.response: Final = response

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.binary(self.response)
        fields.close(out, SASL_RESPONSE)


def read_sasl_response(data: bytes, at: i64, end: i64) -> SaslResponse:
    fields = FieldReader(data, at, end, "sasl-response")
    response = fields.require_binary("response")
    fields.close()
    return SaslResponse(response)


@final
class SaslOutcome(Performative):
    """The performative sasl-outcome, 5.3.3.5."""

    def __init__(self, code: i64, additional_data: bytes | None = None) -> None:
        self.code: Final[i64] = code
        self.additional_data: Final = additional_data

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.ubyte(self.code)
        fields.binary(self.additional_data)
        fields.close(out, SASL_OUTCOME)


def read_sasl_outcome(data: bytes, at: i64, end: i64) -> SaslOutcome:
    """Read sasl-outcome, 5.3.3.6. Raise ConnectionFault if it is malformed or its code unknown."""
    fields = FieldReader(data, at, end, "sasl-outcome")
    code = fields.require_uint("code")
    if code > SASL_SYS_TEMP:
        raise ConnectionFault(INVALID_FIELD, f"sasl-outcome: code is {int(code)}")
    additional_data = fields.binary()
    fields.close()
    return SaslOutcome(code, additional_data)
