"""Changes to users in a batch: the last one counts."""

from storage.users import UserChanges
from tests.contract.test_users import PLAIN_USER, USER


def test_what_is_noted_last_counts() -> None:
    changes = UserChanges()
    changes.put(USER)
    changes.put(PLAIN_USER)
    changes.remove(USER.name)
    assert changes.users == {USER.name: None, "bob": PLAIN_USER}
    changes.put(USER)
    assert changes.users[USER.name] is USER
