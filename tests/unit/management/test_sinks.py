"""Sinks by `$management`: commits that wait for the disk and read from it, and their ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import pytest

from broker.amqp.performatives import Detach
from broker.amqp.terminus import COPY, Source
from broker.amqp.types import Int
from broker.management.management import Management
from broker.management.sinks import TASKS_MAX
from storage.batch import Batch
from tests.support.broker import Broker
from tests.support.frames import Transfer, message
from tests.support.management import Manager, Reply, read_reply, request
from tests.support.stores import GatedStore


class Setting:
    """A broker that commits for a driver, and tasks that send, each on a connection of its own.

    Work that has to wait for the store does so until `go_on`.
    """

    def __init__(self, store: GatedStore | None = None) -> None:
        self.broker = Broker(store=store)
        self.waiting: list[Coroutine[None, None, None]] = []
        self.broker.container.service = Management(
            self.broker.container, self.broker.store, self.waiting.append
        )
        self.manager = Manager(self.broker)

    def send(
        self, *bodies: bytes, partition: int = 0, attempt: int = 0, batch: int = 0, query: str = "o"
    ) -> None:
        """Send durable messages to a stage on a connection of their own, which then ends."""
        client = self.broker.session(f"{query}-{batch}-{partition}-{attempt}")
        properties: dict[str, object] = {
            "stage-query": query,
            "stage-batch": batch,
            "stage-partition": Int(partition),
            "stage-attempt": attempt,
        }
        client.attach_sender(properties=properties)
        for number, body in enumerate(bodies):
            client.transfer(number, payload=message(body, durable=True))
        client.hang_up()

    def ask(self, operation: str, query: str | None = "o", **arguments: object) -> Reply:
        """Send a request, let its work end, and return the response."""
        self.manager.send(request(operation, "sink", query, body=arguments))
        self.go_on()
        (reply,) = self.replies()
        return reply

    def go_on(self) -> None:
        """Run all waiting work to its end."""
        while self.waiting:
            asyncio.run(_done(self.waiting.pop(0)))

    def replies(self) -> list[Reply]:
        found = [body for body in self.manager.client.bodies() if isinstance(body, Transfer)]
        return [read_reply(body.payload) for body in found]

    def commit(self, *tasks: tuple[int, int, int], batch: int = 0, query: str = "o") -> Reply:
        return self.ask("COMMIT", query, **named(*tasks, batch=batch))

    def trim(self, count: int) -> Reply:
        """Drop what attempt 0 of partition 0 has sent for batch 0 behind `count` messages."""
        return self.ask("TRIM", batch=0, partition=Int(0), attempt=0, count=count)

    def bodies(self) -> list[bytes]:
        """Return the bodies of the messages in the queue."""
        client = self.broker.session("browser")
        client.attach_receiver(credit=100, source=Source(address="q", distribution_mode=COPY))
        found = [body for body in client.bodies() if isinstance(body, Transfer)]
        client.hang_up()
        return [each.payload[each.payload.index(b"\x00\x53\x75") + 5 :] for each in found]

    def row(self) -> dict[str, object]:
        (row,) = self.manager.query("sink").rows
        return row


async def _done(work: Coroutine[None, None, None]) -> None:
    await asyncio.wait_for(work, 10)


def named(*tasks: tuple[int, int, int], batch: int = 0) -> dict[str, object]:
    """Return the body of a COMMIT of these tasks, each a (partition, attempt, count)."""
    return {
        "batch": batch,
        "partitions": [Int(partition) for partition, _, _ in tasks],
        "attempts": [attempt for _, attempt, _ in tasks],
        "counts": [Int(count) for _, _, count in tasks],
    }


@pytest.mark.requirement("PIP-13")
def test_a_commit_says_how_many_messages_have_come() -> None:
    setting = Setting()
    setting.send(b"c", partition=1, attempt=7)
    setting.send(b"a", b"b", attempt=5)
    setting.send(b"failed", attempt=4)
    reply = setting.commit((1, 7, 1), (0, 5, 2))
    assert (reply.status, reply.map) == (200, {"committed": True, "messages": 3})
    assert setting.bodies() == [b"a", b"b", b"c"]
    assert setting.row()["staged"] == 0


@pytest.mark.requirement("PIP-13")
def test_a_batch_is_committed_once() -> None:
    setting = Setting()
    setting.send(b"a", batch=3)
    assert setting.commit((0, 0, 1), batch=3).map["committed"] is True
    setting.send(b"a", attempt=1, batch=3)
    for batch, count in ((3, 1), (3, 7), (2, 0)):
        reply = setting.commit((0, 1, count), batch=batch)
        assert (reply.status, reply.map) == (200, {"committed": False, "messages": 0})
    assert setting.bodies() == [b"a"]
    assert setting.row()["staged"] == 0


@pytest.mark.requirement("PIP-13")
def test_two_commits_at_a_time_are_one() -> None:
    setting = Setting()
    setting.send(b"a")
    for _ in range(2):
        setting.manager.send(request("COMMIT", "sink", "o", body=named((0, 0, 1))))
    setting.go_on()
    assert [reply.map["committed"] for reply in setting.replies()] == [True, False]
    assert setting.bodies() == [b"a"]


@pytest.mark.requirement("PIP-13")
@pytest.mark.parametrize(
    ("named", "staged"), [((0, 0, 1), 2), ((0, 0, 3), 2), ((4, 2, 1), 0)], ids=str
)
def test_a_task_that_sent_another_number_is_told(named: tuple[int, int, int], staged: int) -> None:
    setting = Setting()
    setting.send(b"a", b"b")
    partition, attempt, count = named
    reply = setting.commit(named)
    assert reply.status == 412
    assert reply.description.startswith(
        f"attempt {attempt} of partition {partition} in batch 0 of o sent {count} messages,"
        f" {staged} are staged: nothing is committed"
    )
    assert (setting.bodies(), setting.row()["batch"], setting.row()["staged"]) == ([], -1, 2)
    assert setting.commit((0, 0, 2), query="nobody").status == 412
    assert setting.commit((0, 0, 2)).map == {"committed": True, "messages": 2}


@pytest.mark.requirement("PIP-14")
def test_a_stage_that_is_aborted_while_it_is_read_is_not_committed() -> None:
    setting = Setting()
    setting.send(b"a")
    setting.manager.send(request("COMMIT", "sink", "o", body=named((0, 0, 1))))
    setting.manager.send(request("ABORT", "sink", "o", body={"batch": 0}))
    setting.go_on()
    aborted, committed = setting.replies()
    assert (aborted.status, aborted.map) == (200, {"messages": 1})
    assert committed.status == 404
    assert setting.bodies() == []


def test_a_message_that_the_store_does_not_have_any_more_stops_the_commit() -> None:
    setting = Setting()
    setting.send(b"a", b"b")
    broken = Batch()
    broken.remove(1)
    setting.broker.store.commit_now(broken)
    reply = setting.commit((0, 0, 2))
    assert (reply.status, reply.description[:10]) == (500, "1 messages")
    assert (setting.bodies(), setting.row()["batch"]) == ([], -1)


@pytest.mark.requirement("PIP-13", "PRD-03")
async def test_a_commit_waits_for_what_is_staged_and_its_answer_for_the_commit() -> None:
    store = GatedStore()
    setting = Setting(store)
    journal = setting.broker.journal
    loop = asyncio.get_running_loop()
    committing = loop.create_task(journal.run(setting.broker.container.run_round))
    await settle(store)
    setting.send(b"a")
    setting.manager.send(request("COMMIT", "sink", "o", body=named((0, 0, 1))))
    answering = loop.create_task(setting.waiting.pop(0))
    await settle()
    assert not answering.done()
    await settle(store, answering)
    assert answering.done()
    assert setting.replies() == []
    await settle(store)
    (reply,) = setting.replies()
    assert reply.map == {"committed": True, "messages": 1}
    committing.cancel()


async def settle(store: GatedStore | None = None, until: asyncio.Task[None] | None = None) -> None:
    """Let all tasks run until they wait, and let the commits of `store`, if given, through.

    Stop as soon as the task `until` is done: commits that it has begun are not let through.
    """
    for _ in range(50):
        if until is not None and until.done():
            return
        if store is not None:
            store.let_all_through()
        await asyncio.sleep(0)


@pytest.mark.requirement("PIP-14")
def test_what_there_is_to_be_told_of_a_sink() -> None:
    setting = Setting()
    setting.broker.advance(5000)
    began_ms = int(setting.broker.clock.wall_ms())
    setting.send(b"12345", batch=4)
    setting.broker.advance(1000)
    setting.send(b"12345", batch=4, partition=1)
    size = len(message(b"12345"))
    told = {
        "name": "o",
        "identity": "o",
        "type": "sink",
        "batch": -1,
        "committed_at_ms": 0,
        "stages": 2,
        "staged": 2,
        "staged_bytes": 2 * size,
        "staged_at_ms": began_ms,
    }
    assert setting.ask("READ").map == told
    assert setting.row() == told
    setting.commit((0, 0, 1), batch=4)
    told |= {"batch": 4, "committed_at_ms": began_ms + 1000, "stages": 0}
    told |= {"staged": 0, "staged_bytes": 0, "staged_at_ms": 0}
    assert setting.ask("READ").map == told


@pytest.mark.requirement("PIP-13")
def test_a_task_goes_on_after_it_has_cut_off_what_it_does_not_know_of() -> None:
    """Messages whose acceptance a task never heard of are dropped, and sent again."""
    setting = Setting()
    setting.send(b"a", b"b", b"lost")
    reply = setting.trim(2)
    assert (reply.status, reply.map) == (200, {"messages": 1})
    assert setting.trim(2).map == {"messages": 0}
    setting.send(b"c")
    assert setting.trim(4).status == 412
    assert setting.ask("TRIM", partition=Int(0), attempt=0, count=0).status == 400
    assert setting.commit((0, 0, 3)).map == {"committed": True, "messages": 3}
    assert setting.bodies() == [b"a", b"b", b"c"]


def test_a_link_that_sends_for_a_trimmed_attempt_is_detached() -> None:
    setting = Setting()
    client = setting.broker.session("slow")
    properties = {"stage-query": "o", "stage-batch": 0, "stage-partition": 0, "stage-attempt": 0}
    client.attach_sender(properties=properties)
    client.transfer(0, payload=message(b"a", durable=True))
    assert setting.trim(1).status == 200
    [detached] = [body for body in client.bodies() if isinstance(body, Detach)]
    assert detached.error is not None
    client.transfer(1, payload=message(b"late", durable=True))
    assert setting.row()["staged"] == 1
    assert setting.trim(0).map == {"messages": 1}
    assert setting.manager.query("sink").rows == []


@pytest.mark.requirement("PIP-14")
def test_a_sink_is_forgotten() -> None:
    setting = Setting()
    setting.send(b"a", batch=9)
    assert setting.commit((0, 0, 1), batch=9).status == 200
    setting.send(b"b", batch=10)
    assert setting.ask("FORGET").map == {"messages": 1}
    assert setting.manager.query("sink").rows == []
    for operation in ("READ", "FORGET"):
        assert setting.ask(operation).status == 404
    assert setting.ask("ABORT", batch=1).status == 404
    setting.send(b"c")
    assert setting.commit((0, 0, 1)).map["committed"] is True


def test_sinks_are_listed_by_name() -> None:
    setting = Setting()
    for query in ("b", "a", "other"):
        setting.send(b"x", query=query)
    rows = setting.manager.query("sink").rows
    assert [row["name"] for row in rows] == ["a", "b", "other"]
    rows = setting.manager.query("sink", filter="?", attributeNames=["name", "staged"]).rows
    assert rows == [{"name": "a", "staged": 1}, {"name": "b", "staged": 1}]


BAD = [
    pytest.param({"batch": None}, "needs the argument batch", id="no batch"),
    pytest.param({"batch": -1}, "batch must be a number", id="a batch below 0"),
    pytest.param({"partitions": None}, "partitions must be a list", id="no partitions"),
    pytest.param({"attempts": "1"}, "attempts must be a list", id="a text"),
    pytest.param({"counts": None}, "counts must be a list", id="no counts"),
    pytest.param({"counts": [-1]}, "counts must be a number", id="a count below 0"),
    pytest.param({"attempts": []}, "equally long", id="fewer attempts"),
    pytest.param({"counts": [1, 1]}, "equally long", id="more counts"),
    pytest.param({"partitions": ["a"]}, "partitions must be a number", id="a name"),
    pytest.param({"partitions": [None]}, "numbers only", id="nothing"),
    pytest.param(
        {"partitions": [0, 0], "attempts": [1, 2], "counts": [1, 1]},
        "one attempt of each",
        id="two attempts",
    ),
    pytest.param(
        {"partitions": [0] * (TASKS_MAX + 1)}, f"at most {TASKS_MAX}", id="more than TASKS_MAX"
    ),
    pytest.param({"colour": "red"}, "colour", id="what nobody knows"),
]


@pytest.mark.parametrize(("changes", "said"), BAD)
def test_what_cannot_be_asked(changes: dict[str, object], said: str) -> None:
    setting = Setting()
    setting.send(b"a")
    asked = {
        name: value for name, value in (named((0, 0, 1)) | changes).items() if value is not None
    }
    reply = setting.ask("COMMIT", "o", **asked)
    assert reply.status == 400
    assert said in reply.description


@pytest.mark.parametrize("query", ["", "a\nb", "x" * 256])
def test_a_query_has_a_name_that_can_be_kept(query: str) -> None:
    assert Setting().ask("COMMIT", query, **named()).status == 400


def test_the_tasks_of_a_large_commit_fit_into_a_request() -> None:
    setting = Setting()
    largest = 2**31 - 1
    tasks = [(largest - index, 2**63 - 1 - index) for index in range(TASKS_MAX)]
    asked = {
        "batch": 0,
        "partitions": [each[0] for each in tasks],
        "attempts": [each[1] for each in tasks],
        "counts": [each[1] for each in tasks],
    }
    assert setting.ask("COMMIT", "o", **asked).status == 412
