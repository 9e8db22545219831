"""Stages compared with the simplest model of them: dictionaries and lists of bodies.

After sends, commits, aborts, deletions and restarts in any order, the visible messages, the staged
ones, the room that they take, and the contents of the store are as the model says.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.routing.errors import NoSuchNode, NotAsSent
from storage.stages import STAGED
from tests.support.routing import encoded, new_message
from tests.support.staging import Staging, restarted, task

QUERIES = st.sampled_from(["a", "b"])
AHEAD = st.integers(0, 2)
"""Distance of a batch from the last committed batch; 0 repeats that batch."""
EVERY_TASK = [(partition, attempt) for partition in (0, 1) for attempt in (0, 1)]
ADDRESSES = st.sampled_from(["q", "r"])

Key = tuple[str, int, int, int, str]
"""Query, batch, partition, attempt and address of a stage."""


class Stages(RuleBasedStateMachine):
    """The router, and a model of it in three dictionaries."""

    def __init__(self) -> None:
        super().__init__()
        self.staging = Staging()
        self.numbers = count()
        self.staged: dict[Key, list[bytes]] = {}
        self.watermarks: dict[str, int] = {}
        self.seen: dict[str, list[bytes]] = {"q": [], "r": []}

    @rule(
        query=QUERIES,
        ahead=AHEAD,
        tasks=st.permutations(EVERY_TASK),
        most=st.integers(1, 4),
        address=ADDRESSES,
        settles=st.booleans(),
    )
    def send(
        self,
        query: str,
        ahead: int,
        tasks: list[tuple[int, int]],
        *,
        most: int,
        address: str,
        settles: bool,
    ) -> None:
        batch = self.batch_of(query, ahead)
        for of in tasks[:most]:
            bodies = [b"%d" % next(self.numbers) for _ in range(1 + most % 2)]
            wanted = task(*of, batch=batch, query=query)
            self.staging.send(wanted, *bodies, address=address, settles=settles)
            self.staged.setdefault((query, batch, *of, address), []).extend(bodies)

    def batch_of(self, query: str, ahead: int) -> int:
        """Return the batch of `query` that is `ahead` of the last committed one, at least 0."""
        return max(0, self.watermarks.get(query, -1) + ahead)

    @rule(
        query=QUERIES,
        ahead=AHEAD,
        tasks=st.permutations(EVERY_TASK),
        most=st.integers(0, 4),
        off=st.sampled_from([0, 0, 0, 1, -1]),
    )
    def commit(
        self, query: str, ahead: int, tasks: list[tuple[int, int]], most: int, off: int
    ) -> None:
        """Commit some tasks; `off` is the error in the first one's count of messages, mostly 0."""
        batch = self.batch_of(query, ahead)
        named = tasks[:most]
        counts = [self.count(query, batch, each) for each in named]
        if counts:
            counts[0] += off
        stages = self.staging.stages
        is_done = batch <= self.watermarks.get(query, -1)
        assert stages.is_committed(query, batch) == is_done
        if is_done:
            self.staging.drop_up_to(query, batch)
        elif counts and off:
            with pytest.raises(NotAsSent):
                self.staging.commit(*named, batch=batch, query=query, counts=counts)
            return
        else:
            self.staging.commit(*named, batch=batch, query=query, counts=counts)
            self.watermarks[query] = batch
            for each in sorted(named):
                for key in self.of_task(query, batch, each):
                    self.seen[key[-1]] += self.staged[key]
        self.drop(lambda key: key[0] == query and key[1] <= batch)

    def of_task(self, query: str, batch: int, of: tuple[int, int]) -> list[Key]:
        return [key for key in self.staged if key[:4] == (query, batch, *of)]

    def count(self, query: str, batch: int, of: tuple[int, int]) -> int:
        """Return the number of messages that a task has staged."""
        return sum(len(self.staged[key]) for key in self.of_task(query, batch, of))

    def drop(self, is_gone: Callable[[Key], bool]) -> None:
        self.staged = {key: bodies for key, bodies in self.staged.items() if not is_gone(key)}

    @rule(query=QUERIES, ahead=AHEAD, of=st.sampled_from(EVERY_TASK), kept=st.integers(0, 3))
    def trim(self, query: str, ahead: int, of: tuple[int, int], kept: int) -> None:
        """Keep the first messages of a task; bodies are numbers in the order of their arrival."""
        batch = self.batch_of(query, ahead)
        asked = task(*of, batch=batch, query=query)
        routing = self.staging.routing
        keys = self.of_task(query, batch, of)
        bodies = sorted((body for key in keys for body in self.staged[key]), key=int)
        if kept > len(bodies):
            with pytest.raises(NotAsSent):
                self.staging.trim(asked, kept)
            return
        assert self.staging.trim(asked, kept) == len(bodies) - kept
        for key in keys:
            self.staged[key] = [body for body in self.staged[key] if body in bodies[:kept]]
        self.drop(lambda key: not self.staged[key])
        # a sender sends again when it has the answer, which comes after the commit
        routing.commit()

    @rule(query=QUERIES, ahead=AHEAD)
    def abort(self, query: str, ahead: int) -> None:
        batch = self.batch_of(query, ahead)
        with suppress(NoSuchNode):
            self.staging.abort(query, batch)
        self.drop(lambda key: key[:2] == (query, batch))

    @rule(query=QUERIES)
    def forget(self, query: str) -> None:
        with suppress(NoSuchNode):
            self.staging.end(query)
        self.watermarks.pop(query, None)
        self.drop(lambda key: key[0] == query)

    @rule(address=ADDRESSES)
    def delete(self, address: str) -> None:
        routing = self.staging.routing
        routing.router.delete(routing.queue(address), routing.batch)
        self.seen[address] = []
        self.drop(lambda key: key[-1] == address)

    @rule(address=ADDRESSES)
    def put(self, address: str) -> None:
        body = b"%d" % next(self.numbers)
        routing = self.staging.routing
        routing.queue(address).put(new_message(encoded(body), durable=True), routing.batch)
        self.seen[address].append(body)

    @rule()
    def restart(self) -> None:
        self.staging = restarted(self.staging)

    @invariant()
    def all_is_as_the_model_says(self) -> None:
        routing = self.staging.routing
        routing.commit()
        for address, bodies in self.seen.items():
            mine = [each for key, each in self.staged.items() if key[-1] == address]
            assert self.staging.waiting(address) == bodies
            queue = routing.queue(address)
            assert queue.staged == sum(map(len, mine))
            assert queue.staged_bytes == sum(len(encoded(each)) for some in mine for each in some)
        stored = [each for each in routing.store.load_now(self.given()) if each.queue == STAGED]
        sinks = self.staging.stages.sinks
        kept = [
            each for sink in sinks.values() for stage in sink.stages.values() for each in stage.kept
        ]
        assert len(stored) + len(kept) == sum(map(len, self.staged.values()))
        assert self.staging.stages.kept_bytes == sum(int(each.size) for each in kept)
        assert set(sinks) == {key[0] for key in self.staged} | set(self.watermarks)
        for query, sink in sinks.items():
            assert sink.batch == self.watermarks.get(query, -1)
            assert len(sink.stages) == len([key for key in self.staged if key[0] == query])
        assert self.staging.stages.bytes == sum(int(sink.bytes()) for sink in sinks.values())

    def given(self) -> list[int]:
        """Return all numbers that a message may have."""
        return list(range(1, int(self.staging.routing.router.context.next_stored_number())))


Stages.TestCase.settings = settings(stateful_step_count=30)
test_stages_do_what_the_model_does = Stages.TestCase
