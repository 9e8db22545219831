"""TLS of commands: which files are used, and what an operator reads if a handshake fails."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from broker.cli.broker_url import URLError
from broker.cli.client_tls import (
    CA_VARIABLE,
    CERT_VARIABLE,
    KEY_VARIABLE,
    ClientTls,
    ClientTlsError,
    chosen_tls,
    handshake_failure,
)
from tests.support.certificates import SERVER_NAME, Authority, Issued, MemoryHandshake

pytestmark = pytest.mark.requirement("SEC-01")

PLAIN_URL: Final = "amqp://h"
TLS_URL: Final = "amqps://h"


@dataclass(frozen=True)
class Files:
    """A folder with an authority, the server's certificate, a client's, and wrong files."""

    folder: Path
    authority: Authority
    server: Issued
    client: Issued

    def path(self, name: str) -> Path:
        return self.folder / name


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("certificates")
    authority = Authority()
    server, client = authority.issue(SERVER_NAME), authority.issue("shop@example.org")
    authority.write(folder)
    Authority().write(folder, "other")
    client.write(folder, "shop")
    authority.issue("other@example.org").write(folder, "unlike")
    (folder / "both.pem").write_bytes(client.chain + client.key)
    (folder / "locked.key").write_bytes(client.key_with("secret"))
    (folder / "junk").write_text("junk")
    return Files(folder, authority, server, client)


USABLE = [
    pytest.param(None, None, id="a certificate and its key in one file"),
    pytest.param("shop.pem", "shop.key", id="in two files"),
]


@pytest.mark.parametrize(("cert", "key"), USABLE)
def test_a_client_is_trusted_by_the_files(files: Files, cert: str | None, key: str | None) -> None:
    tls = ClientTls(
        files.path("ca.pem"),
        files.path(cert or "both.pem"),
        None if key is None else files.path(key),
    )
    handshake = MemoryHandshake(demanding(files, files.server), tls.context())
    assert handshake.server.getpeercert(binary_form=True) == files.client.der


UNUSABLE = [
    pytest.param("missing", None, None, "--ca missing: there is no such file", id="no CA"),
    pytest.param("", None, None, "--ca : it cannot be read: Is a directory", id="a folder"),
    pytest.param(
        "junk", None, None, "--ca junk: there is no certificate in PEM form", id="no PEM as CA"
    ),
    pytest.param("ca.pem", "missing", None, "--cert missing: there is no such file", id="no cert"),
    pytest.param(
        "ca.pem", "shop.pem", "missing", "--key missing: there is no such file", id="no key"
    ),
    pytest.param(
        "ca.pem", "junk", "shop.key", "--cert junk: there is no certificate in", id="no PEM as cert"
    ),
    pytest.param(
        "ca.pem", "shop.pem", None, "--cert shop.pem: there is no private key in", id="no key in it"
    ),
    pytest.param(
        "ca.pem", "shop.pem", "shop.pem", "--key shop.pem: there is no private key", id="twice"
    ),
    pytest.param(
        "ca.pem",
        "shop.pem",
        "unlike.key",
        "--key unlike.key: the key does not belong to the certificate shop.pem",
        id="the key of another certificate",
    ),
    pytest.param(
        "ca.pem",
        "shop.pem",
        "locked.key",
        "--key locked.key: the key has a password. Write it without one",
        id="a key with a password",
    ),
]


@pytest.mark.parametrize(("ca", "cert", "key", "told"), UNUSABLE)
def test_a_file_that_cannot_be_used(
    files: Files, ca: str, cert: str | None, key: str | None, told: str
) -> None:
    chosen = [None if name is None else files.path(name) for name in (ca, cert, key)]
    with pytest.raises(ClientTlsError) as raised:
        ClientTls(*chosen).context()
    text = str(raised.value).replace(f"{files.folder}/", "").replace(str(files.folder), "")
    assert text.startswith(told)
    assert "\n" not in text


def test_a_key_needs_its_certificate() -> None:
    with pytest.raises(ClientTlsError, match="--key k needs --cert"):
        ClientTls(key=Path("k"))


def demanding(files: Files, shown: Issued) -> ssl.SSLContext:
    """Return a server that shows `shown`, and demands a certificate of the authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.use_in(context)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(files.path("ca.pem"))
    return context


def showing(shown: Issued) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.use_in(context)
    return context


Served = Callable[[Files], ssl.SSLContext]

FAILURES = [
    pytest.param(
        "other.pem",
        lambda files: showing(files.server),
        SERVER_NAME,
        "its certificate is not signed by an authority in …/other.pem: give the authority's",
        id="another authority",
    ),
    pytest.param(
        None,
        lambda files: showing(files.server),
        SERVER_NAME,
        "its certificate is not signed by an authority that this machine trusts: give",
        id="no authority was named",
    ),
    pytest.param(
        "ca.pem",
        lambda files: showing(files.server),
        "broker.example",
        "its certificate is not for the name broker.example: connect by a name that is in it",
        id="another host name",
    ),
    pytest.param(
        "ca.pem",
        lambda files: showing(files.server),
        "127.0.0.1",
        "its certificate is not for the name 127.0.0.1",
        id="an address that is not in it",
    ),
    pytest.param(
        "ca.pem",
        lambda files: showing(files.authority.issue(SERVER_NAME, expired=True)),
        SERVER_NAME,
        "its certificate, or one that signed it, has expired",
        id="an expired certificate",
    ),
]


@pytest.mark.parametrize(("ca", "server", "host", "told"), FAILURES)
def test_a_certificate_that_is_not_accepted(
    files: Files, ca: str | None, server: Served, host: str, told: str
) -> None:
    tls = ClientTls(None if ca is None else files.path(ca))
    with pytest.raises(ssl.SSLError) as raised:
        MemoryHandshake(server(files), tls.context(), name=host)
    text = handshake_failure(raised.value, host, tls)
    assert text.replace(str(files.folder), "…").startswith(told)


def error_named(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    return error


REFUSALS = [
    pytest.param(
        error_named("TLSV13_ALERT_CERTIFICATE_REQUIRED"),
        "the broker demands a certificate of the client: give --cert and --key",
        id="a certificate is demanded",
    ),
    pytest.param(
        error_named("TLSV1_ALERT_UNKNOWN_CA"),
        "the broker does not trust the authority that signed the certificate shop.pem",
        id="an authority that the broker does not trust",
    ),
    pytest.param(error_named("WRONG_VERSION_NUMBER"), "it does not speak TLS", id="no TLS"),
    pytest.param(
        error_named("SOME_NEW_REASON"), "the TLS handshake failed: some new reason", id="another"
    ),
    pytest.param(ssl.SSLEOFError(8, "EOF"), "it ended the connection during the", id="an end"),
]


@pytest.mark.parametrize(("error", "told"), REFUSALS)
def test_an_alert_in_words(error: ssl.SSLError, told: str) -> None:
    assert handshake_failure(error, "h", ClientTls(cert=Path("shop.pem"))).startswith(told)


VARIABLES: Final = {CA_VARIABLE: "ca", CERT_VARIABLE: "cert", KEY_VARIABLE: "key"}

CHOICES = [
    pytest.param({}, (None, None, None), (None, None, None), id="nothing"),
    pytest.param(VARIABLES, (None, None, None), ("ca", "cert", "key"), id="variables"),
    pytest.param(VARIABLES, ("a", None, None), ("a", "cert", "key"), id="a typed authority"),
    pytest.param(VARIABLES, (None, "c", None), ("ca", "c", None), id="not the key of another"),
    pytest.param({CA_VARIABLE: ""}, (None, None, None), (None, None, None), id="an empty one"),
]

Names = tuple[str | None, str | None, str | None]


@pytest.mark.parametrize(("variables", "typed", "expected"), CHOICES)
def test_a_typed_option_wins(
    variables: dict[str, str], typed: Names, expected: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ca, cert, key = (None if name is None else Path(name) for name in typed)
    wanted = ClientTls(*(None if name is None else Path(name) for name in expected))
    assert chosen_tls(TLS_URL, ca=ca, cert=cert, key=key) == wanted


def test_without_tls_the_variables_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    assert chosen_tls(PLAIN_URL, ca=None, cert=None, key=None) is None


@pytest.mark.parametrize("name", ["ca", "cert", "key"])
def test_without_tls_a_typed_option_is_an_error(name: str) -> None:
    typed: dict[str, Path | None] = {"ca": None, "cert": None, "key": None, name: Path("f")}
    with pytest.raises(ClientTlsError, match=f"--{name} is for TLS: write amqps://"):
        chosen_tls(PLAIN_URL, ca=typed["ca"], cert=typed["cert"], key=typed["key"])


def test_a_url_of_no_broker() -> None:
    with pytest.raises(URLError):
        chosen_tls("tcp://h", ca=None, cert=None, key=None)
