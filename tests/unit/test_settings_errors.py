"""The texts of errors about settings, and the source of each setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.settings_errors import DEFAULTS, Places, dotted, shown, unknown

CONFIG = Path("broker.toml")
FURTHER = Path("conf.d/a.toml")

PLACES = [
    pytest.param(("port",), "command line", id="an option"),
    pytest.param(("log", "level"), "JMS_BROKER_LOG_LEVEL", id="a variable of a table"),
    pytest.param(("address", 0, "pattern"), "jms_broker_address", id="a variable of a whole list"),
    pytest.param(("store",), "JMS_BROKER_STORE_FILE", id="a file of a secret"),
    pytest.param(("credit",), "broker.toml", id="the settings file"),
    pytest.param(("queue", 0, "name"), "broker.toml", id="a list of it"),
    pytest.param(("queue", 1, "name"), "conf.d/a.toml", id="an entry of a further file"),
    pytest.param(("bind",), DEFAULTS, id="nowhere"),
]


@pytest.mark.parametrize(("path", "expected"), PLACES)
def test_the_source_of_a_setting(path: tuple[int | str, ...], expected: str) -> None:
    environment = {
        "JMS_BROKER_PORT": "1",
        "JMS_BROKER_LOG_LEVEL": "debug",
        "jms_broker_address": "[]",
        "JMS_BROKER_STORE_FILE": "x",
    }
    files = {("credit",): CONFIG, ("queue",): CONFIG, ("queue", 1): FURTHER, ("store",): CONFIG}
    assert Places({"port": 2}, environment, files).of(path) == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        pytest.param("password", "sesame", "***", id="a password"),
        pytest.param("store", "postgresql://a:b@c/d", "'postgresql://***@c/d'", id="in a URL"),
        pytest.param(
            "store",
            "postgresql://c/d?password=b&ssl=require",
            "'postgresql://c/d?password=***&ssl=require'",
            id="a parameter of a URL",
        ),
        pytest.param("port", 1, "1", id="no secret"),
    ],
)
def test_errors_show_no_secret(name: str, value: object, expected: str) -> None:
    assert shown(name, value) == expected


def test_a_path_as_operators_write_it() -> None:
    assert dotted(("address", 0, "pattern")) == "address[0].pattern"


def test_an_unknown_setting_is_told_with_those_like_it() -> None:
    assert unknown("prot", ["port", "bind"]) == "unknown setting; did you mean port?"
    assert unknown("x", ["port"]) == "unknown setting; the nearest are port"
