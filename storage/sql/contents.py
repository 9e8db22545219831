"""Reading of a store's contents, from any database, over a connection of SQLAlchemy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select, update

from storage.records import StoredMessage, StoredNode, StoredPlaces, StoredSubscription
from storage.sql import chunks, delivered, reading
from storage.sql.index import NUMBERS, NUMBERS_AT_ONCE, QUEUES, TIDY, Index
from storage.sql.leases import FENCING_TOKENS, highest_token
from storage.sql.quarantine import forget_gone
from storage.sql.rows import subscription_of
from storage.sql.segments.packing import Sifting, note_highest
from storage.sql.segments.segment import Damage, Segment
from storage.sql.statements import CHANGE_SEGMENT, DELETE_BODIES, DELETE_SEGMENTS, Texts
from storage.sql.tables import BODY, MARK, NODE, QUEUE, SEGMENT, SUBSCRIPTION
from storage.sql.transaction import together

IN_USE: Final = "in use"
"""Mark that is 1 from opening to closing, then CLOSED: a start that finds 1 knows that there was no
close. It is 0 after a close by a broker up to 0.1.0, which left positions that were counted."""

COPIED: Final = "copied"
"""Mark that is 1 in a copy of a store: consumers may have had any of its messages since."""

CLOSED: Final = 2
"""Value of IN_USE in a store of which only positions from before its last start are left."""

Following = Callable[[Connection, int], list[Segment]]
"""Returns some of the segments with messages above a number, [] if none is left."""


def load(connection: Connection, texts: Texts) -> Index:
    """Return the index of the stored rows.

    Messages of removed queues are deleted first, and so are volatile messages.
    """
    index = Index()
    for queue, name in connection.execute(select(QUEUE.c.id, QUEUE.c.name)):
        index.queue_ids[name] = queue
    if mark(connection, TIDY) == 0:
        forget_orphans(connection, texts, set(index.queue_ids.values()))
        set_mark(connection, TIDY, 1)
    index.left_out = forget_gone(connection, texts)
    delivered.forget_gone(connection)
    if mark(connection, IN_USE) == 0:
        delivered.forget_all(connection)
    if mark(connection, COPIED):
        suspect_all(connection, texts)
        set_mark(connection, COPIED, 0)
    index.suspected = delivered.rows(connection)
    index.chunks = chunks.load(connection, texts, index.names())
    highest = connection.execute(select(func.max(QUEUE.c.id))).scalar() or 0
    queues = max(mark(connection, QUEUES), highest)  # no mark: older brokers wrote none
    index.speak_for(numbers=_reserved_numbers(connection), queues=queues)
    marks = ((NUMBERS, index.numbers_up_to), (QUEUES, queues))
    for name, value in (*marks, (FENCING_TOKENS, highest_token(connection))):
        set_mark(connection, name, value)
    return index


def _reserved_numbers(connection: Connection) -> int:
    """Return the highest reserved message number, which is not below that of a stored message.

    A damaged mark may be: segments with numbers of others among them would hide these others.
    """
    reserved = mark(connection, NUMBERS)
    row = connection.execute(select(SEGMENT).order_by(SEGMENT.c.number.desc()).limit(1)).first()
    last = 0 if row is None else int(reading.segment_of(row).last)
    return reserved if reserved >= last else last + NUMBERS_AT_ONCE


def suspect_all(connection: Connection, texts: Texts) -> None:
    """Raise the positions of all queues to those of their last messages."""
    highest = delivered.rows(connection)
    for portion in reading.portions(connection, texts):
        for segment in portion:
            note_highest(segment, highest)
    with together(connection):
        delivered.forget_all(connection)
        delivered.put(connection, highest)


def leave(connection: Connection, index: Index) -> None:
    """Note an orderly close, in one transaction: what was delivered since the start is counted.

    What may have been delivered before a kill is not, unless it was delivered again.
    """
    delivered.forget_all(connection)
    delivered.put(connection, index.suspected)
    set_mark(connection, IN_USE, CLOSED)


def forget_orphans(connection: Connection, texts: Texts, queues: set[int]) -> None:
    """Delete volatile messages, and messages of queues other than `queues`.

    Both can be in any segment. Those of each portion are deleted together: a sync for each segment
    would make the start after the removal of a long queue last for minutes.
    """

    def look(segment: Segment) -> None:
        before = segment.facts
        segment.keep(queues)
        if not segment.facts:
            for statement in (DELETE_SEGMENTS, DELETE_BODIES):
                connection.exec_driver_sql(texts.of(statement), (segment.number, segment.number))
        elif segment.facts is not before:
            row = (segment.size, segment.facts, segment.number)
            connection.exec_driver_sql(texts.of(CHANGE_SEGMENT), row)

    for portion in reading.portions(connection, texts):
        with together(connection):
            for segment in portion:
                look(segment)
    connection.execute(delete(BODY).where(BODY.c.number.not_in(select(SEGMENT.c.number))))


def mark(connection: Connection, name: str) -> int:
    """Return the value of a mark, 0 if it was never set."""
    return connection.execute(select(MARK.c.value).where(MARK.c.name == name)).scalar() or 0


def set_mark(connection: Connection, name: str, value: int) -> None:
    """Set a mark, whether it exists or not."""
    changed = connection.execute(update(MARK).where(MARK.c.name == name).values(value=value))
    if changed.rowcount == 0:
        connection.execute(insert(MARK).values(name=name, value=value))


def nodes(connection: Connection) -> list[StoredNode]:
    """Return every node, in the order in which they were added."""
    columns = (NODE.c.kind, NODE.c.address, NODE.c.creator, NODE.c.auto_created)
    rows = connection.execute(select(*columns).order_by(NODE.c.id))
    return [
        StoredNode(address=address, kind=kind, auto_created=auto_created, creator=creator)
        for kind, address, creator, auto_created in rows
    ]


def subscriptions(connection: Connection) -> list[StoredSubscription]:
    """Return every subscription, in the order in which they were added."""
    rows = connection.execute(select(SUBSCRIPTION).order_by(SUBSCRIPTION.c.id))
    return [subscription_of(row) for row in rows]


def messages(
    connection: Connection, texts: Texts, index: Index, *, behind: int
) -> tuple[list[StoredMessage], list[Damage]]:
    """Return the next messages with numbers above `behind`, ascending, and the damage found.

    Without messages if none is left.
    """
    sifting = Sifting(index.names(), index.left_out)
    damaged = sifting.damaged
    while found := reading.following_with_bytes(connection, texts, behind):
        for segment in found:
            sifting.take(segment, None, behind)
        sound, torn = chunks.complete(connection, index.chunks, sifting)
        damaged += torn
        if sound:
            return sound, damaged
        behind = max(found[-1].last, found[-1].number)
    return [], damaged


def places(
    connection: Connection, following: Following, index: Index, *, behind: int
) -> tuple[StoredPlaces, list[Damage]]:
    """Return the places of the next messages with numbers above `behind`, and the damage found."""
    found = StoredPlaces()
    sifting = Sifting(index.names(), index.left_out)
    while not found.numbers:
        segments = following(connection, behind)
        if not segments:
            break
        for segment in segments:
            sifting.place(segment, found, behind)
            index.segments.notice(segment)
        behind = max(segments[-1].last, segments[-1].number)
    chunks.weigh(connection, index.chunks, found)
    return found, sifting.damaged


def window(
    connection: Connection, texts: Texts, index: Index, *, numbers: list[int]
) -> tuple[list[StoredMessage], list[Damage]]:
    """Return the stored messages of these numbers, ascending, and the damage found."""
    sifting = Sifting(index.names(), index.left_out)
    for segment in reading.holding(connection, texts, numbers, with_bytes=True):
        sifting.take(segment, numbers)
        segment.body = None
        index.segments.learn(segment)
    sound, torn = chunks.complete(connection, index.chunks, sifting)
    return sound, sifting.damaged + torn
