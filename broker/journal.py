"""Group commit: gathers many changes, commits them together, then calls the waiters back.

Routing notes changes in `batch`. Links `submit` waiters for what must not happen before those
changes are durable, and `submit_receipt` for what may also happen once all consumers of a message
have settled it: then it is not needed on a disk. `flush` ends a round of work. A store without
I/O commits at once; any other is awaited by `run`, and changes that arrive meanwhile gather on
the next page.

A page with an urgent change is committed as soon as the store is free: the disk sets the pace, no
timer. A page that has only messages that are about to be consumed stays open, up to
`CommitDelay.patience_us` for each: most are consumed by then.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from time import sleep
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from broker.clock import Clock
from broker.routing.credit.commit_delay import CommitDelay
from broker.stats import Stats
from storage.api import Store, StoreError
from storage.batch import Batch

PAGE_BYTES_MAX: Final[i64] = 4 * 1024 * 1024
"""Bytes of messages at which a page is full: no waiter waits for more than that to be written."""

CROWDED_FROM: Final[i64] = PAGE_BYTES_MAX // 2
"""Bytes on a page above which producers get a smaller window: consumers empty it in time then."""

YIELD_EVERY: Final[i64] = 64
"""Messages in or out between two calls of `yield_to_writer`: some 0.2 ms.

`docs/design/data-path.md` 3.6 says why there are such calls.
"""

HOLDS_MAX: Final = 16
"""Maximum long changes that begin on one page: else they could delay its commit for ever."""

TOLD_AT_ONCE: Final[i64] = 65_536
"""Messages of a written batch whose waiters are called in one turn of the loop, if they have one.

Few of the messages of a batch as large as that have one."""

FREED_AT_ONCE: Final = 8192
"""Messages of a written batch that are freed in one turn of the loop: that takes about 1 ms."""

SWITCH_INTERVAL_S: Final = 0.0005
"""Seconds after which a thread that waits for the interpreter gets it, if a thread commits."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Waiter:
    """A callback for what may happen only once a batch is durable, such as sending an outcome.

    `left` belongs to the journal: the number of its messages that are neither durable nor consumed.
    """

    left: i64 = 0

    @abstractmethod
    def committed(self) -> None:
        """Do what waited: the batch now survives any crash, or is no longer needed."""


@final
class JournalPage:
    """Changes that are committed together, and the waiters for that commit.

    `_receipts` has the waiter of each message in the batch at that message's place, None if it no
    longer waits for that message; `_untold` counts the others.
    """

    def __init__(self, number: i64, *, is_urgent: bool) -> None:
        self.batch: Final = Batch(number)
        self.batch.is_urgent = is_urgent
        self.waiting: Final[list[Waiter]] = []
        self._receipts: Final[list[Waiter | None]] = []
        self._untold: i64 = 0
        # the counts at the last `look`, and its time
        self._seen: i64 = 0
        self._seen_others = False
        self._seen_at_us: i64 = -1
        self._done: i64 = 0
        # the place up to which the waiters have been called that waited for the commit
        self._told: i64 = 0

    def is_blank(self) -> bool:
        """Return whether there is nothing to write and no waiter to call."""
        return self._untold == 0 and not self.waiting and self.batch.is_empty()

    def await_messages(self, waiter: Waiter) -> bool:
        """Let `waiter` wait for the messages noted since the last call; False if there are none."""
        added = i64(len(self.batch.appended)) - i64(len(self._receipts))
        if added == 0:
            return False
        waiter.left = added
        self._untold += added
        while added > 0:
            self._receipts.append(waiter)
            added -= 1
        return True

    def expect_no_receipt(self) -> None:
        """Let no waiter of messages wait for those noted since the last call of `await_messages`.

        Else the next one would wait for them, too.
        """
        added = len(self.batch.appended) - len(self._receipts)
        self._receipts.extend([None] * added)

    def tell_consumed(self) -> None:
        """Call waiters whose messages are all consumed; do so before `look` shifts the places."""
        consumed = self.batch.consumed
        known = len(self._receipts)
        for index in consumed:
            if index >= known:
                continue
            waiter = self._receipts[index]
            if waiter is not None:
                self._receipts[index] = None
                self._untold -= 1
                waiter.left -= 1
                if waiter.left == 0:
                    waiter.committed()
        consumed.clear()

    def tell(self) -> None:
        """Call all waiters that have not been called: the page is durable."""
        while self.tell_some(i64(len(self._receipts))):
            pass

    def tell_some(self, at_most: i64) -> bool:
        """Call waiters, those of up to `at_most` more messages; return whether there are others."""
        if self._told == 0:
            for waiter in self.waiting:
                waiter.committed()
        end = min(self._told + at_most, i64(len(self._receipts)))
        while self._told < end:
            receipt = self._receipts[self._told]
            if receipt is not None and receipt.left > 0:
                receipt.left = 0
                receipt.committed()
            self._told += 1
        return self._told < i64(len(self._receipts))

    def wipe(self, *, is_urgent: bool) -> None:
        """Make the page blank: everything that was noted on it has been cancelled."""
        self.batch.forget_first(len(self.batch.appended))
        self.batch.consumed.clear()
        self.batch.is_urgent = is_urgent
        self._receipts.clear()
        self._seen = 0
        self._done = 0

    # -- age

    def is_overdue(self, now_us: i64, patience_us: i64) -> bool:
        """Return whether a change seen by `look` has been here for `patience_us` or longer."""
        if self._seen_at_us < 0 or now_us - self._seen_at_us < patience_us:
            return False
        if self._seen_others:
            return True
        appended, receipts = self.batch.appended, self._receipts
        known = i64(len(receipts))
        while self._done < self._seen and appended[self._done] is None:
            if self._done < known and receipts[self._done] is not None:
                break
            self._done += 1
        return self._done < self._seen

    def look(self, now_us: i64, patience_us: i64) -> None:
        """Watch the changes that are here now, since none of those watched before is overdue.

        Do nothing if those have been watched for less than `patience_us`.
        """
        if self._seen_at_us >= 0 and now_us - self._seen_at_us < patience_us:
            return
        if self._done > 0:
            self.batch.forget_first(self._done)
            del self._receipts[: int(self._done)]
            self._done = 0
        self._seen = len(self.batch.appended)
        self._seen_others = self.batch.changes_others()
        self._seen_at_us = now_us


@final
class Journal:
    """Groups changes into batches and commits them one after the other, in order.

    Messages up to the number `durable_up_to` are on the disk, or consumed; so are pages up to
    `durable_page`, the number of a batch. `is_committing` while a commit is under way, perhaps in
    a thread.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock | None = None,
        *,
        hold_us: i64 = 0,
        stats: Stats | None = None,
    ) -> None:
        self._store: Final = store
        self._stats: Final = Stats() if stats is None else stats
        self._at_once: Final = store.commits_at_once
        self._clock: Final = clock
        can_wait = clock is not None and not self._at_once
        self.commit_delay: Final = CommitDelay(hold_us if can_wait else i64(0))
        self._pages: i64 = 0
        self._page = JournalPage(0, is_urgent=self.commit_delay.us == 0)
        self.batch = self._page.batch
        self.durable_up_to: i64 = -1
        self.durable_page: i64 = -1
        self.is_committing = False
        self._full: Final[list[JournalPage]] = []
        self._under_way: Batch | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_timed = False
        self._work: Final = asyncio.Event()
        self._closing = False
        # long changes that are noted on the page, and those that have begun on it
        self._holders: i64 = 0
        self._held: i64 = 0
        self._free_to_hold: Final = asyncio.Event()
        self._failure: StoreError | None = None
        # the memory of a large batch, which is being freed
        self._freeing: asyncio.Task[None] | None = None

    def submit(self, waiter: Waiter) -> None:
        """Call `waiter` back once all changes that are in `batch` now are durable."""
        self.batch.is_urgent = True
        self._page.waiting.append(waiter)

    def submit_receipt(self, receipt: Waiter) -> None:
        """Call `receipt` back once the messages noted since the last one are durable or consumed.

        If there are none, since no queue took the message, call it at once; but if the page has
        an urgent change, call it after the commit.
        """
        if self._at_once:
            self._page.waiting.append(receipt)
        elif not self._page.await_messages(receipt):
            if self.batch.is_urgent:
                self._page.waiting.append(receipt)
            else:
                receipt.committed()

    def flush(self) -> None:
        """End a round of routing: commit now, or let `run` do it."""
        page = self._page
        batch = page.batch
        if batch.consumed and not self._at_once:
            page.tell_consumed()
        self.commit_delay.is_crowded = not batch.is_urgent and batch.bytes > CROWDED_FROM
        if self._holders > 0:
            return
        if page.is_blank():
            if batch.appended:
                page.wipe(is_urgent=self.commit_delay.us == 0)
            return
        if self._at_once:
            self._commit_now(page)
        elif batch.bytes > PAGE_BYTES_MAX:
            self._full.append(self._turn())
            self._work.set()
        elif batch.is_urgent or self._loop is None:
            self._work.set()
        elif not self._is_timed:
            self._time()

    def _commit_now(self, page: JournalPage) -> None:
        self._turn()
        if not page.batch.is_empty():
            self._stats.measured.commit_messages.observe(len(page.batch.appended))
            self._store.commit_now(page.batch)
            self.durable_up_to = max(self.durable_up_to, page.batch.last_number())
        page.tell()

    def _turn(self) -> JournalPage:
        """Begin a new page, and return the one before it."""
        page = self._page
        if not self._at_once:
            self._pages += 1
        self._page = JournalPage(self._pages, is_urgent=self.commit_delay.us == 0)
        self.batch = self._page.batch
        return page

    def is_durable(self, page: i64) -> bool:
        """Return whether changes of that page survive any crash; page -1 is before the first."""
        return self._at_once or page <= self.durable_page

    def is_idle(self) -> bool:
        """Return whether nothing is being written or to be written, and no waiter waits."""
        is_writing = self.is_committing or bool(self._full) or self._holders > 0
        return not is_writing and self._page.is_blank()

    # -- changes that take several turns of the loop

    def hold_now(self) -> bool:
        """Begin a long change: commit the page only after `release`, with all that is noted on it.

        Between the two, other work of the loop may be done, and notes its changes on the same page.
        Return False, without effect, if HOLDS_MAX long changes have begun on the page: else it
        might never be written. A store that commits at once still does so.
        """
        if self._held == HOLDS_MAX:
            return False
        if not self._at_once:
            self._held += 1
            self._holders += 1
        return True

    async def hold(self) -> None:
        """Begin a long change, as `hold_now` does, on a later page if it has to be."""
        while not self.hold_now():
            self._free_to_hold.clear()
            await self._free_to_hold.wait()

    def release(self) -> None:
        """End a long change. The page is written once there is no other."""
        if self._at_once:
            return
        self._holders -= 1
        if self._holders == 0:
            self._held = 0
            self._full.append(self._turn())
            self._work.set()
            self._free_to_hold.set()

    def fail(self, error: BaseException) -> None:
        """Give up a long change that `error` has ended half-way: nothing of its page is written.

        `run` raises StoreError: what is noted and not written is in doubt, as after any other.
        """
        self._failure = StoreError(f"a long change has failed half-way: {error!r}")
        self._work.set()

    def expect_no_receipt(self) -> None:
        """Let no receipt wait for the messages noted since the last one."""
        self._page.expect_no_receipt()

    # -- holding a page open

    def _time(self) -> None:
        """Look at the page again within half the time for which a message may be held."""
        loop = self._loop
        if loop is not None:
            self._is_timed = True
            loop.call_later(self.commit_delay.patience_us / 2_000_000, self.tick)

    def tick(self) -> None:
        """Make sure that no change on the page is held for too long."""
        self._is_timed = False
        page, clock = self._page, self._clock
        page.tell_consumed()
        if clock is None or page.is_blank() or self._loop is None:
            return
        now_us = clock.now_us()
        if page.is_overdue(now_us, self.commit_delay.patience_us // 2):
            # its settlement may be unread in a socket: let the loop read the sockets first
            self._is_timed = True
            self._loop.call_soon(self._look_again, 1)
        else:
            page.look(now_us, self.commit_delay.patience_us // 2)
            self._time()

    def _look_again(self, turns: int) -> None:
        clock, loop = self._clock, self._loop
        assert clock is not None
        assert loop is not None
        if turns > 0:
            loop.call_soon(self._look_again, turns - 1)
            return
        self._is_timed = False
        page = self._page
        if page.is_overdue(clock.now_us(), self.commit_delay.patience_us // 2):
            page.batch.is_urgent = True
            self._work.set()
        elif not page.is_blank():
            self._time()

    # -- committing

    def yield_to_writer(self) -> None:
        """Release the interpreter for a moment, so that the commit thread can run.

        Links call it every YIELD_EVERY messages: compiled code does not release the interpreter by
        itself, and a commit would wait for the end of a long round.
        """
        if self.is_committing:
            sleep(0)

    async def run(self, after_commit: Callable[[], None]) -> None:
        """Commit until `close`; call `after_commit` when the waiters of a commit have been called.

        What the waiters did about it must still be written. A StoreError ends this, without
        calling any waiter (PRD-03); so does `fail`.
        """
        self._loop = asyncio.get_running_loop()
        if self.durable_up_to < 0:
            self.durable_up_to = self._store.first_number - 1
        while True:
            await self._work.wait()
            self._work.clear()
            if self._failure is not None:
                raise self._failure
            if self._freeing is not None and self._freeing.done():
                await self._freeing
                self._freeing = None
            if self._holders > 0 and not self._full:
                continue
            page = self._full.pop(0) if self._full else self._turn()
            batch = page.batch
            if not batch.is_empty():
                self._under_way = batch
                self.is_committing = True
                await self._commit(batch)
                self.is_committing = False
                self._under_way = None
            self.durable_page = batch.page
            self.durable_up_to = max(self.durable_up_to, batch.last_number())
            has_more = page.tell_some(TOLD_AT_ONCE)
            while has_more:
                await asyncio.sleep(0)
                has_more = page.tell_some(TOLD_AT_ONCE)
            after_commit()
            if len(batch.appended) > FREED_AT_ONCE or len(batch.removed) > FREED_AT_ONCE:
                if self._freeing is not None:
                    await self._freeing
                # beside the next commit, which need not wait for it
                self._freeing = self._loop.create_task(self._free(batch, after_commit))
            if self._full or not self._page.is_blank():
                if self._full or self._closing or self._page.batch.is_urgent:
                    self._work.set()
            elif self._closing and self._holders == 0:
                if self._freeing is not None:
                    await self._freeing
                return

    async def _free(self, batch: Batch, after_commit: Callable[[], None]) -> None:
        """Free the memory of a large batch that is written, a part in each turn of the loop.

        A round follows each part, because it takes messages of long queues out of memory in parts.
        """
        appended, removed = batch.appended, batch.removed
        try:
            while appended or removed:
                del appended[-FREED_AT_ONCE:]
                del removed[-FREED_AT_ONCE:]
                await asyncio.sleep(0)
                after_commit()
        finally:
            self._work.set()  # `run` ends with the error of a round, as with that of its own

    async def _commit(self, batch: Batch) -> None:
        """Write `batch`, and remember how long that took."""
        began_us = self._now_us()
        await self._store.commit(batch)
        took_us = self._now_us() - began_us
        self.commit_delay.committed(took_us)
        self._stats.measured.commit_us.observe(took_us)
        self._stats.measured.commit_messages.observe(len(batch.appended))

    def _now_us(self) -> i64:
        """Return the steady clock's time in µs; always 0 if there is no clock."""
        return 0 if self._clock is None else self._clock.now_us()

    def unwritten_bytes(self) -> i64:
        """Return the bytes of messages that are noted, and not yet on the disk."""
        unwritten = self.batch.bytes
        if self._under_way is not None:
            unwritten += self._under_way.bytes
        for page in self._full:
            unwritten += page.batch.bytes
        return unwritten

    def unwritten_memory(self) -> i64:
        """Return approximately how many bytes of memory unwritten messages take."""
        unwritten = self.batch.memory()
        if self._under_way is not None:
            unwritten += self._under_way.memory()
        for page in self._full:
            unwritten += page.batch.memory()
        return unwritten

    def close(self) -> None:
        """Let `run` return after it has committed what is gathered now."""
        self._closing = True
        self._work.set()
