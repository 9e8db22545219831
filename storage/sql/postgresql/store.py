"""A store in PostgreSQL: one session, and its replacement when it is lost.

A batch is converted to rows once; they are written under the batch's number, which the same
transaction stores in the mark `commits`. If no answer arrives, a new session reads that mark:
either the batch is there, or it is written again. The lock of the store is lost with the session,
and the mark `owner` shows whether another broker had the lock meanwhile: each begins an epoch.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar, final

from sqlalchemy import Connection

from storage.api import LeadershipError, StoreError
from storage.batch import Batch
from storage.events import EventColumns, EventPage, EventQuery
from storage.members import StoredMember
from storage.records import StoredPlaces
from storage.sql import contents, events
from storage.sql.contents import IN_USE
from storage.sql.index import Changes
from storage.sql.postgresql import postgres
from storage.sql.postgresql.commit_watch import CommitWatch
from storage.sql.postgresql.epoch import CHECK_EPOCH, COMMITS, OWNER
from storage.sql.postgresql.heir import appoint
from storage.sql.postgresql.leadership import DEAD_S, PING_S, Candidate, Group, Witness
from storage.sql.postgresql.lock import JOIN
from storage.sql.postgresql.members import Wish, announce, forget, members
from storage.sql.postgresql.namesakes import Namesakes
from storage.sql.postgresql.postgres import AwayError
from storage.sql.postgresql.proof import Proof
from storage.sql.postgresql.session import Session, application_name
from storage.sql.postgresql.warm import WarmSegments
from storage.sql.reading import learn
from storage.sql.schema import bring_up_to_date
from storage.sql.segments.segment import Segment
from storage.sql.sql_store import SqlStore
from storage.sql.statements import Texts
from storage.sql.transaction import transaction
from storage.steady_clock import steady_us

T = TypeVar("T")

GRACE_MS: Final = 30_000
"""Milliseconds that a lost database has to come back, by default."""

RETRY_PAUSE_S: Final = 0.2

SLOW_S: Final = 1.0
"""Seconds after which an unfinished commit means that the database is away."""

CLOSE_S: Final = 1.0
"""Maximum seconds for which a close waits for the work under way."""

LEAVE_S: Final = 2.0
"""Maximum seconds for which a close then waits for its own commit."""

PLENTY: Final = 2**62
"""Free bytes that are assumed on the disk of the database, which this machine cannot ask for."""

ASK_EVERY_S: Final = 5.0
"""Seconds between two checks of whether an idle session is alive."""


@final
class PostgresStore(SqlStore):
    """A store in one schema of a database. After a permanent error nothing more is committed."""

    def __init__(self, url: str, *, grace_ms: int = GRACE_MS, group: Group | None = None) -> None:
        """Prepare a store, without connecting. A lost database has `grace_ms` to come back."""
        super().__init__()
        self._url: Final = url
        self._name: Final = postgres.name_of(url)
        self._grace_s: Final = grace_ms / 1000
        self._limit_s: Final = max(self._grace_s, DEAD_S)
        self._group: Final = group
        self._application: Final = (
            application_name(os.getpid()) if group is None else group.application
        )
        settings = postgres.NO_SETTINGS if group is None else group.session_settings
        self._session_settings: Final = settings
        self._witness: Final = Witness(url)
        self._commits: Final = CommitWatch(self._witness, self._notice)
        self._tell: Callable[[str], None] = lambda _: None
        self._warm = None if group is None else WarmSegments(group.warm_bytes, self._notice)
        self._is_announced = False
        self._proof: Final = Proof()
        self._turn: Final = asyncio.Lock()
        self._session: Session | None = None
        self._when_failed: Callable[[StoreError], None] | None = None
        self._returning: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._epoch = 0
        self._number = 0
        self._closing = False
        self._heir = ""
        self._wish: Wish | None = None
        self._namesakes = None if group is None else Namesakes(group, self._name)

    @property
    def name(self) -> str:
        return self._name

    def is_away(self) -> bool:
        return self._commits.lasts_s() > SLOW_S

    def waits_for_standby(self) -> bool:
        return self._commits.waits

    def free_bytes(self) -> int:
        return PLENTY

    def when_noticed(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def _notice(self, text: str) -> None:
        self._tell(text)

    # -- open and close

    async def lead(self, told: Callable[[str, str], None]) -> None:
        """Wait for the lock, connecting again where the connection is lost, and begin an epoch."""
        assert self._group is not None
        self._watch_commits()
        candidate = Candidate(self._group, self._turn, told, meanwhile=self._stand_by)
        while self._epoch == 0:
            try:
                session = await self._standby_session(self._group)
                await candidate.wait(session)
                async with self._turn:
                    await self._begin(session)
                    self._is_announced = await session.run(partial(announce, group=self._group))
            except StoreError as refused:  # another member has its name
                raise self._fail(refused) from None
            except postgres.FAILURES as error:
                if not postgres.is_passing(error):
                    raise self._fail(error) from None
                self._commits.done()
                candidate.lost(str(postgres.explained(error, self._name)))
                await asyncio.sleep(RETRY_PAUSE_S)

    async def _standby_session(self, group: Group) -> Session:
        """Return a session, over which the member has announced itself."""
        session = self._session
        if session is None or not session.is_open:
            session = await self._connected()
            self._is_announced = await session.run(partial(announce, group=group))
            self._session = session
            self._wish = Wish(group)
        return session

    def _stand_by(self, connection: Connection) -> None:
        """Do a portion of a standby's work."""
        assert self._warm is not None
        assert self._wish is not None
        assert self._namesakes is not None
        self._namesakes.step(connection, steady_us())
        self._warm.step(connection)
        self._wish.step(connection, is_warm=self._warm.is_ready())

    async def _begin(self, session: Session) -> None:
        """Begin an epoch in `session`, which has the lock."""
        self._commits.begin()
        await session.run(bring_up_to_date)
        # committed before anything is read: a broker that led before writes no more
        self._number = await session.begin_epoch()
        self._epoch = session.epoch
        self._commits.done()

    async def members(self) -> list[StoredMember]:
        if self._group is None:
            return []
        if not self._is_announced:  # the leader has made the table since, perhaps
            self._is_announced = await self._run(partial(announce, group=self._group))
        return await self._run(members)

    async def forget_member(self, name: str) -> None:
        await self._run(partial(self._at_once, work=partial(forget, name=name)))

    def _watch_commits(self) -> None:
        """Tell from now on when a commit waits for a standby server of the database."""
        if self._watching is None:
            work = self._commits.run(lambda: self._session)
            self._watching = asyncio.get_running_loop().create_task(work)

    async def open(self) -> None:
        self._watch_commits()
        try:
            if self._epoch == 0:
                session = self._session = await self._connected()
                await self._lock(session)
                await self._begin(session)
            session = self._ready()
            sent_us = steady_us()
            self._commits.begin()
            await session.in_transaction(self._take_up)
            self._commits.done()
            self._proof.add(session, sent_us)
        except postgres.FAILURES as error:
            if self._session is not None:
                self._session.drop()
            raise self._fail(error) from None
        self._watch(session)
        self._asking = asyncio.get_running_loop().create_task(self._ask())
        if self._warm is not None:
            await self._catch_up(self._warm)

    async def _catch_up(self, warm: WarmSegments) -> None:
        """Read the difference to what is kept: nothing is written until the broker is restored."""
        if warm.is_empty():
            self._warm = None
            return
        await self._run(warm.look)
        while await self._run(warm.complete):
            pass

    async def _connected(self) -> Session:
        """Return a new session."""
        session = Session(self._url, self._application, self._session_settings, tell=self._notice)
        try:
            await self._connect(session)
        except BaseException:
            session.drop()
            raise
        return session

    async def _connect(self, session: Session) -> None:
        """Open `session`; of a member of a group, so that the others see that it is up."""
        await session.connect()
        if self._group is not None:
            await session.raw.execute(JOIN)

    async def _lock(self, session: Session) -> None:
        """Take the lock. Raise StoreError if another broker has it."""
        if not await session.lock():
            raise StoreError(
                f"the store {self._name} is in use by {await session.holder()}; stop that one first"
            )

    def _watch(self, session: Session) -> None:
        """Have `session` replaced if it ends while no work uses it."""
        session.raw.add_termination_listener(lambda _: self._lost(session))

    async def close(self) -> None:
        self._closing = True
        if self._watching is not None:
            self._watching.cancel()
        session = self._session
        if session is None:
            return
        # not cancelled: a question that is cancelled would end the session
        has_turn = self._failure is None and await self._has_turn()
        if not has_turn:
            session.drop()  # work may wait for a database that is away
        is_loaded = self._asking is not None
        tasks = [task for task in (self._returning, self._asking) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._witness.drop()
        try:
            if is_loaded and self._failure is None and session.is_open:
                # it may wait for a standby server of the database that is gone
                with session.dropped_after(LEAVE_S):
                    await session.in_transaction(self._leave)
            await session.close()
        except postgres.FAILURES as error:
            raise self._fail(error) from None
        finally:
            session.drop()
            if has_turn:
                self._turn.release()

    async def _has_turn(self) -> bool:
        """Return whether the work under way has ended, soon enough for a stop."""
        with suppress(TimeoutError):
            return await asyncio.wait_for(self._turn.acquire(), CLOSE_S)
        return False

    def _leave(self, connection: Connection) -> None:
        contents.leave(connection, self._index)
        if self._heir:
            appoint(connection, self._heir)

    def hand_over_to(self, member: str) -> None:
        self._heir = member

    def _fail(self, error: BaseException) -> StoreError:
        if self._failure is None:
            self._failure = postgres.explained(error, self._name)
            if self._group is not None and postgres.is_passing(error):
                self._failure = LeadershipError(str(self._failure))
        return self._failure

    def _ready(self) -> Session:
        if self._failure is not None:
            raise self._failure
        if self._session is None:
            raise StoreError(f"the store {self._name} is not open")
        return self._session

    # -- commits

    async def commit(self, batch: Batch) -> None:
        async with self._turn:
            session = self._ready()
            segments = self._index.segments
            wanted = segments.wanted(batch)
            if wanted.any():
                await self._asked(
                    partial(learn, texts=self._texts(), segments=segments, wanted=wanted)
                )
                session = self._ready()
            changes = self._index.apply(batch)
            self._number += 1
            self._commits.begin()
            try:
                await self._write(session, changes)
            except postgres.FAILURES as error:
                await self._return(error, changes)
            self._commits.done()
            self._committed(batch)

    async def _write(self, session: Session, changes: Changes) -> None:
        """Write a batch. Drop the session if it does not answer in time; cancel no write."""
        sent_us = steady_us()
        with session.dropped_after(self._limit_s):
            await session.write(changes, self._number)
        self._proof.add(session, sent_us)

    # -- a session that is lost

    def _lost(self, session: Session) -> None:
        """Have a session that has ended replaced, unless the work that uses it does so first."""
        if session is not self._session:
            return
        self._proof.void()
        if not self._closing and self._failure is None:
            self._returning = asyncio.get_running_loop().create_task(self._replace(session))

    async def _ask(self) -> None:
        """Check the idle session regularly, to find a dead one before a commit needs it.

        A session that no longer holds the lock counts as dead.
        """
        while self._failure is None:
            await asyncio.sleep(ASK_EVERY_S if self._group is None else PING_S)
            session = self._session
            if session is None or not session.is_open:
                continue
            if self._group is not None and self._turn.locked():
                sent_us = steady_us()
                if await self._witness.sees(session):
                    self._proof.add(session, sent_us)
                continue
            async with self._turn:
                await self._ping(session)

    async def _ping(self, session: Session) -> None:
        sent_us = steady_us()
        # if it has ended, its termination listener replaces it
        with session.dropped_after(DEAD_S), suppress(*postgres.FAILURES):
            self._commits.begin()
            if await session.leads():
                self._proof.add(session, sent_us)
            else:
                session.drop()  # the next one gets the lock, or finds who has it
        self._commits.done()

    def proof_us(self) -> int:
        return self._proof.us

    def when_unproved(self, tell: Callable[[], None]) -> None:
        self._proof.when_void = tell

    async def _replace(self, lost: Session) -> None:
        async with self._turn:
            if lost is not self._session or self._failure is not None:
                return  # the session has been replaced meanwhile
            try:
                await self._return(AwayError("the connection was closed"), None)
            except StoreError as failure:
                if self._when_failed is not None and not self._closing:
                    self._when_failed(failure)

    def when_failed(self, tell: Callable[[StoreError], None]) -> None:
        self._when_failed = tell

    async def _return(self, error: BaseException, changes: Changes | None) -> None:
        """Reconnect after `error`, and make sure of `changes`. Raise StoreError if that fails."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._grace_s
        while postgres.is_passing(error) and not self._closing:
            try:
                await self._take_over(changes)
            except StoreError as refused:
                raise self._fail(refused) from None
            except postgres.FAILURES as again:
                error = again
            else:
                return
            if loop.time() >= deadline:
                break
            await asyncio.sleep(RETRY_PAUSE_S)
        raise self._fail(error) from None

    async def _take_over(self, changes: Changes | None) -> None:
        """Replace the session by a new one, and write `changes` unless they are there already."""
        if self._session is not None:
            self._session.drop()
        self._proof.void()
        session = Session(self._url, self._application, self._session_settings, tell=self._notice)
        session.epoch = self._epoch
        try:
            with session.dropped_after(self._limit_s):
                await self._connect(session)
                # the last session's transaction is over once this one has the lock
                if not await session.lock():
                    await self._check_epoch(session)
                    raise AwayError(f"it is in use by {await session.holder()}")
                await self._check_epoch(session)
                number = await session.run(partial(contents.mark, name=COMMITS))
                if changes is not None and number == self._number - 1:
                    await self._write(session, changes)
                elif number != self._number:
                    raise StoreError(
                        f"the store {self._name} has gone back to batch {number}, {self._number}"
                        " was there: commits are missing, has a copy taken its place?"
                    )
                # visible rows are committed; once this commit is on the standby, so are they
                sent_us = steady_us()
                await session.in_transaction(partial(contents.set_mark, name=IN_USE, value=1))
        except BaseException:
            session.drop()
            self._proof.void()
            raise
        self._session = session
        self._proof.add(session, sent_us)
        self._watch(session)

    async def _check_epoch(self, session: Session) -> None:
        """Raise StoreError if another broker has begun an epoch since this one did."""
        if await session.run(partial(contents.mark, name=OWNER)) != self._epoch:
            raise postgres.taken_over(self._name)

    # -- reading

    def _texts(self) -> Texts:
        return self._ready().texts

    async def _run(self, work: Callable[[Connection], T]) -> T:
        async with self._turn:
            return await self._asked(work)

    async def _asked(self, work: Callable[[Connection], T]) -> T:
        try:
            with self._ready().dropped_after(self._limit_s):
                return await self._ready().run(work)
        except postgres.FAILURES as error:
            if self._epoch == 0:  # it stands by, and connects again by itself
                raise postgres.explained(error, self._name) from None
            await self._return(error, None)
        try:
            return await self._ready().run(work)
        except postgres.FAILURES as again:
            raise self._fail(again) from None

    def _at_once(self, connection: Connection, work: Callable[[Connection], T]) -> T:
        """Do `work` in one transaction, which fails in an epoch that is over."""
        with transaction(connection):
            connection.exec_driver_sql(CHECK_EPOCH.format(epoch=self._epoch))
            return work(connection)

    async def places(self, behind: int) -> StoredPlaces:
        found = await super().places(behind)
        if not found.numbers:
            self._warm = None  # the start has them all
        return found

    def _following(self, connection: Connection, behind: int) -> list[Segment]:
        kept = None if self._warm is None else self._warm.following(behind)
        return super()._following(connection, behind) if kept is None else kept

    async def events(self, query: EventQuery) -> EventPage:
        return await self._run(partial(events.load, query=query))

    async def event_columns(self, query: EventQuery) -> EventColumns:
        return await self._run(partial(events.load_columns, query=query))

    async def event_bounds(self) -> tuple[int, int]:
        return await self._run(events.bounds)
