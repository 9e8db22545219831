"""The settings of bridges: `[[bridge]]`."""

from __future__ import annotations

import pytest

from broker.bridge_settings import BRIDGES_MAX
from broker.settings import SettingsError, given_settings

WHOLE: dict[str, object] = {"name": "b", "from": "q", "to": "r", "url": "amqp://there"}

PLACES = [
    # URL, host, port, whether it is encrypted
    ("amqp://there", "there", 5672, False),
    ("amqps://there", "there", 5671, True),
    ("amqp://there:7/", "there", 7, False),
    ("amqps://[::1]:7", "::1", 7, True),
]


@pytest.mark.parametrize(("url", "host", "port", "is_encrypted"), PLACES)
def test_the_place_of_a_url(url: str, host: str, port: int, is_encrypted: bool) -> None:
    (bridge,) = given_settings(bridge=[{**WHOLE, "url": url}]).bridge
    assert (bridge.place, bridge.is_encrypted) == ((host, port), is_encrypted)


def test_the_defaults() -> None:
    (bridge,) = given_settings(bridge=[WHOLE]).bridge
    assert (bridge.source, bridge.to, bridge.batch, bridge.keep) == ("q", "r", 1000, "move")
    assert (bridge.selector, bridge.credentials_file, bridge.tls) == ("", None, None)


WRONG = [
    pytest.param({"name": ""}, "name", id="no name"),
    pytest.param({"name": "a/b"}, "name", id="a name with a slash"),
    pytest.param({"from": ""}, "from", id="no source"),
    pytest.param({"to": ""}, "to", id="no target"),
    pytest.param({"url": "http://there"}, "amqp://HOST:PORT", id="another protocol"),
    pytest.param({"url": "amqp://"}, "amqp://HOST:PORT", id="no host"),
    pytest.param({"url": "amqp://there:x"}, "amqp://HOST:PORT", id="a wrong port"),
    pytest.param({"url": "amqp://ann:secret@there"}, "credentials_file", id="a password"),
    pytest.param({"url": "amqp://there/q"}, "without a path", id="a path"),
    pytest.param({"batch": 0}, "batch", id="an empty batch"),
    pytest.param({"batch": 2001}, "batch", id="too large a batch"),
    pytest.param({"keep": "both"}, "keep", id="an unknown kind of move"),
    pytest.param({"tls": {}}, "amqps://", id="TLS without amqps"),
    pytest.param({"speed": 9}, "speed", id="an unknown key"),
    pytest.param(
        {"url": "amqps://there", "tls": {"certificate": "c.pem"}}, "belong together", id="no key"
    ),
]


@pytest.mark.parametrize(("changes", "said"), WRONG)
def test_what_cannot_be_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        given_settings(bridge=[{**WHOLE, **changes}])


def test_two_of_one_name_are_refused() -> None:
    with pytest.raises(SettingsError, match="more than one"):
        given_settings(bridge=[WHOLE, {**WHOLE, "from": "other"}])


def test_there_is_a_maximum_of_bridges() -> None:
    many = [{**WHOLE, "name": str(number)} for number in range(BRIDGES_MAX + 1)]
    assert len(given_settings(bridge=many[:-1]).bridge) == BRIDGES_MAX
    with pytest.raises(SettingsError, match="bridge"):
        given_settings(bridge=many)
