"""pytest fixtures: `amqp_broker`, a broker for one test, and `amqp_url`, its address.

pytest loads this plugin wherever jms-broker is installed, also in projects with a module `broker`
of their own. Therefore the broker is imported only when a test requests one. Tests share nothing:
each has its own port, and each worker of pytest-xdist its own process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from broker.embedding import Broker

MARKER = (
    "amqp_broker(**settings): what this test's broker is started with, such as"
    " max_delivery_count=3 or users={'alice': 'sesame'}"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    store = "where the brokers of tests keep messages"
    users = "who may enter the brokers of tests, as NAME:PASSWORD; else everybody"
    group = parser.getgroup("jms-broker")
    group.addoption("--amqp-store", metavar="STORE", help=store)
    group.addoption("--amqp-user", action="append", metavar="NAME:PASSWORD", help=users)
    parser.addini("amqp_store", store, default="memory")
    parser.addini("amqp_users", users, type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def amqp_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Yield a running `broker.Broker` for this test, in a thread of its own."""
    from jms_broker import ShadowedError, check_names

    try:
        check_names()
    except ShadowedError as error:
        pytest.fail(str(error), pytrace=False)
    from broker.embedding import Broker

    with Broker(**_settings(request)) as running:
        yield running


@pytest.fixture
def amqp_url(amqp_broker: Broker) -> str:
    """Return the URL of `amqp_broker`, with name and password of its first user if it has users."""
    first = next(iter(amqp_broker.users), None)
    return amqp_broker.url if first is None else amqp_broker.url_for(first)


def _settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the settings: of the nearest marker, else the command line, else the configuration."""
    config = request.config
    settings: dict[str, Any] = {
        "store": config.getoption("--amqp-store") or config.getini("amqp_store"),
        "users": _users(config.getoption("--amqp-user") or config.getini("amqp_users")),
    }
    for marker in reversed(list(request.node.iter_markers("amqp_broker"))):
        if marker.args:
            raise pytest.UsageError(
                f"the marker amqp_broker takes settings by name, such as max_delivery_count=3, not"
                f" {', '.join(map(repr, marker.args))}"
            )
        settings.update(marker.kwargs)
    if not _is_users(settings["users"]):
        raise pytest.UsageError(
            f"users of the marker amqp_broker is a dict of passwords by name, such as"
            f" {{'alice': 'sesame'}}, not {settings['users']!r}"
        )
    return settings


def _is_users(users: object) -> bool:
    return users is None or (
        isinstance(users, Mapping)
        and all(isinstance(text, str) for pair in users.items() for text in pair)
    )


def _users(lines: list[str]) -> dict[str, str]:
    users: dict[str, str] = {}
    for line in lines:
        name, separator, password = line.partition(":")
        if not separator:
            raise pytest.UsageError(f"a user is NAME:PASSWORD, not {line!r}")
        users[name] = password
    return users
