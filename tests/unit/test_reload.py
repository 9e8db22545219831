"""Reloaded settings: which count at once, which for new connections and nodes, which not at all."""

import io
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import structlog

from broker.amqp.frames import AMQP_HEADER, SASL_HEADER
from broker.amqp.sasl_frames import SASL_AUTH, SASL_OK, SaslOutcome
from broker.app import App
from broker.audit.record import BROKER
from broker.log_lines import configure_logging
from broker.management.configuration import WrongSettings
from broker.reload import (
    AT_ONCE,
    FOR_NEW_CONNECTIONS,
    FOR_NEW_NODES,
    RELOADABLE,
    Reloaded,
    Reloading,
    apply,
    plan,
    reload,
    shown_settings,
)
from broker.security.identity import APPLICATION, NOT_LOGGED_IN
from broker.security.users import Users
from broker.settings import MEMORY, Settings, SettingsError, given_settings
from tests.support.audit import RecordingAudit
from tests.support.broker import entrance
from tests.support.socket_client import SocketClient

NEED_RESTART = {
    *(
        "bind",
        "port",
        "store",
        "hold_ms",
        "store_loss_grace_ms",
        "disk_free_min",
        "ha",
        "bridge",
        "shard",
        "http",
        "audit",
        "authenticator",
        "tracing",
    ),
    *("disk_ballast", "memory_max", "address_prefixes"),
    *("pacing_backlog", "paging_window", "connection_loss_grace_ms", "event_log_max_events"),
    *("event_log_max_age_ms", "stage_retention_s"),
}


def settings(tmp_path: Path, **given: object) -> Settings:
    return given_settings(port=0, users_file=tmp_path / "users", store=MEMORY, **given)


@pytest.fixture
def lines() -> io.StringIO:
    stream = io.StringIO()
    configure_logging("json", "info", stream)
    return stream


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    running = App(settings(tmp_path))
    await running.start()
    yield running
    await running.stop()


def test_of_every_setting_it_is_known_whether_it_can_be_reloaded() -> None:
    assert set(Settings.model_fields) == RELOADABLE | NEED_RESTART
    assert not RELOADABLE & NEED_RESTART
    assert len(RELOADABLE) == len(AT_ONCE) + len(FOR_NEW_CONNECTIONS) + len(FOR_NEW_NODES)


APPLIED = [
    # name, changed settings, those that are applied, those that need a restart
    ("nothing", {}, [], []),
    ("a limit of connections", {"idle_time_out_ms": 7}, ["idle_time_out_ms"], []),
    ("addresses", {"max_delivery_count": 3}, ["max_delivery_count"], []),
    ("what cannot be", {"hold_ms": 7, "bind": "localhost"}, [], ["bind", "hold_ms"]),
    ("both", {"credit": 7, "paging_window": 0}, ["credit"], ["paging_window"]),
]


@pytest.mark.parametrize(
    ("changed", "applied", "need_restart"),
    [case[1:] for case in APPLIED],
    ids=[case[0] for case in APPLIED],
)
def test_of_what_has_changed(
    tmp_path: Path, changed: Mapping[str, object], applied: list[str], need_restart: list[str]
) -> None:
    app = App(settings(tmp_path))
    assert apply(app, settings(tmp_path, **changed)) == Reloaded(applied, need_restart)
    again = apply(app, settings(tmp_path, **changed))
    assert again == Reloaded([], need_restart), "what needs a restart is told each time"


def test_the_effect_on_nodes_is_told_as_what_it_is(tmp_path: Path) -> None:
    app = App(settings(tmp_path))
    told = apply(app, settings(tmp_path, max_messages=7, credit=7, bind="localhost")).effects()
    assert told["max_messages"] == "applied to new nodes"
    assert told["credit"] == "applied"
    assert told["bind"] == "needs restart"


async def test_new_connections_have_the_new_limits(app: App, tmp_path: Path) -> None:
    async with SocketClient(app.port) as before:
        assert (await before.open()).max_frame_size == 1024 * 1024
        apply(app, settings(tmp_path, max_frame_size=4096, credit=7, stall_timeout_ms=9))
        async with SocketClient(app.port) as after:
            assert (await after.open()).max_frame_size == 4096
        await before.begin()
    assert (app.container.credit, app.listeners.stall_timeout_ms) == (7, 9)


async def test_new_nodes_have_the_new_settings(app: App, tmp_path: Path) -> None:
    router = app.container.router
    old = router.resolve(router.parse("old", "queue"), app.journal.batch)
    declared = {"max_messages": 7, "queue": ({"name": "declared", "max_messages": 3},)}
    apply(app, settings(tmp_path, **declared))
    new = router.resolve(router.parse("new", "queue"), app.journal.batch)
    assert [node.policy.max_messages for node in (old, new)] == [0, 7]
    assert router.queues["declared"].policy.max_messages == 3
    assert [node.address for node in await app.store.nodes()] == ["old", "declared"]


async def login(app: App, password: str) -> int:
    async with SocketClient(app.port) as client:
        client.login("PLAIN", f"\0ada\0{password}".encode())
        await client.header()
        await client.next()
        outcome = await client.next()
        assert isinstance(outcome, SaslOutcome)
        return outcome.code


async def test_the_first_user_closes_the_broker_to_strangers(app: App, tmp_path: Path) -> None:
    async with SocketClient(app.port) as stranger:
        await stranger.open("stays")
        Users(tmp_path / "users").add("ada", "engine")
        apply(app, settings(tmp_path))
        exchange = app.container.authenticator.begin(entrance())
        assert exchange.anonymous() is None
        assert exchange.mechanisms() == ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"]
        current = app.container.authenticator.current(NOT_LOGGED_IN)
        assert current is not None
        assert current.roles == {APPLICATION}
        async with SocketClient(app.port) as other:
            other.send_bytes(AMQP_HEADER)
            assert await other.header() == SASL_HEADER
        await stranger.begin()
    assert await login(app, "engine") == SASL_OK
    assert await login(app, "x") == SASL_AUTH


WRONG = [
    ("a declared queue that cannot be", {"queue": ({"name": "ok"}, {"name": "a\nb"})}, "declared"),
    ("nobody could enter", {"allow_anonymous": False}, "no users"),
    ("a dead letter address that cannot be", {"dead_letter": "/queue/durable/"}, "settings"),
    ("a password file that is not there", {"user": "a", "password_file": "none"}, "none"),
]


@pytest.mark.parametrize(
    ("changed", "told"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG]
)
async def test_wrong_settings_change_nothing(
    app: App, tmp_path: Path, lines: io.StringIO, changed: Mapping[str, object], told: str
) -> None:
    before = app.settings
    assert reload(app, lambda: settings(tmp_path, credit=7, max_messages=7, **changed)) is None
    assert app.settings is before
    assert app.container.credit == before.credit
    router = app.container.router
    assert router.resolve(router.parse("q", "queue"), app.journal.batch).policy.max_messages == 0
    assert "ok" not in router.queues
    (line,) = map(json.loads, lines.getvalue().splitlines())
    assert (line["event"], line["level"]) == ("settings not reloaded, the old ones stay", "error")
    assert told in line["reason"]
    assert app.stats.by.reloads.counts == {("failed",): 1}


LIMIT = '[[limit]]\nwho = ["authenticated"]\nconnections = 9\n'
RULE = '[[rule]]\nid = "r"\nwho = ["user:ada"]\ncan = ["send"]\non = ["queue:a"]\n'

CHANGED_RULES = [
    ("an amount of a limit", LIMIT.replace("9", "5")),
    ("who a limit is for", LIMIT.replace("authenticated", "role:clerk")),
    ("no limit any more", ""),
    ("a rule", LIMIT + RULE),
    ("a role", f'[roles]\nclerk = ["ada"]\n{LIMIT}'),
]


@pytest.mark.requirement("SEC-12")
@pytest.mark.parametrize(
    "content", [case[1] for case in CHANGED_RULES], ids=[case[0] for case in CHANGED_RULES]
)
def test_any_change_of_the_rules_file_is_told_and_recorded(tmp_path: Path, content: str) -> None:
    rules = tmp_path / "acl.toml"
    rules.write_text(LIMIT)
    wanted = settings(tmp_path, acl_file=rules)
    app = App(wanted)
    audit = app.container.audit = RecordingAudit()
    assert reload(app, lambda: wanted) == Reloaded([], [])
    assert audit.told() == [("config.reloaded", "", "done")], "nothing has changed"
    rules.write_text(content)
    assert plan(app, wanted).result == Reloaded(["acl_file"], []), "a dry run"
    assert reload(app, lambda: wanted) == Reloaded(["acl_file"], [])
    assert audit.told() == [
        ("config.reloaded", "", "done"),
        ("rules.reloaded", f"rules:{rules}", "done"),
    ]


def unreadable() -> Settings:
    raise SettingsError("broker.toml: prot = 1: unknown setting\nbroker.toml: second")


async def test_a_file_that_cannot_be_read_is_told(app: App, lines: io.StringIO) -> None:
    assert reload(app, unreadable) is None
    (line,) = map(json.loads, lines.getvalue().splitlines())
    assert line["reason"] == "broker.toml: prot = 1: unknown setting; broker.toml: second"


async def test_the_log_tells_what_was_done(
    app: App, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = {"credit": 7, "max_messages": 7, "hold_ms": 9, "log": {"format": "json"}}
    assert reload(app, lambda: settings(tmp_path, **changed)) is not None
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line.get("settings"), line.get("applied")) for line in told] == [
        ("settings reloaded", None, "max_messages, credit, log"),
        ("these settings count for new connections and links", "credit", None),
        (
            "these settings count for queues and topics that are made from now on",
            "max_messages",
            None,
        ),
        ("changed settings need a restart of the broker", "hold_ms", None),
    ]
    assert (told[0]["users"], told[0]["anonymous"]) == (0, True)


@pytest.mark.requirement("OPS-01")
async def test_a_level_of_the_log_lasts_until_the_next_reload(
    app: App, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = settings(tmp_path)
    source = Reloading(app, lambda: wanted)
    source.set_log_level("warning")
    structlog.get_logger("broker").info("left out")
    told = source.values()["log"]
    assert told["origin"] == "management"
    assert told["value"] == {"format": "console", "level": "warning"}
    with pytest.raises(WrongSettings, match="no level loud; there are debug, info"):
        source.set_log_level("loud")
    done = source.reload(dry_run=False, actor=BROKER, request_id=None)
    assert (done.settings["log"], done.certificates) == ("unchanged", {})
    assert source.values()["log"]["origin"] == "default"
    structlog.get_logger("broker").info("written")
    told_lines = capsys.readouterr().err
    assert ("left out" in told_lines, "written" in told_lines) == (False, True)


@pytest.mark.requirement("OPS-01")
def test_the_settings_are_shown_with_their_origin_and_without_secrets(tmp_path: Path) -> None:
    told = shown_settings(
        settings(tmp_path, user="ada", password="secret", credit=9),
        {"JMS_BROKER_CREDIT": "9"},
    )
    assert told["credit"] == {"value": 9, "origin": "environment", "reload": True}
    assert told["user"]["origin"] == "file or command line"
    assert told["hold_ms"] == {"value": 2, "origin": "default", "reload": False}
    assert "secret" not in str(told)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        pytest.param("postgresql://ada:a@b@h/d", "postgresql://ada:***@h/d", id="user"),
        pytest.param(
            "postgresql://h/d?password=x&a=b", "postgresql://h/d?password=***&a=b", id="p"
        ),
        pytest.param("postgresql://ada:a/b&c@h/d", "postgresql://ada:***@h/d", id="not encoded"),
        pytest.param(
            "postgresql://ada:a@h/d?sslPassword=x",
            "postgresql://ada:***@h/d?sslPassword=***",
            id="k",
        ),
        pytest.param("postgresql://ada@h:5432/d", "postgresql://ada@h:5432/d", id="no password"),
        pytest.param("amqp://h:5672", "amqp://h:5672", id="the port of a bridge"),
        pytest.param("sqlite:a/b.db", "sqlite:a/b.db", id="none"),
    ],
)
def test_the_password_of_a_store_is_not_shown(url: str, shown: str) -> None:
    given = Settings().model_copy(update={"store": url})
    assert shown_settings(given, {})["store"]["value"] == shown
