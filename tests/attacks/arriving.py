"""Attacks by the number of logins and handshakes: what they leave in the broker's memory."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from broker.amqp.frames import AMQP_HEADER, SASL_HEADER
from broker.amqp.sasl_frames import SaslChallenge, SaslInit, SaslOutcome, SaslResponse
from broker.security.scram_verifier import ScramHash
from tests.attacks.dialogue import Dialogue, Exchange, hold
from tests.attacks.entering import SASL_CODES
from tests.attacks.plan import PASSWORD, USER, Reached, Site
from tests.bench.certificate import certificate
from tests.conformance.frames import sasl_frame
from tests.support.scram_client import FormulaClient
from tests.support.tls_listening import BROKEN, HALF

HANDSHAKES: Final = 10_000
ANONYMOUS_LOGINS: Final = 1_000_000
SCRAM_LOGINS: Final = 100_000
PLAIN_LOGINS: Final = 10_000

LET_IN: Final = "sasl ok"
REFUSED: Final = "handshakes failed"

TLS: Final = """\
[[listener]]
name = "tls"
kind = "amqps"
port = 0

[tls]
certificate = "server.pem"
key = "server.key"
"""


def write_certificate(folder: Path) -> None:
    """Write the files that TLS names."""
    certificate().write(folder, "server")


async def logins_anonymous(site: Site) -> Reached:
    """Log in without a name, again and again."""
    init = _begun(SaslInit(mechanism="ANONYMOUS", initial_response=b"attacker"))
    return await _counted(site, ANONYMOUS_LOGINS, lambda dialogue: _one_step(dialogue, init))


async def logins_plain(site: Site) -> Reached:
    """Log in with the right password, again and again."""
    response = f"\0{USER}\0{PASSWORD}".encode()
    init = _begun(SaslInit(mechanism="PLAIN", initial_response=response))
    return await _counted(site, PLAIN_LOGINS, lambda dialogue: _one_step(dialogue, init))


async def logins_scram(site: Site) -> Reached:
    """Log in by SCRAM with the right password, again and again."""
    return await _counted(site, SCRAM_LOGINS, _scram)


def _begun(init: SaslInit) -> bytes:
    return SASL_HEADER + sasl_frame(init)


async def _counted(site: Site, count: int, begin: Callable[[Dialogue], Exchange]) -> Reached:
    """Hold a share of `count` logins; each must succeed."""
    wanted = site.share_of(count)
    began_s = time.monotonic()
    reached = await asyncio.to_thread(hold, site.port, wanted, begin)
    reached.figures = {"logins a second": wanted / (time.monotonic() - began_s)}
    reached.check(reached.told[LET_IN] == wanted, f"not all of {wanted} logins succeeded")
    return reached


def _one_step(dialogue: Dialogue, init: bytes) -> Exchange:
    dialogue.send(init)
    yield ""
    dialogue.next_body()  # the mechanisms
    yield _result(dialogue.next_body())


def _scram(dialogue: Dialogue) -> Exchange:
    client = FormulaClient(ScramHash.SHA_256, USER, PASSWORD)
    mechanism = ScramHash.SHA_256.value
    dialogue.send(_begun(SaslInit(mechanism=mechanism, initial_response=client.first())))
    yield ""
    dialogue.next_body()  # the mechanisms
    asked = dialogue.next_body()
    assert isinstance(asked, SaslChallenge)
    dialogue.send(sasl_frame(SaslResponse(client.final(asked.challenge))))
    yield ""
    proof = dialogue.next_body()
    assert isinstance(proof, SaslChallenge)
    assert client.knows(proof.challenge)
    dialogue.send(sasl_frame(SaslResponse(b"")))
    yield ""
    yield _result(dialogue.next_body())


def _result(body: object) -> str:
    assert isinstance(body, SaslOutcome), body
    return f"sasl {SASL_CODES[int(body.code)]}"


async def handshakes(site: Site) -> Reached:
    """Fail TLS handshakes in all ways in turn."""
    wanted = site.share_of(HANDSHAKES)
    began_s = time.monotonic()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts no certificate
    begun = iter(_failures(context) * (wanted // WAYS + 1))
    reached = await asyncio.to_thread(hold, site.tls_port, wanted, lambda each: next(begun)(each))
    reached.figures = {"handshakes a second": wanted / (time.monotonic() - began_s)}
    reached.check(reached.told[REFUSED] == wanted, f"not all of {wanted} handshakes failed")
    return reached


WAYS: Final = 5


def _failures(context: ssl.SSLContext) -> list[Callable[[Dialogue], Exchange]]:
    hello = Greeting(context).hello
    return [
        lambda dialogue: _said(dialogue, BROKEN),
        lambda dialogue: _said(dialogue, AMQP_HEADER),
        lambda dialogue: _left(dialogue, HALF),
        lambda dialogue: _broken_off(dialogue, hello),
        lambda dialogue: _distrusted(dialogue, Greeting(context)),
    ]


class Greeting:
    """A client of TLS in memory that has sent its `hello`."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.came: Final = ssl.MemoryBIO()
        self.said: Final = ssl.MemoryBIO()
        self.client: Final = context.wrap_bio(self.came, self.said, server_hostname="localhost")
        assert not self.goes_on()
        self.hello: Final = self.said.read()

    def goes_on(self) -> bool:
        """Return whether the handshake is complete; raise ssl.SSLError if it has failed."""
        try:
            self.client.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True


def _said(dialogue: Dialogue, data: bytes) -> Exchange:
    """Send what is no handshake."""
    dialogue.send(data)
    yield ""
    dialogue.read_to_end()
    yield REFUSED


def _left(dialogue: Dialogue, data: bytes) -> Exchange:
    """Begin, and disconnect."""
    dialogue.send(data)
    dialogue.near.close()
    yield REFUSED


def _broken_off(dialogue: Dialogue, hello: bytes) -> Exchange:
    """Let the broker sign, and go on with what is no handshake."""
    dialogue.send(hello)
    yield ""
    dialogue.near.recv(1)
    dialogue.send(BROKEN)
    yield ""
    dialogue.read_to_end()
    yield REFUSED


def _distrusted(dialogue: Dialogue, greeting: Greeting) -> Exchange:
    """Refuse the broker's certificate, as a client does that does not know its authority."""
    dialogue.send(greeting.hello)
    yield ""
    try:
        while not greeting.goes_on():
            greeting.came.write(dialogue.near.recv(CHUNK))
    except ssl.SSLCertVerificationError:
        dialogue.send(greeting.said.read())
    yield ""
    dialogue.read_to_end()
    yield REFUSED


CHUNK: Final = 16_384
