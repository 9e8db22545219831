"""How a job proves who it is: over AMQP and HTTP, with TLS, by each kind of login."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from broker import Broker
from broker.amqp.encode import BytesWriter
from broker.amqp.frames import SASL_HEADER, put_sasl_frame
from broker.amqp.sasl_frames import SaslMechanisms
from pyspark_amqp.errors import BrokerError, LoginError, UnreachableError
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import Options, read_options
from pyspark_amqp.wire import http_client
from pyspark_amqp.wire.broker_client import opened
from pyspark_amqp.wire.connection import connected
from pyspark_amqp.wire.credentials import TOKEN_BYTES_MAX, authorization, login_in, token_in
from tests.support.certificates import Authority
from tests.support.pipeline_site import (
    KEY_PASSWORD,
    PASSWORD,
    USER,
    PipelineSite,
    as_https,
)

pytestmark = pytest.mark.requirement("SEC-09")

TOKEN: Final = "eyJhbGciOiJub25lIn0.canary-1"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> PipelineSite:
    return PipelineSite(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def broker(site: PipelineSite) -> Iterator[Broker]:
    settings: dict[str, Any] = site.settings()
    with Broker(**settings) as running:
        yield running


def options(**given: str) -> Options:
    return read_options({"address": "orders", "amqp.timeout": "5s", **given}, Use.BATCH)


def reads_both_ways(given: dict[str, str], broker: Broker) -> None:
    """Read by AMQP and by HTTP, as the user of the pipeline."""
    asked = options(**given, managementUrl=as_https(broker.http_url))
    with opened(asked) as management:
        assert management.entities("lease")["results"] == []
    assert http_client.fact(asked, "/events/bounds") == {"first": 0, "last": 0}


def _by_password(site: PipelineSite) -> dict[str, str]:
    return site.by_password()


def _by_locked_key(site: PipelineSite) -> dict[str, str]:
    return site.by_certificate()


def _by_open_key(site: PipelineSite) -> dict[str, str]:
    given = site.by_certificate() | {"tls.keyFile": str(site.key)}
    del given["tls.keyPasswordFile"]
    return given


def _by_external(site: PipelineSite) -> dict[str, str]:
    return site.by_certificate() | {"saslMechanism": "EXTERNAL"}


def _by_password_beside_a_certificate(site: PipelineSite) -> dict[str, str]:
    return site.by_certificate() | site.by_password()


def _with_a_virtual_host(site: PipelineSite) -> dict[str, str]:
    return site.by_password() | {"amqp.virtualHost": "elsewhere"}


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(_by_password, id="a password"),
        pytest.param(_by_locked_key, id="a certificate whose key has a password"),
        pytest.param(_by_open_key, id="a certificate whose key has none"),
        pytest.param(_by_external, id="EXTERNAL by its name"),
        pytest.param(_by_password_beside_a_certificate, id="a password beside a certificate"),
        pytest.param(_with_a_virtual_host, id="another virtual host"),
    ],
)
def test_a_user_logs_in_over_tls(
    broker: Broker, site: PipelineSite, given: Callable[[PipelineSite], dict[str, str]]
) -> None:
    reads_both_ways(given(site), broker)


EVE = {"username": "eve", "password": "wrong-canary"}

WRONG = [
    # options that replace those of a login by password; by certificate; the error, its text
    pytest.param(EVE, False, "the name or the password is wrong", id="a wrong password"),
    pytest.param(EVE, True, "the name or the password is wrong", id="beside a certificate"),
    pytest.param({"tls.caFile": "none.pem"}, False, "tls.caFile: none.pem: No such", id="no CA"),
    pytest.param({"tls.caFile": "{key}"}, False, "tls.caFile: .* no certificate", id="a key as CA"),
    pytest.param({"tls.caFile": "{other}"}, False, "must name the authority", id="another CA"),
    pytest.param({"tls.keyFile": "{ca}"}, True, "not that of tls.key", id="no key"),
    pytest.param({"tls.certFile": "{ca}"}, True, "tls.certFile: .* not that", id="another's key"),
    pytest.param({"tls.keyPasswordFile": "{long}"}, True, "has no password", id="a long password"),
    pytest.param({"tls.keyPasswordFile": "{text}"}, True, "needs a password", id="a wrong one"),
    pytest.param({"tls.keyPasswordFile": "none"}, True, "none: No such file", id="no file of it"),
    pytest.param({"saslMechanism": "SCRAM-SHA-256"}, False, "python-qpid-proton from", id="SCRAM"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "by_certificate", "told"), WRONG)
def test_an_error_says_what_is_wrong_and_no_secret(
    broker: Broker,
    site: PipelineSite,
    tmp_path: Path,
    changed: dict[str, str],
    by_certificate: bool,
    told: str,
) -> None:
    (tmp_path / "text").write_text("wrong-canary")
    (tmp_path / "long").write_text("wrong-canary" * 100)
    named = {
        "ca": site.ca,
        "key": site.key,
        "other": Authority().write(tmp_path),
        "text": tmp_path / "text",
        "long": tmp_path / "long",
    }
    base = site.by_certificate() if by_certificate else site.by_password()
    given = base | {name: value.format(**named) for name, value in changed.items()}
    with pytest.raises(BrokerError, match=told) as caught, connected(options(**given)):
        pass
    assert "canary" not in str(caught.value)
    if "saslMechanism" in changed:
        return
    with pytest.raises(BrokerError) as over_http:
        http_client.fact(
            options(**given, managementUrl=as_https(broker.http_url)), "/events/bounds"
        )
    assert "canary" not in str(over_http.value)


@pytest.mark.usefixtures("broker")
def test_a_wrong_password_is_tried_once(site: PipelineSite) -> None:
    """A second failure would delay the login of everybody with this name and address."""
    asked = options(**site.by_password() | {"username": "eve"}, **{"amqp.timeout": "60s"})
    with opened(asked) as management, pytest.raises(LoginError):
        management.entities("lease")


def list_scram_alone(listening: socket.socket) -> None:
    """Answer one client as the broker does without TLS on a network."""
    out = BytesWriter()
    put_sasl_frame(out, SaslMechanisms(["SCRAM-SHA-512", "SCRAM-SHA-256"]))
    wire, _ = listening.accept()
    with wire:
        wire.sendall(SASL_HEADER + out.getvalue())
        while wire.recv(1024):
            pass


def test_a_broker_that_lists_no_mechanism_for_this_client_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=list_scram_alone, args=[listening], daemon=True).start()
        url = f"amqp://127.0.0.1:{listening.getsockname()[1]}"
        asked = options(url=url, username=USER, password=PASSWORD)
        with pytest.raises(LoginError) as caught, connected(asked):
            pass
    for part in ("amqps://", 'plain = "always"', "SCRAM, which python-qpid-proton", "EXTERNAL"):
        assert part in str(caught.value)
    assert PASSWORD not in str(caught.value)


@pytest.mark.usefixtures("broker")
def test_a_client_without_a_login_hears_that_one_is_needed(site: PipelineSite) -> None:
    given = {"url": site.url, "tls.caFile": str(site.ca)}
    with pytest.raises(LoginError, match="wants a login: give username and"):
        connected(options(**given)).__enter__()


# -- tokens


@pytest.mark.usefixtures("broker")
def test_a_token_is_read_anew_at_each_login(site: PipelineSite, tmp_path: Path) -> None:
    """The broker takes the token as a password here: that is how Proton sends it."""
    file = tmp_path / "token"
    given = {"url": site.url, "tls.caFile": str(site.ca)}
    asked = options(**given, username="rotating", tokenFile=str(file))
    for number in range(3):
        token = f"{TOKEN}.{number}"
        file.write_text(f"{token}\n")
        site.users.add("rotating", token, roles=["pipeline"])
        with opened(asked) as management:
            assert management.entities("lease")["results"] == []
        assert authorization(asked, urlsplit("https://h")) == {"Authorization": f"Bearer {token}"}
        assert login_in(asked, urlsplit(site.url)) == ("rotating", token)


class Recorder(http.server.BaseHTTPRequestHandler):
    """Answers each request, and notes its Authorization."""

    heard: Final[list[str]] = []

    def do_GET(self) -> None:
        self.heard.append(self.headers["Authorization"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def test_each_request_over_http_has_the_token_of_the_moment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with http.server.HTTPServer(("127.0.0.1", 0), Recorder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        asked = options(managementUrl=url, username="ann", tokenFile=str(file))
        for number in range(2):
            file.write_text(f"{TOKEN}{number}")
            http_client.fact(asked, "/events/bounds")
        server.shutdown()
    assert Recorder.heard == [f"Bearer {TOKEN}0", f"Bearer {TOKEN}1"]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="nothing"),
        pytest.param("canary one\ncanary two", id="two lines"),
        pytest.param("canary\r\nX-Injected: 1", id="another header"),
        pytest.param("canaryü", id="not ASCII"),
        pytest.param("canary\0", id="NUL"),
        pytest.param("canary" + "x" * TOKEN_BYTES_MAX, id="too long"),
    ],
)
def test_what_is_no_token_is_not_sent_and_not_shown(tmp_path: Path, content: str) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    asked = options(username="ann", tokenFile=str(file))
    with pytest.raises(LoginError, match=r"option tokenFile: .* has no token") as caught:
        token_in(asked)
    assert "canary" not in str(caught.value)
    with pytest.raises(UnreachableError, match="has no token"), connected(asked):
        pass


def test_no_secret_of_a_file_is_in_the_options(site: PipelineSite, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    asked = options(**site.by_certificate(), username="ann", tokenFile=str(file))
    assert TOKEN not in str(vars(asked))
    assert KEY_PASSWORD not in str(vars(asked))
