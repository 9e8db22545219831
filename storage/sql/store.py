"""A store in SQLite: everything in one file, written by one thread."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, final

from sqlalchemy import Connection, Row, delete, func, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from storage.api import Store, StoreError
from storage.batch import Batch
from storage.records import StoredId, StoredMessage, StoredNode, StoredPlaces, StoredSubscription
from storage.sql import ids, sqlite
from storage.sql.ids import IdStatements
from storage.sql.lock import StoreLock
from storage.sql.quarantine import Sifted, count, forget_gone, set_aside
from storage.sql.reading import read_places, read_window
from storage.sql.rows import BODY as SHARED
from storage.sql.rows import Rows, checksum, ranges
from storage.sql.schema import bring_up_to_date
from storage.sql.statements import Statements
from storage.sql.tables import BODY, MARK, MESSAGE, NODE, QUEUE, SUBSCRIPTION
from storage.sql.writer import Writer

T = TypeVar("T")

NUMBERS: Final = "numbers"
"""The mark up to which message numbers are spoken for."""

IN_USE: Final = "in use"
"""1 from the opening to the close: whoever finds it so knows that there was no close."""

NUMBERS_AT_ONCE: Final = 1_000_000

PART: Final = 1000
"""Messages loaded together at a start."""


@final
class SqliteStore(Store):
    """One file. After an error nothing more is committed: what the disk holds is in doubt (P8)."""

    def __init__(self, database: Path) -> None:
        self._database: Final = database
        self._writer: Final = Writer("store")
        self._lock: StoreLock | None = None
        self._connection: Connection | None = None
        self._statements: Statements | None = None
        self._id_statements: IdStatements | None = None
        self._failure: StoreError | None = None
        self._queue_ids: Final[dict[str, int]] = {}
        self._bodies: Final[dict[int, int]] = {}
        self._uses: Final[dict[int, int]] = {}
        self._numbers_up_to = 0
        self._first_number = 1
        self._was_cut_off = False
        self._quarantined = 0

    @property
    def name(self) -> str:
        return f"sqlite:{self._database}"

    @property
    def commits_at_once(self) -> bool:
        return False

    @property
    def first_number(self) -> int:
        return self._first_number

    @property
    def was_cut_off(self) -> bool:
        return self._was_cut_off

    @property
    def quarantined(self) -> int:
        return self._quarantined

    # -- open and close

    async def open(self) -> None:
        await self._do(self._open)

    def _open(self) -> None:
        sqlite.prepare_folder(self._database)
        self._lock = StoreLock(self._database)
        connection = sqlite.engine_of(self._database).connect()
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        self._connection = connection
        self._statements = Statements(connection.dialect)
        self._id_statements = IdStatements(connection.dialect)
        sqlite.prepare(connection)
        bring_up_to_date(connection)
        for row in connection.execute(select(QUEUE)):
            self._queue_ids[row.name] = row.id
        self._forget_orphans(connection)
        for row in connection.execute(
            select(MESSAGE.c.number, MESSAGE.c.body).where(MESSAGE.c.body.is_not(None))
        ):
            self._use(row.body, row.number)
        self._quarantined = count(connection)
        self._numbers_up_to = self._mark(connection, NUMBERS)
        self._first_number = self._numbers_up_to + 1
        self._was_cut_off = self._mark(connection, IN_USE) != 0
        self._set_mark(connection, IN_USE, 1)

    def _forget_orphans(self, connection: Connection) -> None:
        """Delete what is left of queues that have gone: their messages lie all over the table."""
        known = select(QUEUE.c.id)
        connection.execute(delete(MESSAGE).where(MESSAGE.c.queue.not_in(known)))
        used = select(MESSAGE.c.body).where(MESSAGE.c.body.is_not(None))
        connection.execute(delete(BODY).where(BODY.c.number.not_in(used)))
        forget_gone(connection)

    async def close(self) -> None:
        await self._writer.do(self._close)
        await self._writer.close()

    def _close(self) -> None:
        if self._connection is not None:
            if self._failure is None and self._statements is not None:
                self._set_mark(self._connection, IN_USE, 0)
            self._connection.engine.dispose()
            self._connection = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    async def _do(self, work: Callable[[], T]) -> T:
        """What `work` returns in the writer's thread; StoreError for whatever the driver raises."""
        if self._failure is not None:
            raise self._failure
        try:
            return await self._writer.do(work)
        except (SQLAlchemyError, OSError) as error:
            self._failure = sqlite.explained(error, self._database)
            raise self._failure from error

    def _verbs(self) -> Statements:
        if self._statements is None:
            raise StoreError(f"the store {self._database} is not open")
        return self._statements

    def _opened(self) -> Connection:
        if self._connection is None:
            raise StoreError(f"the store {self._database} is not open")
        return self._connection

    # -- commits

    def commit_now(self, batch: Batch) -> None:  # noqa: ARG002 - as the contract has it
        raise StoreError("SQLite has to be waited for")

    async def commit(self, batch: Batch) -> None:
        await self._do(lambda: self._commit(batch))

    def _commit(self, batch: Batch) -> None:
        self._in_transaction(partial(self._write, self._opened(), batch))

    def _in_transaction(self, work: Callable[[], None]) -> None:
        connection = self._opened()
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            work()
        except BaseException:
            connection.exec_driver_sql("ROLLBACK")
            raise
        connection.exec_driver_sql("COMMIT")

    def _write(self, connection: Connection, batch: Batch) -> None:
        if batch.nodes_removed or batch.subscriptions_removed:
            self._remove_queues(connection, batch)
        for node in batch.nodes_added:
            self._add_node(connection, node)
        for subscription in batch.subscriptions_added:
            self._add_subscription(connection, subscription)
        self._write_messages(connection, batch)
        if batch.ids is not None:
            assert self._id_statements is not None
            ids.write(connection, self._id_statements, batch.ids)

    def _write_messages(self, connection: Connection, batch: Batch) -> None:
        verbs = self._statements
        assert verbs is not None
        for message in batch.appended:
            if message is not None and message.queue not in self._queue_ids:
                self._add_queue(connection, message.queue)
        rows = Rows(batch.appended, self._queue_ids)
        if rows.messages:
            self._speak_for(connection, rows.messages[-1][0])
            connection.exec_driver_sql(verbs.insert_message, rows.messages)
        if rows.bodies:
            connection.exec_driver_sql(verbs.insert_body, rows.bodies)
            for row in rows.messages:
                if row[SHARED] is not None:
                    self._use(row[SHARED], row[0])
        if batch.fallen_due:
            due = [(place, 0, number) for number, place in batch.fallen_due]
            connection.exec_driver_sql(verbs.fall_due, due)
        if batch.counted:
            connection.exec_driver_sql(
                verbs.count, [(count, number) for number, count in batch.counted]
            )
        if batch.rewritten:
            anew = [(checksum(n, encoded), None, encoded, n) for n, encoded in batch.rewritten]
            connection.exec_driver_sql(verbs.rewrite, anew)
            self._leave_bodies(connection, [number for number, _ in batch.rewritten])
        if batch.removed:
            connection.exec_driver_sql(verbs.delete_messages, ranges(batch.removed))
            self._leave_bodies(connection, batch.removed)

    def _speak_for(self, connection: Connection, number: int) -> None:
        """See to it that no number up to this one is ever given again."""
        if number <= self._numbers_up_to:
            return
        self._numbers_up_to = number + NUMBERS_AT_ONCE
        self._set_mark(connection, NUMBERS, self._numbers_up_to)

    def _mark(self, connection: Connection, name: str) -> int:
        return connection.execute(select(MARK.c.value).where(MARK.c.name == name)).scalar() or 0

    def _set_mark(self, connection: Connection, name: str, value: int) -> None:
        changed = connection.execute(update(MARK).where(MARK.c.name == name).values(value=value))
        if changed.rowcount == 0:
            connection.execute(insert(MARK).values(name=name, value=value))

    # -- bodies that several messages share

    def _use(self, body: int, number: int) -> None:
        self._bodies[number] = body
        self._uses[body] = self._uses.get(body, 0) + 1

    def _leave_bodies(self, connection: Connection, numbers: list[int]) -> None:
        """These messages have no use for a shared body any more; the last one takes it along."""
        if not self._bodies:
            return
        verbs = self._statements
        assert verbs is not None
        free: list[tuple[int]] = []
        for number in numbers:
            body = self._bodies.pop(number, None)
            if body is None:
                continue
            self._uses[body] -= 1
            if self._uses[body] == 0:
                del self._uses[body]
                free.append((body,))
        if free:
            connection.exec_driver_sql(verbs.delete_body, free)

    # -- queues, nodes, subscriptions

    def _add_queue(self, connection: Connection, name: str) -> None:
        if name not in self._queue_ids:
            made = connection.execute(insert(QUEUE).values(name=name))
            assert made.inserted_primary_key is not None
            self._queue_ids[name] = made.inserted_primary_key[0]

    def _remove_queues(self, connection: Connection, batch: Batch) -> None:
        """Forget queues by name; their messages are orphans, which a start deletes."""
        names = [node.address for node in batch.nodes_removed if node.kind == "queue"]
        for name in names + batch.subscriptions_removed:
            if self._queue_ids.pop(name, None) is not None:
                connection.execute(delete(QUEUE).where(QUEUE.c.name == name))
        for node in batch.nodes_removed:
            same = (NODE.c.kind == node.kind) & (NODE.c.address == node.address)
            connection.execute(delete(NODE).where(same))
        for queue in batch.subscriptions_removed:
            connection.execute(delete(SUBSCRIPTION).where(SUBSCRIPTION.c.queue == queue))

    def _add_node(self, connection: Connection, node: StoredNode) -> None:
        same = (NODE.c.kind == node.kind) & (NODE.c.address == node.address)
        if connection.execute(select(func.count()).where(same)).scalar() == 0:
            connection.execute(insert(NODE).values(kind=node.kind, address=node.address))
        if node.kind == "queue":
            self._add_queue(connection, node.address)

    def _add_subscription(self, connection: Connection, subscription: StoredSubscription) -> None:
        connection.execute(
            insert(SUBSCRIPTION).values(
                queue=subscription.queue,
                container_id=subscription.container_id,
                name=subscription.name,
                is_shared=subscription.is_shared,
                address=subscription.address,
                filters=_packed(subscription.filters),
                excluded_publisher=subscription.excluded_publisher,
                durability=subscription.durability,
                expiry_policy=subscription.expiry_policy,
                timeout_s=subscription.timeout_s,
            )
        )
        self._add_queue(connection, subscription.queue)

    # -- what is there

    async def nodes(self) -> list[StoredNode]:
        return await self._do(self._nodes)

    def _nodes(self) -> list[StoredNode]:
        rows = self._opened().execute(select(NODE).order_by(NODE.c.id))
        return [StoredNode(address=row.address, kind=row.kind) for row in rows]

    async def subscriptions(self) -> list[StoredSubscription]:
        return await self._do(self._subscriptions)

    def _subscriptions(self) -> list[StoredSubscription]:
        rows = self._opened().execute(select(SUBSCRIPTION).order_by(SUBSCRIPTION.c.id))
        return [
            StoredSubscription(
                queue=row.queue,
                container_id=row.container_id,
                name=row.name,
                is_shared=row.is_shared,
                address=row.address,
                filters=self._unpacked(row.queue, row.filters),
                excluded_publisher=row.excluded_publisher,
                durability=row.durability,
                expiry_policy=row.expiry_policy,
                timeout_s=row.timeout_s,
            )
            for row in rows
        ]

    def _unpacked(self, queue: str, packed: bytes) -> list[tuple[str, bytes]]:
        try:
            return [(name, b64decode(value)) for name, value in json.loads(packed)]
        except (ValueError, TypeError):
            raise sqlite.unreadable(
                self._database, f"the filters of the subscription {queue} are damaged"
            ) from None

    async def messages(self, behind: int) -> list[StoredMessage]:
        return await self._do(partial(self._load, behind))

    def _load(self, behind: int) -> list[StoredMessage]:
        while True:
            rows = self._opened().exec_driver_sql(self._verbs().load, (behind, PART, 0)).all()
            sound = self._sifted(rows)
            if sound or not rows:
                return sound
            behind = rows[-1].number

    def _sifted(self, rows: Sequence[Row[Any]]) -> list[StoredMessage]:
        """The messages of `rows` that are sound; the others are set aside."""
        sifted = Sifted(rows, {queue: name for name, queue in self._queue_ids.items()})
        if sifted.damaged:
            self._in_transaction(partial(set_aside, self._opened(), sifted.damaged))
            self._quarantined += len(sifted.damaged)
        return sifted.sound

    async def places(self, behind: int) -> StoredPlaces:
        return await self._do(lambda: read_places(self._opened(), behind))

    async def load(self, numbers: list[int]) -> list[StoredMessage]:
        return await self._do(
            lambda: self._sifted(read_window(self._opened(), self._verbs(), numbers))
        )

    def load_now(self, numbers: list[int]) -> list[StoredMessage]:  # noqa: ARG002 - as the contract
        raise StoreError("SQLite has to be waited for")

    async def ids(self, behind: int) -> list[StoredId]:
        return await self._do(lambda: ids.load(self._opened(), behind))


def _packed(filters: list[tuple[str, bytes]]) -> bytes:
    return json.dumps([[name, b64encode(value).decode()] for name, value in filters]).encode()
