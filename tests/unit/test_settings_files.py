"""Settings files beside the one that is named, and files with secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.settings import SECRETS, SettingsError, load_settings, load_with_places, variable_names
from broker.settings_files import UnreadableFile, further_files, read_files, secrets_of

pytestmark = pytest.mark.requirement("OPS-17")


def configured(folder: Path, main: str, **further: str) -> Path:
    """Write a settings file, and further ones into `conf.d` beside it; return its path."""
    config = folder / "broker.toml"
    config.write_text(main)
    (folder / "conf.d").mkdir(exist_ok=True)
    for name, text in further.items():
        (folder / "conf.d" / f"{name}.toml").write_text(text)
    return config


MERGES = [
    pytest.param("port = 1", {}, {"port": 1}, id="no further files"),
    pytest.param("port = 1", {"a": "port = 2"}, {"port": 2}, id="a further file wins"),
    pytest.param("", {"b": "port = 3", "a": "port = 2"}, {"port": 3}, id="in the order of names"),
    pytest.param(
        '[log]\nlevel = "debug"',
        {"a": '[log]\nformat = "json"'},
        {"log": {"level": "debug", "format": "json"}},
        id="tables are merged",
    ),
    pytest.param(
        '[[address]]\npattern = "a"',
        {"a": '[[address]]\npattern = "b"', "b": '[[address]]\npattern = "c"'},
        {"address": [{"pattern": "a"}, {"pattern": "b"}, {"pattern": "c"}]},
        id="lists of tables are appended",
    ),
    pytest.param(
        'address_prefixes = ["queue://"]',
        {"a": 'address_prefixes = ["topic://"]'},
        {"address_prefixes": ["topic://"]},
        id="other lists are replaced",
    ),
]


@pytest.mark.parametrize(("main", "further", "expected"), MERGES)
def test_the_files_together(
    tmp_path: Path, main: str, further: dict[str, str], expected: dict[str, object]
) -> None:
    assert read_files(configured(tmp_path, main, **further)).values == expected


def test_other_files_of_the_folder_are_left_alone(tmp_path: Path) -> None:
    config = configured(tmp_path, "", a="")
    for name in ("b.toml.bak", ".c.toml", "README"):
        (tmp_path / "conf.d" / name).write_text("not TOML at all")
    assert [file.name for file in further_files(config)] == ["a.toml"]


def test_errors_and_origins_name_the_file(tmp_path: Path) -> None:
    listener = '[[listener]]\nname = "{0}"\nkind = "amqp"\nport = {1}'
    config = configured(
        tmp_path,
        listener.format("one", 1),
        a=f"{listener.format('two', 2)}\n{listener.format('three', 'true')}",
    )
    with pytest.raises(SettingsError) as refused:
        load_settings(config)
    file = tmp_path / "conf.d" / "a.toml"
    assert str(refused.value).startswith(f"{file}: listener[2].port = True: ")
    file.write_text(listener.format("two", 2))
    _, places = load_with_places(config)
    of = [places.of(("listener", number, "port")) for number in (0, 1)]
    assert of == [str(config), str(file)]
    assert places.of(("port",)) == "defaults"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("port = ", "not TOML", id="no TOML"),
        pytest.param("prot = 1", "prot = 1: unknown setting; did you mean port?", id="a typo"),
    ],
)
def test_a_wrong_further_file_stops_the_start(tmp_path: Path, text: str, told: str) -> None:
    config = configured(tmp_path, "", a=text)
    with pytest.raises(SettingsError, match=told) as refused:
        load_settings(config)
    assert str(refused.value).startswith(f"{tmp_path / 'conf.d' / 'a.toml'}: ")


# -- secrets


def test_a_secret_may_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://ada:sesame@db.example/broker"
    file = tmp_path / "url"
    file.write_text(f"{url}\n")
    monkeypatch.setenv("JMS_BROKER_STORE_FILE", str(file))
    settings, places = load_with_places(configured(tmp_path, 'store = "memory"'))
    assert (settings.store, places.of(("store",))) == (url, "JMS_BROKER_STORE_FILE")


WRONG = [
    pytest.param(
        {"JMS_BROKER_STORE_FILE": "none"}, "'none': No such file", id="a file that is not there"
    ),
    pytest.param(
        {"JMS_BROKER_STORE_FILE": "x", "JMS_BROKER_STORE": "memory"},
        "JMS_BROKER_STORE_FILE and JMS_BROKER_STORE are both set",
        id="two sources",
    ),
]


@pytest.mark.parametrize(("environment", "told"), WRONG)
def test_a_wrong_file_of_a_secret_stops_the_start(
    environment: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnreadableFile, match=told):
        secrets_of(environment, SECRETS)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=told):
        load_settings()


def test_a_setting_that_is_no_secret_has_no_such_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMS_BROKER_PORT_FILE", "x")
    with pytest.raises(SettingsError, match="JMS_BROKER_PORT_FILE = 'x': unknown setting"):
        load_settings()


def test_settings_that_may_have_a_password_are_all_known() -> None:
    """Each variable of a password has a setting for its file, or is one of SECRETS."""
    known = variable_names()
    assert known >= SECRETS
    passwords = {name for name in known if "PASSWORD" in name and not name.endswith("_FILE")}
    assert {f"{name}_FILE" for name in passwords} <= known


@pytest.mark.parametrize(
    ("variable", "value", "path"),
    [
        pytest.param("JMS_BROKER_TLS_CERTIFICATE", "a.pem", ("tls", "certificate"), id="TLS"),
        pytest.param("JMS_BROKER_DRAIN_ON_SIGTERM", "true", ("drain", "on_sigterm"), id="drain"),
    ],
)
def test_a_setting_of_a_table_has_a_variable(
    variable: str, value: str, path: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    if path[0] == "tls":
        monkeypatch.setenv("JMS_BROKER_TLS_KEY", "a.key")
    settings, places = load_with_places(None)
    table = getattr(settings, path[0])
    assert str(getattr(table, path[1])).lower() == value
    assert places.of(path) == variable
