"""The URL of a broker with the user given beside it; tests/interop has the rest."""

import pytest

from broker.cli.requests import with_user

URLS = [
    pytest.param("amqp://h:1", None, None, "amqp://h:1", id="nobody named"),
    pytest.param("amqp://h:1", "a", "b", "amqp://a:b@h:1", id="somebody"),
    pytest.param("amqp://x:y@h:1", "a", "b", "amqp://a:b@h:1", id="in place of another"),
    pytest.param("amqp://h:1", "a", None, "amqp://a@h:1", id="without a password"),
    pytest.param("amqp://h:1", "a@b", "c/d:e", "amqp://a%40b:c%2Fd%3Ae@h:1", id="escaped"),
    pytest.param("h:1", "a", "b", "amqp://a:b@h:1", id="a place alone"),
    pytest.param("amqps://h", "a", "b", "amqps://a:b@h", id="with TLS"),
]


@pytest.mark.parametrize(("url", "user", "password", "expected"), URLS)
def test_the_url_with_its_user(
    url: str, user: str | None, password: str | None, expected: str
) -> None:
    assert with_user(url, user, password) == expected
