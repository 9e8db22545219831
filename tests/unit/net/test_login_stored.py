"""Logins of users whose file cannot be written: what it lacks is in the store (issue 20)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from broker.amqp.errors import CONNECTION_FORCED
from broker.amqp.frames import SASL_HEADER
from broker.amqp.sasl_frames import SASL_AUTH, SASL_OK, SaslChallenge, SaslMechanisms, SaslOutcome
from broker.app import App
from broker.net.users_watch import UsersWatch
from broker.reload import apply
from broker.security.scram_verifier import ScramHash
from broker.security.users import Users
from broker.settings import MEMORY, SettingsError, given_settings
from tests.support.account_table import unwritable_file
from tests.support.broker import RecordingWatcher
from tests.support.scram_client import FormulaClient
from tests.support.socket_client import SocketClient

pytestmark = pytest.mark.requirement("SEC-02")

SCRAM = ["SCRAM-SHA-512", "SCRAM-SHA-256"]


@asynccontextmanager
async def broker(
    file: Path, watcher: RecordingWatcher | None = None, /, **given: object
) -> AsyncIterator[App]:
    """Run a broker with an SQLite store; the folder of its users file need not exist."""
    folder = file.parent if file.parent.exists() else file.parent.parent
    store = f"sqlite:///{folder / 'store' / 'store.db'}"
    app = App(
        given_settings(**{"port": 0, "users_file": file, "store": store, **given}), watcher=watcher
    )
    await app.start()
    try:
        yield app
    finally:
        await app.stop()


async def log_in(app: App, user: str, password: str) -> tuple[list[str], int]:
    """Log in by PLAIN; return the mechanisms that the broker lists, and its outcome."""
    async with SocketClient(app.port) as client:
        client.login("PLAIN", f"\0{user}\0{password}".encode())
        assert await client.header() == SASL_HEADER
        listed, told = await client.next(), await client.next()
        assert isinstance(listed, SaslMechanisms)
        assert isinstance(told, SaslOutcome)
        return listed.mechanisms, told.code


async def enters_by_scram(app: App, user: str, password: str) -> bool:
    formulas = FormulaClient(ScramHash.SHA_256, user, password)
    async with SocketClient(app.port) as client:
        client.login(ScramHash.SHA_256.value, formulas.first())
        await client.header()
        await client.next()
        challenge = await client.next()
        assert isinstance(challenge, SaslChallenge)
        client.respond(formulas.final(challenge.challenge))
        return isinstance(await client.next(), SaslChallenge)


def users_of(app: App) -> Users:
    assert app.login is not None
    return app.login.users


def lets_anybody_in(app: App) -> bool:
    assert app.login is not None
    return app.login.anonymous


async def add(app: App, name: str, password: str, *, scram: bool = True) -> None:
    """Add a user as management does, in a thread."""
    await asyncio.to_thread(partial(users_of(app).add, name, password, scram=scram))


async def test_the_first_plain_login_makes_scram_listed_and_a_restart_lists_it_again(
    tmp_path: Path,
) -> None:
    file = unwritable_file(tmp_path, ("ada", "engine"))
    text = file.read_text()
    async with broker(file) as app:
        assert await log_in(app, "ada", "wrong") == (["PLAIN"], SASL_AUTH)
        assert await log_in(app, "ada", "engine") == (["PLAIN"], SASL_OK)
        assert await log_in(app, "ada", "engine") == ([*SCRAM, "PLAIN"], SASL_OK)
        assert await enters_by_scram(app, "ada", "engine")
    async with broker(file) as app:
        assert await enters_by_scram(app, "ada", "engine")
        assert (await log_in(app, "ada", "wrong"))[0] == [*SCRAM, "PLAIN"]
    assert file.read_text() == text
    exposed = {"bind": "0.0.0.0", "plain": "protected"}
    async with broker(file, **exposed) as app:
        assert await enters_by_scram(app, "ada", "engine"), "it may listen for other machines now"
    file.unlink()
    unwritable_file(tmp_path, ("ada", "changed"))
    async with broker(file) as app:
        assert (await log_in(app, "ada", "engine")) == (["PLAIN"], SASL_AUTH)
    with pytest.raises(SettingsError, match="no verifier: ada"):
        async with broker(file, **exposed):
            pass


async def test_with_a_store_in_memory_the_log_says_why_scram_is_not_listed(tmp_path: Path) -> None:
    file = unwritable_file(tmp_path, ("ada", "engine"))
    watcher = RecordingWatcher()
    async with broker(file, watcher, store=MEMORY) as app:
        for _ in range(2):
            assert await log_in(app, "ada", "engine") == (["PLAIN"], SASL_OK)
        assert users_of(app).without_scram() == ["ada"]
    (told,) = [event for event in watcher.events if "no verifiers for SCRAM" in event]
    assert told.endswith("; the store (memory) keeps no users: use SQLite or PostgreSQL")


async def test_users_of_the_store_keep_other_clients_out_from_the_start(tmp_path: Path) -> None:
    """Before the store is open, a broker without a file has no users."""
    file = tmp_path / "no" / "users"
    async with broker(file) as app:
        assert lets_anybody_in(app)
        await add(app, "ada", "engine")
        apply(app, app.settings)
        assert not lets_anybody_in(app), "a reload knows them, too"
        assert await log_in(app, "ada", "engine") == ([*SCRAM, "PLAIN"], SASL_OK)
    async with broker(file) as app:
        assert not lets_anybody_in(app)
        assert await log_in(app, "ada", "engine") == ([*SCRAM, "PLAIN"], SASL_OK)
        assert await log_in(app, "guest", "guest") == ([*SCRAM, "PLAIN"], SASL_AUTH)
    recorded = "".join(each.read_text() for each in (tmp_path / "store").glob("store.db.audit/*"))
    assert recorded.count('"broker.started"') == 2
    assert "user.added" not in recorded, "a restart adds no users"


async def test_without_any_user_such_a_broker_listens_for_nobody_else(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there are no users"):
        async with broker(tmp_path / "users", bind="0.0.0.0"):
            pass
    async with broker(tmp_path / "users") as app:
        assert app.port, "the store was closed"


async def test_a_change_in_the_store_ends_sessions(tmp_path: Path) -> None:
    async with broker(tmp_path / "no" / "users") as app:
        assert app.login is not None
        await add(app, "ada", "engine")
        watch = UsersWatch(app.login, app.container, interval_s=0.01)
        watch.start()
        async with SocketClient(app.port) as client:
            client.login("PLAIN", b"\0ada\0engine")
            await client.header()
            for _ in ("mechanisms", "outcome"):
                await client.next()
            await client.open("ada")
            await asyncio.to_thread(partial(users_of(app).set_enabled, "ada", enabled=False))
            close = await client.closed()
            assert close.error is not None
            assert close.error.condition == CONNECTION_FORCED
        watch.stop()
        assert (await log_in(app, "ada", "engine"))[1] == SASL_AUTH
