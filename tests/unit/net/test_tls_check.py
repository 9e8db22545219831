"""The check of the files that TLS settings name: what is right, what ends soon, what is wrong."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from broker.net.tls_check import TlsFinding, findings
from broker.tls_settings import TlsNameSettings, TlsSettings
from tests.support.certificates import SERVER_NAME, Authority, Issued

NOW_S = time.time()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def server(authority: Authority) -> Issued:
    return authority.issue(SERVER_NAME, "127.0.0.1")


@pytest.fixture
def settings(tmp_path: Path, server: Issued) -> TlsSettings:
    certificate, key = server.write(tmp_path, "server")
    return TlsSettings(certificate=certificate, key=key)


def found(settings: TlsSettings, *, now_s: float = NOW_S) -> dict[tuple[str, str], TlsFinding]:
    told = findings(settings, "tls", now_s=now_s)
    by_place = {(each.setting, each.check): each for each in told}
    assert len(by_place) == len(told)
    return by_place


def test_a_sound_certificate(settings: TlsSettings) -> None:
    told = found(settings)
    assert {each.level for each in told.values()} == {"ok"}
    texts = {check: each.text for (_, check), each in told.items()}
    assert texts["handshake"].startswith("the key fits; a handshake with itself: TLSv1.3, TLS_")
    assert texts["names"] == "for localhost, 127.0.0.1"
    assert texts["chain"].startswith("signed by O=trustme")
    assert told["tls.certificate", "dates"].days is not None


@pytest.mark.parametrize(
    ("days", "level"), [pytest.param(29, "warning", id="29"), pytest.param(30, "ok", id="30")]
)
def test_the_days_before_the_end(
    settings: TlsSettings, server: Issued, days: int, level: str
) -> None:
    end_s = server.parsed.not_valid_after_utc.timestamp()
    dates = found(settings, now_s=end_s - days * 86_400 - 60)["tls.certificate", "dates"]
    assert (dates.level, dates.days) == (level, days)
    assert dates.text.endswith("replace the file") is (level == "warning")


def of_another(settings: TlsSettings, _authority: Authority) -> None:
    settings.key.write_bytes(Authority().issue(SERVER_NAME).key)


def expired(settings: TlsSettings, authority: Authority) -> None:
    authority.issue(SERVER_NAME, expired=True).write(settings.key.parent, "server")


def not_there(settings: TlsSettings, _authority: Authority) -> None:
    settings.certificate.unlink()


WRONG = [
    pytest.param(of_another, "this key does not belong to the certificate", id="another key"),
    pytest.param(expired, "the certificate expired on 2020-01-01 00:00 UTC", id="expired"),
    pytest.param(not_there, "there is no such file", id="no file"),
]


@pytest.mark.parametrize(("spoil", "expected"), WRONG)
def test_files_that_the_broker_refuses(
    settings: TlsSettings,
    authority: Authority,
    spoil: Callable[[TlsSettings, Authority], None],
    expected: str,
) -> None:
    spoil(settings, authority)
    told = found(settings)["tls", "files"]
    assert told.level == "failed"
    assert expected in told.text


def test_a_chain_with_an_intermediate(settings: TlsSettings) -> None:
    root = trustme.CA()
    issued = Issued(root.create_child_ca().issue_cert(SERVER_NAME))
    issued.write(settings.key.parent, "server")
    chain = found(settings)["tls.certificate", "chain"]
    assert (chain.level, "; certificates in the file: 2" in chain.text) == ("ok", True)


def test_a_chain_of_another_authority(settings: TlsSettings, server: Issued) -> None:
    settings.certificate.write_bytes(server.chain + Authority().pem)
    chain = found(settings)["tls.certificate", "chain"]
    assert chain.level == "failed"
    assert "the 2 certificates of the file do not lead from the first to the last" in chain.text


def test_the_name_for_which_clients_ask(
    settings: TlsSettings, authority: Authority, tmp_path: Path
) -> None:
    certificate, key = authority.issue("*.shop.example").write(tmp_path, "shop")
    hosts = ("a.shop.example", "shop.example")
    names = tuple(TlsNameSettings(host=each, certificate=certificate, key=key) for each in hosts)
    told = findings(settings.model_copy(update={"name": names}), "tls", now_s=NOW_S)
    texts = [(each.level, each.text) for each in told if each.check == "names"]
    assert texts[1:] == [
        ("ok", "for *.shop.example, by SNI for a.shop.example"),
        (
            "failed",
            "it is not for its host shop.example, but for *.shop.example: change one",
        ),
    ]


def test_the_files_for_client_certificates(
    settings: TlsSettings, authority: Authority, tmp_path: Path
) -> None:
    crl = tmp_path / "revoked.pem"
    crl.write_bytes(authority.crl([], dt.datetime.now(dt.UTC) + dt.timedelta(days=3)))
    asking = {
        "client_certificates": "ask",
        "client_ca": authority.write(tmp_path),
        "crl": crl,
    }
    told = found(settings.model_copy(update=asking))
    assert told["tls.crl", "dates"].level == "warning"
    assert told["tls.crl", "dates"].text.startswith("the revocation list ends on ")
    assert told["tls.client_ca", "dates"].level == "ok"
    assert told["tls.client_ca", "dates"].text.startswith("authorities of clients: 1; the first")
    lists = told["tls.crl", "lists"]
    assert (lists.level, lists.text) == (
        "ok",
        "each of the authorities of clients has its list: 1",
    )
    crl.write_bytes(Authority().crl([], dt.datetime.now(dt.UTC) + dt.timedelta(days=3)))
    (failed,) = found(settings.model_copy(update=asking)).values()
    assert failed.level == "failed"
    assert f"tls.crl = '{crl}': it has no list of revoked certificates of O=trustme" in failed.text
