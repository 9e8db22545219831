"""The messages of OAUTHBEARER (RFC 7628 3.1) and XOAUTH2."""

from __future__ import annotations

import json

import pytest

from broker.amqp.limits import SASL_CHALLENGE_SIZE_MAX
from broker.oauth_settings import OAUTHBEARER, TOKEN_MECHANISMS, XOAUTH2
from broker.security.bearer import (
    MESSAGE_BYTES_MAX,
    BearerError,
    BearerMessage,
    error_challenge,
    looks_like_token,
    read_bearer,
)

pytestmark = pytest.mark.requirement("SEC-07")

MESSAGES = [
    # mechanism, message, user and token
    pytest.param(
        OAUTHBEARER,
        b"n,a=a=2Cb=3D,\x01host=h\x01port=1\x01auth=Bearer T\x01\x01",
        "a,b=",
        id="as in RFC 7628",
    ),
    pytest.param(OAUTHBEARER, b"n,,\x01auth=Bearer T\x01\x01", "", id="without a user"),
    pytest.param(OAUTHBEARER, b"y,,\x01auth=bearer T\x01\x01", "", id="another spelling"),
    pytest.param(XOAUTH2, b"user=ada\x01auth=Bearer T\x01\x01", "ada", id="as Qpid JMS sends it"),
    pytest.param(XOAUTH2, b"user=\x01auth=Bearer T\x01\x01", "", id="an empty user"),
]


@pytest.mark.parametrize(("mechanism", "message", "user"), MESSAGES)
def test_user_and_token_are_read(mechanism: str, message: bytes, user: str) -> None:
    assert read_bearer(mechanism, message) == BearerMessage(user, "T")


MALFORMED = [
    pytest.param(OAUTHBEARER, b"", "two separators", id="nothing"),
    pytest.param(OAUTHBEARER, b"n,,\x01auth=Bearer T\x01", "two separators", id="one separator"),
    pytest.param(OAUTHBEARER, b"n,,\x01host=h\x01\x01", "no single", id="no token"),
    pytest.param(
        OAUTHBEARER, b"n,,\x01auth=Bearer T\x01auth=Bearer U\x01\x01", "no single", id="two tokens"
    ),
    pytest.param(OAUTHBEARER, b"n,,\x01auth=Basic T\x01\x01", "no single", id="another scheme"),
    pytest.param(OAUTHBEARER, b"p=tls,,\x01auth=Bearer T\x01\x01", "begins with", id="a binding"),
    pytest.param(OAUTHBEARER, b"n,ada,\x01auth=Bearer T\x01\x01", "by `a=`", id="a bare user"),
    pytest.param(OAUTHBEARER, b"n,a=,\x01auth=Bearer T\x01\x01", "by `a=`", id="no user"),
    pytest.param(OAUTHBEARER, b"n\x01auth=Bearer T\x01\x01", "begins with", id="no commas"),
    pytest.param(XOAUTH2, b"ada\x01auth=Bearer T\x01\x01", "`user=`", id="a bare user, XOAUTH2"),
    pytest.param(XOAUTH2, b"user=\xff\x01auth=Bearer T\x01\x01", "UTF-8", id="no UTF-8"),
    pytest.param(XOAUTH2, b"x" * (MESSAGE_BYTES_MAX + 1), "more than", id="too long"),
]


@pytest.mark.parametrize(("mechanism", "message", "reason"), MALFORMED)
def test_malformed_messages_are_refused(mechanism: str, message: bytes, reason: str) -> None:
    with pytest.raises(BearerError, match=reason):
        read_bearer(mechanism, message)


@pytest.mark.parametrize("mechanism", TOKEN_MECHANISMS)
def test_the_error_is_json_and_fits_into_a_frame(mechanism: str) -> None:
    challenge = error_challenge(mechanism)
    assert "status" in json.loads(challenge)
    assert len(challenge) <= SASL_CHALLENGE_SIZE_MAX


PASSWORDS = [("eyJhIjoxfQ.e30.AA", True), ("eyJ", False), ("a.b.c", False), ("engine", False)]


@pytest.mark.parametrize(("password", "expected"), PASSWORDS)
def test_a_password_is_a_token_if_it_has_the_form_of_one(password: str, expected: bool) -> None:
    assert looks_like_token(password) is expected
