"""Answers over HTTP: on a real socket, and each error with its text."""

import json
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import pytest

from broker.amqp.decode import skip
from broker.amqp.terminus import COPY, Source
from broker.app import App
from broker.http.messages import SCHEMA
from broker.security.users import Users
from broker.settings import MEMORY, given_settings
from storage.api import StoreError
from storage.memory import MemoryStore
from tests.support.access import ADA, RuledUsers, access_of, refusal
from tests.support.broker import Broker
from tests.support.clock import WALL_START_MS
from tests.support.frames import Transfer, attach_receiver
from tests.support.http import Answer, ask, basic, event, note, served
from tests.support.stores import GatedStore
from tests.unit.http.test_events import rows_in
from tests.unit.links.test_slices import lease_slice, said
from tests.unit.management.test_leases import Driver, driver


@pytest.mark.requirement("PIP-19")
@pytest.mark.parametrize(
    ("query", "ids"),
    [
        pytest.param("", [1, 2, 3, 4], id="everything"),
        pytest.param("behind=1", [2, 3, 4], id="behind an id"),
        pytest.param("behind=1&until=3", [2, 3], id="up to an id"),
        pytest.param("until=99", [1, 2, 3, 4], id="up to an id that is not there yet"),
        pytest.param("behind=4", [], id="behind the last"),
        pytest.param("address=b", [2, 4], id="of one address"),
        pytest.param("kind=accepted", [3, 4], id="of one kind"),
        pytest.param("address=b&kind=accepted&behind=2&until=4", [4], id="all together"),
        pytest.param("address=nowhere", [], id="of an address that is not there"),
    ],
)
async def test_rows_of_the_event_log(query: str, ids: list[int]) -> None:
    store = MemoryStore()
    rows = [event(1), event(2, address="b"), event(3, "accepted"), event(4, "accepted", "b")]
    await note(store, *rows)
    async with served(store) as url:
        answer = await ask(f"{url}/arrow/events?{query}")
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
    assert answer.headers["transfer-encoding"] == "chunked"
    assert rows_in(answer.table()) == [row for row in rows if row[0] in ids]


@pytest.mark.requirement("PIP-19")
async def test_the_bounds_of_the_event_log() -> None:
    store = MemoryStore()
    async with served(store) as url:
        empty = await ask(f"{url}/events/bounds")
        await note(store, event(7), event(8))
        filled = await ask(f"{url}/events/bounds")
    assert json.loads(empty.body) == {"first": 0, "last": 0}
    assert json.loads(filled.body) == {"first": 7, "last": 8}


async def test_the_head_of_a_stream_alone() -> None:
    store = MemoryStore()
    await note(store, event(1))
    async with served(store) as url:
        answer = await ask(f"{url}/arrow/events", method="HEAD")
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.requirement("PIP-20")
@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        pytest.param(
            "/arrow/events?behind=x", 400, "behind must be a number from 0 to", id="number"
        ),
        pytest.param(
            "/arrow/events?until=-1", 400, "until must be a number from 0 to", id="negative"
        ),
        pytest.param("/arrow/events?kind=gone", 400, "no kind gone; known are enq", id="kind"),
        pytest.param("/arrow/events?adress=a", 400, "no argument adress; known", id="argument"),
        pytest.param("/arrow/events?kind=expired&kind=moved", 400, "kind is there twice", id="2"),
        pytest.param("/arrow/events?address=/queue/tmp/", 400, "lacks a name", id="address"),
        pytest.param("/events/bounds?x=1", 400, "no argument x; known are none", id="bounds"),
        pytest.param("/arrow/browse", 400, "address or subscription is needed, one", id="whose"),
        pytest.param(
            "/arrow/browse?address=a&subscription=b", 400, "one of them", id="address and another"
        ),
        pytest.param("/arrow/browse?address=nowhere", 404, "no queue nowhere", id="no such queue"),
        pytest.param("/arrow/browse?subscription=x", 404, "no subscription x", id="nor that"),
        pytest.param("/arrow/browse?address=/queue/tmp/", 400, "lacks a name", id="half a name"),
        pytest.param(
            "/arrow/browse?address=q&slice=2&slices=2",
            400,
            "slice must be a number from 0 to 1",
            id="3",
        ),
        pytest.param(
            "/arrow/browse?address=q&slices=257",
            400,
            "slices must be a number from 1 to 256",
            id="257",
        ),
        pytest.param(
            "/arrow/browse?address=q&selector=a+%3D", 400, "selector, character", id="a selector"
        ),
        pytest.param(
            "/arrow/browse?address=q&arrived_until_ms=now",
            400,
            "arrived_until_ms must be",
            id="time",
        ),
        pytest.param("/arrow/jornal", 404, "GET /arrow/jornal is not known here", id="path"),
        pytest.param("/", 404, "GET / is not known here", id="nothing"),
    ],
)
async def test_what_is_wrong_is_told(path: str, status: int, told: str) -> None:
    broker = Broker()
    broker.fill("q")
    async with served(MemoryStore(), broker=broker) as url:
        answer = await ask(url + path)
    assert (answer.status, answer.headers["content-type"]) == (status, "application/json")
    assert told in answer.error()


CAME = WALL_START_MS


@pytest.mark.requirement("PIP-18")
@pytest.mark.parametrize(
    ("query", "positions"),
    [
        pytest.param("address=q", [4, 14, 24, 34], id="everything"),
        pytest.param("address=q&slice=1&slices=2", [14, 34], id="a part"),
        pytest.param(f"address=q&arrived_until_ms={CAME}", [4, 14, 24, 34], id="just in time"),
        pytest.param(f"address=q&arrived_until_ms={CAME - 1}", [], id="too late"),
        pytest.param("address=q&selector=JMSPriority+%3D+5", [], id="a selector"),
    ],
)
async def test_what_waits_in_a_queue(query: str, positions: list[int]) -> None:
    broker = Broker()
    broker.fill("q", 4)
    async with served(MemoryStore(), broker=broker) as url:
        answer = await ask(f"{url}/arrow/browse?{query}")
    assert answer.table()["position"].to_pylist() == positions
    assert (broker.queue().backlogs.waiting, broker.queue().consumers.count()) == (4, 0)


@pytest.mark.requirement("PIP-18")
async def test_what_waits_in_a_subscription() -> None:
    broker = Broker()
    client = broker.session()
    source = Source(address="news", durable=2, capabilities=["topic"])
    client.attach(attach_receiver(name="daily", source=source))
    broker.fill("news", 2, kind="topic")
    async with served(MemoryStore(), broker=broker) as url:
        answer = await ask(f"{url}/arrow/browse?subscription=durable/client/daily")
        other = await ask(f"{url}/arrow/browse?address=news")
    assert answer.table()["position"].to_pylist() == [4, 14]
    assert other.status == 404
    assert other.error() == "no queue news, only a topic: messages are in its subscriptions"


# -- leases


def leased(count: int = 10) -> tuple[Broker, Driver]:
    """Return a broker with a lease `l` that has a batch of two slices, and the lease's driver."""
    broker, lead = driver(count)
    lead.open()
    assert lead.acquire(slices=2).status == 200
    return broker, lead


def lease_url(url: str, **changes: object) -> str:
    asked = {"lease": "l", "fencing_token": 1, "batch": 1, "slice": 0, **changes}
    return f"{url}/arrow/lease?{urlencode(asked)}"


RIGHTS = [
    # the rights of the client, the lease that it asks for, the status, the error
    pytest.param((), "l", 403, refusal("view management:leases"), id="no right"),
    pytest.param((), "x", 403, refusal("view management:leases"), id="no right, no lease"),
    pytest.param(
        ("view management:leases",),
        "l",
        403,
        refusal("lease queue:q"),
        id="the right to see which leases there are",
    ),
    pytest.param(
        ("view management:leases",),
        "x",
        410,
        "gone: there is no lease x",
        id="the right to see which leases there are, no lease",
    ),
    pytest.param(("lease queue:q",), "l", 200, "", id="the right to lease"),
]


@pytest.mark.parametrize(("rights", "lease", "status", "error"), RIGHTS)
async def test_a_refusal_does_not_tell_whether_there_is_a_lease(
    rights: tuple[str, ...], lease: str, status: int, error: str
) -> None:
    users = RuledUsers({"": {"admin"}})
    users.passwords = {ADA: "sesame"}
    lead = Driver(Broker(authenticator=users, access=access_of(*rights)))
    lead.broker.fill(count=1)
    lead.open()
    lead.acquire(slices=1)
    async with served(MemoryStore(), broker=lead.broker) as url:
        answer = await ask(lease_url(url, lease=lease), basic(ADA, "sesame"))
    assert answer.status == status
    assert status == 200 or answer.error() == error


@pytest.mark.requirement("PIP-17")
async def test_a_slice_has_its_messages_each_time() -> None:
    broker, _ = leased()
    async with served(MemoryStore(), broker=broker) as url:
        first = await ask(lease_url(url))
        second = await ask(lease_url(url, slice=1))
        again = await ask(lease_url(url))
    assert first.table()["position"].to_pylist() == [4, 14, 24, 34, 44]
    assert second.table()["position"].to_pylist() == [54, 64, 74, 84, 94]
    assert again.table() == first.table()
    assert (broker.queue().backlogs.waiting, broker.queue().state.acquired) == (0, 10)
    now = datetime.fromtimestamp(broker.clock.wall_ms() / 1000, UTC)
    assert set(first.table()["enqueuedAt"].to_pylist()) == {now}


@pytest.mark.requirement("PIP-17", "PIP-44")
async def test_a_message_is_what_a_link_gets() -> None:
    broker, _ = leased()
    client = broker.session("reader")
    source = Source(
        address="q",
        distribution_mode=COPY,
        filter=[lease_slice(said(lease="l", fencing_token=1, batch=1, slice=1))],
    )
    client.send(attach_receiver(source=source))
    client.flow(handle=0, credit=100, delivery_count=0, drain=True)
    transfers = [each for each in client.bodies() if isinstance(each, Transfer)]
    async with served(MemoryStore(), broker=broker) as url:
        answer = await ask(lease_url(url, slice=1))
    assert answer.table()["message"].to_pylist() == [
        without_delivery_annotations(each.payload) for each in transfers
    ]
    assert len(transfers) == 5


def without_delivery_annotations(payload: bytes) -> bytes:
    """Return `payload` without the delivery-annotations, which tell a message's place on a link.

    A stream tells the place in columns instead.
    """
    header = payload.index(b"\0Sq")
    return payload[:header] + payload[skip(payload, header, len(payload)) :]


@pytest.mark.requirement("PIP-17")
async def test_an_empty_slice_is_a_stream_without_rows() -> None:
    broker, _ = leased(1)
    async with served(MemoryStore(), broker=broker) as url:
        answer = await ask(lease_url(url, slice=1))
    assert answer.table().num_rows == 0
    assert answer.table().schema == SCHEMA


LEASE_ERRORS = [
    pytest.param({"lease": "x"}, 410, "gone: there is no lease x", id="no such lease"),
    pytest.param({"batch": 2}, 404, "lease l has no batch 2", id="no such batch"),
    pytest.param({"slice": 2}, 404, "batch 1 of lease l has no slice 2", id="no such slice"),
    pytest.param({"slice": 256}, 400, "slice must be a number from 0 to 255", id="no slice at all"),
    pytest.param(
        {"fencing_token": ""},
        400,
        "fencing_token must be a number from 0 to",
        id="no fencing token",
    ),
    pytest.param(
        {"fencing_token": 9}, 410, "gone: fencing token 9 of lease l is not", id="of tomorrow"
    ),
    pytest.param({"batch": "x"}, 400, "batch must be a number from 0 to", id="no number"),
    pytest.param({"lease": ""}, 400, "lease is needed", id="no name"),
    pytest.param({"address": "q"}, 400, "no argument address; known are lease", id="an address"),
]


@pytest.mark.requirement("PIP-17")
@pytest.mark.parametrize(("changes", "status", "told"), LEASE_ERRORS)
async def test_what_is_wrong_of_a_lease_is_told(
    changes: dict[str, object], status: int, told: str
) -> None:
    broker, _ = leased()
    async with served(MemoryStore(), broker=broker) as url:
        answer = await ask(lease_url(url, **changes))
    assert (answer.status, told in answer.error()) == (status, True), answer.error()


@pytest.mark.requirement("PIP-17")
async def test_who_was_followed_by_another_is_told() -> None:
    broker, lead = leased()
    lead.open()
    async with served(MemoryStore(), broker=broker) as url:
        fenced = await ask(lease_url(url))
        lead.settle(1, fencing_token=2)
        settled = await ask(lease_url(url, fencing_token=2))
    assert fenced.status == 409
    assert fenced.error() == "fenced: fencing token 1 of lease l was followed by 2"
    assert settled.status == 410
    assert settled.error() == "gone: batch 1 of lease l is settled"


async def test_nothing_can_be_changed() -> None:
    async with served(MemoryStore()) as url:
        answer = await ask(f"{url}/events/bounds", method="POST")
    assert (answer.status, answer.error()) == (405, "POST /events/bounds is not known here")


class LostStore(GatedStore):
    """A store whose disk is gone."""

    async def event_bounds(self) -> tuple[int, int]:
        raise StoreError("the disk is gone")


@pytest.mark.requirement("PIP-20")
@pytest.mark.parametrize("path", ["/events/bounds", "/arrow/events"])
async def test_a_store_that_fails_is_told(path: str) -> None:
    async with served(LostStore()) as url:
        answer = await ask(url + path)
    assert (answer.status, answer.error()) == (503, "the disk is gone")


async def test_a_broker_that_stops_says_so() -> None:
    broker = Broker()
    async with served(MemoryStore(), broker=broker) as url:
        broker.container.closing = True
        answer = await ask(f"{url}/events/bounds")
    assert (answer.status, answer.error()) == (503, "the broker is stopping")


# -- users


@pytest.fixture
async def strict(tmp_path: Path) -> App:
    """Return a broker, not yet started, with an administrator and another user."""
    users = Users(tmp_path / "users")
    users.add("owner", "sesame", administrator=True)
    users.add("clerk", "pencil")
    settings = given_settings(port=0, users_file=tmp_path / "users", store=MEMORY, http={"port": 0})
    return App(settings)


async def asked(app: App, path: str, headers: dict[str, str] | None = None) -> Answer:
    """Start `app`, ask for one path, and stop it; return the answer."""
    await app.start()
    assert app.http is not None
    try:
        return await ask(app.http.url() + path, headers)
    finally:
        await app.stop()


WRONG_PATHS = {"/arrow/browse?address=q": 404, "/arrow/lease?lease=l": 400}
"""Paths with mistakes; only a client with access is told these statuses."""

USERS = [
    pytest.param(basic("owner", "sesame"), 200, "", id="an administrator"),
    pytest.param(basic("clerk", "pencil"), 403, "not allowed to view management", id="a user"),
    pytest.param(basic("owner", "Sesame"), 401, "the password is wrong", id="a wrong password"),
    pytest.param(basic("eve", "sesame"), 401, "the user is unknown", id="somebody else"),
    pytest.param({}, 401, "a name and a password are needed", id="nobody"),
    pytest.param({"Authorization": "Bearer x"}, 401, "token is not taken", id="a token"),
    pytest.param({"Authorization": "Negotiate x"}, 401, "is not Basic", id="another scheme"),
]


@pytest.mark.requirement("PIP-20")
@pytest.mark.parametrize(
    "path", ["/events/bounds", "/arrow/events", "/arrow/browse?address=q", "/arrow/lease?lease=l"]
)
@pytest.mark.parametrize(("headers", "status", "told"), USERS)
async def test_the_users_are_those_of_amqp(
    strict: App, path: str, headers: dict[str, str], status: int, told: str
) -> None:
    answer = await asked(strict, path, headers)
    if status == 403 and path.startswith("/arrow/browse"):
        status, told = 200, ""  # every application may browse
    assert answer.status == (WRONG_PATHS.get(path, 200) if status == 200 else status)
    assert ("www-authenticate" in answer.headers) == (status == 401)
    if told:
        assert told in answer.error()


async def test_whether_it_lives_is_told_to_everybody(strict: App) -> None:
    answer = await asked(strict, "/livez")
    assert (answer.status, answer.body) == (200, b"ok\n")
