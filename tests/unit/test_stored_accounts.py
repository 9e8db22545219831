"""Users in the store: a change counts once it is committed, and never waits for a failed store."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from broker.journal import Journal
from broker.security.account import FormerVerifiers, UserAccount, UsersError, Verifiers
from broker.security.account_table import AccountRow, AddedVerifiers
from broker.security.scram_verifier import ScramHash, make_verifier
from broker.stored_accounts import StoredAccounts, row_of, stored_user
from storage.batch import Batch
from storage.memory import MemoryStore
from storage.users import StoredUser, StoredVerifiers
from tests.support.stores import GatedStore

pytestmark = pytest.mark.requirement("SEC-02")

HASH = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaA"
SCRAM = {each: make_verifier(each, "x", iterations=4096) for each in ScramHash}
ADA = UserAccount(
    name="ada",
    roles=("admin", "monitor"),
    enabled=False,
    mechanisms=("PLAIN",),
    certificates=("ada.example",),
    verifiers=Verifiers(password=HASH, scram=SCRAM),
    previous=FormerVerifiers(
        until=datetime(2026, 1, 1, tzinfo=UTC), verifiers=Verifiers(password=HASH)
    ),
    credential_version=1_750_000_000_000,
    changed_at=datetime(2025, 6, 15, 15, 6, 40, tzinfo=UTC),
)
BOB = UserAccount(name="bob", roles=("application",), credential_version=7)
ADDED = AddedVerifiers("digest", SCRAM)

ROWS = [
    pytest.param("ada", ADA, id="all there is"),
    pytest.param("bob", BOB, id="a user without password"),
    pytest.param("eve", ADDED, id="added verifiers"),
]


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_a_row_survives_the_store(name: str, row: AccountRow) -> None:
    assert row_of(stored_user(name, row)) == row


class TellingStore(GatedStore):
    """A store whose commits end when a test lets them; `began` is set by each commit."""

    def __init__(self) -> None:
        super().__init__()
        self.began = asyncio.Event()

    async def commit(self, batch: Batch) -> None:
        self.began.set()
        await super().commit(batch)


class Running:
    """The users in such a store, with their journal."""

    def __init__(self) -> None:
        self.store = TellingStore()
        self.journal = Journal(self.store)
        self.accounts = StoredAccounts(self.store, self.journal)
        self.committing = asyncio.get_running_loop().create_task(self.journal.run(lambda: None))

    def change(
        self, name: str, row: AccountRow | None, *, patience_s: float | None = None
    ) -> asyncio.Task[AccountRow | None]:
        """Begin a change in a thread."""

        def change() -> AccountRow | None:
            return self.accounts.change(name, lambda _: row, patience_s=patience_s)

        return asyncio.create_task(asyncio.to_thread(change))

    async def next_commit(self) -> None:
        """Wait until a further commit has begun."""
        await self.store.began.wait()
        self.store.began.clear()

    async def stop(self) -> None:
        self.journal.close()
        self.store.let_all_through()
        await self.committing


async def test_a_change_counts_once_it_is_committed() -> None:
    running = Running()
    loaded = [running.accounts.is_loaded]
    assert await running.accounts.load() == []
    assert [*loaded, running.accounts.is_loaded] == [False, True]
    change = running.change("ada", ADA)
    await running.next_commit()
    assert (change.done(), dict(running.accounts.content().rows)) == (False, {})
    running.store.let_all_through()
    assert await change is None
    assert dict(running.accounts.content().rows) == {"ada": ADA}
    again = StoredAccounts(running.store, running.journal)
    assert await again.load() == []
    assert again.content() == running.accounts.content()
    assert again.content().salt_secret is not None
    await running.stop()


async def test_a_row_is_removed_and_the_key_of_salts_stays() -> None:
    running = Running()
    await running.accounts.load()
    secrets = set()
    for row in (ADA, BOB, None):
        change = running.change("ada", row)
        await running.next_commit()
        running.store.let_all_through()
        await change
        secrets.add(running.accounts.content().salt_secret)
    assert dict(running.accounts.content().rows) == {}
    assert len(secrets) == 1
    await running.stop()


async def test_a_login_does_not_wait_for_a_slow_store() -> None:
    running = Running()
    await running.accounts.load()
    assert await running.change("ada", ADDED, patience_s=0) is None
    with pytest.raises(UsersError, match="another change of users waits for the store"):
        await running.change("bob", ADDED, patience_s=0)
    patient = running.change("bob", BOB)
    for _ in range(2):
        await running.next_commit()
        running.store.let_all_through()
    await patient
    assert dict(running.accounts.content().rows) == {"ada": ADDED, "bob": BOB}
    await running.stop()


async def test_a_change_ends_with_an_error_if_the_store_fails() -> None:
    running = Running()
    await running.accounts.load()
    change = running.change("ada", ADA)
    await running.next_commit()
    running.accounts.close("the store failed")
    with pytest.raises(UsersError, match="cannot be changed: the store failed"):
        await change
    with pytest.raises(UsersError, match="cannot be changed: the store failed"):
        await running.change("bob", BOB)
    running.store.let_all_through()
    await running.stop()
    assert dict(running.accounts.content().rows) == {}, "whether it was committed is in doubt"


async def test_a_refused_change_leaves_the_row() -> None:
    running = Running()
    await running.accounts.load()

    def refuse(_: AccountRow | None) -> AccountRow | None:
        raise UsersError("no")

    for _ in range(2):
        with pytest.raises(UsersError, match=r"^no$"):
            await asyncio.to_thread(running.accounts.change, "ada", refuse)
    await running.stop()
    assert running.store.commits == []


async def test_a_damaged_user_cannot_log_in_and_still_is_one() -> None:
    """A broker without any user might let all clients in."""
    store = GatedStore()
    batch = Batch()
    damaged = StoredUser(name="ada", verifiers=StoredVerifiers(password="x"), roles=["admin"])
    batch.user_changes().put(damaged)
    committing = asyncio.create_task(store.commit(batch))
    await asyncio.sleep(0)
    store.let_all_through()
    await committing
    accounts = StoredAccounts(store, Journal(store))
    (notice,) = await accounts.load()
    assert "user 'ada', password: not a hash of argon2" in notice
    assert dict(accounts.content().rows) == {"ada": UserAccount(name="ada", enabled=False)}


async def test_a_store_in_memory_keeps_no_users() -> None:
    store = MemoryStore()
    accounts = StoredAccounts(store, Journal(store))
    assert accounts.is_loaded
    refusal = r"the store \(memory\) keeps no users: use SQLite or PostgreSQL"
    with pytest.raises(UsersError, match=refusal):
        accounts.change("ada", lambda _: ADA)
