"""Dates of certificates and revocation lists, as a whole parser reads them; warnings."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from broker.net.certificate_dates import (
    DAY_S,
    DatedFile,
    DateWarnings,
    certificate_end_s,
    crl_end_s,
)
from tests.support.certificates import Authority

NAME: Final = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "somebody")])


def certificate(end: datetime) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    return (
        x509.CertificateBuilder()
        .subject_name(NAME)
        .issuer_name(NAME)
        .public_key(key.public_key())
        .serial_number(2**158)
        .not_valid_before(datetime(1950, 1, 1, tzinfo=UTC))
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.DER)
    )


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC), id="two digits, before 2000"),
        pytest.param(datetime(2027, 2, 28, 12, 0, 1, tzinfo=UTC), id="two digits, after 2000"),
        pytest.param(datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC), id="the last two digits"),
        pytest.param(datetime(2050, 1, 1, tzinfo=UTC), id="the first four digits"),
        pytest.param(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), id="no end (RFC 5280)"),
    ],
)
def test_the_end_of_a_certificate(end: datetime) -> None:
    assert certificate_end_s(certificate(end)) == end.timestamp()


def test_the_next_update_of_a_revocation_list() -> None:
    end = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
    pem = Authority().crl([], end)
    der = x509.load_pem_x509_crl(pem).public_bytes(serialization.Encoding.DER)
    assert crl_end_s(der) == end.timestamp()


def test_a_revocation_list_without_next_update() -> None:
    time = b"\x17\x0d260101000000Z"
    first = b"\x30\x00" + b"\x30\x00" + time + b"\x30\x00"
    assert crl_end_s(sequence(sequence(first))) is None
    assert crl_end_s(sequence(sequence(b"\x02\x01\x01" + first[:-2] + time))) == pytest.approx(
        datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    )


def sequence(content: bytes) -> bytes:
    return b"\x30" + bytes([len(content)]) + content


def test_damaged_data_are_refused() -> None:
    whole = certificate(datetime(2030, 1, 1, tzinfo=UTC))
    for length in range(len(whole)):
        with pytest.raises(ValueError):  # noqa: PT011 - any sentence will do
            certificate_end_s(whole[:length])
        with pytest.raises(ValueError):  # noqa: PT011
            crl_end_s(whole[:length])


def test_another_thing_than_a_certificate_is_refused() -> None:
    pem = Authority().crl([], datetime(2031, 1, 1, tzinfo=UTC)).decode()
    der = ssl.PEM_cert_to_DER_cert(pem.replace("X509 CRL", "CERTIFICATE"))
    with pytest.raises(ValueError, match="expected the tag"):
        certificate_end_s(der)


END_S: Final = datetime(2030, 6, 1, 12, tzinfo=UTC).timestamp()
FILE: Final = DatedFile(
    key="tls.certificate", path=Path("/etc/a.pem"), content="the certificate", end_s=END_S
)


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        pytest.param(timedelta(days=30, seconds=1), None, id="more than 30 days"),
        pytest.param(timedelta(days=30), "in 30 days", id="30 days"),
        pytest.param(timedelta(days=14), "in 14 days", id="14 days"),
        pytest.param(timedelta(days=7), "in 7 days", id="7 days"),
        pytest.param(timedelta(days=1, hours=12), "in 36 hours", id="a day and a half"),
        pytest.param(timedelta(hours=5), "in 5 hours", id="hours"),
        pytest.param(timedelta(0), "expired on 2030-06-01 12:00 UTC", id="now"),
        pytest.param(timedelta(days=-9), "expired on 2030-06-01 12:00 UTC", id="long ago"),
    ],
)
def test_a_warning_says_which_file_ends_when(left: timedelta, expected: str | None) -> None:
    due = DateWarnings().due([FILE], END_S - left.total_seconds())
    if expected is None:
        assert due == []
    else:
        assert len(due) == 1
        assert due[0].startswith("tls.certificate = '/etc/a.pem': the certificate expire")
        assert expected in due[0]


def test_each_threshold_warns_once() -> None:
    warnings = DateWarnings()
    counts = [len(warnings.due([FILE], END_S - days * DAY_S)) for days in range(40, -5, -1)]
    assert [40 - at for at, count in enumerate(counts) if count] == [30, 14, 7, 1, 0]


def test_a_replaced_file_warns_by_its_own_date() -> None:
    warnings = DateWarnings()
    newer = DatedFile(key=FILE.key, path=FILE.path, content=FILE.content, end_s=END_S + 10 * DAY_S)
    assert warnings.due([FILE], END_S - DAY_S)
    assert warnings.due([newer], END_S - DAY_S)
    assert not warnings.due([newer], END_S - DAY_S)
