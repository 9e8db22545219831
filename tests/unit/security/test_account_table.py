"""The union of the users file and a table: the file wins, and verifiers fit one password."""

from __future__ import annotations

import pytest

from broker.security.account import UserAccount, Verifiers
from broker.security.account_table import (
    AccountRow,
    AddedVerifiers,
    TableContent,
    credential_of,
    union,
)
from broker.security.scram_verifier import ScramHash, ScramVerifier, make_verifier
from broker.security.users_toml import UserTable

pytestmark = pytest.mark.requirement("SEC-02")

ONE, TWO = (make_verifier(ScramHash.SHA_256, text, iterations=4096) for text in ("one", "two"))


def account(
    password: str | None, scram: ScramVerifier | None = None, *, name: str = "ada"
) -> UserAccount:
    made = {} if scram is None else {ScramHash.SHA_256: scram}
    return UserAccount(name=name, verifiers=Verifiers(password=password, scram=made))


def added(password: str, verifier: ScramVerifier = ONE) -> AddedVerifiers:
    credential = credential_of(account(password))
    assert credential is not None
    return AddedVerifiers(credential, {ScramHash.SHA_256: verifier})


BOB = account("hash", name="bob")

CASES = [
    # the file's user, the row of its name; the user
    pytest.param(account("hash"), None, account("hash"), id="no row"),
    pytest.param(None, BOB, BOB, id="a user of the table alone"),
    pytest.param(account("hash"), account("other", ONE), account("hash"), id="the file wins"),
    pytest.param(account("hash"), added("hash"), account("hash", ONE), id="verifiers are added"),
    pytest.param(
        account("hash", TWO), added("hash"), account("hash", TWO), id="the file's verifiers win"
    ),
    pytest.param(account("new"), added("hash"), account("new"), id="verifiers of another password"),
    pytest.param(account(None), added("hash"), account(None), id="no password in the file"),
    pytest.param(None, added("hash"), None, id="verifiers make no user"),
]


@pytest.mark.parametrize(("of_file", "row", "expected"), CASES)
def test_a_user_of_file_and_table(
    of_file: UserAccount | None, row: AccountRow | None, expected: UserAccount | None
) -> None:
    file = UserTable({} if of_file is None else {of_file.name: of_file})
    name = row.name if isinstance(row, UserAccount) else "ada"
    content = TableContent({} if row is None else {name: row}, b"salt")
    assert dict(union(file, content).accounts) == (
        {} if expected is None else {expected.name: expected}
    )


def test_the_key_of_salts_is_that_of_the_file_if_it_has_one() -> None:
    content = TableContent({}, b"table")
    assert union(UserTable({}, b"file"), content).salt_secret == b"file"
    assert union(UserTable({}), content).salt_secret == b"table"


def test_an_empty_table_costs_nothing() -> None:
    file = UserTable({"ada": account("hash")})
    assert union(file, TableContent()) is file
