"""What a store holds, read back: on any database, over a connection of SQLAlchemy's."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, delete, func, insert, select, update

from storage.records import StoredMessage, StoredNode, StoredPlaces, StoredSubscription
from storage.sql import chunks, delivered
from storage.sql.index import NUMBERS, QUEUES, TIDY, Index
from storage.sql.quarantine import Damage, Sifted, forget_gone
from storage.sql.reading import read_places, read_window
from storage.sql.rows import subscription_of
from storage.sql.statements import LOAD, Texts
from storage.sql.tables import BODY, MARK, MESSAGE, NODE, QUEUE, SUBSCRIPTION

IN_USE: Final = "in use"
"""1 from the opening to the close: whoever finds it so knows that there was no close."""

PART: Final = 1000
"""Messages loaded together at a start."""


def load(connection: Connection) -> Index:
    """The index of what is there. What belongs to no queue any more is deleted first."""
    index = Index()
    for queue, name in connection.execute(select(QUEUE.c.id, QUEUE.c.name)):
        index.queue_ids[name] = queue
    if mark(connection, TIDY) == 0:
        forget_orphans(connection)
        set_mark(connection, TIDY, 1)
    forget_gone(connection)
    delivered.forget_gone(connection)
    if mark(connection, IN_USE) == 0:
        delivered.forget_all(connection)
    if connection.execute(select(BODY.c.number).limit(1)).first() is not None:
        for row in connection.execute(
            select(MESSAGE.c.number, MESSAGE.c.body).where(MESSAGE.c.body.is_not(None))
        ):
            index.use(row.body, row.number)
    index.chunks = chunks.load(connection)
    highest = connection.execute(select(func.max(QUEUE.c.id))).scalar() or 0
    queues = max(mark(connection, QUEUES), highest)  # no mark: by a broker that had none
    index.speak_for(numbers=mark(connection, NUMBERS), queues=queues)
    for name, value in ((NUMBERS, index.numbers_up_to), (QUEUES, queues)):
        set_mark(connection, name, value)
    return index


def forget_orphans(connection: Connection) -> None:
    """Delete what is left of queues that have gone: their messages lie all over the table."""
    known = select(QUEUE.c.id)
    connection.execute(delete(MESSAGE).where(MESSAGE.c.queue.not_in(known)))
    used = select(MESSAGE.c.body).where(MESSAGE.c.body.is_not(None))
    connection.execute(delete(BODY).where(BODY.c.number.not_in(used)))


def mark(connection: Connection, name: str) -> int:
    """The value of a mark, 0 where it was never set."""
    return connection.execute(select(MARK.c.value).where(MARK.c.name == name)).scalar() or 0


def set_mark(connection: Connection, name: str, value: int) -> None:
    """Set a mark, be it there or not."""
    changed = connection.execute(update(MARK).where(MARK.c.name == name).values(value=value))
    if changed.rowcount == 0:
        connection.execute(insert(MARK).values(name=name, value=value))


def nodes(connection: Connection) -> list[StoredNode]:
    """Every node, in the order in which they were added."""
    rows = connection.execute(select(NODE.c.kind, NODE.c.address).order_by(NODE.c.id))
    return [StoredNode(address=address, kind=kind) for kind, address in rows]


def subscriptions(connection: Connection) -> list[StoredSubscription]:
    """Every subscription, in the order in which they were added."""
    rows = connection.execute(select(SUBSCRIPTION).order_by(SUBSCRIPTION.c.id))
    return [subscription_of(row) for row in rows]


def messages(
    connection: Connection, texts: Texts, index: Index, *, behind: int
) -> tuple[list[StoredMessage], list[Damage]]:
    """The next messages with numbers above `behind`, ascending, and what damage was met.

    No message where none is left.
    """
    damaged: list[Damage] = []
    while True:
        rows = connection.exec_driver_sql(texts.of(LOAD), (behind, PART, 0)).all()
        sifted = Sifted(rows, index.names())
        sound, torn = chunks.complete(connection, index.chunks, sifted.sound)
        damaged += sifted.damaged + torn
        if sound or not rows:
            return sound, damaged
        behind = rows[-1].number


def places(connection: Connection, index: Index, behind: int) -> StoredPlaces:
    """Where the next messages with numbers above `behind` are, ascending."""
    found = read_places(connection, index.names(), behind)
    chunks.weigh(connection, index.chunks, found)
    return found


def window(
    connection: Connection, texts: Texts, index: Index, *, numbers: list[int]
) -> tuple[list[StoredMessage], list[Damage]]:
    """The messages of those numbers that are there, ascending, and what damage was met."""
    sifted = Sifted(read_window(connection, texts, numbers), index.names())
    sound, torn = chunks.complete(connection, index.chunks, sifted.sound)
    return sound, sifted.damaged + torn
