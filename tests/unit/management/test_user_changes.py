"""The records of changes of the users file: what differs, and no secret."""

from pathlib import Path

import pytest

from broker.audit.record import Actor, body_of
from broker.management.user_changes import ADDED, CHANGED, REMOVED, UserChanges
from broker.security.users import Users
from tests.support.audit import RecordingAudit

pytestmark = pytest.mark.requirement("SEC-08")

ADA = Actor(user="ada", via="amqp")


@pytest.fixture
def users(tmp_path: Path) -> Users:
    made = Users(tmp_path / "users")
    made.add("bob", "tulip", scram=False)
    return made


def test_nothing_is_recorded_of_the_users_at_the_start(users: Users) -> None:
    audit = RecordingAudit()
    changes = UserChanges(lambda: users, audit)
    changes.record()
    assert audit.events == []


def test_each_change_is_recorded_once_with_what_differs(users: Users) -> None:
    audit = RecordingAudit()
    changes = UserChanges(lambda: users, audit)
    users.add("eve", "daisy", roles=["monitor"], scram=False)
    changes.record(ADA, "1-1")
    users.set_enabled("eve", enabled=False)
    users.passwd("bob", "rose", scram=False)
    changes.record()
    users.remove("bob")
    changes.record(ADA)
    changes.record()
    told = [(event.action, event.resource, event.actor.user) for event in audit.events]
    assert told == [
        (ADDED, "user:eve", "ada"),
        (CHANGED, "user:bob", ""),
        (CHANGED, "user:eve", ""),
        (REMOVED, "user:bob", "ada"),
    ]
    added, password, disabled, removed = audit.events
    assert (added.before, added.request_id) == (None, "1-1")
    assert added.after is not None
    assert added.after["roles"] == ["monitor"]
    assert password.after is not None
    assert password.after["password_changed"] is True
    assert disabled.before is not None
    assert disabled.before["enabled"] is True
    assert disabled.after is not None
    assert "password_changed" not in disabled.after
    assert removed.after is None


def test_no_hash_of_a_password_is_recorded(users: Users) -> None:
    audit = RecordingAudit()
    changes = UserChanges(lambda: users, audit)
    users.add("eve", "daisy")
    users.passwd("bob", "rose")
    changes.record()
    text = "".join(body_of(event) for event in audit.events)
    assert "eve" in text
    for secret in ("argon2", "daisy", "rose", "$"):
        assert secret not in text
