"""Each authority of clients needs its list of revoked certificates, found by its name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from broker.net.revocation_lists import authority_of, check_lists, lacking, subject_of
from broker.net.tls_files import TlsError, TlsFiles
from broker.tls_settings import TlsSettings
from tests.support.certificates import SERVER_NAME, Authority

BEGIN: Final = datetime(2000, 1, 1, tzinfo=UTC)
END: Final = datetime(2999, 1, 1, tzinfo=UTC)

ROOT: Final = Authority()
INTER: Final = ROOT.child()
CLIENT: Final = INTER.issue("ada@example.org")

KEY: Final = ec.generate_private_key(ec.SECP256R1())

UTF8, PRINTABLE, BMP = _ASN1Type.UTF8String, _ASN1Type.PrintableString, _ASN1Type.BMPString


def named(*values: tuple[str, _ASN1Type]) -> x509.Name:
    oids = (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME)
    return x509.Name(
        [
            x509.NameAttribute(oid, value, _type=kind)
            for oid, (value, kind) in zip(oids, values, strict=False)
        ]
    )


def certificate_of(name: x509.Name) -> bytes:
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(named(("issuer", UTF8)))
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(BEGIN)
        .not_valid_after(END)
    )
    return built.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def list_of(name: x509.Name) -> bytes:
    built = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(name)
        .last_update(BEGIN)
        .next_update(END)
    )
    return built.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


NAMES = [
    pytest.param([("Root", UTF8)], [("Root", UTF8)], True, id="the same"),
    pytest.param([("Root", UTF8)], [("Root", PRINTABLE)], True, id="another kind of text"),
    pytest.param([("Röot", UTF8)], [("Röot", BMP)], True, id="another encoding"),
    pytest.param([("Root CA", UTF8)], [(" rOOT  ca ", UTF8)], True, id="letters and spaces"),
    pytest.param([("Root", UTF8)], [("Roots", UTF8)], False, id="another name"),
    pytest.param([("Root", UTF8)], [("Root", UTF8), ("Shop", UTF8)], False, id="a longer name"),
]


@pytest.mark.parametrize(("subject", "issuer", "is_equal"), NAMES)
def test_names_are_compared_as_openssl_does(
    subject: list[tuple[str, _ASN1Type]], issuer: list[tuple[str, _ASN1Type]], is_equal: bool
) -> None:
    authority, revoked = certificate_of(named(*subject)), list_of(named(*issuer))
    assert (subject_of(authority) == authority_of(revoked)) is is_equal
    assert (lacking([authority], [revoked]) == []) is is_equal


def test_a_name_for_people() -> None:
    name = named(("Root", UTF8), ("Shop", UTF8))
    assert subject_of(certificate_of(name)).text == "CN=Root, O=Shop"


def files_of(folder: Path, client_ca: Sequence[bytes], crl: Sequence[bytes]) -> TlsFiles:
    certificate, key = ROOT.issue(SERVER_NAME).write(folder, "server")
    authorities, revoked = folder / "ca.pem", folder / "crl.pem"
    authorities.write_bytes(b"".join(client_ca))
    revoked.write_bytes(b"".join(crl))
    settings = TlsSettings(
        certificate=certificate,
        key=key,
        client_certificates="require",
        client_ca=authorities,
        crl=revoked,
    )
    return TlsFiles(settings, "tls")


OF_ROOT, OF_INTER = ROOT.crl([], END), INTER.crl([], END)

FILES = [
    # content of client_ca and of crl, and whose list is missing
    pytest.param([ROOT.pem], [OF_ROOT], [], id="one authority"),
    pytest.param([ROOT.pem], [OF_INTER], [ROOT], id="the list of another"),
    pytest.param([ROOT.pem, INTER.pem], [OF_ROOT, OF_INTER], [], id="a list for each"),
    pytest.param([ROOT.pem, INTER.pem], [OF_ROOT], [INTER], id="none of the intermediate"),
    pytest.param([ROOT.pem, INTER.pem], [OF_INTER], [ROOT], id="none of the root"),
    pytest.param([ROOT.pem, Authority().pem], [OF_INTER], [ROOT, None], id="none of two"),
    pytest.param([ROOT.pem, OF_ROOT], [OF_INTER], [], id="a list beside the authority"),
    pytest.param([CLIENT.chain, ROOT.pem], [OF_ROOT, OF_INTER], [], id="a client's certificate"),
]


@pytest.mark.parametrize(("client_ca", "crl", "missing"), FILES)
def test_each_authority_needs_its_list(
    tmp_path: Path, client_ca: list[bytes], crl: list[bytes], missing: list[Authority | None]
) -> None:
    files = files_of(tmp_path, client_ca, crl)
    if not missing:
        assert check_lists(files) == b"".join(client_ca).count(b"BEGIN CERT") - client_ca.count(
            CLIENT.chain
        )
        return
    with pytest.raises(TlsError) as raised:
        check_lists(files)
    text = str(raised.value)
    assert text.startswith(f"tls.crl = '{tmp_path / 'crl.pem'}': it has no list")
    assert f"Each authority in tls.client_ca = '{tmp_path / 'ca.pem'}' needs its list" in text
    assert text.count("O=trustme") == len(missing)
    for each in missing:
        if each is not None:
            unit = each.parsed.subject.get_attributes_for_oid(NameOID.ORGANIZATIONAL_UNIT_NAME)
            assert unit[0].rfc4514_string() in text


def test_without_the_setting_none_is_needed(tmp_path: Path) -> None:
    certificate, key = ROOT.issue(SERVER_NAME).write(tmp_path, "server")
    assert check_lists(TlsFiles(TlsSettings(certificate=certificate, key=key), "tls")) == 0
