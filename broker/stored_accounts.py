"""The users in the store: loaded at the start, changed through the journal.

Changes come from threads in which passwords are hashed. Each is noted in the journal's batch by the
event loop, and counts once it is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from secrets import token_bytes
from threading import Lock
from typing import Final

from broker.journal import Journal, Waiter
from broker.security.account import (
    FormerVerifiers,
    UserAccount,
    UsersError,
    Verifiers,
    as_datetime,
)
from broker.security.account_table import (
    AccountRow,
    AccountTable,
    AddedVerifiers,
    RowChange,
    TableContent,
)
from broker.security.scram_verifier import ScramHash
from broker.security.users_toml import SALT_SECRET_BYTES, SCRAM_KEYS, account_of
from storage.api import Store
from storage.users import StoredUser, StoredVerifiers


class StoredAccounts(AccountTable):
    """The table of users in a store. A store in memory would lose them, so it keeps none."""

    def __init__(self, store: Store, journal: Journal) -> None:
        self._store: Final = store
        self._journal: Final = journal
        self._content = TableContent()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn: Final = Lock()
        self._writes: Final[set[RowWrite]] = set()
        self._ended = ""
        self.is_loaded = not store.keeps_users
        if not store.keeps_users:
            self.refusal = f"the store ({store.name}) keeps no users: use SQLite or PostgreSQL"

    async def load(self) -> list[str]:
        """Load the users from the open store; return a line for the log about each damaged one."""
        self._loop = asyncio.get_running_loop()
        stored = await self._store.users()
        rows: dict[str, AccountRow] = {}
        notices: list[str] = []
        for user in stored.users:
            try:
                rows[user.name] = row_of(user)
            except UsersError as error:
                # it still counts as a user: without any, all clients might enter
                rows[user.name] = UserAccount(name=user.name, enabled=False)
                notices.append(
                    f"a user in the store is damaged, and cannot log in: {error}; give it a new"
                    " password, or remove it"
                )
        self._content = TableContent(rows, stored.salt_secret or None)
        self.is_loaded = True
        return notices

    def close(self, reason: str) -> None:
        """Refuse all changes from now on, and those that are not committed, for `reason`."""
        self._ended = reason
        for write in list(self._writes):
            self._end(write, UsersError(f"the users in the store cannot be changed: {reason}"))

    def content(self) -> TableContent:
        return self._content

    def change(
        self, name: str, change: RowChange, *, patience_s: float | None = None
    ) -> AccountRow | None:
        if self.refusal is not None or self._loop is None:
            raise UsersError(self.refusal or "the store is not open")
        # held until the row is committed, so that no change is made to a row of the past
        if not self._turn.acquire(timeout=-1 if patience_s is None else patience_s):
            raise UsersError("another change of users waits for the store")
        try:
            before = self._content.rows.get(name)
            write = RowWrite(self, name, change(before))
            self._loop.call_soon_threadsafe(self._note, write)
        except BaseException:
            self._turn.release()
            raise
        with suppress(TimeoutError):  # the write goes on
            write.done.result(patience_s)
        return before

    def _note(self, write: RowWrite) -> None:
        """Note a change in the journal's batch; to be called by the event loop."""
        self._writes.add(write)
        if self._ended:
            self.close(self._ended)
            return
        changes = self._journal.batch.user_changes()
        if write.stored is None:
            changes.remove(write.name)
        else:
            changes.put(write.stored)
        if self._content.salt_secret is None:
            changes.salt_secret = write.salt_secret = token_bytes(SALT_SECRET_BYTES)
        self._journal.submit(write)
        self._journal.flush()

    def committed(self, write: RowWrite) -> None:
        """Let the row of `write` count from now on."""
        if write not in self._writes:
            return
        rows = dict(self._content.rows)
        if write.row is None:
            rows.pop(write.name, None)
        else:
            rows[write.name] = write.row
        self._content = TableContent(rows, self._content.salt_secret or write.salt_secret)
        self._end(write, None)

    def _end(self, write: RowWrite, error: UsersError | None) -> None:
        self._writes.remove(write)
        self._turn.release()
        if error is None:
            write.done.set_result(None)
        else:
            write.done.set_exception(error)


class RowWrite(Waiter):
    """A change of a row that waits for its commit. `row` is None if it is removed."""

    def __init__(self, accounts: StoredAccounts, name: str, row: AccountRow | None) -> None:
        self.name: Final = name
        self.row: Final = row
        self.stored: Final = None if row is None else stored_user(name, row)
        self.salt_secret: bytes | None = None
        self.done: Final[Future[None]] = Future()
        self._accounts: Final = accounts

    def committed(self) -> None:
        self._accounts.committed(self)


# -- records


def row_of(stored: StoredUser) -> AccountRow:
    """Return the row of a record. UsersError if it is damaged."""
    values = _values_of(stored.verifiers)
    if stored.completes:
        scram = account_of({"name": stored.name, **values}).verifiers.scram
        return AddedVerifiers(stored.completes, scram)
    values |= {
        "name": stored.name,
        "roles": stored.roles,
        "enabled": stored.enabled,
        "credential_version": int(stored.credential_version),
        "certificates": stored.certificates,
    }
    if stored.changed_at_ms > 0:
        values["changed_at"] = as_datetime(int(stored.changed_at_ms))
    if stored.mechanisms is not None:
        values["mechanisms"] = stored.mechanisms
    if stored.previous is not None:
        until = as_datetime(int(stored.previous_until_ms))
        values["previous"] = {"until": until, **_values_of(stored.previous)}
    return account_of(values)


def _values_of(stored: StoredVerifiers) -> dict[str, object]:
    texts = {
        "password": stored.password,
        SCRAM_KEYS[ScramHash.SHA_256]: stored.scram_sha_256,
        SCRAM_KEYS[ScramHash.SHA_512]: stored.scram_sha_512,
    }
    return {key: text for key, text in texts.items() if text}


def stored_user(name: str, row: AccountRow) -> StoredUser:
    """Return the record of a row."""
    if isinstance(row, AddedVerifiers):
        verifiers = _stored_verifiers(Verifiers(scram=row.scram))
        return StoredUser(name=name, completes=row.credential, verifiers=verifiers)
    previous = row.previous
    return StoredUser(
        name=name,
        verifiers=_stored_verifiers(row.verifiers),
        roles=list(row.roles),
        enabled=row.enabled,
        mechanisms=None if row.mechanisms is None else list(row.mechanisms),
        certificates=list(row.certificates),
        credential_version=row.credential_version,
        changed_at_ms=0 if row.changed_at is None else int(row.changed_at.timestamp() * 1000),
        previous=None if previous is None else _stored_verifiers(previous.verifiers),
        previous_until_ms=_until_ms(previous),
    )


def _until_ms(previous: FormerVerifiers | None) -> int:
    return 0 if previous is None else int(previous.until.timestamp() * 1000)


def _stored_verifiers(verifiers: Verifiers) -> StoredVerifiers:
    texts: Mapping[ScramHash, str] = {hash_: found.text for hash_, found in verifiers.scram.items()}
    return StoredVerifiers(
        password=verifiers.password or "",
        scram_sha_256=texts.get(ScramHash.SHA_256, ""),
        scram_sha_512=texts.get(ScramHash.SHA_512, ""),
    )
