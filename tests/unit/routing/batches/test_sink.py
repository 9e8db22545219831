"""A sink's own account of its stages."""

import pytest

from broker.routing.batches.sink import NOTHING_COMMITTED, key_of
from broker.routing.batches.staging_area import StagingArea
from broker.routing.errors import LimitReached
from tests.support.routing import Routing, encoded, new_message
from tests.support.staging import Staging, task

pytestmark = pytest.mark.requirement("PIP-13")


@pytest.mark.parametrize("settles", [False, True])
def test_what_is_staged_is_counted(settles: bool) -> None:
    staging = Staging()
    size = len(encoded(b"a"))
    staging.send(task(), b"a", b"b", settles=settles)
    staging.routing.clock.advance(50)
    staging.send(task(1, batch=1), b"c", settles=settles)
    sink = staging.stages.sinks["orders"]
    assert (sink.batch, sink.messages(), sink.bytes()) == (NOTHING_COMMITTED, 3, 3 * size)
    assert sink.staged_at_ms() == staging.routing.clock.wall_ms() - 50
    assert [int(stage.task.batch) for stage in sink.up_to(0)] == [0]
    assert list(sink.of_tasks(1)) == [(1, 0)]
    staging.abort("orders", 0)
    assert (sink.messages(), sink.bytes()) == (1, size)


@pytest.mark.parametrize("settles", [False, True])
def test_the_messages_of_a_batch_are_limited(settles: bool) -> None:
    routing = Routing()
    staging = Staging(routing, stages=StagingArea(routing.router, batch_messages_max=2))
    stage = staging.send(task(), b"a", b"b", settles=settles)
    with pytest.raises(LimitReached, match="2 messages are staged for batch 0"):
        stage.put(new_message(encoded(b"c")), routing.batch)
    staging.send(task(batch=1), b"another batch", settles=settles)


def test_a_key_tells_attempts_and_addresses_apart() -> None:
    queue = Routing().queue()
    keys = [
        key_of(task(), queue, "q"),
        key_of(task(1), queue, "q"),
        key_of(task(0, 1), queue, "q"),
        key_of(task(batch=1), queue, "q"),
        key_of(task(), queue, "/queue/q"),
    ]
    assert len(set(keys)) == len(keys)
