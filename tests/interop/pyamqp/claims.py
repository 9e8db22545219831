"""Cases for the claims of Azure's clients: a token that they put to `$cbs` before they attach.

The broker takes claims for a connection whose login was a token (docs/operations/oauth.md). So
these clients log in with one token as the password, whose user may not send, and put another.
"""

from __future__ import annotations

import os
from typing import Final
from urllib.request import urlopen

import pytest
from azure.servicebus._pyamqp.authentication import AccessToken, JWTTokenAuth, SASLPlainAuth
from azure.servicebus._pyamqp.constants import AUTH_DEFAULT_EXPIRATION_SECONDS
from azure.servicebus._pyamqp.error import TokenAuthFailure
from azure.servicebus._pyamqp.sasl import SASLPlainCredential
from azure.servicebus._pyamqp.utils import utc_now

from tests.interop.pyamqp.harness import Scene, refused, shows

BROKER: Final = os.environ["BROKER_TOKENS"]
"""Host and port of the broker that takes tokens."""


def token(kind: str) -> str:
    """Return a new token of the tests' issuer."""
    with urlopen(os.environ["TOKEN_ISSUER"] + kind) as answer:
        return str(answer.read(), "utf-8")


def claims(kind: str) -> JWTTokenAuth:
    """Return the authentication of Azure's clients, which puts a token of this kind to `$cbs`."""

    def get_token() -> AccessToken:
        expires_on = int(utc_now().timestamp()) + AUTH_DEFAULT_EXPIRATION_SECONDS
        return AccessToken(token(kind), expires_on)

    return JWTTokenAuth(f"amqp://{BROKER}/", f"amqp://{BROKER}/", get_token)


def after_login(kind: str) -> JWTTokenAuth:
    """Return claims that are put after a login with the token of a user who may not send."""
    auth = claims(kind)
    auth.sasl = SASLPlainCredential("ada", token("monitor"))
    return auth


@shows("a token that Azure's client puts to $cbs gives its rights", "SEC-07")
def claimed(scene: Scene) -> None:
    scene.fill(b"a", hostname=BROKER, auth=after_login("good"))
    inbox = scene.receiver(hostname=BROKER, auth=after_login("good"))
    inbox.credit(1)
    assert inbox.values(1) == [b"a"]


@shows("without that token the client may not send", "SEC-07")
def unclaimed(scene: Scene) -> None:
    with refused(b"amqp:unauthorized-access"):
        scene.fill(b"a", hostname=BROKER, auth=SASLPlainAuth("ada", token("monitor")))


@shows("a wrong token that Azure's client puts to $cbs is refused", "SEC-07")
def wrong_claim(scene: Scene) -> None:
    with pytest.raises(TokenAuthFailure) as refusal:
        scene.fill(b"a", hostname=BROKER, auth=after_login("bad"))
    assert "401" in str(refusal.value)


@shows("claims alone log in nobody", "SEC-07")
def claims_alone(scene: Scene) -> None:
    with pytest.raises(ValueError, match="Unsupported SASL credential type"):
        scene.fill(b"a", hostname=BROKER, auth=claims("good"))
