"""A table of users beside the users file: what its rows mean. The file wins on equal names.

A row is a user, or verifiers for SCRAM that a user of the file lacks: a file that the broker cannot
write, such as a mounted secret, never gets them. These count only while the file has the password
that they were made of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from broker.security.account import UserAccount
from broker.security.scram_verifier import ScramHash, ScramVerifier
from broker.security.users_toml import UserTable


@dataclass(frozen=True)
class AddedVerifiers:
    """Verifiers for a user of the users file whose password is that of `credential`."""

    credential: str
    scram: Mapping[ScramHash, ScramVerifier]


AccountRow = UserAccount | AddedVerifiers

RowChange = Callable[[AccountRow | None], AccountRow | None]
"""Takes a row, None if there is none; returns what it becomes, None to remove it."""


@dataclass(frozen=True)
class TableContent:
    """The rows of a table, by the names of their users. `salt_secret` is None before the first."""

    rows: Mapping[str, AccountRow] = field(default_factory=dict)
    salt_secret: bytes | None = None

    def account(self, name: str) -> UserAccount | None:
        """Return the row of `name` if that is a user, else None."""
        row = self.rows.get(name)
        return row if isinstance(row, UserAccount) else None


class AccountTable(ABC):
    """A table of users. Several threads may use it.

    `refusal` says why the table can keep nothing, None if it can. `is_loaded`: its users are known.
    `is_shared`: other brokers have the same users, so new ones are added here and not to a file.
    """

    refusal: str | None = None
    is_shared = False
    is_loaded = True

    @abstractmethod
    def content(self) -> TableContent:
        """Return the committed rows: the same object until one changes."""

    @abstractmethod
    def change(
        self, name: str, change: RowChange, *, patience_s: float | None = None
    ) -> AccountRow | None:
        """Replace the row of `name` by what `change` makes of it; return the row before.

        Blocks until the row is durable, or for about `patience_s`: then it becomes so later. Never
        call it in the thread of the event loop. UsersError, also that of `change`, if the row stays
        as it was, or if the store has failed.
        """


def credential_of(account: UserAccount) -> str | None:
    """Return a text that identifies the password of `account`; None if PLAIN cannot check one."""
    known = account.verifiers.password
    return None if known is None else sha256(known.encode()).hexdigest()


def union(file: UserTable, content: TableContent) -> UserTable:
    """Return the users of the file, with the verifiers that the table adds, and the others."""
    if not content.rows and content.salt_secret is None:
        return file
    accounts = {name: row for name, row in content.rows.items() if isinstance(row, UserAccount)}
    for name, account in file.accounts.items():
        accounts[name] = _completed(account, content.rows.get(name))
    return UserTable(accounts, file.salt_secret or content.salt_secret)


def _completed(account: UserAccount, row: AccountRow | None) -> UserAccount:
    """Return a user of the file with the verifiers of `row`, if these are of its password."""
    if not isinstance(row, AddedVerifiers) or row.credential != credential_of(account):
        return account
    scram = {**row.scram, **account.verifiers.scram}
    return replace(account, verifiers=replace(account.verifiers, scram=scram))
