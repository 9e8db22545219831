"""Changes in the text of a users file: what is written, and what stays as it was."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security.account import (
    FormerVerifiers,
    UserAccount,
    UsersError,
    Verifiers,
    refusal_of_name,
)
from broker.security.users_edit import HEADER, changed_text
from broker.security.users_toml import read_users

NOW = datetime(2025, 6, 15, 15, 6, 40, tzinfo=UTC)
HASH = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaA"
SECRET = 'salt_secret = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="'

FILE = f"""\
# ours
{SECRET}

# alice runs it
[[user]]
name = "alice" # since 2019
roles = [
  "admin", # for now
]

# bob is new
[[user]]
name = "bob"
enabled = true
# the end
"""


def account(name: str, *, roles: tuple[str, ...] = ("application",)) -> UserAccount:
    verifiers = Verifiers(password=HASH)
    return UserAccount(name=name, roles=roles, verifiers=verifiers, credential_version=5)


def changed(text: str, name: str, wanted: UserAccount | None) -> str:
    return changed_text(text, name, wanted, now=NOW)


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


def test_the_first_user_makes_a_file() -> None:
    text = changed("", "alice", account("alice"))
    assert text.startswith(HEADER)
    assert read_users(text).salt_secret is not None
    assert lines(text)[3:] == [
        "[[user]]",
        'name = "alice"',
        'roles = ["application"]',
        "enabled = true",
        f'password = "{HASH}"',
        "credential_version = 5",
    ]


def test_a_new_user_is_written_at_the_end() -> None:
    text = changed(FILE, "carol", account("carol"))
    assert text.startswith(f'{FILE}\n[[user]]\nname = "carol"\n')


def test_only_the_keys_that_differ_are_written() -> None:
    alice = read_users(FILE).accounts["alice"]
    text = changed(FILE, "alice", replace(alice, enabled=False))
    assert set(lines(text)) - set(lines(FILE)) == {
        "enabled = false",
        f"credential_version = {alice.credential_version}",
    }
    assert set(lines(FILE)) - set(lines(text)) == set()
    assert text.index("enabled = false") < text.index("# bob is new"), "that belongs to bob"


def test_a_removed_user_takes_its_keys_and_no_comments_of_others() -> None:
    text = changed(FILE, "alice", None)
    assert lines(text) == [
        "# ours",
        SECRET,
        "# alice runs it",
        "# bob is new",
        "[[user]]",
        'name = "bob"',
        "enabled = true",
        "# the end",
    ]


def test_adding_and_removing_leaves_the_text_as_it_was() -> None:
    assert changed(changed(FILE, "carol", account("carol")), "carol", None) == FILE


def test_the_secret_is_made_once() -> None:
    once = changed("", "alice", account("alice"))
    twice = changed(once, "bob", account("bob"))
    assert read_users(once).salt_secret == read_users(twice).salt_secret
    assert read_users(once).salt_secret != read_users(changed("", "a", account("a"))).salt_secret


def test_a_file_without_a_secret_gets_one_below_its_comments() -> None:
    text = changed('# ours\n\n[[user]]\nname = "bob"\n', "alice", account("alice"))
    assert text.startswith("# ours\nsalt_secret = ")
    assert set(read_users(text).accounts) == {"alice", "bob"}


def test_lines_become_toml() -> None:
    text = f"# ours\nalice:{HASH}:administrator\n# bob is new\nbob:{HASH}\n"
    before = read_users(text).accounts
    after = changed(text, "carol", account("carol"))
    accounts = read_users(after).accounts
    assert {name: accounts[name] for name in before} == dict(before)
    assert [line for line in lines(after) if line[0] in "#["] == [
        *lines(HEADER),
        "# ours",
        "[[user]]",
        "# bob is new",
        *["[[user]]"] * 2,
    ]


def test_a_line_can_be_removed() -> None:
    after = changed(f"alice:{HASH}\nbob:{HASH}\n", "alice", None)
    assert list(read_users(after).accounts) == ["bob"]


def test_former_passwords_go_when_their_time_has_ended() -> None:
    def rotated(name: str, minutes: int) -> UserAccount:
        until = NOW + timedelta(minutes=minutes)
        former = FormerVerifiers(until=until, verifiers=Verifiers(password=HASH))
        return replace(account(name), previous=former)

    text = changed("", "alice", rotated("alice", 5))
    text = changed(text, "bob", rotated("bob", 50))
    assert text.count("previous = {until = ") == 2
    later = changed_text(text, "carol", account("carol"), now=NOW + timedelta(minutes=5))
    assert [each.name for each in read_users(later).accounts.values() if each.previous] == ["bob"]


FORMS = [
    pytest.param('user = [{name = "alice"}]\n', id="an inline list"),
    pytest.param('[["user"]]\nname = "alice"\n', id="a key in quotes"),
    pytest.param(
        '[[user]]\nname = "alice"\nroles = [\n"""\n[[user]]\n"""\n]\n', id="a table in a string"
    ),
]


@pytest.mark.parametrize("text", FORMS)
def test_a_form_that_cannot_be_changed_is_told(text: str) -> None:
    with pytest.raises(UsersError, match=r"cannot be changed|is no role"):
        changed(text, "bob", account("bob"))


def test_an_invalid_file_is_not_changed() -> None:
    with pytest.raises(UsersError, match="line 1"):
        changed("nonsense\n", "bob", account("bob"))


NAMES = st.text(
    st.characters(categories=["L", "N", "P", "S"], exclude_characters=":#"), min_size=1, max_size=9
).filter(lambda name: refusal_of_name(name) is None)


@given(st.lists(st.tuples(NAMES, st.booleans()), max_size=8), st.booleans())
def test_any_changes_leave_the_users_that_were_meant(
    steps: list[tuple[str, bool]], from_lines: bool
) -> None:
    text = f"zed:{HASH}\n" if from_lines else FILE
    wanted = dict(read_users(text).accounts)
    for name, adds in steps:
        if adds:
            wanted[name] = account(name, roles=("a", "b"))
        else:
            wanted.pop(name, None)
        text = changed(text, name, wanted.get(name))
        assert dict(read_users(text).accounts) == wanted
