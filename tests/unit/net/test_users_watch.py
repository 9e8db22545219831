"""A change of the users file reaches open connections (Z7)."""

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from broker.amqp.errors import CONNECTION_FORCED
from broker.app import App
from broker.net.users_watch import UsersWatch
from broker.security.entrance import AMQP, Entrance
from broker.security.users import Users
from broker.settings import MEMORY, given_settings
from tests.support.socket_client import SocketClient
from tests.support.tls_listening import until

pytestmark = [pytest.mark.requirement("SEC-02"), pytest.mark.attack("Z7")]

INTERVAL_S = 0.01


@pytest.fixture
def users(tmp_path: Path) -> Users:
    made = Users(tmp_path / "users")
    made.add("ada", "engine", administrator=True)
    made.add("bob", "tulip")
    return made


@pytest.fixture
async def app(users: Users) -> AsyncIterator[App]:
    """Start a broker that looks at its users every ten milliseconds."""
    running = App(given_settings(port=0, users_file=users.file, store=MEMORY))
    await running.start()
    assert running.login is not None
    watch = UsersWatch(running.login, running.container, interval_s=INTERVAL_S)
    watch.start()
    yield running
    watch.stop()
    await running.stop()


async def log_in(client: SocketClient, user: str, password: str) -> None:
    client.login("PLAIN", f"\0{user}\0{password}".encode())
    await client.header()
    for _ in ("mechanisms", "outcome"):
        await client.next()
    await client.open(user)


CHANGES = [
    pytest.param(lambda users: users.remove("ada"), id="removed"),
    pytest.param(lambda users: users.set_enabled("ada", enabled=False), id="disabled"),
    pytest.param(lambda users: users.passwd("ada", "other"), id="given another password"),
]


@pytest.mark.parametrize("change", CHANGES)
async def test_the_sessions_of_a_user_end_when_it_is(
    app: App, users: Users, change: Callable[[Users], object]
) -> None:
    async with SocketClient(app.port) as ada, SocketClient(app.port) as bob:
        await log_in(ada, "ada", "engine")
        await log_in(bob, "bob", "tulip")
        change(users)
        close = await ada.closed()
        assert close.error is not None
        assert close.error.condition == CONNECTION_FORCED
        await bob.begin()
        assert app.stats.connections_revoked == 1


async def test_scram_is_listed_once_another_process_has_made_it_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its library is not loaded by a login, which would hold up all clients for 70 ms."""
    here = Entrance(listener=AMQP, kind=AMQP, host="127.0.0.1")
    there = Users(tmp_path / "users")
    there.add("ada", "engine", scram=False)
    app = App(given_settings(port=0, users_file=there.file, store=MEMORY))
    assert app.login is not None
    watch = UsersWatch(app.login, app.container, interval_s=INTERVAL_S)
    watch.start()
    there.complete_scram("ada", "engine")
    for name in [each for each in sys.modules if each.partition(".")[0] == "scramp"]:
        monkeypatch.delitem(sys.modules, name)
    assert app.login.offered(here) == ["PLAIN"]
    assert "scramp" not in sys.modules
    login = app.login
    await until(lambda: login.offered(here) != ["PLAIN"])
    assert app.login.offered(here) == ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"]
    assert "scramp" in sys.modules
    watch.stop()
