"""Sinks: messages that queries have staged and not committed, and their commits.

A sink takes the output of a streaming query in numbered batches, each committed once. The stages
themselves are in `routing/batches/staging_area.py`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import islice, repeat
from typing import Final

from broker.journal import Journal
from broker.links.staging import checked_query
from broker.management.durable import Durable
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later, Spawn
from broker.management.listing import Listing, list_of
from broker.management.page import read_page
from broker.management.request import (
    BAD_REQUEST,
    FAILED,
    NOT_FOUND,
    Refused,
    Request,
    checked_number,
)
from broker.management.response import Response
from broker.management.stretches import PORTION, in_portions, long_change, one_by_one
from broker.message import Message
from broker.routing.batches.sink import Sink
from broker.routing.batches.staged_transaction import CutMessages, StagedTransaction, Task
from broker.routing.errors import NoSuchNode
from broker.routing.router import Router
from storage.api import Store
from storage.records import StoredMessage

SINK: Final = "sink"

TASKS_MAX: Final = 2000
"""Maximum tasks of one COMMIT: their numbers, of any size, fit into a request."""

LOADED_AT_ONCE: Final = 1000
"""Messages read from the store at a time. Between reads, commits and other readers can run."""

DROPPED_AT_ONCE: Final = 1024
"""Staged messages that are dropped between two looks at the clock."""

DROPPED_IN_ONE_PIECE: Final = 8192
"""Staged messages that are dropped without other work in between: that takes about 1 ms."""

Loaded = deque[list[Message]]
"""The messages of a stage, in portions."""

NUMBER_MAX: Final = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class SinkRecord(EntityRecord):
    """A query. `batch` is the last that was committed, -1 for none, at `committed_at_ms`.

    `staged` messages wait in `stages` stages for a commit, the oldest since `staged_at_ms`, which
    is 0 if there is none. Times are ms since 1970.
    """

    batch: int
    committed_at_ms: int
    stages: int
    staged: int
    staged_bytes: int
    staged_at_ms: int


def record_of(sink: Sink) -> SinkRecord:
    """Return the attributes of `sink`."""
    return SinkRecord(
        name=sink.query,
        identity=sink.query,
        type=SINK,
        batch=int(sink.batch),
        committed_at_ms=int(sink.at_ms),
        stages=len(sink.stages),
        staged=int(sink.messages()),
        staged_bytes=int(sink.bytes()),
        staged_at_ms=int(sink.staged_at_ms()),
    )


class Sinks(Entity):
    """All queries that have staged or committed messages here."""

    type = SINK
    part = "sinks"
    attributes = attributes_of(SinkRecord)
    routine = ("COMMIT", "READ", "TRIM")

    def __init__(
        self, router: Router, journal: Journal, store: Store, *, spawn: Spawn | None = None
    ) -> None:
        self._router: Final = router
        self._stages: Final = router.staging_area
        self._journal: Final = journal
        self._store: Final = store
        self._spawn: Final = spawn
        # one commit at a time, because each may load a whole batch into memory
        self._turn: Final = asyncio.Lock()

    def operations(self) -> Mapping[str, Operation]:
        return {
            "COMMIT": self._commit,
            "ABORT": self._abort,
            "TRIM": self._trim,
            "READ": self._read,
            "FORGET": self._forget,
        }

    def query(self, request: Request) -> Response:
        page = read_page(request, self.attributes)
        sinks = self._stages.sinks
        return page.response(record_of(sinks[name]).as_map() for name in page.choose(sinks))

    def listed(self, request: Request) -> Later:
        listing = Listing(
            items=list(self._stages.sinks.values()),
            names_of=lambda sink: (sink.query, sink.query),
            record_of=record_of,
        )
        return list_of(request, self.attributes, listing)

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only()
        sink = self._stages.sinks.get(request.subject())
        if sink is None:
            raise Refused(NOT_FOUND, f"no sink {request.subject()}")
        return Response(body=record_of(sink).as_map())

    def _abort(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Drop all messages staged for `batch`."""
        request.only("batch")
        return self._drop(self._stages.take_batch(request.subject(), _batch(request)))

    def _trim(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Drop what an attempt has staged behind its first `count` messages; detach its links."""
        request.only("batch", "partition", "attempt", "count")
        task = Task(
            query=checked_query(request.subject()),
            batch=_batch(request),
            partition=request.number("partition", 0, high=NUMBER_MAX),
            attempt=request.number("attempt", 0, high=NUMBER_MAX),
        )
        count = request.number("count", 0, high=NUMBER_MAX)
        cut = self._stages.cut(task, count, self._journal.batch)
        dropped = sum(int(each.left()) for each in cut)
        if not self._begin(dropped, lambda: self._drop_cut(cut)):
            for each in cut:
                each.let_go(each.left(), self._journal.batch)
        return Response(body={"messages": dropped})

    def _forget(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Drop all staged messages, and the number of the last committed batch."""
        request.only()
        return self._drop(self._stages.take_all(request.subject(), self._journal.batch))

    # -- messages that are dropped

    def _drop(self, stages: list[StagedTransaction]) -> Response:
        """Drop the messages of these stages, which nothing else has any longer."""
        dropped = sum(int(stage.messages()) for stage in stages)
        if not self._begin(dropped, lambda: self._drop_stages(stages)):
            for stage in stages:
                stage.end(self._journal.batch)
        return Response(body={"messages": dropped})

    def _begin(self, count: int, work: Callable[[], Coroutine[None, None, None]]) -> bool:
        """Begin `work` beside other work of the loop, if `count` messages take long to drop.

        The journal is held until its end: the response is sent once that page is durable.
        """
        if count <= DROPPED_IN_ONE_PIECE or self._spawn is None or not self._journal.hold_now():
            return False
        self._spawn(work())
        return True

    async def _drop_stages(self, stages: list[StagedTransaction]) -> None:
        with long_change(self._journal):
            for stage in stages:
                await self._end(stage)

    async def _drop_cut(self, cut: list[CutMessages]) -> None:
        with long_change(self._journal):
            for each in cut:
                async for _ in one_by_one(range(0, int(each.left()), DROPPED_AT_ONCE)):
                    each.let_go(DROPPED_AT_ONCE, self._journal.batch)

    # -- commit

    def _commit(self, request: Request, caller: Caller) -> Response | Later:  # noqa: ARG002
        """Move what these attempts staged for `batch` to its targets; drop all other attempts."""
        request.only("batch", "partitions", "attempts", "counts")
        query, number = checked_query(request.subject()), _batch(request)
        partitions, attempts = _numbers(request, "partitions"), _numbers(request, "attempts")
        counts = _numbers(request, "counts")
        if not len(partitions) == len(attempts) == len(counts):
            raise Refused(BAD_REQUEST, "partitions, attempts and counts must be equally long")
        if len(set(partitions)) != len(partitions):
            raise Refused(BAD_REQUEST, "a batch must have one attempt of each partition")
        if self._stages.is_committed(query, number):
            return Later(partial(self._commit_again, query, number))
        tasks = list(zip(partitions, attempts, counts, strict=True))
        self._stages.check_sink(query)
        if not self._turn.locked() and self._stages.can_commit_at_once(query, number, tasks):
            return self._commit_at_once(query, number, tasks)
        chosen = self._stages.choose(query, number, tasks)
        for stage in chosen:
            stage.store_kept(self._journal.batch)
        durable = Durable()
        self._journal.submit(durable)
        return Later(partial(self._load_and_commit, query, number, chosen=chosen, durable=durable))

    def _commit_at_once(
        self, query: str, number: int, tasks: list[tuple[int, int, int]]
    ) -> Response:
        """Commit few messages, which are only in memory, in one piece."""
        stages, batch = self._stages, self._journal.batch
        chosen = stages.choose(query, number, tasks)
        stages.begin_commit(query, number, chosen, batch=batch)
        messages = 0
        for stage in chosen:
            messages += int(stage.messages())
            stages.publish(stage, list(stage.kept), batch)
            stage.end(batch)
        for stage in stages.take_up_to(query, number):
            stage.end(batch)
        self._journal.expect_no_receipt()
        return Response(body={"committed": True, "messages": messages})

    async def _commit_again(self, query: str, number: int) -> Response:
        """Answer the COMMIT of a batch committed before: drop the messages staged for it again."""
        await self._journal.hold()
        with long_change(self._journal):
            await self._drop_up_to(query, number)
        return Response(body={"committed": False, "messages": 0})

    async def _load_and_commit(
        self, query: str, number: int, *, chosen: list[StagedTransaction], durable: Durable
    ) -> Response:
        """Load the staged messages, once the store has them all, and commit them in one batch."""
        await durable.happened.wait()
        async with self._turn:
            found = await self._loaded(chosen)
            if self._stages.is_committed(query, number):
                return await self._commit_again(query, number)
            await self._journal.hold()
            with long_change(self._journal):
                return await self._commit_loaded(query, number, chosen, found=found)

    async def _commit_loaded(
        self,
        query: str,
        number: int,
        chosen: list[StagedTransaction],
        *,
        found: list[Loaded],
    ) -> Response:
        """Publish the messages `found`, portion by portion; the journal is held meanwhile."""
        messages = 0
        for stage, loaded in zip(chosen, found, strict=True):
            count = sum(len(portion) for portion in loaded)
            lost = stage.messages() - count
            if lost > 0 and not stage.is_over:
                return Response(
                    status=FAILED,
                    description=f"{lost} messages of {stage.task} are damaged: nothing is done",
                )
            messages += count
        try:
            self._stages.begin_commit(query, number, chosen, batch=self._journal.batch)
        except NoSuchNode as refusal:
            return Response(status=NOT_FOUND, description=str(refusal))
        for stage, loaded in zip(chosen, found, strict=True):
            await self._publish(stage, loaded)
        await self._drop_up_to(query, number)
        return Response(body={"committed": True, "messages": messages})

    async def _publish(self, stage: StagedTransaction, loaded: Loaded) -> None:
        """Publish the messages of a stage, which are not kept here any longer; end the stage."""
        async for portion in one_by_one(taken_from(loaded)):
            if not self._stages.publish(stage, portion, self._journal.batch):
                break
            self._journal.expect_no_receipt()
        await self._end(stage)

    async def _drop_up_to(self, query: str, number: int) -> None:
        """End all attempts of that batch, and of those before, that are not committed."""
        for stage in self._stages.take_up_to(query, number):
            await self._end(stage)

    async def _end(self, stage: StagedTransaction) -> None:
        """Drop what a stage still has, and end it."""
        left = range(0, int(stage.messages()), DROPPED_AT_ONCE)
        async for _ in one_by_one(left):
            stage.let_go(DROPPED_AT_ONCE, self._journal.batch)
        stage.end(self._journal.batch)

    async def _loaded(self, chosen: list[StagedTransaction]) -> list[Loaded]:
        """Return the messages of each stage, in portions."""
        found: list[Loaded] = [deque() for _ in chosen]
        # in the order of storage: messages of tasks that ran at the same time are neighbours there
        numbers = merge(*(zip(stage.numbers, repeat(at)) for at, stage in enumerate(chosen)))
        while places := dict(islice(numbers, LOADED_AT_ONCE)):
            async for portion in in_portions(await self._store.load(list(places))):
                _add_read(portion, places, chosen, found=found)
        return found


def _add_read(
    records: Iterable[StoredMessage],
    places: Mapping[int, int],
    chosen: list[StagedTransaction],
    *,
    found: list[Loaded],
) -> None:
    """Read the messages of `records` for the stages at their `places`, and add them to `found`."""
    for stored in records:
        at = places[int(stored.number)]
        loaded = found[at]
        if not loaded or len(loaded[-1]) == PORTION:
            loaded.append([])
        loaded[-1].append(chosen[at].read(stored))


def taken_from(loaded: Loaded) -> Iterator[list[Message]]:
    """Yield the portions of `loaded`, which has each no longer."""
    while loaded:
        yield loaded.popleft()


def _batch(request: Request) -> int:
    if request.arguments.get("batch") is None:
        raise Refused(BAD_REQUEST, f"{request.operation} needs the argument batch")
    return request.number("batch", 0, high=NUMBER_MAX)


def _numbers(request: Request, name: str) -> list[int]:
    """Return an argument that is a list of up to TASKS_MAX integers of any AMQP width."""
    value = request.arguments.get(name)
    if not isinstance(value, list) or len(value) > TASKS_MAX:
        raise Refused(BAD_REQUEST, f"{name} must be a list of at most {TASKS_MAX} numbers")
    if None in value:
        raise Refused(BAD_REQUEST, f"{name} must have numbers only")
    return [checked_number(name, each, 0, low=0, high=NUMBER_MAX) for each in value]
