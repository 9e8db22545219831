"""An issuer of tokens: its keys, the tokens that it signs, and the server of its keys."""

from __future__ import annotations

import hmac
import json
import ssl
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Final

from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from broker.oauth_settings import OauthSettings
from tests.support.certificates import SERVER_NAME, Authority

ISSUER: Final = "https://login.example/shop"
AUDIENCE: Final = "jms-broker"
ALGORITHMS_BY_NAME: Final = JWSRegistry.algorithms
CURVES: Final = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}


def key_for(algorithm: str, kid: str) -> Key:
    """Return a new private key that can sign so."""
    if algorithm in CURVES:
        return ECKey.generate_key(CURVES[algorithm], {"kid": kid})
    if algorithm.startswith("Ed"):
        return OKPKey.generate_key("Ed25519", {"kid": kid})
    return RSAKey.generate_key(2048, {"kid": kid})


class TokenIssuer:
    """Signs tokens with the key `kid`, the newest, and publishes it with `others`."""

    def __init__(self, algorithm: str = "ES256", kid: str = "first") -> None:
        self.algorithm: Final = algorithm
        self.key = key_for(algorithm, kid)
        self.others: list[Key] = []

    def rotate(self, kid: str, *, keeps: bool = False) -> None:
        """Sign with a new key from now on; the old one is published still, or not."""
        self.others = [*self.others, self.key] if keeps else []
        self.key = key_for(self.algorithm, kid)

    def jwks(self) -> bytes:
        """Return the published keys."""
        keys = [key.as_dict(private=False) for key in (self.key, *self.others)]
        return json.dumps({"keys": keys}).encode()

    def claims(self, **changed: object) -> dict[str, object]:
        """Return the claims of a good token; a claim that is changed to None is left out."""
        now_s = int(time.time())
        claims: dict[str, object] = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "0a1b",
            "preferred_username": "ada",
            "exp": now_s + 600,
            "roles": ["application"],
            **changed,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, header: Mapping[str, object] | None = None, /, **changed: object) -> str:
        """Return a token with these claims and fields of its header, well signed."""
        fields = {"alg": self.algorithm, "kid": self.key.kid, **(header or {})}
        return signed(self.key, self.claims(**changed), fields)


def signed(key: Key, claims: Mapping[str, object], header: Mapping[str, object]) -> str:
    """Return a token that `key` has signed, whatever its header says; None leaves a field out."""
    given = {name: value for name, value in header.items() if value is not None}
    content = _content(claims, given)
    return (
        f"{content}.{_encoded(ALGORITHMS_BY_NAME[str(given['alg'])].sign(content.encode(), key))}"
    )


def signed_by_secret(
    secret: bytes, claims: Mapping[str, object], header: Mapping[str, object]
) -> str:
    """Return a token that is signed with HS256, by a secret."""
    content = _content(claims, header)
    return f"{content}.{_encoded(hmac.digest(secret, content.encode(), 'sha256'))}"


def unsigned(claims: Mapping[str, object], header: Mapping[str, object]) -> str:
    """Return a token without a signature."""
    return f"{_content(claims, header)}."


def _content(claims: Mapping[str, object], header: Mapping[str, object]) -> str:
    return ".".join(_encoded(json.dumps(each).encode()) for each in (header, claims))


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


class KeyServer(ThreadingHTTPServer):
    """Publishes the keys of an issuer by https. `status`, `body` and `headers` replace its answer.

    `asked` are the paths of the requests. Until `goes_on` is set, an answer goes on in bytes.
    """

    daemon_threads = True

    def __init__(self, issuer: TokenIssuer) -> None:
        super().__init__(("127.0.0.1", 0), _KeyRequest)
        self.issuer: Final = issuer
        self.status = 200
        self.body: bytes | None = None
        self.headers: dict[str, str] = {}
        self.asked: Final[list[str]] = []
        self.goes_on: Event | None = None

    @property
    def url(self) -> str:
        """The address of the keys."""
        return f"https://{SERVER_NAME}:{self.server_address[1]}/keys"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that refuses the certificate ends the connection."""


class _KeyRequest(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, KeyServer)
        server.asked.append(self.path)
        body = server.issuer.jwks() if server.body is None else server.body
        self.send_response(server.status)
        length = {} if server.goes_on is not None else {"content-length": str(len(body))}
        for name, value in {**length, **server.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if server.goes_on is not None:
            while not server.goes_on.wait(0.02):
                self.wfile.write(b" ")
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Write nothing to standard error."""


@contextmanager
def key_server(issuer: TokenIssuer, authority: Authority) -> Iterator[KeyServer]:
    """Run a server of `issuer`'s keys, whose certificate `authority` has signed."""
    server = KeyServer(issuer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue(SERVER_NAME).use_in(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def oauth(folder: Path, issuer: TokenIssuer, **given: object) -> OauthSettings:
    """Return settings that take the tokens of `issuer`, whose keys are written to a file."""
    file = folder / "jwks.json"
    file.write_bytes(issuer.jwks())
    fields = {"issuer": ISSUER, "audience": AUDIENCE, "jwks": str(file), **given}
    return OauthSettings.model_validate(fields)
