"""Leases through `$management`: the requests, the answers, and their timing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from broker.management.leases import LEASE_BATCH_MESSAGES_MAX, WAIT_MAX_MS
from broker.routing.addresses.identity import KEY_BYTES_MAX
from broker.routing.batches.lease_batch import SLICES_MAX
from tests.support.broker import Broker
from tests.support.frames import Transfer, body_of
from tests.support.management import Manager, Reply, read_reply, request
from tests.support.stores import GatedStore

HOUR_MS = 3_600_000


def told(reply: Reply) -> tuple[int, object]:
    return reply.status, reply.body if reply.status == 200 else reply.description


class Driver(Manager):
    """A manager that owns the lease `l` of the queue `q`."""

    def tell(self, operation: str, body: Mapping[str, object], name: str = "l") -> Reply:
        """Send a request about the lease `name`; return the response."""
        return self.ask_raw(request(operation, "lease", name, body=body))

    def open(self, name: str = "l", **arguments: object) -> int:
        if "subscription" not in arguments:
            arguments = {"address": "q", **arguments}
        reply = self.tell("OPEN", arguments, name)
        assert reply.status == 200, reply.description
        fencing_token = reply.map["fencing_token"]
        assert isinstance(fencing_token, int)
        return fencing_token

    def acquire(
        self, batch_number: int = 1, *, fencing_token: int = 1, **arguments: object
    ) -> Reply:
        return self.tell(
            "ACQUIRE", {"fencing_token": fencing_token, "batch": batch_number, **arguments}
        )

    def settle(self, batch_number: int, *, fencing_token: int = 1) -> Reply:
        return self.ask("SETTLE", "lease", "l", fencing_token=fencing_token, batch=batch_number)

    def replies(self) -> list[Reply]:
        """Return the late responses received since the last call."""
        found = self.client.bodies()
        return [read_reply(each.payload) for each in found if isinstance(each, Transfer)]


def driver(count: int = 0, **fields: object) -> tuple[Broker, Driver]:
    broker = Broker(**fields)  # type: ignore[arg-type]
    if count:
        broker.fill(count=count)
    return broker, Driver(broker)


def waiting(broker: Broker) -> tuple[int, int]:
    queue = broker.queue()
    return int(queue.backlogs.waiting), int(queue.state.acquired)


# -- open


@pytest.mark.requirement("PIP-01")
def test_a_lease_is_opened() -> None:
    broker, lead = driver()
    reply = lead.ask("OPEN", "lease", "l", address="q")
    assert told(reply) == (
        200,
        {"fencing_token": 1, "batch": 0, "settled": 0, "now_ms": broker.clock.wall_ms()},
    )


@pytest.mark.requirement("PIP-01")
def test_who_opens_it_again_goes_on_where_it_was() -> None:
    _, lead = driver(3)
    lead.open()
    lead.acquire()
    lead.acquire(2)
    lead.settle(1)
    assert lead.open() == 2
    assert lead.ask("READ", "lease", "l").map["batch"] == 1
    assert told(lead.acquire(2, fencing_token=2))[0] == 200


@pytest.mark.requirement("PIP-01")
@pytest.mark.parametrize("operation", ["ACQUIRE", "SETTLE", "RENEW", "RELEASE"])
def test_an_older_fencing_token_is_refused(operation: str) -> None:
    _, lead = driver(1)
    lead.open()
    lead.open()
    body: dict[str, object] = {"fencing_token": 1}
    if operation in ("ACQUIRE", "SETTLE"):
        body["batch"] = 1
    reply = lead.tell(operation, body)
    assert told(reply) == (409, "fenced: fencing token 1 of lease l was followed by 2")
    assert told(lead.acquire(fencing_token=2))[0] == 200


@pytest.mark.requirement("PIP-01")
@pytest.mark.parametrize("operation", ["ACQUIRE", "SETTLE", "RENEW", "RELEASE", "READ"])
def test_of_a_lease_that_is_not_there_all_is_gone(operation: str) -> None:
    _, lead = driver(1)
    body: dict[str, object] = {"fencing_token": 1}
    if operation in ("ACQUIRE", "SETTLE"):
        body["batch"] = 1
    if operation == "READ":
        body = {}
    reply = lead.tell(operation, body)
    assert told(reply) == (410, "gone: there is no lease l")


@pytest.mark.requirement("PIP-01")
def test_a_fencing_token_is_never_given_twice() -> None:
    _, lead = driver(1)
    assert lead.open() == 1
    lead.ask("RELEASE", "lease", "l")
    assert lead.open() == 2
    reply = lead.ask("RENEW", "lease", "l", fencing_token=1)
    assert reply.status == 409
    reply = lead.ask("RENEW", "lease", "l", fencing_token=3)
    assert told(reply) == (410, "gone: fencing token 3 of lease l is not known")


REFUSED = [
    pytest.param({}, "a lease is one of an address, or of a subscription", id="of nothing"),
    pytest.param(
        {"address": "q", "subscription": "durable//s"},
        "a lease is one of an address, or of a subscription",
        id="of both",
    ),
    pytest.param({"address": "q", "ttl_ms": -1}, "ttl_ms must be a number from 0", id="a time"),
    pytest.param({"address": "q", "selector": "a ="}, "selector, character", id="a selector"),
    pytest.param({"address": "q", "ttl": 1}, "OPEN knows no argument ttl", id="an argument"),
    pytest.param(
        {"address": "/queue/transient/q"}, "are never stored: no lease has them", id="not stored"
    ),
]


@pytest.mark.requirement("PIP-01")
@pytest.mark.parametrize(("body", "why"), REFUSED)
def test_what_cannot_be_leased_is_refused(body: dict[str, object], why: str) -> None:
    broker, lead = driver()
    reply = lead.tell("OPEN", body)
    assert reply.status == 400
    assert why in reply.description
    assert not broker.router.leases.named


@pytest.mark.requirement("PIP-01")
@pytest.mark.parametrize(
    ("name", "taken"),
    [
        pytest.param("n" * KEY_BYTES_MAX, True, id="the longest"),
        pytest.param("n" * (KEY_BYTES_MAX + 1), False, id="too long"),
        pytest.param("", False, id="empty"),
        pytest.param("a\0b", False, id="a NUL"),
        pytest.param("bridge/b/1", False, id="that of a bridge"),
    ],
)
def test_the_name_of_a_lease_is_short(name: str, taken: bool) -> None:
    _, lead = driver()
    assert lead.ask("OPEN", "lease", name, address="q").status == (200 if taken else 400)


@pytest.mark.requirement("PIP-01")
def test_a_lease_stays_with_its_queue() -> None:
    _, lead = driver()
    lead.open()
    assert told(lead.ask("OPEN", "lease", "l", address="other")) == (409, "lease l is one of q")


@pytest.mark.requirement("PIP-01")
def test_only_administrators_have_leases() -> None:
    broker, _ = driver()
    stranger = Driver(broker, "stranger", user="stranger")
    assert stranger.ask("OPEN", "lease", "l", address="q").status == 403


# -- acquire


@pytest.mark.requirement("PIP-02")
def test_a_batch_is_acquired_and_returned_again() -> None:
    broker, lead = driver(5)
    lead.open()
    first = lead.acquire(max_messages=3, slices=2)
    assert told(first) == (200, {"batch": 1, "messages": 3, "slices": [2, 1], "bytes": 18})
    assert waiting(broker) == (2, 3)
    assert told(lead.acquire(max_messages=9, slices=7)) == told(first)
    assert waiting(broker) == (2, 3)
    assert told(lead.acquire(2, slices=1)) == (
        200,
        {"batch": 2, "messages": 2, "slices": [2], "bytes": 12},
    )


@pytest.mark.requirement("PIP-02")
def test_batches_are_numbered_consecutively() -> None:
    _, lead = driver(2)
    lead.open()
    assert told(lead.acquire(2)) == (404, "the next batch of lease l is 1")
    lead.acquire(1)
    lead.settle(1)
    assert told(lead.acquire(1)) == (410, "gone: batch 1 of lease l is settled")
    assert told(lead.settle(2)) == (404, "the last batch of lease l is 1")


@pytest.mark.requirement("PIP-04")
def test_no_batch_is_made_of_an_empty_queue() -> None:
    _, lead = driver()
    lead.open()
    assert told(lead.acquire()) == (200, {"batch": 1, "messages": 0, "slices": [], "bytes": 0})
    assert lead.ask("READ", "lease", "l").map["batch"] == 0


@pytest.mark.requirement("PIP-04")
@pytest.mark.parametrize(
    ("limits", "messages"),
    [
        pytest.param({"max_messages": 1}, 1, id="messages"),
        pytest.param({"max_bytes": 1}, 1, id="bytes, but one message at least"),
        pytest.param({"max_bytes": 12}, 2, id="bytes"),
        pytest.param({"max_bytes": 13}, 3, id="the message that reaches the limit is the last"),
        pytest.param({}, 4, id="none"),
    ],
)
def test_a_batch_has_limits(limits: dict[str, object], messages: int) -> None:
    _, lead = driver(4)
    lead.open()
    assert lead.acquire(**limits).map["messages"] == messages  # type: ignore[arg-type]


@pytest.mark.requirement("PIP-04")
@pytest.mark.parametrize(
    ("argument", "most"),
    [
        ("max_messages", LEASE_BATCH_MESSAGES_MAX),
        ("slices", int(SLICES_MAX)),
        ("wait_ms", WAIT_MAX_MS),
    ],
)
def test_the_arguments_of_a_batch_are_bounded(argument: str, most: int) -> None:
    _, lead = driver(1)
    lead.open()
    low = 0 if argument == "wait_ms" else 1
    for value in (low - 1, most + 1):
        reply = lead.acquire(**{argument: value})
        assert told(reply) == (400, f"{argument} must be a number from {low} to {most}")
    assert lead.acquire(**{argument: most}).status == 200


@pytest.mark.requirement("PIP-04")
@pytest.mark.parametrize("missing", ["fencing_token", "batch"])
def test_a_request_says_of_what_it_speaks(missing: str) -> None:
    _, lead = driver(1)
    lead.open()
    body = {"fencing_token": 1, "batch": 1}
    del body[missing]
    assert told(lead.tell("ACQUIRE", body)) == (400, f"ACQUIRE needs {missing}")


@pytest.mark.requirement("PIP-04")
def test_a_request_waits_until_something_comes() -> None:
    broker, lead = driver()
    lead.open()
    lead.send(
        request("ACQUIRE", "lease", "l", body={"fencing_token": 1, "batch": 1, "wait_ms": 500})
    )
    assert lead.replies() == []
    broker.advance(499)
    assert lead.replies() == []
    assert lead.ask("RENEW", "lease", "l", fencing_token=1).status == 200, "others are not held up"
    broker.fill(count=2)
    (reply,) = lead.replies()
    assert reply.map["messages"] == 1, "what comes first is a batch, the rest is for the next"
    assert waiting(broker) == (1, 1)


@pytest.mark.requirement("PIP-04")
def test_a_request_waits_no_longer_than_it_wanted_to() -> None:
    broker, lead = driver()
    lead.open()
    lead.send(
        request("ACQUIRE", "lease", "l", body={"fencing_token": 1, "batch": 1, "wait_ms": 500})
    )
    broker.advance(499)
    assert lead.replies() == []
    broker.advance(1)
    (reply,) = lead.replies()
    assert told(reply) == (200, {"batch": 1, "messages": 0, "slices": [], "bytes": 0})
    broker.fill(count=1)
    assert waiting(broker) == (1, 0), "nobody waits any more"


@pytest.mark.requirement("PIP-04")
def test_one_request_waits_at_a_time() -> None:
    broker, lead = driver()
    lead.open()
    body = {"fencing_token": 1, "batch": 1, "wait_ms": 500}
    lead.send(request("ACQUIRE", "lease", "l", body=body))
    lead.send(request("ACQUIRE", "lease", "l", body=body))
    (earlier,) = lead.replies()
    assert told(earlier) == (409, "the same batch was asked for again")
    broker.fill(count=1)
    (reply,) = lead.replies()
    assert reply.map["messages"] == 1


@pytest.mark.requirement("PIP-01")
def test_who_waits_is_fenced_off_too() -> None:
    broker, lead = driver()
    lead.open()
    lead.send(
        request("ACQUIRE", "lease", "l", body={"fencing_token": 1, "batch": 1, "wait_ms": 500})
    )
    assert lead.replies() == []
    lead.send(request("OPEN", "lease", "l", body={"address": "q"}))
    fenced, opened = lead.replies()
    assert told(fenced) == (409, "fenced: fencing token 1 of lease l was followed by 2")
    assert opened.map["fencing_token"] == 2
    broker.fill(count=1)
    assert waiting(broker) == (1, 0)


# -- settle, renew, release


@pytest.mark.requirement("PIP-07")
def test_batches_are_settled_up_to_one() -> None:
    broker, lead = driver(3)
    lead.open()
    for lease_batch in (1, 2, 3):
        lead.acquire(lease_batch, max_messages=1)
    assert waiting(broker) == (0, 3)
    assert told(lead.settle(2)) == (200, {"settled": 2})
    assert waiting(broker) == (0, 1)
    assert told(lead.settle(2)) == (200, {"settled": 2})
    assert told(lead.settle(1)) == (200, {"settled": 2})
    assert told(lead.settle(0)) == (200, {"settled": 2})
    assert waiting(broker) == (0, 1)
    assert broker.stats.acknowledged == 2


@pytest.mark.requirement("PIP-07")
async def test_an_answer_waits_for_the_commit_of_what_it_tells() -> None:
    store = GatedStore()
    broker, lead = driver(store=store)
    running = asyncio.ensure_future(broker.journal.run(broker.container.run_round))

    async def answered(payload: bytes) -> Reply:
        lead.client.bodies()
        lead.send(payload)
        assert lead.replies() == []
        for _ in range(9):
            await asyncio.sleep(0)
        assert lead.replies() == [], "the commit is under way"
        while not (replies := lead.replies()):
            store.let_all_through()
            await asyncio.sleep(0)
        return replies[0]

    assert (await answered(request("OPEN", "lease", "l", body={"address": "q"}))).status == 200
    broker.fill(count=3)
    numbers = {"fencing_token": 1, "batch": 1}
    reply = await answered(request("ACQUIRE", "lease", "l", body=numbers))
    assert reply.map["messages"] == 3
    stored = await store.leases()
    assert [list(each.numbers) for each in stored.batches] == [[1, 2, 3]]
    assert (await answered(request("SETTLE", "lease", "l", body=numbers))).map == {"settled": 1}
    assert (await store.leases()).batches == []
    assert await store.messages(0) == []
    assert (await answered(request("RELEASE", "lease", "l"))).status == 200
    assert (await store.leases()).leases == []
    running.cancel()


@pytest.mark.requirement("PIP-08")
def test_a_lease_runs_out_unless_it_is_renewed() -> None:
    broker, lead = driver(2)
    lead.open(ttl_ms=1000)
    lead.acquire()
    broker.advance(900)
    reply = lead.ask("RENEW", "lease", "l", fencing_token=1)
    assert reply.map == {"expires_at_ms": broker.clock.wall_ms() + 1000}
    broker.advance(999)
    assert waiting(broker) == (0, 2)
    broker.advance(1)
    assert waiting(broker) == (2, 0)
    assert lead.ask("RENEW", "lease", "l", fencing_token=1).status == 410
    assert "noticed lease l of q has run out: 2 messages wait again" in broker.watcher.events
    receiver = broker.session("other")
    receiver.attach_receiver(credit=2)
    transfers = [receiver.expect(Transfer), receiver.expect(Transfer)]
    assert [body_of(each.payload) for each in transfers] == [b"0", b"1"]


@pytest.mark.requirement("PIP-08")
def test_what_is_asked_of_a_lease_shows_that_its_owner_lives() -> None:
    broker, lead = driver(2)
    lead.open(ttl_ms=1000)
    lead.acquire(max_messages=1)
    for operation, lease_batch in (("ACQUIRE", 1), ("ACQUIRE", 2), ("SETTLE", 1)):
        broker.advance(900)
        assert lead.tell(operation, {"fencing_token": 1, "batch": lease_batch}).status == 200
    broker.advance(1000)
    assert not broker.router.leases.named


@pytest.mark.requirement("PIP-08")
def test_a_lease_without_a_time_never_runs_out() -> None:
    broker, lead = driver(1)
    lead.open(ttl_ms=0)
    lead.acquire()
    assert lead.ask("RENEW", "lease", "l", fencing_token=1).map == {"expires_at_ms": 0}
    broker.advance(1000 * HOUR_MS)
    assert "l" in broker.router.leases.named
    assert waiting(broker) == (0, 1)


@pytest.mark.requirement("PIP-09")
@pytest.mark.parametrize("arguments", [{"fencing_token": 1}, {}], ids=["its owner", "an operator"])
def test_a_lease_is_released(arguments: dict[str, object]) -> None:
    broker, lead = driver(3)
    lead.open()
    lead.acquire(max_messages=2)
    reply = lead.tell("RELEASE", arguments)
    assert told(reply) == (200, {"messages": 2})
    assert waiting(broker) == (3, 0)
    assert not broker.queue().consumers.attached
    receiver = broker.session("other")
    receiver.attach_receiver(credit=3)
    receiver.expect_deliveries(b"0", b"1", b"2")
    assert told(lead.acquire())[0] == 410


@pytest.mark.requirement("PIP-09")
def test_a_lease_ends_with_its_queue() -> None:
    broker, lead = driver(1)
    lead.open()
    lead.acquire()
    assert lead.ask("DELETE", "queue", "q").status == 204
    assert told(lead.settle(1)) == (410, "gone: there is no lease l")
    assert lead.open() == 2
    assert waiting(broker) == (0, 0)


@pytest.mark.requirement("PIP-09")
def test_purging_a_queue_leaves_what_is_leased() -> None:
    broker, lead = driver(3)
    lead.open()
    lead.acquire(max_messages=1)
    assert lead.ask("PURGE", "queue", "q").map["purged"] == 2
    assert waiting(broker) == (0, 1)
    assert lead.settle(1).status == 200


# -- for operators


@pytest.mark.requirement("PIP-11")
def test_leases_are_listed() -> None:
    broker, lead = driver(2)
    lead.open("b", selector="a = 1", ttl_ms=0)
    lead.open()
    lead.acquire(fencing_token=2, max_messages=1)
    rows = lead.query("lease").rows
    assert [row["name"] for row in rows] == ["b", "l"]
    assert rows[0]["selector"] == "a = 1"
    assert rows[1] == {
        "name": "l",
        "identity": "l",
        "type": "lease",
        "address": "q",
        "subscription": None,
        "selector": None,
        "fencing_token": 2,
        "ttl_ms": HOUR_MS,
        "expires_at_ms": broker.clock.wall_ms() + HOUR_MS,
        "batch": 1,
        "settled": 0,
        "messages": 1,
    }
    assert lead.ask("READ", "lease", "l").map == rows[1]
    assert [row["name"] for row in lead.query("lease", filter="b*").rows] == ["b"]
