"""The settings of shards: what each of them gets, and what two of them cannot share."""

from pathlib import Path

import pytest

from broker.machine import LEAST, default_memory_max
from broker.reload import shown_settings
from broker.settings import MEMORY, Settings, SettingsError, given_settings

pytestmark = pytest.mark.requirement("OPS-20")

POSTGRESQL = "postgresql://clerk:secret@db/jms?search_path="


def shard(name: str, port: int, **given: object) -> dict[str, object]:
    return {"name": name, "port": port, "store": MEMORY, **given}


def two(**given: object) -> list[dict[str, object]]:
    """Return two shards, the second one with `given`."""
    return [shard("a", 1), shard("b", 2, **given)]


def test_a_shard_has_what_is_its_own_and_shares_the_rest() -> None:
    settings = given_settings(
        bind="::1",
        credit=7,
        listener=[{"name": "inner", "port": 9, "bind": "10.0.0.1"}],
        audit={"directory": "/audit"},
        ha={"advertise": {}},
        shard=[
            shard("a", 1, http_port=2, listener_ports={"inner": 3}, hosts=["A.example"]),
            shard("b", 4, listener_ports={"inner": 5}, store="sqlite:///b.db"),
        ],
    )
    one, other = settings.of_shard("a"), settings.of_shard("b")
    assert [(each.shard_name, each.port, each.store) for each in (one, other)] == [
        ("a", 1, MEMORY),
        ("b", 4, "sqlite:///b.db"),
    ]
    assert [each.url(each.port) for each in one.listeners()] == [
        "amqp://[::1]:1",
        "amqp://10.0.0.1:3",
    ]
    assert (one.http.port, other.http.port) == (2, None)
    assert (one.audit_folder(), other.audit_folder()) == (Path("/audit/a"), Path("/audit/b"))
    assert (one.credit, other.credit) == (7, 7)
    assert other.other_shards() == {"a.example": {"amqp": 1, "inner": 3}}
    assert one.other_shards() == {}


def test_records_of_the_audit_are_beside_the_store_of_each_shard() -> None:
    settings = given_settings(
        shard=[shard(name, n, store=f"sqlite:///{name}.db") for n, name in enumerate("ab", 1)]
    )
    assert settings.of_shard("b").audit_folder() == Path("b.db.audit")


def test_a_shard_of_a_group_has_an_address_of_its_own() -> None:
    settings = given_settings(
        ha={"enabled": True, "name": "left"},
        shard=[
            shard(name, n, store=f"{POSTGRESQL}{name}", advertise={"amqp": f"left:{n}"})
            for n, name in enumerate("ab", 1)
        ],
    )
    assert settings.of_shard("b").ha.addresses() == {"amqp": ("left", 2)}
    assert settings.of_shard("b").ha.name == "left"


PREFERENCES = [
    # of all shards, of this one, what counts
    pytest.param(False, None, False, id="none"),
    pytest.param(True, None, True, id="all shards"),
    pytest.param(False, True, True, id="this shard"),
    pytest.param(True, False, False, id="all shards but this one"),
]


@pytest.mark.parametrize(("shared", "own", "expected"), PREFERENCES)
def test_a_machine_may_prefer_to_lead_some_of_its_shards(
    *, shared: bool, own: bool | None, expected: bool
) -> None:
    only = shard("a", 1, store=f"{POSTGRESQL}a") | ({} if own is None else {"prefer": own})
    settings = given_settings(ha={"enabled": True, "name": "left", "prefer": shared}, shard=[only])
    assert settings.of_shard("a").ha.prefer == expected


def test_shards_share_the_memory_that_one_broker_would_have() -> None:
    share = max(LEAST, default_memory_max() // 2)
    assert given_settings(shard=two()).of_shard("a").memory_max == share
    assert given_settings(shard=two(), memory_max=LEAST).of_shard("a").memory_max == LEAST


def test_settings_without_shards_are_those_of_the_only_process() -> None:
    settings = given_settings()
    assert settings.of_shard(None) is settings
    assert settings.other_shards() == {}


def test_without_shards_nothing_of_one_process_is_refused() -> None:
    settings = given_settings(
        port=5,
        store=f"{POSTGRESQL}x",
        http={"port": 6},
        listener=[{"name": "inner", "port": 7}],
        ha={"enabled": True, "advertise": {"amqp": "left:5"}},
    )
    assert settings.of_shard(None) is settings


NOT_CHOSEN = [
    # the settings, the name, what the error says
    pytest.param(given_settings(shard=two()), None, "name one by --shard: a, b", id="none named"),
    pytest.param(given_settings(shard=two()), "c", "no shard 'c'; there are a, b", id="unknown"),
    pytest.param(given_settings(), "a", r"the settings have no \[\[shard\]\]", id="no shards"),
]


@pytest.mark.parametrize(("settings", "name", "told"), NOT_CHOSEN)
def test_a_shard_must_be_there_and_be_named(
    settings: Settings, name: str | None, told: str
) -> None:
    with pytest.raises(SettingsError, match=told):
        settings.of_shard(name)


WRONG = [
    # the settings, what the error says
    pytest.param({"shard": [{"port": 1, "store": MEMORY}]}, r"shard\[0\].name", id="no name"),
    pytest.param({"shard": [{"name": "a", "store": MEMORY}]}, r"shard\[0\].port", id="no port"),
    pytest.param({"shard": [{"name": "a", "port": 1}]}, r"shard\[0\].store", id="no store"),
    pytest.param({"shard": [shard("a b", 1)]}, r"shard\[0\].name", id="a name with a blank"),
    pytest.param({"shard": [shard("x" * 41, 1)]}, r"shard\[0\].name", id="a long name"),
    pytest.param({"shard": [shard("a", 0)]}, r"shard\[0\].port = 0", id="a free port"),
    pytest.param({"shard": two(store="mysql://")}, r"shard\[1\].store", id="another store"),
    pytest.param({"shard": two(hosts=["vhost:x"])}, "the name of a host", id="a virtual host"),
    pytest.param({"shard": two(hosts=[""])}, "the name of a host", id="an empty host"),
    pytest.param({"shard": two(bind="::1")}, "unknown setting", id="an unknown key"),
    pytest.param({"shard": [shard("a", 1), shard("a", 2)]}, "the name a", id="one name twice"),
    pytest.param({"shard": [shard("a", 1), shard("b", 1)]}, "the port 1", id="one port twice"),
    pytest.param({"shard": two(http_port=1)}, "the port 1", id="a port also for HTTP"),
    pytest.param(
        {"shard": [shard("a", 1, hosts=["X.example"]), shard("b", 2, hosts=["x.EXAMPLE"])]},
        "the host x.example",
        id="one host twice, in other letters",
    ),
    pytest.param(
        {
            "shard": [
                shard("a", 1, store="sqlite:///x/../s.db"),
                shard("b", 2, store="sqlite:///s.db"),
            ]
        },
        "the store /.*s.db",
        id="one file by two paths",
    ),
    pytest.param(
        {
            "shard": [
                shard("a", 1, store="postgresql://x:secret@db/jms"),
                shard("b", 2, store="postgresql://db/jms"),
            ]
        },
        "the store postgresql://db/jms",
        id="one database, two users",
    ),
    pytest.param({"shard": two(), "port": 5}, "set port of each", id="a port for all"),
    pytest.param({"shard": two(), "store": MEMORY}, "set store of each", id="a store for all"),
    pytest.param(
        {"shard": two(), "http": {"port": 5}}, "set http_port of each", id="an HTTP port for all"
    ),
    pytest.param(
        {"shard": two(listener_ports={"inner": 3}), "listener": [{"name": "inner", "port": 4}]},
        "'a' has no port for the listener 'inner': set listener_ports",
        id="a listener without a port of one shard",
    ),
    pytest.param(
        {"shard": two(listener_ports={"inner": 3})},
        r"there is no \[\[listener\]\] of that name",
        id="a port for no listener",
    ),
    pytest.param(
        {
            "shard": [
                shard("a", 1, listener_ports={"inner": 3}),
                shard("b", 2, listener_ports={"inner": 3}),
            ],
            "listener": [{"name": "inner", "port": 4}],
        },
        "the port 3",
        id="a listener with one port",
    ),
    pytest.param(
        {
            "shard": [shard("a", 1, store="postgresql://db/jms")],
            "ha": {"enabled": True, "advertise": {"amqp": "left:1"}},
        },
        "set advertise of each",
        id="one address of a group",
    ),
    pytest.param({"shard": two(), "ha": {"enabled": True}}, "PostgreSQL", id="a group with memory"),
    pytest.param(
        {"shard": two(), "audit": {"enabled": True}}, "audit.directory", id="an audit without place"
    ),
]


@pytest.mark.parametrize(("given", "told"), WRONG)
def test_what_would_collide_is_refused(given: dict[str, object], told: str) -> None:
    with pytest.raises(SettingsError, match=told) as refused:
        given_settings(**given)
    assert "secret" not in str(refused.value)


def test_management_shows_no_password_of_a_store_of_a_shard() -> None:
    settings = given_settings(shard=[shard("a", 1, store=f"{POSTGRESQL}x")]).of_shard("a")
    shown = shown_settings(settings, {})
    assert "secret" not in str(shown)
    assert "postgresql://clerk:***@db" in str(shown["shard"])
