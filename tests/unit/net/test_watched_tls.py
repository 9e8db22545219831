"""Certificates that follow their files, and what the operator hears of them."""

import datetime as dt
from pathlib import Path

import pytest

from broker.net.tls_files import TlsError
from broker.net.watched_tls import WatchedTls
from broker.tls_settings import TlsSettings
from tests.support.broker import Broker
from tests.support.certificates import Authority
from tests.support.clock import WALL_START_MS

pytestmark = pytest.mark.requirement("SEC-01")


def test_the_operator_hears_of_each_change_once(tmp_path: Path) -> None:
    broker, authority = Broker(), Authority()
    certificate, key = authority.issue("localhost").write(tmp_path, "server")
    settings = TlsSettings(certificate=certificate, key=key)
    tls = WatchedTls("secure", settings, broker.container, place="tls")
    for write, told in (
        (lambda: None, []),
        (
            lambda: authority.issue("localhost").write(tmp_path, "server"),
            ["noticed listener secure: new certificates are in use: "],
        ),
        (
            lambda: certificate.write_text("nothing"),
            ["noticed the former certificates stay in use: tls.certificate = "],
        ),
    ):
        write()
        for _ in range(2):
            tls.watch()
        heard, broker.watcher.events[:] = broker.watcher.events[:], []
        assert len(heard) == len(told)
        assert all(text.startswith(part) for text, part in zip(heard, told, strict=True))
    with pytest.raises(TlsError):
        tls.prepare(settings)


def test_the_operator_hears_of_an_end_that_is_near(tmp_path: Path) -> None:
    broker, authority = Broker(), Authority()
    certificate, key = authority.issue("localhost").write(tmp_path, "server")
    now = dt.datetime.now(dt.UTC)
    broker.clock.set_wall(int(now.timestamp() * 1000) - WALL_START_MS)
    revoked = tmp_path / "revoked.pem"
    revoked.write_bytes(authority.crl([], now + dt.timedelta(days=6)))
    settings = TlsSettings(
        certificate=certificate,
        key=key,
        client_certificates="ask",
        client_ca=authority.write(tmp_path),
        crl=revoked,
    )
    tls = WatchedTls("secure", settings, broker.container, place="tls")
    for _ in range(2):
        tls.watch()
    (told,) = broker.watcher.events
    assert "revoked.pem" in told
