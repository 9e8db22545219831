"""All stages of a broker: commits, what they end, limits, and recovery after a restart."""

from collections.abc import Callable
from typing import Final

import pytest

from broker.message import NOWHERE
from broker.routing.batches.staging_area import LOOK_EVERY_MS, StagingArea
from broker.routing.errors import InvalidAddress, LimitReached, NoSuchNode, NotAsSent
from broker.routing.queues.node import QUEUE
from storage.records import StoredNode
from tests.support.notices import notice_texts
from tests.support.parties import RecordingProducer
from tests.support.routing import Routing, encoded, new_message
from tests.support.staging import Staging, depth, restarted, task


@pytest.mark.requirement("PIP-13")
def test_a_commit_is_in_the_order_of_partitions_and_rows() -> None:
    staging = Staging()
    staging.send(task(2), b"e")
    staging.send(task(0), b"a", b"b")
    staging.send(task(1), b"c", b"d")
    staging.commit((1, 0), (2, 0), (0, 0))
    assert staging.waiting() == [b"a", b"b", b"c", b"d", b"e"]
    assert staging.stored() == 0


@pytest.mark.requirement("PIP-13")
def test_a_commit_is_one_batch() -> None:
    staging = Staging()
    staging.send(task(0), b"a")
    staging.send(task(1), b"b", address="r")
    staging.commit((0, 0), (1, 0))
    batch = staging.routing.batch
    assert [each.queue for each in batch.appended if each is not None] == ["q", "r"]
    assert len(batch.removed) == 2
    assert batch.stages is not None
    assert {query: int(sink.batch) for query, sink in batch.stages.sinks.items()} == {"orders": 0}
    assert sorted(batch.stages.removed) == [1, 2]


def test_a_message_that_cannot_be_published_leaves_the_batch_as_it_was() -> None:
    staging = Staging()
    stage, batch = staging.send(task(0), b"a"), staging.routing.batch
    with pytest.raises(IndexError):
        staging.stages.publish(stage, [new_message(encoded(b"a"), priority=99)], batch)
    assert (batch.scope, batch.stores_all) == (batch.page, False)


@pytest.mark.requirement("PIP-13")
def test_a_task_may_have_staged_for_several_addresses() -> None:
    staging = Staging()
    staging.send(task(), b"a", address="q")
    staging.send(task(), b"b", address="r")
    staging.commit((0, 0))
    assert (staging.waiting("q"), staging.waiting("r")) == ([b"a"], [b"b"])


@pytest.mark.requirement("PIP-13")
def test_all_other_attempts_go_and_later_batches_stay() -> None:
    staging = Staging()
    staging.send(task(0, 1), b"failed")
    staging.send(task(0, 2), b"a")
    staging.send(task(1, 3), b"never named")
    staging.send(task(0, 0, batch=1), b"later")
    staging.send(task(0, 0, query="other"), b"other")
    staging.commit((0, 2))
    assert staging.waiting() == [b"a"]
    assert staging.stored() == 2
    staging.commit((0, 0), batch=1)
    staging.commit((0, 0), query="other")
    assert staging.waiting() == [b"a", b"later", b"other"]
    assert depth(staging.routing.queue()) == (3, 0)


@pytest.mark.requirement("PIP-13")
def test_a_batch_is_known_to_be_committed() -> None:
    staging = Staging()
    stages = staging.stages
    assert not stages.is_committed("orders", 5)
    staging.send(task(batch=5), b"a")
    staging.commit((0, 0), batch=5)
    assert [stages.is_committed("orders", number) for number in (4, 5, 6)] == [True, True, False]
    assert not stages.is_committed("other", 5)


@pytest.mark.requirement("PIP-13")
def test_what_a_batch_that_is_done_again_has_staged_goes() -> None:
    staging = Staging()
    staging.send(task(), b"a")
    staging.commit((0, 0))
    staging.send(task(0, 1), b"a")
    assert staging.drop_up_to("orders", 0) == 1
    assert (staging.waiting(), staging.stored()) == ([b"a"], 0)


@pytest.mark.requirement("PIP-13")
def test_a_batch_of_tasks_without_rows_is_committed() -> None:
    staging = Staging()
    staging.commit(batch=3)
    assert staging.stages.is_committed("orders", 3)


@pytest.mark.requirement("PIP-13")
def test_a_task_without_rows_may_be_named() -> None:
    staging = Staging()
    staging.send(task(), b"a")
    staging.commit((0, 0), (1, 0))
    assert staging.waiting() == [b"a"]


def aborted(staging: Staging) -> Staging:
    staging.abort("orders", 0)
    return staging


def forgotten(staging: Staging) -> Staging:
    staging.end("orders")
    return staging


def deleted(staging: Staging) -> Staging:
    staging.routing.router.delete(staging.routing.queue(), staging.routing.batch)
    return staging


def too_old(staging: Staging) -> Staging:
    staging.routing.advance(10 * LOOK_EVERY_MS)
    return staging


def damaged(number: int) -> Callable[[Staging], Staging]:
    """Return a function that restarts a broker which cannot read the message `number`."""

    def begin_again(staging: Staging) -> Staging:
        staging.routing.commit()
        staging.routing.batch.remove(number)
        return restarted(staging)

    return begin_again


DROPPED = [
    pytest.param(aborted, 0, id="by an abort"),
    pytest.param(forgotten, 0, id="with the sink"),
    pytest.param(deleted, 1, id="with the queue of some of them"),
    pytest.param(too_old, 0, id="because nothing came for long"),
    pytest.param(damaged(1), 2, id="the first is damaged"),
    pytest.param(damaged(3), 2, id="the last is damaged"),
]


@pytest.mark.requirement("PIP-13")
@pytest.mark.parametrize(("drop", "left"), DROPPED)
def test_what_is_dropped_while_it_is_staged_is_not_half_committed(
    drop: Callable[[Staging], Staging], left: int
) -> None:
    """The task goes on sending after the drop, which it can by a connection of its own."""
    staging = Staging(Routing(stage_retention_ms=LOOK_EVERY_MS))
    staging.send(task(), b"a", b"b")
    staging.send(task(), b"c", address="r")
    staging = drop(staging)
    staging.send(task(), b"d")
    said = f"attempt 0 of partition 0 in batch 0 of orders sent 4 messages, {left + 1} are staged"
    with pytest.raises(NotAsSent, match=f"^{said}: nothing is committed"):
        staging.commit((0, 0))
    assert (staging.waiting("q"), staging.waiting("r")) == ([], [])
    assert not staging.stages.is_committed("orders", 0)
    assert staging.stored() == left + 1
    staging.send(task(attempt=1), b"again")
    staging.commit((0, 1))
    assert (staging.waiting(), staging.stored()) == ([b"again"], 0)


TOLD = [
    pytest.param((0, 0), 1, 2, id="fewer than there are"),
    pytest.param((0, 0), 3, 2, id="more than there are"),
    pytest.param((0, 0), 0, 2, id="none"),
    pytest.param((1, 0), 1, 0, id="a partition that has nothing"),
    pytest.param((0, 1), 2, 0, id="another attempt"),
]


@pytest.mark.requirement("PIP-13")
@pytest.mark.parametrize(("named", "count", "staged"), TOLD)
def test_where_a_task_sent_another_number_nothing_changes(
    named: tuple[int, int], count: int, staged: int
) -> None:
    staging = Staging()
    staging.send(task(), b"a", b"b")
    staging.send(task(2), b"d")
    said = f"attempt {named[1]} of partition {named[0]} .* sent {count} messages, {staged} are"
    with pytest.raises(NotAsSent, match=said):
        staging.commit((2, 0), named, counts=[1, count])
    assert (staging.waiting(), staging.stored()) == ([], 3)
    assert not staging.stages.is_committed("orders", 0)
    staging.send(task(), b"c")
    staging.commit((0, 0), (2, 0))
    assert staging.waiting() == [b"a", b"b", b"c", b"d"]


@pytest.mark.requirement("PIP-13")
def test_a_stage_that_ends_before_it_is_read_stops_the_commit() -> None:
    staging = Staging()
    staging.send(task(), b"a")
    staging.routing.commit()
    chosen = staging.stages.choose("orders", 0, [(0, 0, 1)])
    stored = staging.routing.store.load_now(list(chosen[0].numbers))
    found = [[chosen[0].read(each) for each in stored]]
    staging.abort("orders", 0)
    with pytest.raises(NoSuchNode, match="ended meanwhile"):
        staging.commit_loaded("orders", 0, chosen, found=found)
    assert staging.waiting() == []


TAKES: Final[dict[str, Callable[[Staging], object]]] = {
    "ABORT": lambda staging: staging.stages.take_batch("orders", 0),
    "FORGET": lambda staging: staging.stages.take_all("orders", staging.routing.batch),
}


@pytest.mark.requirement("PIP-13")
@pytest.mark.parametrize("operation", TAKES)
def test_a_stage_whose_messages_are_being_dropped_stops_the_commit(operation: str) -> None:
    """To drop many messages takes some turns of the loop, in which a commit may have read them."""
    staging = Staging()
    staging.send(task(), b"a")
    staging.routing.commit()
    chosen = staging.stages.choose("orders", 0, [(0, 0, 1)])
    TAKES[operation](staging)
    with pytest.raises(NoSuchNode, match="ended meanwhile"):
        staging.stages.begin_commit("orders", 0, chosen, batch=staging.routing.batch)
    assert not staging.stages.is_committed("orders", 0)
    for stage in chosen:
        stage.end(staging.routing.batch)
    assert (staging.stored(), staging.routing.queue("q").staged) == (0, 0)


def test_a_link_without_messages_leaves_nothing() -> None:
    staging = Staging()
    stage = staging.stage(task())
    sender = RecordingProducer()
    stage.join(sender)
    assert list(staging.stages.sinks) == ["orders"]
    stage.leave(sender)
    assert staging.stages.sinks == {}
    assert staging.routing.batch.stages is None


def test_a_link_of_the_same_attempt_goes_on_with_its_stage() -> None:
    staging = Staging()
    staging.send(task(), b"a")
    staging.send(task(), b"b")
    staging.commit((0, 0))
    assert staging.waiting() == [b"a", b"b"]


# -- ends without a commit


@pytest.mark.requirement("PIP-14")
def test_an_abort_drops_one_batch() -> None:
    staging = Staging()
    staging.send(task(batch=1), b"a", b"b")
    staging.send(task(batch=2), b"c")
    assert staging.abort("orders", 1) == 2
    assert staging.abort("orders", 1) == 0
    assert staging.stored() == 1
    assert depth(staging.routing.queue()) == (0, 1)
    with pytest.raises(NoSuchNode):
        staging.abort("nobody", 1)


@pytest.mark.requirement("PIP-14")
def test_a_sink_that_is_forgotten_begins_anew() -> None:
    staging = Staging()
    staging.send(task(batch=7), b"a")
    staging.commit((0, 0), batch=7)
    staging.send(task(batch=8), b"b")
    assert staging.end("orders") == 1
    assert (staging.stages.sinks, staging.stored()) == ({}, 0)
    with pytest.raises(NoSuchNode):
        staging.end("orders")
    staging.send(task(), b"c")
    staging.commit((0, 0))
    assert staging.waiting() == [b"a", b"c"]
    assert restarted(staging).stages.is_committed("orders", 0)


@pytest.mark.requirement("PIP-14")
def test_what_nobody_commits_goes_when_it_is_old() -> None:
    """The limit is the setting stage_retention_s."""
    staging = Staging(Routing(stage_retention_ms=100_000))
    staging.send(task(0), b"a")
    staging.routing.advance(60_000)
    staging.send(task(1), b"b", b"c")
    attached = staging.stage(task(2))
    attached.join(RecordingProducer())
    staging.routing.advance(60_000)
    assert depth(staging.routing.queue()) == (0, 2)
    staging.routing.advance(60_000)
    assert depth(staging.routing.queue()) == (0, 0)
    assert staging.stored() == 0
    assert list(staging.stages.sinks["orders"].stages.values()) == [attached]
    first, second = notice_texts(staging.routing.router.notices)
    assert "attempt 0 of partition 0 in batch 0 of orders for q was never committed" in first
    assert second.endswith("2 messages dropped")


@pytest.mark.requirement("PIP-14")
def test_without_a_retention_everything_is_kept() -> None:
    staging = Staging(Routing(stage_retention_ms=0))
    staging.send(task(), b"a")
    staging.routing.advance(10 * LOOK_EVERY_MS)
    assert depth(staging.routing.queue()) == (0, 1)


# -- limits


def limited(**limits: int) -> Staging:
    routing = Routing()
    return Staging(routing, stages=StagingArea(routing.router, **limits))


def test_there_are_only_so_many_stages() -> None:
    staging = limited(stages_max=2)
    staging.send(task(0), b"a")
    staging.send(task(1), b"b")
    with pytest.raises(LimitReached, match="its 2 stages"):
        staging.send(task(2), b"c")
    staging.send(task(1), b"d")
    staging.commit((0, 0), (1, 0))
    staging.send(task(2, batch=1), b"e")


def test_only_so_many_sinks_are_remembered() -> None:
    staging = limited(sinks_max=1)
    staging.send(task(), b"a")
    staging.commit((0, 0))
    with pytest.raises(LimitReached, match="its 1 sinks"):
        staging.send(task(query="other"), b"b")
    with pytest.raises(LimitReached):
        staging.stages.check_sink("other")
    staging.send(task(batch=1), b"c")
    staging.end("orders")
    staging.send(task(query="other"), b"d")


def test_a_temporary_node_has_no_stages() -> None:
    staging = Staging()
    with pytest.raises(InvalidAddress, match="temporary"):
        staging.stages.check(task(), staging.routing.temporary_queue(), "tmp")


# -- a restart


@pytest.mark.requirement("PIP-16")
def test_a_restart_finds_what_is_staged_and_commits_it() -> None:
    old = Staging()
    old.send(task(0), b"a", b"b", priority=9)
    old.send(task(1), b"c", durable=False)
    old.send(task(0, 0, batch=1), b"later", deliver_at_ms=2**60)
    new = restarted(old)
    assert new.waiting() == []
    assert depth(new.routing.queue()) == (0, 4)
    new.send(task(1), b"d")
    new.commit((0, 0), (1, 0))
    assert new.waiting() == [b"a", b"b", b"c", b"d"]
    assert new.stored() == 1
    new.commit((0, 0), batch=1)
    assert len(new.routing.queue().state.scheduled()) == 1


@pytest.mark.requirement("PIP-16")
def test_a_restart_knows_what_has_been_committed() -> None:
    old = Staging()
    old.send(task(batch=4), b"a")
    old.commit((0, 0), batch=4)
    new = restarted(old)
    assert [new.stages.is_committed("orders", number) for number in (4, 5)] == [True, False]
    assert (new.routing.queue().backlogs.waiting, new.stored()) == (1, 0)


def test_a_query_belongs_to_the_first_that_stages() -> None:
    old = Staging()
    target = old.stage(task(), "q").target
    sink = old.stages.sinks["orders"]
    assert (sink.owner, old.stages.owner_of("orders")) == ("", "")
    assert old.stages.owner_of("other") is None
    old.stages.begin(task(1), target, "q", origin=NOWHERE, owner="ada")
    assert sink.owner == ""


@pytest.mark.requirement("PIP-16")
@pytest.mark.parametrize("owner", ["ada", ""])
def test_a_restart_knows_to_whom_a_query_belongs_of_which_messages_are_staged(owner: str) -> None:
    old = Staging()
    target = old.routing.router.resolve(old.routing.router.parse("q", QUEUE), old.routing.batch)
    old.stages.begin(task(batch=4), target, "q", origin=NOWHERE, owner=owner)
    old.send(task(batch=4), b"a")
    new = restarted(old)
    assert new.stages.owner_of("orders") == owner
    new.commit((0, 0), batch=4)
    assert new.stages.owner_of("orders") == owner
    assert restarted(new).stages.owner_of("orders") is None, "nothing is staged"


@pytest.mark.requirement("PIP-16")
def test_what_belongs_to_no_stage_or_no_target_goes_at_a_restart() -> None:
    old = Staging()
    old.send(task(0), b"a")
    old.send(task(1), b"b", address="gone")
    old.routing.commit()
    old.routing.batch.remove_node(StoredNode(address="gone", kind="queue"))
    old.routing.batch.stage_changes().remove(1)
    new = restarted(old)
    assert (new.stages.sinks, new.stored()) == ({}, 0)


@pytest.mark.requirement("PIP-14")
def test_what_a_restart_finds_ages_from_the_restart() -> None:
    """The time of its last message is not stored, and may be just before the restart."""
    old = Staging(Routing(stage_retention_ms=100_000))
    old.send(task(), b"a")
    old.routing.advance(90_000)
    old.send(task(), b"b")
    new = restarted(old, stage_retention_ms=100_000)
    new.routing.advance(61_000)
    assert new.stored() == 2
    new.routing.advance(61_000)
    assert new.stored() == 0


@pytest.mark.requirement("PIP-14")
def test_a_task_is_kept_as_long_as_one_of_its_links_is_used() -> None:
    staging = Staging(Routing(stage_retention_ms=LOOK_EVERY_MS))
    staging.send(task(), b"a", address="q")
    sends_on = staging.stage(task(), "r")
    sends_on.join(RecordingProducer())
    staging.routing.advance(2 * LOOK_EVERY_MS)
    assert depth(staging.routing.queue("q")) == (0, 1)


@pytest.mark.requirement("PIP-16")
def test_what_was_not_durable_is_stored_by_a_commit_as_it_was_by_its_stage() -> None:
    staging = Staging()
    staging.send(task(), b"a", durable=False)
    staging.commit((0, 0))
    assert [(each.queue, each.durable) for each in staging.routing.stored()] == [("q", False)]
