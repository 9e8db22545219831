"""The files of TLS: each error names the key, the file and the remedy; a hash shows changes."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from broker.net.tls_files import CERTIFICATE, PASSWORD_BYTES_MAX, TlsError, TlsFile, TlsFiles
from broker.tls_settings import TlsNameSettings, TlsSettings
from tests.support.certificates import SERVER_NAME, Authority, Issued

PASSWORD: Final = "correct horse"


@pytest.fixture(scope="module")
def server() -> Issued:
    return Authority().issue(SERVER_NAME)


@pytest.fixture
def settings(tmp_path: Path, server: Issued) -> TlsSettings:
    certificate, key = server.write(tmp_path, "server")
    return TlsSettings(certificate=certificate, key=key)


def load(settings: TlsSettings) -> None:
    TlsFiles(settings, "tls").pairs[""].load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))


def complaint(settings: TlsSettings) -> str:
    with pytest.raises(TlsError) as raised:
        load(settings)
    return str(raised.value)


def encrypted(settings: TlsSettings, server: Issued, password: bytes | None) -> TlsSettings:
    """Return settings whose key has PASSWORD, with a file of `password`, if any."""
    settings.key.write_bytes(server.key_with(PASSWORD))
    if password is None:
        return settings
    file = settings.key.with_name("password")
    file.write_bytes(password)
    return settings.model_copy(update={"key_password_file": file})


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"], ids=["no line end", "a line end", "of DOS"])
def test_a_key_with_its_password(settings: TlsSettings, server: Issued, end: bytes) -> None:
    load(encrypted(settings, server, PASSWORD.encode() + end))


@pytest.mark.parametrize(
    ("password", "expected"),
    [
        pytest.param(None, "tls.key = '…/server.key': the key has a password: put", id="none"),
        pytest.param(b"wrong", "tls.key_password_file = '…/password': not the", id="a wrong one"),
        pytest.param(b"", "tls.key_password_file = '…/password': not the", id="an empty one"),
        pytest.param(
            b"x" * (PASSWORD_BYTES_MAX + 1), "has 1024 bytes: give the key", id="a long one"
        ),
        pytest.param(b"x" * PASSWORD_BYTES_MAX, "not the password", id="the longest one, wrong"),
    ],
)
def test_the_password_of_a_key(
    settings: TlsSettings, server: Issued, password: bytes | None, expected: str
) -> None:
    said = complaint(encrypted(settings, server, password))
    assert expected in said.replace(str(settings.key.parent), "…")


def test_the_key_of_another_certificate(settings: TlsSettings) -> None:
    settings.key.write_bytes(Authority().issue(SERVER_NAME).key)
    assert complaint(settings) == (
        f"tls.key = '{settings.key}': this key does not belong to the certificate"
        f" '{settings.certificate}': give the key that the certificate was made with"
    )


def test_a_damaged_key(settings: TlsSettings) -> None:
    begin = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    settings.key.write_bytes(begin)
    assert f"tls.key = '{settings.key}': OpenSSL refuses it" in complaint(settings)


def test_certificate_and_key_in_one_file(settings: TlsSettings, server: Issued) -> None:
    settings.certificate.write_bytes(server.key + server.chain)
    load(settings.model_copy(update={"key": settings.certificate}))


@pytest.mark.parametrize(
    ("prepare", "expected"),
    [
        pytest.param(Path.exists, "there is no such file: create it", id="no file"),
        pytest.param(lambda file: file.mkdir(), "cannot be read: Is a directory", id="a folder"),
        pytest.param(lambda file: file.write_bytes(b"\x30\x82"), "in PEM form", id="DER"),
        pytest.param(
            lambda file: file.write_bytes(b"-----BEGIN PRIVATE KEY-----"),
            "It holds a private key.",
            id="a key",
        ),
        pytest.param(
            lambda file: file.write_bytes(
                b"-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----"
            ),
            "a CERTIFICATE in it is damaged: replace",
            id="no base64",
        ),
        pytest.param(
            lambda file: file.write_bytes(
                b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
            ),
            "a CERTIFICATE in it is damaged (expected the tag 0x30",
            id="no certificate",
        ),
    ],
)
def test_a_certificate_that_cannot_be_read(
    tmp_path: Path, prepare: Callable[[Path], object], expected: str
) -> None:
    path = tmp_path / "a.pem"
    prepare(path)
    with pytest.raises(TlsError) as raised:
        TlsFile("tls.certificate", path).dated_certificate()
    assert str(raised.value).startswith(f"tls.certificate = '{path}': ")
    assert expected in str(raised.value)


@pytest.mark.privileged
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, which becomes another account")
def test_a_file_of_another_account(tmp_path: Path) -> None:
    path = tmp_path / "a.key"
    path.write_bytes(b"")
    path.chmod(0)
    os.seteuid(65534)
    try:
        with pytest.raises(TlsError, match=r"uid 65534\) may not read it: change its owner"):
            TlsFile("tls.key", path).read()
    finally:
        os.seteuid(0)


def test_all_blocks_of_a_file(tmp_path: Path) -> None:
    issued = [Authority().issue(SERVER_NAME) for _ in range(3)]
    path = tmp_path / "chain.pem"
    path.write_bytes(b"# text between them\n".join(each.chain for each in issued))
    assert TlsFile("tls.client_ca", path).blocks(CERTIFICATE) == [each.der for each in issued]


def test_a_change_of_any_file_changes_the_hash(tmp_path: Path) -> None:
    names = ["certificate", "key", "key_password_file", "client_ca", "crl"]
    paths = {name: tmp_path / name for name in [*names, "named", "named.key"]}
    for path in paths.values():
        path.write_bytes(b"1")
    settings = TlsSettings.model_validate(
        {name: paths[name] for name in names}
        | {"client_certificates": "ask"}
        | {
            "name": (
                TlsNameSettings(host="a.b", certificate=paths["named"], key=paths["named.key"]),
            )
        }
    )
    files = TlsFiles(settings, "tls")
    seen = {files.digest()}
    for path in paths.values():
        path.write_bytes(b"2")
        seen.add(files.digest())
    paths["crl"].unlink()
    seen.add(files.digest())
    assert len(seen) == len(paths) + 2
    paths["crl"].write_bytes(b"2")
    assert files.digest() in seen
