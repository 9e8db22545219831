"""URLs of a broker: which are accepted, and how they are shown."""

import pytest

from broker.cli.broker_url import MANAGEMENT_SCHEMES, URLError, split_url, without_password

URLS = [
    pytest.param("amqp://h", "h", None, id="a host"),
    pytest.param("amqp://a:b@h:1", "h", 1, id="with user and port"),
    pytest.param("AMQPS://h", "h", None, id="with TLS, in capitals"),
    pytest.param("h:5672", "h", 5672, id="a place alone"),
    pytest.param("amqp://[::1]:1", "::1", 1, id="IPv6"),
]


@pytest.mark.parametrize(("url", "host", "port"), URLS)
def test_a_url(url: str, host: str, port: int | None) -> None:
    parts = split_url(url)
    assert (parts.hostname, parts.port) == (host, port)


def test_management_also_has_urls_of_http() -> None:
    assert split_url("https://h:8161", MANAGEMENT_SCHEMES).port == 8161
    assert split_url("h", MANAGEMENT_SCHEMES).scheme == "amqp"


NONE = [
    pytest.param("http://h:8161", "http:// is not AMQP", id="HTTP"),
    pytest.param("tcp://h", "tcp:// is not AMQP", id="another broker's way of writing"),
    pytest.param("amqp://", "names no host", id="no host"),
    pytest.param("", "names no host", id="nothing"),
    pytest.param("amqp://h:x", "Port could not be cast", id="no number"),
    pytest.param("amqp://[::1", "Invalid IPv6", id="half an address"),
    pytest.param("amqp://a:b/c@h", "write / # ? @", id="a password that is not encoded"),
]


@pytest.mark.parametrize(("url", "told"), NONE)
def test_no_url_of_a_broker(url: str, told: str) -> None:
    with pytest.raises(URLError, match="amqp://USER:PASSWORD@HOST:PORT") as refused:
        split_url(url)
    assert told in str(refused.value)
    assert "'b'" not in str(refused.value)


SHOWN = [
    pytest.param("amqp://a:b@h:1", "amqp://a:***@h:1", id="a password"),
    pytest.param("a:b@h:1", "a:***@h:1", id="without a scheme"),
    pytest.param("amqp://a:b@c@h", "amqp://a:***@h", id="with an @ in it"),
    pytest.param("amqp://a:b/c@h:1", "amqp://a:***@h:1", id="with a / that is not encoded"),
    pytest.param("amqp//a:b@h:1", "amqp//a:***@h:1", id="a colon left out"),
    pytest.param("amqp:/a:b@h:1", "amqp:***@h:1", id="a slash left out"),
    pytest.param("amqp://a@h:1", "amqp://a@h:1", id="a user alone"),
    pytest.param("amqp://h:1", "amqp://h:1", id="a port is none"),
    pytest.param("h:1", "h:1", id="a place alone"),
]


@pytest.mark.parametrize(("url", "shown"), SHOWN)
def test_a_password_is_not_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown
