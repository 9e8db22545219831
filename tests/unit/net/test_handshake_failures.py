"""Reasons of failed handshakes; `test_acceptor.py` has the errors of real ones."""

from __future__ import annotations

import ssl

import pytest

from broker.net.handshake_failures import (
    ADVICE,
    DETAIL_MAX,
    FailureReason,
    HandshakeFailure,
    failure_of,
)


def openssl(reason: str | None, text: str = "") -> ssl.SSLError:
    error = ssl.SSLError(1, text)
    # None where OpenSSL gives none
    error.reason = reason  # type: ignore[assignment]
    return error


@pytest.mark.parametrize(
    ("error", "reason", "detail"),
    [
        pytest.param(
            openssl("HTTP_REQUEST"), FailureReason.NOT_TLS, "http request", id="plain HTTP"
        ),
        pytest.param(
            openssl("UNSUPPORTED_PROTOCOL"),
            FailureReason.VERSION,
            "unsupported protocol",
            id="an old version",
        ),
        pytest.param(
            openssl("NO_SHARED_CIPHER"), FailureReason.CIPHER, "no shared cipher", id="ciphers"
        ),
        pytest.param(
            openssl("TLSV1_ALERT_UNKNOWN_CA"), FailureReason.ALERT, "unknown ca", id="an alert"
        ),
        pytest.param(
            openssl("SSLV3_ALERT_CERTIFICATE_EXPIRED"),
            FailureReason.ALERT,
            "certificate expired",
            id="an alert named after an older version",
        ),
        pytest.param(
            openssl("CALLBACK_FAILED"), FailureReason.STALE, "callback failed", id="our refusal"
        ),
        pytest.param(
            openssl("BAD_RECORD_TYPE"),
            FailureReason.PROTOCOL,
            "bad record type",
            id="any other reason",
        ),
        pytest.param(
            openssl(None, "x" * 999), FailureReason.PROTOCOL, "x" * DETAIL_MAX, id="long words"
        ),
        pytest.param(ConnectionAbortedError("too long"), FailureReason.TIMEOUT, "", id="time-out"),
        pytest.param(
            ConnectionResetError(104, "Connection reset by peer"),
            FailureReason.CLOSED,
            "Connection reset by peer",
            id="reset",
        ),
        pytest.param(ConnectionResetError(), FailureReason.CLOSED, "", id="end of the stream"),
    ],
)
def test_reasons(error: OSError, reason: FailureReason, detail: str) -> None:
    failure = failure_of(error, "10.0.0.1")
    assert failure == HandshakeFailure(reason, "10.0.0.1", failure.detail)
    assert detail in failure.detail
    assert len(failure.detail) <= DETAIL_MAX


def test_every_reason_says_what_it_means() -> None:
    for reason in FailureReason:
        text = HandshakeFailure(reason, "10.0.0.1").text()
        assert text == f"TLS handshake with 10.0.0.1 failed: {ADVICE[reason]}"
    said = HandshakeFailure(FailureReason.ALERT, "::1", "unknown ca").text()
    assert said.endswith("the broker's certificate (unknown ca)")
