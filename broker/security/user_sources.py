"""The sources of users: the users file and, with some stores, a table beside it.

Users of the file are changed there, others in the table; new ones are added to the file if it can
be written, but to a table that other brokers share if there is one. A change of a user of the file
removes the row of its name, which would count again without the file's user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from broker.security.account import UserAccount, UsersError
from broker.security.account_table import (
    AccountRow,
    AccountTable,
    AddedVerifiers,
    TableContent,
    credential_of,
    union,
)
from broker.security.scram_verifier import ScramHash, ScramVerifier
from broker.security.users_file import Change, UnwritableError, UsersFile
from broker.security.users_toml import UserTable

IN_FILE: Final = "file"
IN_STORE: Final = "store"

PATIENCE_S: Final = 1.0
"""Seconds that a login waits for the verifiers that it has added."""

EMPTY: Final = TableContent()


class UserSources:
    """The users of a file and a table, and changes of single users in the right one of the two."""

    def __init__(self, file: Path, table: AccountTable | None) -> None:
        self._file: Final = UsersFile(file)
        self._table: Final = table
        self._united = (UserTable(), EMPTY, UserTable())
        """A content of the file, one of the table, and their union."""

    @property
    def path(self) -> Path:
        """The absolute path of the file."""
        return self._file.path

    @property
    def place(self) -> str:
        """The places of users, as text for operators."""
        has_table = self._table is not None and self._table.refusal is None
        return f"{self.path} or in the store" if has_table else str(self.path)

    def current(self) -> UserTable:
        """Return all users: the same object until one changes. UsersError if the file is wrong."""
        return self._union(self._file.current())

    def last_valid(self) -> UserTable:
        """Return `current`, or the users with the last valid content of the file."""
        return self._union(self._file.last_valid())

    def source_of(self, name: str) -> str:
        """Return IN_STORE for a user of the table that the file does not have, else IN_FILE."""
        if name in self._file.last_valid().accounts:
            return IN_FILE
        return IN_FILE if self._content().account(name) is None else IN_STORE

    def _is_shared(self) -> bool:
        """Return whether other brokers read the users of the table, as those of a group do."""
        return self._table is not None and self._table.is_shared and self._table.refusal is None

    def _content(self) -> TableContent:
        return EMPTY if self._table is None else self._table.content()

    def _union(self, file: UserTable) -> UserTable:
        content = self._content()
        of_file, of_table, united = self._united
        if of_file is not file or of_table is not content:
            united = union(file, content)
            self._united = (file, content, united)
        return united

    # -- changes

    def change(self, name: str, change: Change, *, now: datetime) -> UserAccount | None:
        """Replace the account `name` by what `change` makes of it; return the account before.

        UsersError, also that of `change`, leaves all as it was.
        """
        is_in_file = name in self._file.current().accounts
        if not is_in_file and (self._is_shared() or self._content().account(name) is not None):
            return self._change_row(name, change)
        try:
            before = self._file.change(name, change, now=now)
        except UnwritableError as error:
            if self._table is not None and is_in_file:
                raise UsersError(
                    f"{error}; user {name!r} is in that file, which wins over the store"
                ) from None
            self._check_table(error)
            return self._change_row(name, change)
        if self._table is not None and name in self._content().rows:
            self._table.change(name, lambda _: None)
        return before

    def complete(
        self,
        name: str,
        seen: UserAccount,
        made: Mapping[ScramHash, ScramVerifier],
        *,
        now: datetime,
    ) -> None:
        """Add the verifiers `made` to the user `name`, whose password is still that of `seen`.

        UsersError if it is not, or if neither the file nor the table can take them.
        """

        def change(before: UserAccount | None) -> UserAccount:
            if before is None or before.verifiers.password != seen.verifiers.password:
                raise UsersError(f"user {name!r} was changed at the same time: try again")
            scram = {**made, **before.verifiers.scram}
            return replace(before, verifiers=replace(before.verifiers, scram=scram))

        if self.source_of(name) == IN_STORE:
            self._change_row(name, change, patience_s=PATIENCE_S)
            return
        try:
            self._file.change(name, change, now=now)
        except UnwritableError as error:
            self._check_table(error)
            self._add_verifiers(name, seen, made)

    def _add_verifiers(
        self, name: str, seen: UserAccount, made: Mapping[ScramHash, ScramVerifier]
    ) -> None:
        """Add verifiers to a user of the file. A row that the file's user hides is replaced."""
        credential = credential_of(seen)
        if self._table is None or credential is None:
            return
        added = AddedVerifiers(credential, made)
        self._table.change(name, lambda _: added, patience_s=PATIENCE_S)

    def _check_table(self, error: UnwritableError) -> None:
        """Raise UsersError if nothing can be kept in the table; `error` is that of the file."""
        if self._table is None:
            raise error
        if self._table.refusal is not None:
            raise UsersError(f"{error}; {self._table.refusal}") from None

    def _change_row(
        self, name: str, change: Change, *, patience_s: float | None = None
    ) -> UserAccount | None:
        assert self._table is not None

        def changed(row: AccountRow | None) -> AccountRow | None:
            return change(row if isinstance(row, UserAccount) else None)

        before = self._table.change(name, changed, patience_s=patience_s)
        return before if isinstance(before, UserAccount) else None
