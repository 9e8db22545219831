"""Settings: precedence of their sources, errors, and that config/broker.toml is correct."""

import re
import tomllib
from pathlib import Path

import pytest
from pydantic import SecretStr

from broker.address_settings import AddressSettings, NodeSettings
from broker.http_settings import HttpSettings
from broker.listener_settings import ListenerSettings
from broker.log_settings import LogSettings
from broker.oauth_settings import OauthSettings
from broker.settings import (
    DEFAULT_STORE,
    OTHER_VARIABLES,
    Settings,
    SettingsError,
    given_settings,
    load_settings,
)
from broker.tls_settings import TlsSettings
from broker.tracing_settings import TracingSettings

CONFIG = Path(__file__).parents[2] / "config" / "broker.toml"

WITHOUT_DEFAULT = {
    *(
        "users_file",
        "acl_file",
        "authenticator",
        "allow_anonymous",
        "user",
        "password",
        "password_file",
        "memory_max",
    ),
}
"""Settings for which config/broker.toml shows an example or a description, not the default."""

TABLES = {
    *("log", "http", "audit", "drain", "tracing", "listener", "tls", "oauth", "ha"),
    *("bridge", "shard", "address", "queue", "topic"),
}


def written(folder: Path, text: str) -> Path:
    file = folder / "broker.toml"
    file.write_text(text)
    return file


def test_without_anything_the_defaults_count() -> None:
    settings = load_settings()
    assert (settings.bind, settings.port, settings.store) == ("127.0.0.1", 5672, DEFAULT_STORE)
    assert settings.allow_anonymous is None


def test_the_file_wins_over_defaults(tmp_path: Path) -> None:
    assert load_settings(written(tmp_path, "port = 1")).port == 1


def test_the_environment_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JMS_BROKER_PORT", "2")
    assert load_settings(written(tmp_path, "port = 1")).port == 2


def test_the_command_line_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMS_BROKER_PORT", "2")
    assert load_settings(port="3").port == 3


def test_an_option_that_was_not_given_changes_nothing() -> None:
    assert load_settings(port=None).port == 5672


def test_a_table_is_merged_setting_by_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JMS_BROKER_LOG_LEVEL", "debug")
    settings = load_settings(written(tmp_path, '[log]\nformat = "json"\n'))
    assert settings.log == LogSettings(format="json", level="debug")


def test_a_name_in_a_table_may_have_underscores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMS_BROKER_HTTP_STREAMS_MAX", "7")
    monkeypatch.setenv("JMS_BROKER_HTTP_PORT", "0")
    assert load_settings().http == HttpSettings(port=0, streams_max=7)


def test_names_with_underscores_are_no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMS_BROKER_MAX_FRAME_SIZE", "512")
    assert load_settings().max_frame_size == 512


def test_addresses_keep_their_order_and_leave_out_what_is_not_set(tmp_path: Path) -> None:
    text = '[[address]]\npattern = "b"\nmax_bytes = 5\n[[address]]\npattern = "a"\n'
    first, second = load_settings(written(tmp_path, text)).address
    assert (first.pattern, first.max_bytes, first.auto_create) == ("b", 5, None)
    assert second == AddressSettings(pattern="a")


def test_addresses_may_come_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMS_BROKER_ADDRESS", '[{"pattern": "a", "expiry": "late"}]')
    assert load_settings().address == (AddressSettings(pattern="a", expiry="late"),)


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings().port = 1  # type: ignore[misc]


WRONG_FILES = [
    pytest.param(
        "port = 70000",
        ["broker.toml: port = 70000: ", "less than or equal to 65535"],
        id="a number out of range",
    ),
    pytest.param("port = -1", ["port = -1", "greater than or equal to 0"], id="a negative number"),
    pytest.param("port = true", ["port = True", "a number"], id="a flag for a number"),
    pytest.param('port = "many"', ["port = 'many'", "valid integer"], id="a word for a number"),
    pytest.param('bind = ""', ["bind = ''", "at least 1 character"], id="an empty address"),
    pytest.param(
        'users_file = ""', ["users_file = ''", "the path of a file: leave"], id="no users file"
    ),
    pytest.param('acl_file = ""', ["acl_file = ''", "the path of a file"], id="no rules file"),
    pytest.param('store = "postgresql://db"', ["names no database"], id="a server alone"),
    pytest.param(
        'store = "postgres://me:secret@db/jms"', ["://***@db/jms", "postgresql://"], id="a secret"
    ),
    pytest.param("disk_ballast = 1", ["disk_ballast = 1", "1048576"], id="hardly a ballast"),
    pytest.param('store = "sql"', ["store = 'sql'", "'memory'"], id="a store that is not there"),
    pytest.param("max_frame_size = 511", ["max_frame_size = 511", "512"], id="frames too small"),
    pytest.param(
        "prot = 1", ["broker.toml: prot = 1: ", "did you mean port?"], id="a setting misspelt"
    ),
    pytest.param(
        "colour = 1", ["colour = 1: unknown setting; the nearest are "], id="like no other"
    ),
    pytest.param(
        '[log]\nlevel = "loud"',
        ["log.level = 'loud'", "'debug', 'info', 'warning' or 'error'"],
        id="a log level",
    ),
    pytest.param("[log]\nlevle = 1", ["log.levle = 1", "did you mean level?"], id="in a table"),
    pytest.param(
        '[[address]]\npattern = "a"\n[[address]]\npattern = ""',
        ["address[1].pattern = ''", "at least 1 character"],
        id="in the second address",
    ),
    pytest.param(
        '[[address]]\npatern = "a"', ["address[0].patern", "did you mean pattern?"], id="of address"
    ),
    pytest.param(
        '[[address]]\npattern = "a"\nexclusive = "sole"',
        ["address[0].exclusive = 'sole'", "valid boolean"],
        id="a word for a flag",
    ),
    pytest.param(
        "duplicate_window = 1000001",
        ["duplicate_window = 1000001", "less than or equal to 1000000"],
        id="a window too large",
    ),
    pytest.param("[[queue]]\n", ["queue[0].name", "required"], id="a queue without a name"),
    pytest.param(
        '[[topic]]\nname = "a"\nevnt_log = true',
        ["topic[0].evnt_log", "did you mean event_log?"],
        id="of topic",
    ),
    pytest.param(
        '[[queue]]\nname = "a"\n[[queue]]\nname = "a"',
        ["more than one [[queue]] of the name 'a'"],
        id="a queue twice",
    ),
    pytest.param("[http]\nport = 70000", ["http.port = 70000", "65535"], id="a port of HTTP"),
    pytest.param("[http]\nprot = 1", ["http.prot = 1", "did you mean port?"], id="of HTTP"),
    pytest.param("[http]\nstreams_max = 0", ["http.streams_max = 0", "1"], id="no stream at all"),
    pytest.param("[[address]]\n", ["address[0].pattern", "required"], id="address without pattern"),
    pytest.param("port = 1\nbind = = 2", ["broker.toml: not TOML: ", "line 2"], id="not TOML"),
    pytest.param('user = "alice"', ["'alice'", "JMS_BROKER_PASSWORD_FILE"], id="no password"),
    pytest.param('password = "x"', ["no user", "JMS_BROKER_USER"], id="a password for nobody"),
    pytest.param(
        'user = "a"\npassword = "x"\npassword_file = "f"',
        ["either JMS_BROKER_PASSWORD or JMS_BROKER_PASSWORD_FILE"],
        id="two passwords",
    ),
]


@pytest.mark.parametrize(("text", "told"), WRONG_FILES)
def test_a_wrong_file_is_told_apart(tmp_path: Path, text: str, told: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(written(tmp_path, text))
    for part in told:
        assert part in str(caught.value)


@pytest.mark.parametrize("name", ["colour", "max_messages_max", "redelivery", "x"])
def test_an_unknown_setting_is_told_with_five_others_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with pytest.raises(SettingsError) as in_file:
        load_settings(written(tmp_path, f"{name} = 1"))
    monkeypatch.setenv(f"JMS_BROKER_{name.upper()}", "1")
    with pytest.raises(SettingsError) as in_environment:
        load_settings()
    words_of_file = re.findall(r"\w+", str(in_file.value).partition("unknown setting")[2])
    words = re.findall(r"\w+", str(in_environment.value).partition("unknown setting")[2])
    told = [word for word in words_of_file if word in Settings.model_fields]
    assert 1 <= len(told) <= 5
    variables = [word for word in words if word.startswith("JMS_BROKER_")]
    assert 1 <= len(variables) <= 5


def test_the_prefix_of_variables_makes_none_of_them_likely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JMS_BROKER_COLOUR", "red")
    with pytest.raises(SettingsError, match=r"JMS_BROKER_COLOUR = 'red': unknown setting; the"):
        load_settings()


WRONG_VARIABLES = [
    pytest.param(
        "JMS_BROKER_USERS_FILE", "", ["JMS_BROKER_USERS_FILE: users_file", "a file"], id="empty"
    ),
    pytest.param(
        "JMS_BROKER_PORT", "70000", ["JMS_BROKER_PORT: port = '70000'", "65535"], id="out of range"
    ),
    pytest.param(
        "JMS_BROKER_LOG_LEVEL", "loud", ["JMS_BROKER_LOG_LEVEL: log.level", "'debug'"], id="nested"
    ),
    pytest.param(
        "JMS_BROKER_PROT",
        "1",
        ["JMS_BROKER_PROT = '1'", "did you mean JMS_BROKER_PORT?"],
        id="name",
    ),
    pytest.param(
        "JMS_BROKER_ADDRESS", "[{", ["JMS_BROKER_ADDRESS = '[{'", "JSON", "pattern"], id="not JSON"
    ),
]


@pytest.mark.parametrize(("name", "value", "told"), WRONG_VARIABLES)
def test_a_wrong_variable_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: list[str]
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    for part in told:
        assert part in str(caught.value)


def test_every_wrong_setting_has_a_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(written(tmp_path, 'port = -1\nstore = "sql"\ncolour = 1'))
    assert len(str(caught.value).splitlines()) == 3


def test_a_wrong_option_is_the_command_lines() -> None:
    with pytest.raises(SettingsError, match="command line: port = 'x'"):
        load_settings(port="x")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.toml: No such file"):
        load_settings(tmp_path / "none.toml")


def test_the_files_of_other_commands_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OTHER_VARIABLES:
        monkeypatch.setenv(name, "x")
    assert load_settings().port == 5672


SECRET = "tell-nobody"

LEAKS = [
    pytest.param({"JMS_BROKER_PASSWORD": SECRET}, id="a password without user"),
    pytest.param({"JMS_BROKER_PASSWROD": SECRET, "JMS_BROKER_USER": "a"}, id="misspelt"),
    pytest.param({"JMS_BROKER_TOKENS": SECRET}, id="a token under a wrong name"),
    pytest.param(
        {"JMS_BROKER_PASSWORD": SECRET, "JMS_BROKER_USER": "a", "JMS_BROKER_PORT": "x"},
        id="something else is wrong",
    ),
]


@pytest.mark.parametrize("variables", LEAKS)
def test_no_error_shows_a_password(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert SECRET not in str(caught.value)


def test_settings_do_not_print_the_password() -> None:
    settings = load_settings(user="alice", password=SecretStr(SECRET))
    assert SECRET not in repr(settings)


# ---- config/broker.toml ---------------------------------------------------------------------


def uncommented() -> dict[str, object]:
    """Return the settings in the file, even those commented out; prose begins with `# `."""
    text = re.sub(r"^#(?! )", "", CONFIG.read_text(), flags=re.MULTILINE)
    return tomllib.loads(text)


def test_the_file_as_it_is_changes_nothing() -> None:
    assert tomllib.loads(CONFIG.read_text()) == {}


def test_the_file_shows_every_setting_and_no_other() -> None:
    shown = uncommented()
    assert set(shown) == set(Settings.model_fields)
    assert set(tables(shown, "log")) == set(LogSettings.model_fields)
    assert set(tables(shown, "tracing")) == set(TracingSettings.model_fields)
    assert set(tables(shown, "http")) == set(HttpSettings.model_fields)
    assert set(tables(shown, "listener")) == set(ListenerSettings.model_fields) - {"tls"}
    assert set(tables(shown, "tls")) == set(TlsSettings.model_fields)
    oauth = tables(shown, "oauth")
    assert set(oauth) == set(OauthSettings.model_fields)
    for name, field in OauthSettings.model_fields.items():
        if not field.is_required() and name != "jwks_ca":
            default = field.default
            assert oauth[name] == (list(default) if isinstance(default, tuple) else default)
    assert set(tables(shown, "address")) == set(AddressSettings.model_fields)
    for kind in ("queue", "topic"):
        assert set(tables(shown, kind)) == set(NodeSettings.model_fields)


def tables(shown: dict[str, object], name: str) -> dict[str, object]:
    """Return the table `name`; of a list of tables, its only one."""
    table = shown[name]
    if isinstance(table, list):
        (table,) = table
    assert isinstance(table, dict)
    return table


def test_the_file_shows_the_defaults() -> None:
    shown = uncommented()
    defaults = Settings()
    for name in set(Settings.model_fields) - WITHOUT_DEFAULT - TABLES:
        assert shown[name] == getattr(defaults, name), name
    assert shown["users_file"] == str(defaults.users_file)
    assert tables(shown, "log") == defaults.log.model_dump()
    http = tables(shown, "http")
    where = {name: http[name] for name in ("port", "console", "audit_report")}
    assert http == defaults.http.model_dump() | where
    assert {getattr(defaults.http, name) for name in where} == {None}


@pytest.mark.parametrize("table", ["address", "queue", "topic"])
def test_an_address_shows_what_counts_when_it_says_nothing(table: str) -> None:
    shown = tables(uncommented(), table)
    defaults = Settings()
    for name in set(shown) - {"pattern", "name"}:
        assert shown[name] == getattr(defaults, name), name


# -- settings given by a program


def test_given_settings_come_from_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMS_BROKER_CREDIT", "7")
    monkeypatch.setenv("JMS_BROKER_PROT", "no setting at all")
    settings = given_settings(port=0)
    assert settings.port == 0
    assert settings.credit == Settings.model_fields["credit"].default


def test_a_wrong_given_setting_is_an_argument() -> None:
    with pytest.raises(SettingsError, match=r"^argument: port = 70000: "):
        given_settings(port=70000)


# -- listeners


def test_bind_and_port_are_the_first_listener() -> None:
    settings = given_settings(port=7, listener=[{"name": "internal", "port": 8, "bind": "::1"}])
    assert [(each.name, each.url(each.port)) for each in settings.listeners()] == [
        ("amqp", "amqp://127.0.0.1:7"),
        ("internal", "amqp://[::1]:8"),
    ]


PAIR = {"certificate": "c.pem", "key": "k.pem"}


def test_a_listener_of_its_own_table_or_the_general_one_has_tls() -> None:
    own = {"certificate": "own.pem", "key": "own.key"}
    settings = given_settings(
        tls=PAIR,
        listener=[
            {"name": "a", "port": 1, "kind": "amqps"},
            {"name": "b", "port": 2, "kind": "amqps", "tls": own},
            {"name": "c", "port": 3},
        ],
    )
    used = [each.tls and str(each.tls.certificate) for each in settings.listeners()]
    assert used == [None, "c.pem", "own.pem", None]


def test_the_kind_decides_the_port_of_a_listener_without_one() -> None:
    kinds = ("amqps", "ws", "wss")
    listeners = [{"name": kind, "kind": kind} for kind in kinds]
    listeners.append({"name": "own", "kind": "ws", "port": "7", "path": "/amqp"})
    settings = given_settings(tls=PAIR, listener=listeners)
    assert [each.url(each.port) for each in settings.listeners()[1:]] == [
        "amqps://127.0.0.1:5671",
        "ws://127.0.0.1:5673",
        "wss://127.0.0.1:5674",
        "ws://127.0.0.1:7/amqp",
    ]
    tls = [each.tls is not None for each in settings.listeners()[1:]]
    assert tls == [True, False, True, False]


def listener(**given: object) -> list[dict[str, object]]:
    return [{"name": "a", "port": 1, **given}]


def proxied(*networks: str) -> list[dict[str, object]]:
    return listener(proxy_protocol="require", proxy_from=networks)


LISTENERS = [
    pytest.param(listener(kind="wss"), "is of kind wss, and there is no table tls", id="wss"),
    pytest.param(listener(kind="ws", tls=PAIR), "set kind to 'wss'", id="TLS and ws"),
    pytest.param(listener(path="/x"), "has path, which only WebSocket has", id="a path"),
    pytest.param(
        listener(origins=["https://h"], tls=PAIR, kind="amqps"),
        "has origins, which only WebSocket has",
        id="origins",
    ),
    pytest.param(listener(kind="ws", path="amqp"), "the path of a URL", id="no slash"),
    pytest.param(listener(kind="ws", path="/a?b"), "the path of a URL", id="a query"),
    pytest.param(listener(kind="ws", origins=["*"]), "an origin as browsers", id="all origins"),
    pytest.param(listener(kind="ws", origins=["h.example"]), "an origin", id="a host"),
    pytest.param(listener(kind="ws", origins=["https://h/"]), "an origin", id="an origin's path"),
    pytest.param(listener(kind="ws", origins=["https://H"]), "an origin", id="capitals"),
    pytest.param(listener(proxy_protocol="require"), "set proxy_from", id="proxies unnamed"),
    pytest.param(listener(proxy_from=["10.0.0.5"]), "set proxy_protocol", id="proxies named"),
    pytest.param(proxied("10.0.0.5/8"), "has host bits set", id="an address for a network"),
    pytest.param(proxied("lb.example"), r"listener\[0\].proxy_from", id="a proxy's name"),
    pytest.param(proxied("::ffff:10.0.0.5"), "without ::ffff:", id="IPv4 as IPv6"),
    pytest.param(
        [{"name": "a", "port": 1}, {"name": "a", "port": 2}], "of the name 'a'", id="twice"
    ),
    pytest.param([{"name": "amqp", "port": 1}], "bind and port describe", id="the first's name"),
    pytest.param([{"port": 1}], r"listener\[0\].name", id="no name"),
    pytest.param([{"name": "a"}], r"listener\[0\].port", id="no port"),
    pytest.param([{"name": "a b", "port": 1}], r"listener\[0\].name", id="a name with a blank"),
    pytest.param([{"name": "a", "port": 1, "kind": "amqps"}], "there is no table tls", id="no TLS"),
    pytest.param([{"name": "a", "port": 1, "tls": PAIR}], "set kind to 'amqps'", id="TLS and amqp"),
    pytest.param(
        [{"name": "a", "port": 1, "kind": "mqtt"}], r"listener\[0\].kind", id="another kind"
    ),
]


@pytest.mark.parametrize(("given", "told"), LISTENERS)
def test_a_wrong_listener_stops_the_start(given: list[dict[str, object]], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        given_settings(listener=given)
