"""Logins of the harness: what it chooses, what servers must prove, and that it tries again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from broker.amqp.frames import SASL_HEADER
from broker.amqp.sasl_frames import SaslChallenge, SaslMechanisms, SaslOutcome
from tests.conformance.conversation import Conversation
from tests.conformance.frames import sasl_frame
from tests.conformance.harness import judge
from tests.conformance.logins import ScramLogin, login_of
from tests.conformance.test_harness import scripted, tried
from tests.conformance.verdict import Failed, NotApplicable, Options, Verdict

pytestmark = pytest.mark.requirement("SEC-02")

ANYBODY: Final = Options("h", 1)
ALICE: Final = replace(ANYBODY, user="alice", password="sesame")
SHOWN: Final = replace(ANYBODY, shows_certificate=True)

CHOICES = [
    pytest.param(ANYBODY, ["PLAIN", "ANONYMOUS"], "ANONYMOUS", id="nobody"),
    pytest.param(ALICE, ["ANONYMOUS", "SCRAM-SHA-256", "PLAIN"], "PLAIN", id="a user"),
    pytest.param(ALICE, ["SCRAM-SHA-256", "SCRAM-SHA-512"], "SCRAM-SHA-512", id="SCRAM alone"),
    pytest.param(SHOWN, ["PLAIN", "ANONYMOUS", "EXTERNAL"], "EXTERNAL", id="a certificate"),
    pytest.param(SHOWN, ["ANONYMOUS"], "ANONYMOUS", id="a certificate that is not asked for"),
    pytest.param(
        replace(ALICE, mechanism="SCRAM-SHA-256"),
        ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"],
        "SCRAM-SHA-256",
        id="a mechanism that was asked for",
    ),
    pytest.param(ANYBODY, ["PLAIN"], None, id="nobody, where a user is needed"),
    pytest.param(ALICE, ["ANONYMOUS"], None, id="a user, where none is known"),
    pytest.param(replace(ALICE, mechanism="PLAIN"), ["EXTERNAL"], None, id="not offered"),
]


@pytest.mark.parametrize(("options", "offered", "expected"), CHOICES)
def test_a_mechanism_is_chosen(options: Options, offered: list[str], expected: str | None) -> None:
    if expected is None:
        with pytest.raises(NotApplicable, match=f"the broker offers {', '.join(offered)}, and"):
            login_of(options, offered)
    else:
        assert login_of(options, offered).init.mechanism == expected


def scripts(*answers: SaslChallenge | SaslOutcome) -> bytes:
    offered = sasl_frame(SaslMechanisms(["SCRAM-SHA-256"]))
    return SASL_HEADER + offered + b"".join(sasl_frame(each) for each in answers)


async def logged_in(peer: Conversation) -> None:
    await peer.login()


CHEATS = [
    pytest.param([SaslOutcome(0)], "the server's proof", id="no challenge"),
    pytest.param([SaslChallenge(b"\xff")], "a challenge of SCRAM", id="no text"),
    pytest.param(
        [SaslChallenge(b"r=mine,s=c2FsdHNhbHRzYWx0c2FsdA==,i=4096")],
        "a challenge of SCRAM",
        id="its own nonce",
    ),
    pytest.param([SaslOutcome(1)], "the outcome ok (0)", id="a refusal"),
]


@pytest.mark.parametrize(("answers", "expected"), CHEATS)
async def test_a_server_that_proves_nothing_fails(
    answers: list[SaslChallenge | SaslOutcome], expected: str
) -> None:
    async with scripted(scripts(*answers)) as place:
        result = await judge(tried(logged_in), replace(ALICE, host=place.host, port=place.port))
    assert result.verdict is Verdict.FAILED
    assert result.expected.startswith(expected)


def test_a_signature_that_is_wrong_fails() -> None:
    login = ScramLogin("SCRAM-SHA-256", ALICE)
    nonce = (login.init.initial_response or b"").partition(b"r=")[2]
    assert login.answer(b"r=" + nonce + b"more,s=c2FsdHNhbHRzYWx0c2FsdA==,i=4096").startswith(
        b"c=biws,r="
    )
    with pytest.raises(Failed, match="a challenge of SCRAM-SHA-256"):
        login.answer(b"v=d3Jvbmc=")


async def test_a_login_that_was_not_checked_is_tried_again() -> None:
    """The second connection is let in."""
    codes: Iterator[int] = iter((4, 0))
    welcome = SASL_HEADER + sasl_frame(SaslMechanisms(["ANONYMOUS"]))

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(welcome + sasl_frame(SaslOutcome(next(codes))))
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        result = await judge(tried(logged_in), Options("127.0.0.1", port))
    assert result.verdict is Verdict.PASSED
    assert "the broker asks to try again later: 1 s" in result.conversation
