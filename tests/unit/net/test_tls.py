"""TLS contexts that can be replaced: handshakes in memory, and the errors of unusable files."""

from __future__ import annotations

import gc
import ssl
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from broker.net.certificate_dates import DAY_S
from broker.net.tls import SESSIONS_MAX, TlsContexts
from broker.net.tls_files import TlsError
from broker.tls_settings import TlsNameSettings, TlsSettings
from tests.support.certificates import SERVER_NAME, Authority, Issued, MemoryHandshake

TLS_1_1: Final = ssl.TLSVersion.TLSv1_1
TLS_1_2: Final = ssl.TLSVersion.TLSv1_2
TLS_1_3: Final = ssl.TLSVersion.TLSv1_3

FAR: Final = datetime(2999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Files:
    """The files of a listener in a folder: a server's certificate, and authorities."""

    folder: Path
    authority: Authority
    server: Issued

    def write(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path

    def settings(self, **given: object) -> TlsSettings:
        keys: dict[str, object] = {
            "certificate": self.folder / "server.pem",
            "key": self.folder / "server.key",
            **given,
        }
        return TlsSettings.model_validate(keys)

    def asking(self, mode: str = "require", **given: object) -> TlsSettings:
        """Return settings that ask clients for certificates of this authority."""
        return self.settings(
            client_certificates=mode, client_ca=self.folder / "client-ca.pem", **given
        )


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def stranger() -> Authority:
    return Authority()


@pytest.fixture
def files(tmp_path: Path, authority: Authority) -> Files:
    server = authority.issue(SERVER_NAME)
    server.write(tmp_path, "server")
    authority.write(tmp_path, "client-ca")
    return Files(tmp_path, authority, server)


def shown(contexts: TlsContexts, client: ssl.SSLContext, name: str | None = SERVER_NAME) -> bytes:
    """Return the certificate that a client sees."""
    seen = MemoryHandshake(contexts.front(), client, name=name).client.getpeercert(binary_form=True)
    assert seen is not None
    return seen


# -- versions, options


@pytest.mark.attack("A7")
@pytest.mark.parametrize(
    ("minimum", "version", "accepted"),
    [
        pytest.param("1.2", TLS_1_1, False, id="1.1"),
        pytest.param("1.2", TLS_1_2, True, id="1.2"),
        pytest.param("1.2", TLS_1_3, True, id="1.3"),
        pytest.param("1.3", TLS_1_2, False, id="1.2 where 1.3 is the least"),
        pytest.param("1.3", TLS_1_3, True, id="1.3 where 1.3 is the least"),
    ],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_versions(files: Files, minimum: str, version: ssl.TLSVersion, accepted: bool) -> None:
    contexts = TlsContexts(files.settings(minimum=minimum))
    client = files.authority.client(version=version)
    if accepted:
        assert shown(contexts, client) == files.server.der
    else:
        with pytest.raises(ssl.SSLError, match=r"(?i)unsupported.protocol"):
            shown(contexts, client)


@pytest.mark.attack("A7")
@pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3], ids=["1.2", "1.3"])
def test_no_compression_and_a_cipher_of_the_library(files: Files, version: ssl.TLSVersion) -> None:
    contexts = TlsContexts(files.settings())
    server = MemoryHandshake(contexts.front(), files.authority.client(version=version)).server
    assert server.compression() is None
    cipher = server.cipher()
    assert cipher is not None
    assert cipher[0] in {each["name"] for each in ssl.create_default_context().get_ciphers()}
    assert contexts.front().options & ssl.OP_NO_RENEGOTIATION


# -- names


def test_the_server_name_picks_the_certificate_and_nothing_else(files: Files) -> None:
    orders, stock = (files.authority.issue(host) for host in ("orders.example", "stock.example"))
    names = []
    for each, host in ((orders, "orders.example"), (stock, "stock.example")):
        certificate, key = each.write(files.folder, host)
        names.append(TlsNameSettings(host=host, certificate=certificate, key=key))
    contexts = TlsContexts(files.settings(name=tuple(names)))
    client = files.authority.client()
    assert shown(contexts, client, SERVER_NAME) == files.server.der
    assert shown(contexts, client, "orders.example") == orders.der
    assert shown(contexts, client, "STOCK.example") == stock.der
    client.check_hostname = False
    assert shown(contexts, client, "other.example") == files.server.der
    assert shown(contexts, client, None) == files.server.der


# -- client certificates


@pytest.mark.parametrize(
    ("mode", "kind", "refusal"),
    [
        pytest.param("no", "none", None, id="not asked for"),
        pytest.param("no", "other CA", None, id="one that is not asked for"),
        pytest.param("ask", "none", None, id="asked for, none sent"),
        pytest.param("ask", "good", None, id="asked for, sent"),
        pytest.param("ask", "other CA", "unable to get local issuer", id="asked for, other CA"),
        pytest.param("ask", "expired", "certificate has expired", id="asked for, expired"),
        pytest.param("require", "good", None, id="required, sent"),
        pytest.param("require", "none", "did not return a certificate", id="required, none sent"),
        pytest.param("require", "other CA", "unable to get local issuer", id="required, other CA"),
        pytest.param("require", "expired", "certificate has expired", id="required, expired"),
    ],
)
def test_client_certificates(
    files: Files, stranger: Authority, mode: str, kind: str, refusal: str | None
) -> None:
    issue: dict[str, Callable[[], Issued | None]] = {
        "none": lambda: None,
        "good": lambda: files.authority.issue("shop@example.org"),
        "other CA": lambda: stranger.issue("shop@example.org"),
        "expired": lambda: files.authority.issue("shop@example.org", expired=True),
    }
    sent = issue[kind]()
    contexts = TlsContexts(files.settings() if mode == "no" else files.asking(mode))
    client = files.authority.client(sent)
    if refusal is not None:
        with pytest.raises(ssl.SSLError, match=refusal):
            MemoryHandshake(contexts.front(), client)
        return
    seen = MemoryHandshake(contexts.front(), client).server.getpeercert(binary_form=True)
    assert seen == (None if mode == "no" or sent is None else sent.der)


@pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3], ids=["1.2", "1.3"])
def test_revoked_certificates_are_refused(files: Files, version: ssl.TLSVersion) -> None:
    good, revoked = (files.authority.issue(f"{name}@example.org") for name in ("good", "revoked"))
    crl = files.write("crl.pem", files.authority.crl([revoked], FAR))
    contexts = TlsContexts(files.asking(crl=crl))
    MemoryHandshake(contexts.front(), files.authority.client(good, version=version))
    with pytest.raises(ssl.SSLError, match="certificate revoked"):
        MemoryHandshake(contexts.front(), files.authority.client(revoked, version=version))


CHAINS = [
    # the lists that there are, whether root revokes the intermediate, and the refusal
    pytest.param("root inter", False, None, id="nothing is revoked"),
    pytest.param("root inter", True, "certificate revoked", id="the intermediate is revoked"),
    pytest.param("root", False, "unable to get certificate CRL", id="the intermediate has no list"),
]


@pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize(("lists", "revokes", "refusal"), CHAINS)
def test_each_authority_of_a_chain_is_looked_up_in_the_list_of_the_next(
    files: Files, version: ssl.TLSVersion, lists: str, revokes: bool, refusal: str | None
) -> None:
    root, inter = files.authority, files.authority.child()
    found = {"root": root.crl([inter] if revokes else [], FAR), "inter": inter.crl([], FAR)}
    crl = files.write("crl.pem", b"".join(found[each] for each in lists.split()))
    contexts = TlsContexts(files.asking(crl=crl))
    client = root.client(inter.issue("ada@example.org"), version=version)
    if refusal is None:
        MemoryHandshake(contexts.front(), client)
        return
    with pytest.raises(ssl.SSLError, match=refusal):
        MemoryHandshake(contexts.front(), client)


def test_a_start_without_the_list_of_an_authority_is_refused(
    files: Files, stranger: Authority
) -> None:
    crl = files.write("crl.pem", stranger.crl([], FAR))
    with pytest.raises(TlsError, match="it has no list of revoked certificates of O=trustme"):
        TlsContexts(files.asking(crl=crl))


def test_negative_control_verify_mode_and_flags_come_from_the_front(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without them on the front, the inner context's would be ignored, and anybody be let in."""
    revoked = files.authority.issue("revoked@example.org")
    crl = files.write("crl.pem", files.authority.crl([revoked], FAR))
    contexts = TlsContexts(files.asking(crl=crl))
    front = contexts.front()
    assert front.verify_mode == ssl.CERT_REQUIRED
    front.verify_flags = ssl.VERIFY_DEFAULT
    MemoryHandshake(front, files.authority.client(revoked))
    front.verify_mode = ssl.CERT_NONE
    with pytest.raises(ssl.SSLError, match="CALLBACK_FAILED"):  # our own second line
        MemoryHandshake(front, files.authority.client())
    monkeypatch.setattr("broker.net.tls.VERIFY_MODES", dict.fromkeys(("require",), ssl.CERT_NONE))
    MemoryHandshake(front, files.authority.client())


# -- reload


def test_a_reload_changes_the_certificate_of_new_connections_only(files: Files) -> None:
    contexts = TlsContexts(files.settings())
    client = files.authority.client()
    kept = contexts.front()  # as a listener of the event loop keeps it
    before = MemoryHandshake(contexts.front(), client)
    renewed = files.authority.issue(SERVER_NAME)
    renewed.write(files.folder, "server")
    assert contexts.changed()
    assert contexts.reload() is None
    assert contexts.reloads == 1
    assert not contexts.changed()
    before.exchange(b"still open")
    assert before.client.getpeercert(binary_form=True) == files.server.der
    assert shown(contexts, client) == renewed.der
    seen = MemoryHandshake(kept, client).client.getpeercert(binary_form=True)
    assert seen == renewed.der


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        pytest.param("server.pem", None, "no such file", id="no certificate"),
        pytest.param("server.pem", b"hello", "no line -----BEGIN CERTIFICATE", id="not PEM"),
        pytest.param("server.key", b"", "no private key in it", id="an empty key"),
        pytest.param("server.key", b"stranger", "does not belong", id="the key of another"),
        pytest.param("server.pem", b"expired", "expired on 2020-01-01", id="expired"),
        pytest.param("client-ca.pem", b"", "no line -----BEGIN", id="an empty client CA"),
        pytest.param("crl.pem", b"expired", "revocation list expired", id="an expired CRL"),
        pytest.param("crl.pem", b"stranger", "it has no list of", id="the CRL of another"),
    ],
)
def test_a_bad_file_keeps_what_works(
    files: Files, stranger: Authority, file: str, content: bytes | None, expected: str
) -> None:
    files.write("crl.pem", files.authority.crl([], FAR))
    contexts = TlsContexts(files.asking(crl=files.folder / "crl.pem"))
    if content is None:
        (files.folder / file).unlink()
    elif (file, content) == ("server.pem", b"expired"):
        files.authority.issue(SERVER_NAME, expired=True).write(files.folder, "server")
    elif content == b"expired":
        files.write(file, files.authority.crl([], datetime(2020, 1, 1, tzinfo=UTC)))
    elif (file, content) == ("crl.pem", b"stranger"):
        files.write(file, stranger.crl([], FAR))
    elif content == b"stranger":
        files.write(file, stranger.issue(SERVER_NAME).key)
    else:
        files.write(file, content)
    assert contexts.changed()
    reason = contexts.reload()
    assert reason is not None
    assert expected in reason
    assert str(files.folder / file) in reason
    assert (contexts.reloads, contexts.reloads_failed) == (0, 1)
    assert not contexts.changed(), "the same files are not tried again"
    client = files.authority.client(files.authority.issue("shop@example.org"))
    assert shown(contexts, client) == files.server.der


def test_a_reload_that_failed_is_tried_again_when_a_file_changes(files: Files) -> None:
    contexts = TlsContexts(files.settings())
    renewed = files.authority.issue(SERVER_NAME)
    files.write("server.pem", renewed.chain)  # its key has not been written yet
    assert contexts.changed()
    assert "does not belong" in (contexts.reload() or "")
    files.write("server.key", renewed.key)
    assert contexts.changed()
    assert contexts.reload() is None
    assert shown(contexts, files.authority.client()) == renewed.der


def test_other_settings_are_used_whole_or_not_at_all(files: Files) -> None:
    contexts = TlsContexts(files.settings())
    client = files.authority.client()
    kept = contexts.front()
    with pytest.raises(TlsError, match=r"none\.pem': there is no such file"):
        contexts.prepared(files.settings(certificate=files.folder / "none.pem"))
    assert shown(contexts, client) == files.server.der
    assert not contexts.changed()
    prepared = contexts.prepared(files.asking())
    assert shown(contexts, client) == files.server.der, "not in use yet"
    assert contexts.adopt(prepared)
    with pytest.raises(ssl.SSLError, match="did not return a certificate"):
        MemoryHandshake(contexts.front(), client)
    with pytest.raises(ssl.SSLError, match="CALLBACK_FAILED"):
        MemoryHandshake(kept, client)


@pytest.mark.attack("A7")
@pytest.mark.parametrize("keeps_front", [False, True], ids=["a new front", "one front for ever"])
@pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3], ids=["1.2", "1.3"])
def test_a_session_does_not_outlive_its_authority(
    files: Files, stranger: Authority, version: ssl.TLSVersion, keeps_front: bool
) -> None:
    contexts = TlsContexts(files.asking())
    kept = contexts.front()
    client = files.authority.client(files.authority.issue("shop@example.org"), version=version)
    before = MemoryHandshake(kept, client)  # OpenSSL forgets the sessions of aborted connections
    stranger.write(files.folder, "client-ca")
    assert contexts.reload() is None
    front = kept if keeps_front else contexts.front()
    with pytest.raises(ssl.SSLError):
        MemoryHandshake(front, client, session=before.client.session)


def test_a_session_of_the_authorities_in_force_is_resumed(files: Files) -> None:
    """Negative control: sessions are resumed where nothing was removed."""
    contexts = TlsContexts(files.asking(), wall_s=lambda: 0.0)
    client = files.authority.client(files.authority.issue("shop@example.org"), version=TLS_1_2)
    first = MemoryHandshake(contexts.front(), client)
    second = MemoryHandshake(contexts.front(), client, session=first.client.session)
    assert second.server.session_reused


def test_listeners_that_ask_for_certificates_issue_no_tickets(files: Files) -> None:
    client = files.authority.client(files.authority.issue("shop@example.org"), version=TLS_1_3)
    for settings, expected in ((files.asking(), False), (files.settings(), True)):
        session = MemoryHandshake(TlsContexts(settings).front(), client).client.session
        assert session is not None
        assert session.has_ticket is expected


def test_one_ticket_lets_a_client_resume_again_and_again(files: Files) -> None:
    contexts = TlsContexts(files.settings())
    client = files.authority.client(version=TLS_1_3)
    assert contexts.front().num_tickets == 1
    session = MemoryHandshake(contexts.front(), client).client.session
    for _ in range(3):
        resumed = MemoryHandshake(contexts.front(), client, session=session)
        assert resumed.server.session_reused
        session = resumed.client.session


def test_cached_sessions_are_limited(files: Files) -> None:
    contexts = TlsContexts(files.asking())
    client = files.authority.client(files.authority.issue("shop@example.org"), version=TLS_1_2)
    fronts = []
    opened = []
    for _ in range(2 * SESSIONS_MAX + 1):
        front = contexts.front()
        fronts.append(front)
        opened.append(MemoryHandshake(front, client))
        assert front.session_stats()["number"] <= SESSIONS_MAX
    assert len(set(fronts)) == 3


def test_former_contexts_are_freed_with_their_last_connection(files: Files) -> None:
    contexts = TlsContexts(files.settings())
    before = MemoryHandshake(contexts.front(), files.authority.client())
    inner = weakref.ref(before.server.context)
    assert contexts.reload() is None
    gc.collect()
    assert inner() is not None
    before.exchange(b"still open")
    del before
    gc.collect()
    assert inner() is None


# -- the start


def test_a_start_with_a_bad_file_names_key_file_and_remedy(files: Files) -> None:
    (files.folder / "server.key").unlink()
    with pytest.raises(TlsError) as raised:
        TlsContexts(files.settings(), place="listener[1].tls")
    assert str(raised.value) == (
        f"listener[1].tls.key = '{files.folder / 'server.key'}': there is no such file: create it,"
        " or correct the setting"
    )


def test_an_expired_certificate_stops_the_start(files: Files) -> None:
    end_s = files.server.parsed.not_valid_after_utc.timestamp()
    TlsContexts(files.settings(), wall_s=lambda: end_s - 1)
    with pytest.raises(TlsError, match=r"tls\.certificate = .* expired on .*: replace the file"):
        TlsContexts(files.settings(), wall_s=lambda: end_s)


def test_a_handshake_is_tried_before_contexts_are_used(files: Files) -> None:
    """OpenSSL loads a certificate of a curve that TLS does not have, and fails at handshakes."""
    key = ec.generate_private_key(ec.SECP256K1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, SERVER_NAME)])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2000, 1, 1, tzinfo=UTC))
        .not_valid_after(FAR)
        .sign(key, hashes.SHA256())
    )
    files.write("server.pem", made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    plain = serialization.NoEncryption()
    files.write("server.key", key.private_bytes(serialization.Encoding.PEM, form, plain))
    with pytest.raises(TlsError, match=r"server\.pem': a handshake with it fails: "):
        TlsContexts(files.settings(minimum="1.3"))


# -- dates


def test_warnings_are_about_each_file_with_a_date(files: Files) -> None:
    crl = files.write("crl.pem", files.authority.crl([], datetime.now(UTC) + timedelta(days=20)))
    contexts = TlsContexts(files.asking(crl=crl))
    ends = {each.key: each.end_s for each in contexts.dated()}
    assert set(ends) == {"tls.certificate", "tls.crl"}
    now_s = ends["tls.crl"] - 14 * DAY_S
    assert [each.partition(" ")[0] for each in contexts.warnings(now_s)] == ["tls.crl"]
    assert contexts.warnings(now_s) == []
    last = contexts.warnings(ends["tls.certificate"])
    assert [each.partition(" ")[0] for each in last] == ["tls.certificate", "tls.crl"]
