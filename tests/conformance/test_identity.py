"""Product and version of a broker, as its open says; a broker that says none has its address."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from broker.amqp.frames import AMQP_HEADER, SASL_HEADER
from broker.amqp.performatives import Close, Open
from broker.amqp.sasl_frames import SaslMechanisms, SaslOutcome
from broker.amqp.types import Map, Symbol, UInt
from tests.conformance.frames import frame, sasl_frame
from tests.conformance.identity import BrokerIdentity, identity_of, place_of
from tests.conformance.test_harness import scripted
from tests.conformance.verdict import Options

LOGIN: Final = SASL_HEADER + sasl_frame(SaslMechanisms(["ANONYMOUS"]))
TOLD: Final[dict[str, object]] = {
    "product": "Example",
    "version": Symbol("1.2"),
    "limits": Map([(Symbol("queues"), UInt(7))]),
}
OPEN: Final = Open(container_id="c", properties=TOLD, offered_capabilities=["ANONYMOUS-RELAY"])

WELCOME: Final = LOGIN + sasl_frame(SaslOutcome(0)) + AMQP_HEADER

BROKERS: Final = [
    pytest.param(
        WELCOME + frame(OPEN) + frame(Close()),
        BrokerIdentity(
            "",
            product="Example",
            version="1.2",
            container_id="c",
            properties={"product": "Example", "version": "1.2", "limits": "{queues: 7}"},
            capabilities=["ANONYMOUS-RELAY"],
        ),
        id="an open with properties",
    ),
    pytest.param(
        WELCOME + frame(Open(container_id="c")) + frame(Close()),
        BrokerIdentity("", container_id="c"),
        id="an open without properties",
    ),
    pytest.param(LOGIN + sasl_frame(SaslOutcome(1)), BrokerIdentity(""), id="nobody is let in"),
    pytest.param(b"HTTP/1.1 400", BrokerIdentity(""), id="another protocol"),
]


@pytest.mark.parametrize(("data", "expected"), BROKERS)
async def test_a_broker_says_what_it_is(data: bytes, expected: BrokerIdentity) -> None:
    async with scripted(data) as options:
        found = await identity_of(options)
        assert found == replace(expected, place=f"127.0.0.1:{options.port}")
    assert found.name == (f"{expected.product} {expected.version}".strip() or found.place)


async def test_no_broker_is_an_error_of_the_user() -> None:
    async with scripted(b"") as options:
        pass
    with pytest.raises(OSError, match="Connect"):
        await identity_of(options)


def test_a_place_is_written_like_an_authority_of_a_url() -> None:
    assert place_of(Options("::1", 5672)) == "[::1]:5672"
