"""`jms-broker` as typed, at a broker with TLS: files, variables, logins, and how they fail."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.interop.broker_process import PASSWORD, USER
from tests.interop.secured_broker import SHOP, SHOP_PASSWORD, SecuredBroker
from tests.interop.typed import Client

pytestmark = pytest.mark.requirement("SEC-01")

ADMINISTRATOR = f"{USER}:{PASSWORD}"
SHOPPING = f"{SHOP}:{SHOP_PASSWORD}"


def files(broker: SecuredBroker, ca: str = "", shown: str = "") -> list[str]:
    """Return the options for an authority and a certificate of the broker's folder."""
    options = ["--ca", broker.file(f"{ca}.pem")] if ca else []
    if shown:
        options += ["--cert", broker.file(f"{shown}.pem"), "--key", broker.file(f"{shown}.key")]
    return options


def test_messages_go_over_tls(secured_broker: SecuredBroker, address: str) -> None:
    client = Client(secured_broker.tls_url(SHOPPING))
    trusted = files(secured_broker, "ca")
    assert client.prints("send", address, "a", "b", *trusted) == b"sent 2\n"
    assert client.prints("browse", address, *trusted) == b"a\nb\n"
    assert client.prints("receive", address, "--count", "2", *trusted) == b"a\nb\n"


@pytest.mark.requirement("SEC-02")
@pytest.mark.parametrize("listener", ["asking", "demanding"])
def test_a_certificate_logs_in(secured_broker: SecuredBroker, address: str, listener: str) -> None:
    client = Client(secured_broker.tls_url(listener=listener))
    shown = files(secured_broker, "ca", "shop")
    assert client.prints("send", address, "x", *shown) == b"sent 1\n"
    refused = client.run("send", "closed.orders", "x", *shown)
    assert b"not allowed to send queue:closed.orders (rule closed)" in refused.stderr


@pytest.mark.requirement("SEC-02")
def test_a_named_user_wins_over_the_certificate(secured_broker: SecuredBroker) -> None:
    shown = files(secured_broker, "ca", "shop")
    client = Client(secured_broker.tls_url(ADMINISTRATOR, listener="demanding"))
    assert any(each.startswith("alice ") for each in client.lists_users(*shown))
    typed = Client(secured_broker.tls_url(listener="demanding"))
    login = ("--user", USER, "--password", PASSWORD)
    assert any(each.startswith("alice ") for each in typed.lists_users(*login, *shown))


def test_the_files_may_be_in_variables(secured_broker: SecuredBroker) -> None:
    client = Client(secured_broker.tls_url(listener="demanding"))
    client.environment |= {
        "JMS_BROKER_CA": secured_broker.file("ca.pem"),
        "JMS_BROKER_CERT": secured_broker.file("shop.pem"),
        "JMS_BROKER_KEY": secured_broker.file("shop.key"),
    }
    refused = client.run("node", "list")
    assert refused.returncode == 4
    assert b"not allowed to view management:queues" in refused.stderr
    assert client.prints("healthcheck", "--url", client.url).startswith(b"healthy: opened and")
    # with amqp:// they are ignored
    plain = secured_broker.url.replace("amqp://", f"amqp://{ADMINISTRATOR}@")
    assert client.prints("connection", "list", "--url", plain).startswith(b"identity")


def failure(client: Client, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    done = client.run("send", "q", "x", *arguments)
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1, done.stderr
    assert done.stderr.startswith(b"jms-broker: ")
    return done


REFUSED = [
    pytest.param("", "", SHOPPING, 5, "an authority that this machine trusts: give", id="no CA"),
    pytest.param("other", "", SHOPPING, 5, "not signed by an authority in /", id="another CA"),
    pytest.param("missing", "", SHOPPING, 2, "missing.pem: there is no such file", id="no file"),
    pytest.param(
        "ca", "", "", 4, "it offers SCRAM-SHA-512, SCRAM-SHA-256, PLAIN): name", id="none"
    ),
    pytest.param("ca", "foreign", "", 5, "does not trust the authority that signed", id="foreign"),
    pytest.param("ca", "stranger", "", 4, "knows no user for the certificate /", id="no user"),
    pytest.param(
        "ca", "", "shop:x", 4, "Authentication failed [mech=PLAIN]", id="a wrong password"
    ),
]


@pytest.mark.parametrize(("ca", "shown", "login", "status", "told"), REFUSED)
def test_a_refusal_tells_what_to_do(
    secured_broker: SecuredBroker, ca: str, shown: str, login: str, status: int, told: str
) -> None:
    client = Client(secured_broker.tls_url(login))
    done = failure(client, *files(secured_broker, ca, shown))
    assert done.returncode == status
    assert told in done.stderr.decode()


def test_a_certificate_that_is_demanded(secured_broker: SecuredBroker) -> None:
    client = Client(secured_broker.tls_url(SHOPPING, listener="demanding"))
    done = failure(client, *files(secured_broker, "ca"))
    assert b"the broker demands a certificate of the client: give --cert" in done.stderr


def test_an_address_in_place_of_a_name(secured_broker: SecuredBroker) -> None:
    url = secured_broker.tls_url(SHOPPING).replace("localhost", "127.0.0.1")
    done = failure(Client(url), *files(secured_broker, "ca"))
    assert b"compares the certificate with host names only, and 127.0.0.1 is none" in done.stderr


def test_the_wrong_port(secured_broker: SecuredBroker) -> None:
    trusted = files(secured_broker, "ca")
    plain = secured_broker.url.replace("amqp://127.0.0.1", "amqps://localhost")
    assert b"it does not speak TLS at this port" in failure(Client(plain), *trusted).stderr
    encrypted = secured_broker.tls_url(SHOPPING).replace("amqps", "amqp")
    assert b"If TLS is spoken at this port, write amqps://" in failure(Client(encrypted)).stderr
    done = failure(Client(secured_broker.url), *trusted)
    assert done.returncode == 2
    assert done.stderr == b"jms-broker: --ca is for TLS: write amqps:// or https:// in the URL\n"


HEALTH = [
    pytest.param("ca", "", 0, "healthy: asks for a password (SCRAM-SHA-512, ", id="no login"),
    pytest.param("ca", "shop", 0, "healthy: opened and closed a connection", id="EXTERNAL"),
    pytest.param("other", "", 1, "its certificate is not signed by an authority", id="another CA"),
    pytest.param("ca", "foreign", 1, "the broker does not trust the authority", id="foreign"),
    pytest.param("missing", "", 1, "missing.pem: there is no such file", id="no file"),
]


@pytest.mark.parametrize(("ca", "shown", "status", "told"), HEALTH)
def test_a_health_check_over_tls(
    secured_broker: SecuredBroker, ca: str, shown: str, status: int, told: str
) -> None:
    url = secured_broker.tls_url()
    done = Client(url).run("healthcheck", "--url", url, *files(secured_broker, ca, shown))
    assert done.returncode == status
    assert told in (done.stdout + done.stderr).decode()


Checked = tuple[int, dict[str, object], str]
"""The exit status, the record and the errors of a check."""


def tls_check(broker: SecuredBroker, *arguments: str, listener: str = "asking") -> Checked:
    """Return the exit status, the record, and the errors of a check of a listener."""
    place = broker.tls_url(listener=listener).removeprefix("amqps://")
    done = Client(broker.url).run("tls", "check", place, *arguments, "--json")
    record: dict[str, object] = json.loads(done.stdout) if done.stdout else {}
    return done.returncode, record, done.stderr.decode()


def test_the_check_of_a_listener(secured_broker: SecuredBroker) -> None:
    status, told, errors = tls_check(secured_broker, *files(secured_broker, "ca"))
    assert (status, errors) == (0, "")
    assert told["protocol"] == "TLSv1.3"
    assert told["speaks"] == "AMQP 1.0"
    assert told["names"] == ["localhost", "127.0.0.1"]
    assert (told["trusted"], told["name_fits"], told["problems"]) == (True, True, [])


def test_a_check_with_a_client_certificate(secured_broker: SecuredBroker) -> None:
    trusted = files(secured_broker, "ca")
    status, told, errors = tls_check(secured_broker, *trusted, listener="demanding")
    assert (status, told["trusted"]) == (1, True)
    assert "the broker demands a certificate of the client: give --cert" in errors
    shown = files(secured_broker, "ca", "shop")
    assert tls_check(secured_broker, *shown, listener="demanding")[0] == 0


def test_a_check_that_finds_both_faults(secured_broker: SecuredBroker) -> None:
    place = secured_broker.tls_url().replace("localhost", "127.1").removeprefix("amqps://")
    other = files(secured_broker, "other")
    done = Client(secured_broker.url).run("tls", "check", place, *other)
    assert done.returncode == 1
    shown = dict(line.split("  ", 1) for line in done.stdout.decode().splitlines())
    assert shown["names"].strip() == "localhost, 127.0.0.1"
    assert (shown["trusted"].strip(), shown["name fits"].strip()) == ("no", "no")
    assert b"is not signed by an authority in /" in done.stderr
    assert b"is not for the name 127.1: connect by a name that is in it" in done.stderr


def test_a_check_of_a_port_without_tls(secured_broker: SecuredBroker) -> None:
    client = Client(secured_broker.url)
    done = client.run("tls", "check", secured_broker.url.removeprefix("amqp://"))
    assert (done.returncode, done.stdout) == (5, b"")
    assert b"it does not speak TLS at this port" in done.stderr
    refused = client.run("tls", "check", secured_broker.url)
    assert (refused.returncode, refused.stdout) == (2, b"")
