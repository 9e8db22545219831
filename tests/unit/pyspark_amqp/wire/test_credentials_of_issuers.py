"""Logins of a job at a broker that takes tokens of an issuer, certificates, and SCRAM.

Proton has SCRAM only where it is built with Cyrus SASL, which the packages of PyPI are not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from proton import SASL

from broker import Broker
from pyspark_amqp.errors import BrokerError, DeniedError, LoginError
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import Options, read_options
from pyspark_amqp.wire import http_client
from pyspark_amqp.wire.broker_client import opened
from pyspark_amqp.wire.connection import connected
from tests.support.certificates import Authority
from tests.support.pipeline_site import PASSWORD, USER, PipelineSite, as_https
from tests.support.tokens import TokenIssuer, oauth

pytestmark = pytest.mark.requirement("SEC-07", "SEC-09")

ISSUER: Final = TokenIssuer()
PIPELINE: Final = {"roles": ["pipeline"], "preferred_username": "tokens"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> PipelineSite:
    return PipelineSite(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def broker(site: PipelineSite) -> Iterator[Broker]:
    settings: dict[str, Any] = site.settings()
    with Broker(**settings, oauth=oauth(site.folder, ISSUER).model_dump()) as running:
        yield running


def options(broker: Broker, **given: str) -> Options:
    asked = {"address": "orders", "amqp.timeout": "1s", "managementUrl": as_https(broker.http_url)}
    return read_options({**asked, **given}, Use.BATCH)


def by_token(site: PipelineSite, folder: Path, token: str) -> dict[str, str]:
    """Return the options of a login with `token`, which is in a file."""
    file = folder / "token"
    file.write_text(token)
    given = {"url": site.url, "tls.caFile": str(site.ca), "tokenFile": str(file)}
    return given | {"username": "tokens"}


def over_amqp(asked: Options) -> None:
    with opened(asked) as management:
        assert management.entities("lease")["results"] == []


def over_http(asked: Options) -> None:
    assert http_client.fact(asked, "/events/bounds") == {"first": 0, "last": 0}


BOTH_WAYS: Final = pytest.mark.parametrize(
    "reads", [pytest.param(over_amqp, id="AMQP"), pytest.param(over_http, id="HTTP")]
)
Reads = Callable[[Options], None]


@BOTH_WAYS
def test_a_token_of_the_issuer_logs_in(
    broker: Broker, site: PipelineSite, tmp_path: Path, reads: Reads
) -> None:
    given = by_token(site, tmp_path, ISSUER.token(**PIPELINE))
    reads(options(broker, **given))


@BOTH_WAYS
def test_the_roles_of_a_token_say_what_it_may(
    broker: Broker, site: PipelineSite, tmp_path: Path, reads: Reads
) -> None:
    given = by_token(site, tmp_path, ISSUER.token(**{**PIPELINE, "roles": ["application"]}))
    with pytest.raises(DeniedError):
        reads(options(broker, **given))


BAD_TOKENS: Final = [
    pytest.param(lambda: ISSUER.token(**PIPELINE, exp=int(time.time()) - 600), id="expired"),
    pytest.param(lambda: ISSUER.token(**PIPELINE, aud="another"), id="for another server"),
    pytest.param(lambda: ISSUER.token(**PIPELINE, iss="https://evil.example"), id="of another"),
    pytest.param(lambda: TokenIssuer().token(**PIPELINE), id="signed with another key"),
]


@BOTH_WAYS
@pytest.mark.parametrize("made", BAD_TOKENS)
def test_another_token_is_refused_and_not_shown(
    broker: Broker, site: PipelineSite, tmp_path: Path, reads: Reads, made: Callable[[], str]
) -> None:
    token = made()
    with pytest.raises(BrokerError) as caught:
        reads(options(broker, **by_token(site, tmp_path, token)))
    assert token.rpartition(".")[2] not in str(caught.value)


STRANGERS: Final = [
    pytest.param("nobody.example", True, id="a certificate of no user"),
    pytest.param("pipe.example", False, id="a certificate of another authority"),
]


@BOTH_WAYS
@pytest.mark.parametrize(("name", "is_ours"), STRANGERS)
def test_another_certificate_is_refused(
    broker: Broker, site: PipelineSite, tmp_path: Path, reads: Reads, name: str, is_ours: bool
) -> None:
    authority = site.authority if is_ours else Authority()
    certificate, key = authority.issue(name).write(tmp_path, "stranger")
    given = {"url": site.url, "tls.caFile": str(site.ca)}
    given |= {"tls.certFile": str(certificate), "tls.keyFile": str(key)}
    with pytest.raises(BrokerError):
        reads(options(broker, **given))


def without_tls(broker: Broker, **given: str) -> Options:
    asked = {"url": broker.url, "username": USER, "password": PASSWORD, "amqp.timeout": "1s"}
    return read_options({"address": "orders", **asked, **given}, Use.BATCH)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_logs_in_where_proton_has_it_and_says_so_where_not(
    broker: Broker, mechanism: str
) -> None:
    """Without Cyrus SASL, the error names what to do."""
    asked = without_tls(broker, saslMechanism=mechanism)
    if SASL.extended():
        over_amqp(asked)
        return
    with pytest.raises(LoginError, match="SCRAM, which python-qpid-proton") as caught:
        connected(asked).__enter__()
    assert PASSWORD not in str(caught.value)
