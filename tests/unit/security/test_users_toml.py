"""The users file as TOML: what a table means, and every key that may be wrong."""

from base64 import b64encode
from datetime import UTC, datetime

import pytest

from broker.security.account import UserAccount, UsersError
from broker.security.scram_verifier import ScramHash, make_verifier
from broker.security.users_toml import SALT_SECRET_BYTES, UsersReader, read_users, values_of

HASH = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaA"
SHA_256 = make_verifier(ScramHash.SHA_256, "x", iterations=4096)
SHA_512 = make_verifier(ScramHash.SHA_512, "x", iterations=4096)
SECRET = b64encode(bytes(SALT_SECRET_BYTES)).decode()

WHOLE = f"""
salt_secret = "{SECRET}"

[[user]]
name = "alice"
roles = ["admin", "orders"]
enabled = false
password = "{HASH}"
scram_sha_256 = "{SHA_256.text}"
scram_sha_512 = "{SHA_512.text}"
credential_version = 7
changed_at = 2025-06-15T17:06:40+02:00
mechanisms = ["SCRAM-SHA-512", "EXTERNAL"]
certificates = ["alice.example"]
[user.previous]
until = 2025-06-15T16:06:40Z
password = "{HASH}"

[[user]]
name = "bob"
"""


def test_every_key_is_read() -> None:
    table = read_users(WHOLE)
    assert table.salt_secret == bytes(SALT_SECRET_BYTES)
    alice = table.accounts["alice"]
    assert (alice.roles, alice.enabled) == (("admin", "orders"), False)
    assert alice.verifiers.password == HASH
    assert alice.verifiers.scram == {ScramHash.SHA_256: SHA_256, ScramHash.SHA_512: SHA_512}
    assert alice.mechanisms == ("SCRAM-SHA-512", "EXTERNAL")
    assert alice.certificates == ("alice.example",)
    assert alice.credential_version == 7
    assert alice.changed_at == datetime(2025, 6, 15, 15, 6, 40, tzinfo=UTC)
    assert alice.previous is not None
    assert alice.previous.until == datetime(2025, 6, 15, 16, 6, 40, tzinfo=UTC)
    assert alice.previous.verifiers.password == HASH


def test_a_name_is_enough() -> None:
    bob = read_users(WHOLE).accounts["bob"]
    assert bob == UserAccount(name="bob", credential_version=bob.credential_version)
    assert bob.credential_version > 0


def test_the_values_of_an_account_are_those_that_were_read() -> None:
    values = values_of(read_users(WHOLE).accounts["alice"])
    assert list(values) == [
        *("name", "roles", "enabled", "password", "scram_sha_256", "scram_sha_512"),
        *("credential_version", "changed_at", "mechanisms", "certificates", "previous"),
    ]
    assert values["scram_sha_512"] == SHA_512.text


def test_lines_are_read_too() -> None:
    assert list(read_users(f"alice:{HASH}\n").accounts) == ["alice"]


def test_without_users_there_is_nothing() -> None:
    for text in ("", "# ours\n", "user = []\n"):
        assert not read_users(text).accounts


BAD_TOPS = [
    pytest.param("[[user]\n", r"line 1, column 7: .*TOML", id="invalid TOML"),
    pytest.param('[[user]]\nname = "a', "end of document|line 2", id="a string without its end"),
    pytest.param("x = 1\n", "x: there is no such key; known: salt_secret, user", id="a key"),
    pytest.param("user = 1\n", "not a list of tables", id="a number of users"),
    pytest.param("user = [1]\n", "not a list of tables", id="a list of numbers"),
    pytest.param('salt_secret = "x"\n', "salt_secret: not 32 bytes", id="a short secret"),
    pytest.param('salt_secret = "?"\n', "salt_secret: not 32 bytes", id="a secret not base64"),
    pytest.param("salt_secret = 1\n", "salt_secret: not a string", id="a number as the secret"),
    pytest.param("[[user]]\n", "user number 1, name: missing", id="no name"),
    pytest.param(
        '[[user]]\nname = "a"\n[[user]]\nname = 1\n',
        "user number 2, name: not a str",
        id="a number",
    ),
    pytest.param('[[user]]\nname = "a:b"\n', "user number 1, name: .*no colon", id="a bad name"),
    pytest.param('[[user]]\nname = "a"\n' * 2, "user 'a' is there twice", id="a name twice"),
]


@pytest.mark.parametrize(("text", "told"), BAD_TOPS)
def test_a_bad_file_is_told_by_its_place(text: str, told: str) -> None:
    with pytest.raises(UsersError, match=told):
        read_users(text)


BAD_KEYS = [
    pytest.param("rolls = []", "rolls: there is no such key; known: name, roles", id="no such key"),
    pytest.param('roles = "admin"', "roles: not a list", id="a role that is no list"),
    pytest.param("roles = [1]", "roles: not a list of strings", id="a number as a role"),
    pytest.param('roles = ["a b"]', "roles: 'a b' is no role", id="a bad role"),
    pytest.param("enabled = 1", "enabled: not true or false", id="a number for true"),
    pytest.param("password = 1", "password: not a string", id="a number as the hash"),
    pytest.param('password = "sesame"', "password: not a hash", id="a password in the clear"),
    pytest.param('scram_sha_256 = "x"', "scram_sha_256: not SCRAM-SHA-256", id="no verifier"),
    pytest.param(
        f'scram_sha_256 = "{SHA_512.text}"', "scram_sha_256: not SCRAM-SHA-256", id="another hash"
    ),
    pytest.param("scram_sha_512 = 1", "scram_sha_512: not a string", id="a number as a verifier"),
    pytest.param("credential_version = true", "credential_version: not a whole", id="a truth"),
    pytest.param('changed_at = "now"', "changed_at: not a date", id="a word as a time"),
    pytest.param("changed_at = 2025-06-15T15:06:40", "changed_at: has no zone", id="a local time"),
    pytest.param("changed_at = 2025-06-15", "changed_at: not a date with a time", id="a date"),
    pytest.param('mechanisms = ["MD5"]', "mechanisms: 'MD5' is no mechanism", id="a mechanism"),
    pytest.param('certificates = [""]', "certificates: the name", id="an empty certificate"),
    pytest.param("previous = 1", "previous: not a table", id="a number as the former"),
    pytest.param("previous = {}", "previous, until: missing", id="a former without its end"),
    pytest.param("previous = {name = 1}", "previous, name: there is no such", id="a former's name"),
    pytest.param(
        'previous = {until = 2025-06-15T16:06:40Z, password = "x"}',
        "previous, password: not a hash",
        id="a former password in the clear",
    ),
]


@pytest.mark.parametrize(("line", "told"), BAD_KEYS)
def test_a_bad_key_is_told_with_its_user(line: str, told: str) -> None:
    with pytest.raises(UsersError, match=f"^user 'alice', {told}"):
        read_users(f'[[user]]\nname = "alice"\n{line}\n')


# ---- reading again --------------------------------------------------------------------------

TEXTS = [
    pytest.param(WHOLE, id="users"),
    pytest.param("", id="nothing"),
    pytest.param(f"alice:{HASH}\n", id="lines"),
    pytest.param('user = [{name = "alice"}]\n', id="an inline list"),
    pytest.param('[["user"]]\nname = "alice"\n', id="a key in quotes"),
    pytest.param(f'[[user]]\nname = "a"\n[["user"]]\nname = "{"b"}"\n', id="both"),
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_reader_reads_the_same_the_second_time(text: str) -> None:
    reader = UsersReader()
    expected = read_users(text)
    for _ in range(2):
        found = reader.read(text)
        assert dict(found.accounts) == dict(expected.accounts)
        assert found.salt_secret == expected.salt_secret


@pytest.mark.parametrize(("text", "told"), BAD_TOPS)
def test_a_reader_tells_the_same_places(text: str, told: str) -> None:
    reader = UsersReader()
    reader.read(WHOLE)
    with pytest.raises(UsersError, match=told):
        reader.read(text)


def test_only_users_whose_text_has_changed_are_read_again() -> None:
    reader = UsersReader()
    before = reader.read(WHOLE).accounts
    after = reader.read(WHOLE.replace('name = "bob"', 'name = "carol"')).accounts
    assert after["alice"] is before["alice"]
    assert list(after) == ["alice", "carol"]


def test_a_table_inside_a_string_is_no_user() -> None:
    text = '[[user]]\nname = "a"\nroles = ["""\n[[user]]\nname = 1\n"""]\n'
    with pytest.raises(UsersError, match=r"^user 'a', roles: .* is no role"):
        UsersReader().read(text)
