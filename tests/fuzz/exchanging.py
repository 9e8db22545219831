"""The entry point for SCRAM: the messages of a client, one a line, without a connection."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Final

import scramp  # noqa: F401 - imported here, so that no input is charged for it

from broker.security.scram import (
    FindVerifiers,
    ScramChallenge,
    ScramExchange,
    ScramFailure,
    ScramStep,
)
from broker.security.scram_verifier import (
    ITERATIONS,
    ITERATIONS_MIN,
    SALT_BYTES,
    ScramHash,
    ScramVerifier,
)
from tests.support.scram_client import FormulaClient

CHALLENGE_BYTES_MAX: Final = 493
"""Bytes of a challenge that fit into a SASL frame of 512 bytes."""

NONCE: Final = "c2VydmVybm9uY2U"
SECRET: Final = bytes(32)
USER: Final = "admin"
PASSWORD: Final = "secret"


def nobody(name: str, hash_: ScramHash) -> Sequence[ScramVerifier]:  # noqa: ARG001 - as `find`
    return []


def everybody(name: str, hash_: ScramHash) -> Sequence[ScramVerifier]:  # noqa: ARG001
    """Return a verifier that fits no password: a digest of the key that would is unknown."""
    keys = bytes(hash_.key_bytes)
    return [
        ScramVerifier(
            hash=hash_,
            iterations=ITERATIONS,
            salt=bytes(SALT_BYTES),
            stored_key=keys,
            server_key=keys,
        )
    ]


def scram(data: bytes) -> None:
    """Run the lines of `data` as the messages of one client; it must not log in.

    What a client may send does not depend on whether the user exists.
    """
    messages = data.split(b"\n")
    for hash_ in ScramHash:
        known, unknown = (
            [_shape(step) for step in _steps(hash_, find, messages)] for find in (everybody, nobody)
        )
        assert known == unknown, "known and unknown users are told apart"


def _steps(hash_: ScramHash, find: FindVerifiers, messages: list[bytes]) -> list[ScramStep]:
    exchange = ScramExchange(hash_, find, salt_secret=SECRET, nonce=NONCE)
    steps = [exchange.start(messages[0]), *(exchange.answer(each) for each in messages[1:])]
    for number, step in enumerate(steps):
        if isinstance(step, ScramChallenge):
            assert number == 0, "let in without a password"
            assert len(step.data) <= CHALLENGE_BYTES_MAX
        else:
            assert isinstance(step, ScramFailure), "let in without a password"
    return steps


def _shape(step: ScramStep) -> object:
    """Return what a client sees of a step, and the log: a salt is only as long as another."""
    if isinstance(step, ScramChallenge):
        attributes = step.data.split(b",")
        return [each[:2] for each in attributes], [len(each) for each in attributes]
    return step


def seeds() -> list[bytes]:
    """Return whole exchanges with wrong proofs, and first messages of other clients."""
    return [
        *(b"\n".join(_exchange(hash_, header)) for hash_ in ScramHash for header in HEADERS),
        b"p=tls-unique,,n=admin,r=abc",
        b"n,,m=x,n=admin,r=abc",
        b"n,,n=a=2Cb=3Dc,r=abc,x=y\n",
        "n,,n=\N{LATIN SMALL LETTER A WITH DIAERESIS},r=!~".encode(),
        b"\0admin\0secret",
    ]


HEADERS: Final = ("n,,", "y,,", "n,a=admin,")


def _exchange(hash_: ScramHash, header: str) -> list[bytes]:
    client = FormulaClient(hash_, USER, PASSWORD, header=header)
    salt = b64encode(bytes(SALT_BYTES)).decode()
    first = f"r=abc{NONCE},s={salt},i={ITERATIONS_MIN}".encode()
    return [client.first(), client.final(first), b""]
