"""Complete and broken streams, on real sockets."""

import asyncio
from collections.abc import Callable

import pyarrow as pa
import pytest

from broker.http import events
from broker.http.arrow_streams import PIECE, Encoder
from broker.security.identity import ADMIN, APPLICATION
from storage.api import StoreError
from storage.events import EventColumns, EventQuery
from tests.support.access import RuledUsers
from tests.support.broker import Broker
from tests.support.http import ask, begin, event, note, served, socket_to
from tests.support.stores import GatedStore
from tests.unit.http.test_events import rows_in

END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""A message of length 0 (Arrow's specification, `Encapsulated message format`)."""

ROWS = [event(number) for number in range(1, 7)]


class PacedStore(GatedStore):
    """A store that reads two rows of the event log at a time, and waits before the second read."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = asyncio.Event()
        self.is_asked = asyncio.Event()
        self.reads = 0
        self.failure: Exception | None = None

    async def event_columns(self, query: EventQuery) -> EventColumns:
        self.reads += 1
        if query.behind > 0:
            self.is_asked.set()
            await self.may_go_on.wait()
            if self.failure is not None:
                raise self.failure
        return await super().event_columns(query)


@pytest.fixture(autouse=True)
def two_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "ROWS_AT_ONCE", 2)


@pytest.fixture
async def store() -> PacedStore:
    """Return a store that has the six rows."""
    paced = PacedStore()
    noting = asyncio.create_task(note(paced, *ROWS))
    await asyncio.sleep(0)
    paced.let_through()
    await noting
    return paced


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([], id="no batch"),
        pytest.param([0], id="a batch without rows"),
        pytest.param([1, 2], id="small ones"),
        pytest.param([PIECE // 8 * 3], id="one that is cut"),
        pytest.param([1, PIECE, 0, 3], id="all together"),
    ],
)
def test_pieces_are_the_stream(sizes: list[int]) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.binary())])
    batches = [
        pa.record_batch([pa.array(range(size)), pa.array([b"x" * 9] * size)], schema=schema)
        for size in sizes
    ]
    encoder = Encoder(schema)
    pieces = [piece for batch in batches for piece in encoder.encode(batch)]
    pieces += encoder.end()
    assert all(len(piece) <= PIECE for piece in pieces)
    data = b"".join(pieces)
    assert data.endswith(END_OF_STREAM)
    reader = pa.ipc.open_stream(data)
    assert reader.schema == schema
    assert list(reader) == [batch for batch in batches if batch.num_rows]


@pytest.mark.requirement("PIP-19")
async def test_a_whole_stream_has_its_end(store: PacedStore) -> None:
    store.may_go_on.set()
    async with served(store) as url:
        answer = await ask(f"{url}/arrow/events")
    assert answer.is_whole
    assert answer.body.endswith(END_OF_STREAM)
    reader = pa.ipc.open_stream(answer.body)
    assert [batch.num_rows for batch in reader] == [2, 2, 2]
    assert rows_in(answer.table()) == ROWS


@pytest.mark.requirement("PIP-19")
@pytest.mark.parametrize(
    ("failure", "told"),
    [
        pytest.param(StoreError("the disk is gone"), "the disk is gone", id="the store fails"),
        pytest.param(ZeroDivisionError("a bug"), "a bug", id="a bug"),
    ],
)
async def test_one_that_fails_has_none(store: PacedStore, failure: Exception, told: str) -> None:
    store.failure = failure
    store.may_go_on.set()
    broker = Broker()
    async with served(store, broker=broker) as url:
        answer = await ask(f"{url}/arrow/events")
    assert (answer.status, answer.is_whole) == (200, False)
    assert not answer.body.endswith(END_OF_STREAM)
    reader = pa.ipc.open_stream(answer.body)
    assert rows_in(reader.read_next_batch()) == ROWS[:2]
    (notice,) = broker.watcher.events
    assert notice.startswith("noticed a stream over HTTP to 127.0.0.1:")
    assert notice.endswith(f"broke off: {told}")


def take_role(users: RuledUsers) -> None:
    users.roles[""] = frozenset({APPLICATION})


def end_login(users: RuledUsers) -> None:
    users.ended.add("")


@pytest.mark.attack("Z7")
@pytest.mark.requirement("PIP-19", "OPS-08")
@pytest.mark.parametrize(
    ("withdraw", "told"),
    [
        pytest.param(end_login, "the login is no longer valid", id="the login has ended"),
        pytest.param(
            take_role, "user anonymous may not view management:events now", id="a role is taken"
        ),
    ],
)
async def test_one_whose_client_loses_its_right_ends_with_the_batch_before(
    store: PacedStore, withdraw: Callable[[RuledUsers], None], told: str
) -> None:
    users = RuledUsers({"": {ADMIN}})
    broker = Broker(authenticator=users)
    async with served(store, broker=broker) as url, socket_to(url) as (reader, writer):
        await begin("/arrow/events", reader, writer)
        await store.is_asked.wait()
        withdraw(users)
        store.may_go_on.set()
        rest = await reader.read()
    assert b"ID:2" in rest
    assert b"ID:3" not in rest
    assert END_OF_STREAM not in rest
    (notice,) = broker.watcher.events
    assert notice.endswith(f"broke off: {told}")


async def test_a_peer_that_goes_away_is_read_for_no_more(store: PacedStore) -> None:
    broker = Broker()
    async with served(store, broker=broker) as url:
        async with socket_to(url) as (reader, writer):
            await begin("/arrow/events", reader, writer)
            await store.is_asked.wait()
        for _ in range(100):  # the server reads that the connection is closed
            await asyncio.sleep(0)
        reads = store.reads
        store.may_go_on.set()
        # the server answers another request, so nothing is left of the first stream
        assert (await ask(f"{url}/livez")).status == 200
    assert store.reads <= reads + 1
    assert broker.watcher.events == []


@pytest.mark.requirement("PIP-20")
async def test_only_so_many_streams_are_under_way(store: PacedStore) -> None:
    async with served(store, streams_max=1) as url, socket_to(url) as (reader, writer):
        await begin("/arrow/events", reader, writer)
        await store.is_asked.wait()
        refused = await ask(f"{url}/arrow/events")
        bounds = await ask(f"{url}/events/bounds")
        store.may_go_on.set()
        assert await reader.readuntil(b"\r\n0\r\n\r\n")
        again = await ask(f"{url}/arrow/events")
    assert (refused.status, refused.error()) == (503, "1 streams are under way; ask again later")
    assert bounds.status == 200
    assert again.table().num_rows == len(ROWS)


@pytest.mark.requirement("PIP-20")
async def test_a_stop_cuts_off_what_is_under_way(store: PacedStore) -> None:
    async with served(store) as url:
        asking = asyncio.create_task(ask(f"{url}/arrow/events"))
        await store.is_asked.wait()
        asyncio.get_running_loop().call_later(0.01, store.may_go_on.set)
    # the server has stopped by now
    try:
        answer = await asking
    except ConnectionError:
        return
    assert not answer.is_whole
