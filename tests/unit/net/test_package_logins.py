"""Logins by the authenticator of a package, which a test installs in a folder of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from threading import Event

import pytest

from broker.amqp.sasl_frames import SASL_AUTH, SASL_OK, SASL_SYS_TEMP, SaslMechanisms, SaslOutcome
from broker.app import App
from broker.net import package_logins
from broker.net.package_logins import (
    CHECKS_AT_ONCE_MAX,
    FuturePackageAsker,
    PackageLogins,
    PackageUnchecked,
    load_authenticator,
    verified,
)
from broker.reload import Reloaded, apply
from broker.security.entrance import Entrance
from broker.security.identity import Identity
from broker.security.package_authenticator import GROUP, NamedAuthenticator, VerifiedUser
from broker.security.turns import WAITING_PER_SOURCE_MAX, TooManyLogins
from broker.security.users import Users
from broker.settings import MEMORY, Settings, SettingsError, given_settings
from tests.support.broker import entrance
from tests.support.socket_client import SocketClient

pytestmark = pytest.mark.requirement("SEC-02")

PATIENCE_S = 5.0

SOURCE = """
from broker.security.package_authenticator import VerifiedUser

class Directory:
    def authenticate(self, user, password, entrance):
        if password == "down":
            raise OSError("the directory does not answer")
        if password != f"{user} on {entrance.listener}":
            return None
        return VerifiedUser("ada" if user == "alias" else user.lower(), ["application"])

class Broken:
    def __init__(self):
        raise RuntimeError("no settings")

class Nothing:
    pass
"""
ENTRIES = f"""[{GROUP}]
directory = directory_for_tests:Directory
broken = directory_for_tests:Broken
nothing = directory_for_tests:Nothing
gone = module_that_is_gone:Directory
"""


def install(site: Path) -> None:
    """Write a package and what an installer writes about it."""
    facts = site / "directory_for_tests-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: directory-for-tests\nVersion: 1\n"
    )
    (facts / "entry_points.txt").write_text(ENTRIES)
    (site / "directory_for_tests.py").write_text(SOURCE)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """Yield the settings of a broker with an installed package and a user of the users file."""
    install(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    users = Users(tmp_path / "users")
    users.add("ada", "engine", roles=["admin"])
    yield given_settings(port=0, users_file=users.file, store=MEMORY, authenticator="directory")
    sys.modules.pop("directory_for_tests", None)


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[App]:
    running = App(settings)
    await running.start()
    yield running
    await running.stop()


async def login(app: App, user: str, password: str) -> tuple[int, Identity | None]:
    """Return the outcome of a login, and the identity of the connection if it is open."""
    async with SocketClient(app.port) as client:
        client.login("PLAIN", f"\0{user}\0{password}".encode())
        await client.header()
        offered = await client.next()
        assert isinstance(offered, SaslMechanisms)
        assert offered.mechanisms == ["PLAIN"], "a client that is free to choose would take SCRAM"
        told = await client.next()
        assert isinstance(told, SaslOutcome)
        if told.code != SASL_OK:
            return told.code, None
        await client.open("shop")
        (peer,) = app.container.peers()
        return told.code, peer.identity


LOGINS = [
    # name, user, password, outcome, user of the connection, roles
    pytest.param(
        "Bob", "Bob on amqp", SASL_OK, "bob", frozenset({"application"}), id="a user of the package"
    ),
    pytest.param("Bob", "x", SASL_AUTH, "", frozenset(), id="a user that the package refuses"),
    pytest.param("ada", "engine", SASL_OK, "ada", frozenset({"admin"}), id="a user of the file"),
    pytest.param("ada", "ada on amqp", SASL_AUTH, "", frozenset(), id="a name of the file"),
    pytest.param(
        "alias", "alias on amqp", SASL_AUTH, "", frozenset(), id="a spelling of such a name"
    ),
    pytest.param("Bob", "down", SASL_SYS_TEMP, "", frozenset(), id="the directory is down"),
    pytest.param("b:b", "b:b on amqp", SASL_SYS_TEMP, "", frozenset(), id="a name that cannot be"),
]


@pytest.mark.parametrize(("user", "password", "code", "found", "roles"), LOGINS)
async def test_who_decides_about_a_login(
    app: App, user: str, password: str, code: int, found: str, roles: frozenset[str]
) -> None:
    told, identity = await login(app, user, password)
    assert told == code
    if identity is not None:
        assert (identity.user, identity.roles, identity.mechanism) == (found, roles, "PLAIN")
        assert app.container.authenticator.current(identity) is not None
    else:
        assert not found


async def test_a_client_without_sasl_is_asked_about_as_well(app: App) -> None:
    login = app.container.authenticator
    identity = await login.identify(
        "bob", "bob on http", Entrance(listener="http", kind="http", host="::1")
    )
    assert identity is not None
    assert (identity.user, identity.mechanism) == ("bob", "")
    assert await login.identify("bob", "", entrance()) is None
    with pytest.raises(TooManyLogins, match="OSError: the directory does not answer"):
        await login.identify("bob", "down", entrance())


async def test_a_user_of_the_package_leaves_when_the_file_gets_the_name(
    app: App, settings: Settings
) -> None:
    _, identity = await login(app, "bob", "bob on amqp")
    assert identity is not None
    Users(settings.users_file).add("bob", "tulip")
    assert app.container.authenticator.current(identity) is None


async def test_failures_are_throttled(app: App) -> None:
    outcomes = [(await login(app, "carl", f"guess {number}"))[0] for number in range(3)]
    assert outcomes == [SASL_AUTH, SASL_AUTH, SASL_SYS_TEMP]
    assert (await login(app, "dora", "dora on amqp"))[0] == SASL_OK


async def test_a_reload_keeps_the_authenticator(app: App, settings: Settings) -> None:
    changed = settings.model_copy(update={"authenticator": None, "credit": 7})
    assert apply(app, changed) == Reloaded(["credit"], ["authenticator"])
    assert (await login(app, "bob", "bob on amqp"))[0] == SASL_OK


def test_a_listener_may_list_scram_for_the_users_of_the_file(settings: Settings) -> None:
    listener = [{"name": "more", "port": 0, "mechanisms": ["SCRAM-SHA-256", "PLAIN"]}]
    given = settings.model_dump(include={"users_file", "authenticator"})
    app = App(given_settings(port=0, store=MEMORY, listener=listener, **given))
    assert app.login is not None
    assert app.login.mechanisms(entrance()) == ["PLAIN"]
    more = Entrance(listener="more", kind="amqp", host="127.0.0.1")
    assert app.login.mechanisms(more) == ["SCRAM-SHA-256", "PLAIN"]


def test_without_users_of_the_file_nobody_is_anonymous(settings: Settings) -> None:
    none = settings.users_file.with_name("none")
    app = App(settings.model_copy(update={"users_file": none}))
    assert app.login is not None
    assert not app.login.anonymous
    assert app.login.mechanisms(entrance()) == ["PLAIN"]


MISSING = [
    pytest.param("other", f"group {GROUP}; installed: broken, directory, gone, noth", id="unknown"),
    pytest.param("broken", "Broken cannot be used: RuntimeError: no settings", id="it fails"),
    pytest.param("nothing", "Nothing has no method authenticate", id="another class"),
    pytest.param("gone", "cannot be used: ModuleNotFoundError", id="no module"),
]


@pytest.mark.parametrize(("name", "told"), MISSING)
def test_an_authenticator_that_cannot_be_used_stops_the_start(
    settings: Settings, name: str, told: str
) -> None:
    with pytest.raises(SettingsError, match=rf"^authenticator = '{name}': .*{told}"):
        App(settings.model_copy(update={"authenticator": name}))


@pytest.mark.usefixtures("settings")
def test_an_authenticator_is_made_anew() -> None:
    first, second = load_authenticator("directory"), load_authenticator("directory")
    assert first.authenticator is not second.authenticator


ANSWERS = [
    pytest.param("bob", "returned str", id="a text"),
    pytest.param(VerifiedUser(""), "name is not empty", id="an empty name"),
    pytest.param(VerifiedUser("bob", ["two words"]), "no role", id="a role that cannot be"),
]


@pytest.mark.parametrize(("answer", "told"), ANSWERS)
def test_a_malformed_answer_is_an_error(answer: object, told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=told):
        verified(answer)


class Held:
    """An authenticator that answers only when `go` is set, and counts the questions."""

    def __init__(self) -> None:
        self.go = Event()
        self.asked: list[str] = []

    def authenticate(
        self,
        user: str,
        password: str,  # noqa: ARG002
        entrance: Entrance,  # noqa: ARG002
    ) -> VerifiedUser | None:
        self.asked.append(user)
        self.go.wait(PATIENCE_S)
        return VerifiedUser(user)


def never(_source: str, _user: str) -> bool:
    return False


async def test_many_checks_wait_and_too_many_are_turned_away() -> None:
    held = Held()
    logins = PackageLogins(NamedAuthenticator("held", held), is_throttled=never)
    askers = [FuturePackageAsker() for _ in range(CHECKS_AT_ONCE_MAX + WAITING_PER_SOURCE_MAX + 1)]
    for number, asker in enumerate(askers):
        logins.ask(f"user-{number}", "x", entrance(), asker=asker)
    turned_away = [asker for asker in askers if asker.is_gone()]
    assert len(turned_away) == 1
    assert isinstance(turned_away[0].verdict.result(), PackageUnchecked)
    held.go.set()
    verdicts = await asyncio.wait_for(
        asyncio.gather(*(asker.verdict for asker in askers)), PATIENCE_S
    )
    assert sum(isinstance(each, VerifiedUser) for each in verdicts) == len(askers) - 1
    assert len(held.asked) == len(askers) - 1


async def test_an_authenticator_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(package_logins, "CHECK_S", 0.01)
    held = Held()
    logins = PackageLogins(NamedAuthenticator("held", held), is_throttled=never)
    with pytest.raises(TooManyLogins, match="'held' has not answered within"):
        await asyncio.wait_for(logins.verdict("ada", "x", entrance()), PATIENCE_S)
    held.go.set()
