"""Users by management: who may add and remove them, refusals, and what is never revealed."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from pathlib import Path

import pytest

from broker.management.management import Management
from broker.management.users import LoginRules
from broker.security.identity import ADMIN, APPLICATION, Identity
from broker.security.throttle import LoginThrottle
from broker.security.users import Users
from tests.support.account_table import RecordingTable, unwritable_file
from tests.support.broker import Broker, Doorman
from tests.support.frames import Transfer
from tests.support.management import Manager, Reply, read_reply, request

pytestmark = pytest.mark.requirement("SEC-12")


class UsersOnly(Doorman):
    """An authenticator whose administrators are those marked in the users file."""

    def __init__(self, users: Users) -> None:
        super().__init__()
        self._users = users

    def identity(self, user: str) -> Identity:
        is_administrator = self._users.is_administrator(user)
        return Identity(user, roles=frozenset({ADMIN if is_administrator else APPLICATION}))


class Setting:
    """A broker with a users file, and a connection of `user`; `alice` is an administrator."""

    def __init__(
        self,
        file: Path,
        *,
        anonymous: bool = False,
        user: str = "alice",
        table: RecordingTable | None = None,
    ) -> None:
        self.users = Users(file, first=("first", "one"), table=table)
        if table is None:
            self.users.add("alice", "sesame", administrator=True)
        self.broker = Broker(authenticator=UsersOnly(self.users))
        self._beside: list[Coroutine[None, None, None]] = []
        container = self.broker.container
        container.service = Management(
            container,
            None,
            self._beside.append,
            accounts=lambda: LoginRules(self.users, anonymous, LoginThrottle()),
        )
        self.manager = Manager(self.broker, user=user)

    async def ask(self, operation: str, name: str, **arguments: object) -> Reply:
        self.manager.send(request(operation, "user", name, body=arguments))
        while self._beside:
            await self._beside.pop(0)
        bodies = self.manager.client.bodies()
        (found,) = [body for body in bodies if isinstance(body, Transfer)]
        return read_reply(found.payload)

    def rows(self, pattern: str = "*") -> list[dict[str, object]]:
        return self.manager.look("user", {"filter": pattern}).rows


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "users"


def content(file: Path) -> str:
    return file.read_text()


def write(file: Path, text: str) -> None:
    file.write_text(text)


async def test_a_user_is_added_changed_and_removed(file: Path) -> None:
    setting = Setting(file)
    created = await setting.ask("CREATE", "bob", password="secret")
    assert created.status == 201
    assert created.map == {
        "name": "bob",
        "identity": "bob",
        "type": "user",
        "administrator": False,
        "source": "file",
        "roles": ["application"],
        "enabled": True,
        "password": True,
        "scram": ["SCRAM-SHA-512", "SCRAM-SHA-256"],
        "mechanisms": None,
        "certificates": [],
        "credential_version": setting.users.version_of("bob"),
        "changed_at": created.map["changed_at"],
        "old_password_until": None,
        "created": True,
        "file": str(file),
        "anonymous": False,
    }
    assert setting.users.check("bob", "secret")
    changed = await setting.ask("CREATE", "bob", password="other", administrator=True)
    assert (changed.status, changed.map["created"]) == (200, False)
    assert changed.map["administrator"] is True
    kept = await setting.ask("CREATE", "bob", password="third")
    assert kept.map["administrator"] is True
    assert setting.users.check("bob", "third")
    less = await setting.ask("CREATE", "bob", password="third", administrator=False)
    assert less.map["administrator"] is False
    removed = await setting.ask("DELETE", "bob")
    assert (removed.status, removed.map) == (200, {"file": str(file), "source": "file"})
    assert setting.users.names() == ["alice"]


async def test_a_user_that_the_file_cannot_take_is_in_the_store(tmp_path: Path) -> None:
    setting = Setting(unwritable_file(tmp_path, ("alice", "sesame")), table=RecordingTable())
    created = await setting.ask("CREATE", "bob", password="secret")
    assert (created.status, created.map["source"]) == (201, "store")
    changed = await setting.ask("UPDATE", "bob", enabled=False)
    assert (changed.map["enabled"], changed.map["source"]) == (False, "store")
    sources = [(row["name"], row["source"]) for row in setting.rows()]
    assert sources == [("alice", "file"), ("bob", "store"), ("first", "settings")]
    refused = await setting.ask("UPDATE", "alice", password="other")
    assert refused.status == 409
    assert "which wins over the store" in refused.description
    removed = await setting.ask("DELETE", "bob")
    assert (removed.status, removed.map["source"]) == (200, "store")
    assert setting.users.names() == ["alice"]


async def test_a_password_is_changed_and_the_old_one_kept(file: Path) -> None:
    setting = Setting(file)
    await setting.ask("CREATE", "bob", password="one", roles=["orders"], certificates=["b.example"])
    changed = await setting.ask("UPDATE", "bob", password="two", keep_old_s=60)
    assert (changed.status, changed.map["changed"]) == (200, True)
    assert changed.map["roles"] == ["orders"]
    assert changed.map["certificates"] == ["b.example"]
    assert str(changed.map["old_password_until"]).endswith("Z")
    assert setting.users.check("bob", "one")
    assert setting.users.check("bob", "two")
    without = await setting.ask("UPDATE", "bob", password="three", scram=False)
    assert (without.map["scram"], without.map["old_password_until"]) == ([], None)


async def test_a_user_gets_other_roles_and_keeps_its_password(file: Path) -> None:
    setting = Setting(file)
    await setting.ask("CREATE", "bob", password="secret", roles=["orders"])
    for roles, changed in ((["audit", "orders"], True), (["audit", "orders"], False)):
        reply = await setting.ask("UPDATE", "bob", roles=roles)
        assert (reply.map["roles"], reply.map["changed"]) == (roles, changed)
    assert setting.users.check("bob", "secret")
    refused = await setting.ask("UPDATE", "alice", roles=["orders"])
    assert (refused.status, "stays an administrator" in refused.description) == (409, True)


async def test_a_user_is_disabled_and_enabled(file: Path) -> None:
    setting = Setting(file)
    await setting.ask("CREATE", "bob", password="secret")
    for enabled, changed in ((False, True), (False, False), (True, True), (True, False)):
        reply = await setting.ask("UPDATE", "bob", enabled=enabled)
        assert (reply.map["enabled"], reply.map["changed"]) == (enabled, changed)
        assert setting.users.check("bob", "secret") is enabled
    setting.broker.container.run_round()
    told = [event.partition(" user ")[0] for event in setting.broker.watcher.events]
    assert [each.rpartition(" ")[2] for each in told if each.startswith("noticed ")] == [
        *("added", "disabled", "enabled")
    ], "a request that changes nothing is not logged"


async def test_a_user_is_read(file: Path) -> None:
    setting = Setting(file)
    alice = await setting.ask("READ", "alice")
    assert (alice.status, alice.map["roles"], alice.map["source"]) == (200, ["admin"], "file")
    first = await setting.ask("READ", "first")
    assert (first.map["roles"], first.map["password"]) == (["admin"], True)
    assert first.map["source"] == "settings"
    assert "$" not in str(alice.map) + str(first.map)


async def test_whether_clients_without_a_password_still_enter_is_told(file: Path) -> None:
    created = await Setting(file, anonymous=True).ask("CREATE", "bob", password="secret")
    assert created.map["anonymous"] is True


async def test_users_are_listed_without_their_hashes(file: Path) -> None:
    setting = Setting(file)
    await setting.ask("CREATE", "bob", password="secret")
    assert [(row["name"], row["administrator"], row["source"]) for row in setting.rows()] == [
        ("alice", True, "file"),
        ("bob", False, "file"),
        ("first", True, "settings"),
    ]
    assert [row["name"] for row in setting.rows("b*")] == ["bob"]
    reply = setting.manager.query("user")
    assert "argon2" not in str(reply)


async def test_each_change_is_logged_with_who_asked_and_without_the_password(file: Path) -> None:
    setting = Setting(file)
    await setting.ask("CREATE", "bob", password="secret")
    await setting.ask("CREATE", "bob", password="secret2")
    await setting.ask("DELETE", "bob")
    setting.broker.container.run_round()
    told = [event for event in setting.broker.watcher.events if event.startswith("noticed ")]
    where = setting.manager.client.peer.entrance.address
    assert told == [
        f"noticed alice at {where} added user bob",
        f"noticed alice at {where} changed the password of user bob",
        f"noticed alice at {where} removed user bob",
    ]


REFUSED: list[object] = [
    pytest.param("CREATE", "bob", {}, 400, "password must be a string", id="no password"),
    pytest.param("CREATE", "bob", {"password": ""}, 400, "is not empty", id="empty password"),
    pytest.param("CREATE", "bob", {"password": "a\0"}, 400, "NUL", id="a NUL"),
    pytest.param("CREATE", "b:b", {"password": "x"}, 400, "no colon", id="a bad name"),
    pytest.param("CREATE", "bob", {"password": "x", "hash": "x"}, 400, "no argument", id="a hash"),
    pytest.param(
        "CREATE", "bob", {"password": "x", "administrator": 1}, 400, "true or", id="a number"
    ),
    pytest.param("CREATE", "first", {"password": "x"}, 409, "settings", id="the first user"),
    pytest.param(
        "CREATE",
        "alice",
        {"password": "x", "administrator": False},
        409,
        "the user that asks",
        id="who asks, degraded",
    ),
    pytest.param("DELETE", "alice", {}, 409, "the user that asks", id="who asks, removed"),
    pytest.param("DELETE", "first", {}, 409, "settings", id="the first user, removed"),
    pytest.param("DELETE", "none", {}, 404, "no user none", id="nobody"),
    pytest.param("READ", "none", {}, 404, "no user none", id="nobody, read"),
    pytest.param("PURGE", "alice", {}, 501, "CREATE, DELETE", id="no such operation"),
    pytest.param(
        "CREATE", "bob", {"password": "x", "roles": "a"}, 400, "roles must be a list", id="one role"
    ),
    pytest.param(
        "CREATE", "bob", {"password": "x", "roles": ["a b"]}, 409, "is no role", id="a bad role"
    ),
    pytest.param(
        "CREATE",
        "alice",
        {"password": "x", "roles": ["application"]},
        409,
        "the user that asks",
        id="who asks, with other roles",
    ),
    pytest.param(
        "UPDATE", "alice", {}, 400, "password must be a string", id="an update of nothing"
    ),
    pytest.param("UPDATE", "alice", {"enabled": 1}, 400, "true or", id="a number for true"),
    pytest.param(
        "UPDATE", "alice", {"enabled": True, "password": "x"}, 400, "either", id="two updates"
    ),
    pytest.param(
        "UPDATE", "alice", {"enabled": False}, 409, "the user that asks", id="who asks, disabled"
    ),
    pytest.param(
        "UPDATE",
        "alice",
        {"password": "x", "keep_old_s": 604_801},
        400,
        "from 0 to 604800",
        id="an old password for more than a week",
    ),
    pytest.param("UPDATE", "alice", {"password": ""}, 400, "not empty", id="an empty new password"),
    pytest.param("UPDATE", "first", {"enabled": False}, 409, "settings", id="the first, disabled"),
    pytest.param("UPDATE", "none", {"enabled": False}, 404, "no user none", id="nobody, disabled"),
]


@pytest.mark.parametrize(("operation", "name", "arguments", "status", "told"), REFUSED)
async def test_what_cannot_be_is_refused_and_changes_nothing(
    file: Path, operation: str, name: str, arguments: Mapping[str, object], status: int, told: str
) -> None:
    setting = Setting(file)
    before = content(file)
    reply = await setting.ask(operation, name, **arguments)
    assert (reply.status, told in reply.description) == (status, True), reply.description
    assert content(file) == before


async def test_a_change_under_way_elsewhere_is_told(file: Path) -> None:
    setting = Setting(file)
    await setting.ask("CREATE", "bob", password="x")
    write(file.with_name("users.new"), "")
    for reply in (
        await setting.ask("CREATE", "carol", password="x"),
        await setting.ask("DELETE", "bob"),
    ):
        assert (reply.status, "another process is changing" in reply.description) == (409, True)
    assert setting.users.names() == ["alice", "bob"]


async def test_a_file_that_was_spoilt_is_told(file: Path) -> None:
    setting = Setting(file, user="first")
    write(file, "nonsense\n")
    for reply in (
        setting.manager.query("user"),
        await setting.ask("CREATE", "bob", password="x"),
        await setting.ask("DELETE", "alice"),
    ):
        assert (reply.status, "line 1" in reply.description) == (409, True)
    assert content(file) == "nonsense\n"


async def test_only_administrators(file: Path) -> None:
    setting = Setting(file, user="mallory")
    for reply in (
        await setting.ask("CREATE", "mallory", password="x", administrator=True),
        await setting.ask("DELETE", "alice"),
        setting.manager.query("user"),
    ):
        assert reply.status == 403
    assert setting.users.names() == ["alice"]


def test_a_broker_without_a_users_file_has_no_such_type() -> None:
    reply = Manager(Broker()).query("user")
    assert (reply.status, "no type user" in reply.description) == (400, True)
