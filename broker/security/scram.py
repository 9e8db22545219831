"""The server's side of one SCRAM exchange (RFC 5802), without channel binding and without I/O.

An unknown or disabled user takes part with a decoy verifier, so that a stranger cannot tell from
frames or time which users exist. The decoy's salt is a keyed digest of the name: it stays the same,
as a user's does.

`scramp` computes and compares; this module limits what a client may send, and adds what scramp
leaves out: an authorization id equal to the user, and a second verifier while a password changes.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from secrets import token_bytes
from typing import TYPE_CHECKING, Final, TypeAlias, final

from broker.security.account import NAME_BYTES_MAX
from broker.security.scram_verifier import ITERATIONS, SALT_BYTES, ScramHash, ScramVerifier

if TYPE_CHECKING:
    from broker.security.scramp_parts import ScramServer

CLIENT_MESSAGE_BYTES_MAX: Final = 2_048
"""Maximum bytes of a client's message: a name of 255 bytes and the same authorization id, escaped,
take up to 1,560; the client's final message repeats both nonces and one of the names."""

CLIENT_NONCE_CHARS_MAX: Final = 256
"""Maximum characters of a client's nonce, which our challenge repeats: a SASL frame to a client has
at most 512 bytes, of which nonces, salt and iterations take up to 384. Clients send 18 to 64."""

SERVER_NONCE_BYTES: Final = 18
"""Random bytes of the server's nonce, 24 characters as base64: as many as PostgreSQL sends."""

OUT_OF_TURN: Final = "a SCRAM message out of turn"


@final
@dataclass(frozen=True)
class ScramChallenge:
    """The exchange goes on: `data` is sent to the client in a challenge."""

    data: bytes


@final
@dataclass(frozen=True)
class ScramSuccess:
    """The client is `user`, and has confirmed that the broker knows the password, too."""

    user: str


@final
@dataclass(frozen=True)
class ScramFailure:
    """The exchange has failed. `reason` is for operators: a client is told nothing of it.

    `user` is the user that the client has named, empty if its first message was malformed.
    """

    reason: str
    user: str = ""


ScramStep: TypeAlias = ScramChallenge | ScramSuccess | ScramFailure

FindVerifiers: TypeAlias = Callable[[str, ScramHash], Sequence[ScramVerifier]]
"""Returns the verifiers that a user may log in with, the current one first; none if the user may
not. A second one has the salt and iterations of the first."""


class MalformedError(ValueError):
    """A client's message does not follow RFC 5802, or asks for what this server does not have."""


class ScramStage(Enum):
    """The message that an exchange takes next."""

    FIRST = "client-first"
    FINAL = "client-final"
    EMPTY = "the empty response to the server's final message"
    OVER = "none"


@dataclass(frozen=True)
class ClientFirst:
    """A client's first message: the GS2 header, the authorization id in it, and the rest."""

    flag: str
    header: str
    authorization: str
    bare: str

    def without_authorization(self) -> str:
        """Return the message with an empty authorization id."""
        return f"{self.flag},,{self.bare}"


@final
class ScramExchange:
    """One exchange: `start`, then `answer` until the step is no challenge."""

    def __init__(
        self,
        hash_: ScramHash,
        find: FindVerifiers,
        *,
        salt_secret: bytes,
        nonce: str | None = None,
    ) -> None:
        """`salt_secret` keys the salts of decoys. It should survive a restart, as salts do.

        `nonce` is the server's, random if it is None.
        """
        self._hash: Final = hash_
        self._find: Final = find
        self._salt_secret: Final = salt_secret
        self._nonce: Final = nonce or b64encode(token_bytes(SERVER_NONCE_BYTES)).decode()
        self._stage = ScramStage.FIRST
        self._user = ""
        self._is_known = False
        self._servers: list[ScramServer] = []
        """One server for each verifier. All have sent the same challenge."""

    @property
    def user(self) -> str:
        """The user that the client has named; empty before `start`."""
        return self._user

    def start(self, response: bytes) -> ScramStep:
        """Take the client's first message; return the challenge with nonce, salt and iterations."""
        if self._stage is not ScramStage.FIRST:
            return self._failure(OUT_OF_TURN)
        try:
            challenge = self._started(_text_of(response))
        except MalformedError as error:
            return self._failure(f"{self._hash.value}: {error}")
        self._stage = ScramStage.FINAL
        return ScramChallenge(challenge)

    def answer(self, response: bytes) -> ScramStep:
        """Take the client's proof and return the server's, or take the empty response to that."""
        if self._stage is ScramStage.FINAL:
            return self._proven(response)
        if self._stage is ScramStage.EMPTY:
            if response:
                return self._failure("the response to the last SCRAM message is not empty")
            self._stage = ScramStage.OVER
            return ScramSuccess(self._user)
        return self._failure(OUT_OF_TURN)

    def _failure(self, reason: str) -> ScramFailure:
        self._stage = ScramStage.OVER
        return ScramFailure(reason, self._user)

    def _started(self, text: str) -> bytes:
        first = _client_first(text)
        verifiers: list[ScramVerifier] = []

        def find(user: str) -> ScramVerifier:
            self._user = user
            if first.header != f"{first.flag},," and first.authorization != user:
                raise MalformedError(f"user {user!r} may not act for another")
            # The decoy is made for known users, too: the time must not tell them apart.
            decoy = decoy_verifier(user, self._hash, self._salt_secret)
            verifiers.extend(self._find(user, self._hash))
            self._is_known = len(verifiers) > 0
            return verifiers[0] if verifiers else decoy

        server = self._server(first, find)
        if len(str(server.nonce)) - len(self._nonce) > CLIENT_NONCE_CHARS_MAX:
            raise MalformedError(f"a nonce has at most {CLIENT_NONCE_CHARS_MAX} characters")
        challenge: str = server.get_server_first()
        self._servers.append(server)
        for former in verifiers[1:]:
            other = self._server(first, partial(_given, former))
            other.get_server_first()
            self._servers.append(other)
        return challenge.encode()

    def _server(self, first: ClientFirst, find: Callable[[str], ScramVerifier]) -> ScramServer:
        """Return scramp's server after the client's first message."""
        from scramp import ScramException, ScramMechanism

        from broker.security.scramp_parts import expect_header

        def keys(user: str) -> tuple[bytes, bytes, bytes, int]:
            found = find(user)
            return found.salt, found.stored_key, found.server_key, found.iterations

        server = ScramMechanism(self._hash.value).make_server(keys, s_nonce=self._nonce)
        try:
            server.set_client_first(first.without_authorization())
        except ScramException as error:
            if error.__cause__ is not None:
                raise error.__cause__ from None  # what `keys` has raised, which scramp wraps
            raise MalformedError(str(error)) from None
        if first.authorization:
            expect_header(server, first.header)
        return server

    def _proven(self, response: bytes) -> ScramStep:
        try:
            final_ = self._server_final(_text_of(response))
        except MalformedError as error:
            return self._failure(f"{self._hash.value}: {error}")
        if final_ is None or not self._is_known:
            reason = f"user {self._user!r}: unknown, or the password is wrong"
            return self._failure(reason)
        self._stage = ScramStage.EMPTY
        return ScramChallenge(final_)

    def _server_final(self, text: str) -> bytes | None:
        """Return the server's proof, None if the client's fits no verifier."""
        from scramp import ScramException

        from broker.security.scramp_parts import is_wrong_proof

        for server in self._servers:
            try:
                server.set_client_final(text)
            except ScramException as error:
                if not is_wrong_proof(error):
                    raise MalformedError(str(error)) from None
            else:
                proof: str = server.get_server_final()
                return proof.encode()
        return None


def decoy_verifier(name: str, hash_: ScramHash, salt_secret: bytes) -> ScramVerifier:
    """Return the verifier of a user that does not exist. It looks real, and no password fits it."""
    salt = decoy_salt(name, hash_, salt_secret)
    return ScramVerifier(
        hash=hash_,
        iterations=ITERATIONS,
        salt=salt,
        stored_key=token_bytes(hash_.key_bytes),
        server_key=token_bytes(hash_.key_bytes),
    )


def decoy_salt(name: str, hash_: ScramHash, salt_secret: bytes) -> bytes:
    """Return a salt for `name` that is always the same, and that only the broker can compute."""
    return hmac.digest(salt_secret, f"{hash_.value} {name}".encode(), "sha256")[:SALT_BYTES]


def _given(verifier: ScramVerifier, user: str) -> ScramVerifier:  # noqa: ARG001 - as `find`
    return verifier


def _text_of(response: bytes) -> str:
    if len(response) > CLIENT_MESSAGE_BYTES_MAX:
        raise MalformedError(f"a message has at most {CLIENT_MESSAGE_BYTES_MAX} bytes")
    try:
        return response.decode()
    except UnicodeDecodeError:
        raise MalformedError("a message is UTF-8") from None


def _client_first(text: str) -> ClientFirst:
    """Split a client's first message: flag, authorization id, and the rest that scramp reads."""
    flag, _, rest = text.partition(",")
    authorization, comma, bare = rest.partition(",")
    if not comma:
        raise MalformedError("a first message begins with two parts that end in commas")
    if authorization and not authorization.startswith("a="):
        raise MalformedError("the authorization id begins with a=")
    # Checked before scramp prepares the name, which takes microseconds for each character.
    named = _unescaped(bare.partition(",")[0].removeprefix("n="))
    if len(named.encode()) > NAME_BYTES_MAX:
        raise MalformedError(f"a user's name has at most {NAME_BYTES_MAX} bytes")
    return ClientFirst(
        flag=flag,
        header=f"{flag},{authorization},",
        authorization=_unescaped(authorization.removeprefix("a=")),
        bare=bare,
    )


def _unescaped(name: str) -> str:
    """Return a name of RFC 5802, in which =2C is a comma, and =3D an equals sign."""
    return name.replace("=2C", ",").replace("=3D", "=")
