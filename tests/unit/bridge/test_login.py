"""The client's side of logins."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.bridge.failure import BridgeError
from broker.bridge.login import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    Credentials,
    ScramLogin,
    chosen_mechanism,
    plain_response,
    read_credentials,
)
from broker.security.scram import ScramChallenge, ScramExchange, ScramSuccess
from broker.security.scram_verifier import ScramHash, make_verifier

ANN = Credentials("ann", "a password")

FILES = [
    # the content of the file, the user and the password; None if it is refused
    (b"ann:secret\n", ("ann", "secret")),
    (b"ann:se:cr et", ("ann", "se:cr et")),
    (b"ann:secret\r\n", ("ann", "secret")),
    (b"ann\n", None),
    (b":secret\n", None),
    (b"ann:\n", None),
    (b"\xff:x", None),
    (b"ann:" + b"x" * 4096, None),
]


@pytest.mark.parametrize(("content", "expected"), FILES)
def test_a_file_of_credentials(
    content: bytes, expected: tuple[str, str] | None, tmp_path: Path
) -> None:
    file = tmp_path / "credentials"
    file.write_bytes(content)
    if expected is None:
        with pytest.raises(BridgeError, match="credentials_file"):
            read_credentials(file)
    else:
        assert read_credentials(file) == Credentials(*expected)


ALL = ["ANONYMOUS", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "EXTERNAL"]

CHOICES = [
    # offered, credentials, host, TLS, certificate, the mechanism; what is wrong if there is none
    (ALL, ANN, "there", False, False, "SCRAM-SHA-512", ""),
    (ALL, ANN, "there", True, True, "SCRAM-SHA-512", ""),
    (["PLAIN", "SCRAM-SHA-256"], ANN, "there", False, False, "SCRAM-SHA-256", ""),
    (["PLAIN"], ANN, "there", True, False, "PLAIN", ""),
    (["PLAIN"], ANN, "127.0.0.1", False, False, "PLAIN", ""),
    (["PLAIN"], ANN, "localhost", False, False, "PLAIN", ""),
    (["PLAIN"], ANN, "there", False, False, None, "amqps://"),
    (["ANONYMOUS"], ANN, "there", True, False, None, "ANONYMOUS"),
    (ALL, None, "there", False, False, "ANONYMOUS", ""),
    (ALL, None, "there", True, True, "EXTERNAL", ""),
    (["PLAIN"], None, "there", True, False, None, "set credentials_file"),
]


@pytest.mark.parametrize(
    ("offered", "credentials", "host", "encrypted", "certificate", "expected", "said"), CHOICES
)
def test_the_mechanism(
    offered: list[str],
    credentials: Credentials | None,
    host: str,
    encrypted: bool,
    certificate: bool,
    expected: str | None,
    said: str,
) -> None:
    def choose() -> str:
        return chosen_mechanism(
            offered,
            credentials,
            host=host,
            is_encrypted=encrypted,
            has_certificate=certificate,
        )

    if expected is None:
        with pytest.raises(BridgeError, match=said):
            choose()
    else:
        assert choose() == expected


def test_the_response_of_plain() -> None:
    assert plain_response(ANN) == b"\0ann\0a password"


@pytest.mark.parametrize(
    ("hash_", "mechanism"),
    [(ScramHash.SHA_256, "SCRAM-SHA-256"), (ScramHash.SHA_512, "SCRAM-SHA-512")],
)
async def test_scram_with_the_broker_of_this_project(hash_: ScramHash, mechanism: str) -> None:
    user = Credentials("a=n,n", "a password")
    verifier = make_verifier(hash_, user.password, iterations=ITERATIONS_MIN)
    exchange = ScramExchange(
        hash_, lambda name, _: [verifier] if name == user.user else [], salt_secret=b"s"
    )
    login = ScramLogin(mechanism, user)
    challenge = exchange.start(login.first())
    assert isinstance(challenge, ScramChallenge)
    proven = exchange.answer(await login.final(challenge.data))
    assert isinstance(proven, ScramChallenge)
    login.check(proven.data)
    assert exchange.answer(b"") == ScramSuccess(user.user)
    with pytest.raises(BridgeError, match="does not prove"):
        login.check(b"v=AAAA")


CHALLENGES = [
    ("r=NONCEx,s=c2FsdA==,i=4095", str(ITERATIONS_MIN)),
    (f"r=NONCEx,s=c2FsdA==,i={ITERATIONS_MAX + 1}", str(ITERATIONS_MAX)),
    ("r=other,s=c2FsdA==,i=4096", "another nonce"),
    ("r=NONCE,s=c2FsdA==,i=4096", "another nonce"),
    ("r=NONCEx,s=c2FsdA==", "malformed"),
    ("nonsense", "malformed"),
]


@pytest.mark.parametrize(("challenge", "said"), CHALLENGES)
async def test_a_wrong_challenge_is_refused(challenge: str, said: str) -> None:
    login = ScramLogin("SCRAM-SHA-256", ANN)
    nonce = login.first().decode().rpartition("r=")[2]
    with pytest.raises(BridgeError, match=said):
        await login.final(challenge.replace("NONCE", nonce).encode())
