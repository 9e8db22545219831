"""The servers that a store's URL names, and which of them is used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest

from storage.api import StoreError
from storage.sql.postgresql.postgres import AwayError, Place
from storage.sql.postgresql.servers import chosen, places_of, writable
from tests.support import postgres
from tests.support.ports import free_port
from tests.support.postgres import Server
from tests.support.postgres_replica import Replica

ASKS = "SELECT FROM pg_stat_activity WHERE application_name = 'jms-broker asks'"

URLS = [
    pytest.param(
        "postgresql://me:se,cret@db.example:5433/jms?sslmode=require",
        [("db.example", 5433)],
        id="one",
    ),
    pytest.param("postgresql://me@a:5433,b/jms", [("a", 5433), ("b", 5432)], id="two"),
    pytest.param(
        "postgresql:///jms?user=me&host=a,b,c&port=1,2,3",
        [("a", 1), ("b", 2), ("c", 3)],
        id="three, as an option",
    ),
    pytest.param("postgresql://a,b/jms?port=7", [("a", 7), ("b", 7)], id="one port for all"),
    pytest.param(
        "postgresql://[::1]:5433,[2001:db8::2]/jms",
        [("::1", 5433), ("2001:db8::2", 5432)],
        id="addresses of IPv6",
    ),
    pytest.param(
        "postgresql://%2Frun%2Fone,%2Frun%2Ftwo/jms",
        [("/run/one", 5432), ("/run/two", 5432)],
        id="sockets",
    ),
    pytest.param("postgresql:///jms", [("", 5432)], id="the default"),
]


@pytest.mark.parametrize(("url", "expected"), URLS)
def test_servers_of_a_url(url: str, expected: list[Place], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGPORT", raising=False)
    assert places_of(url) == expected


def test_the_default_port_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "6000")
    assert places_of("postgresql://a,b:1/jms") == [("a", 6000), ("b", 1)]


A, B, C = ("a", 1), ("b", 2), ("c", 3)
REPLACED = (
    "the server b:2 was promoted in place of a:1, which takes changes, too: stop it, and make it"
    " a standby; the store is in the promoted one"
)

CHOICES: list[object] = [
    # the answers of the servers, the one that is used, the sentences that are told
    pytest.param({A: 1, B: 0}, A, [], id="a primary and its standby"),
    pytest.param({A: "refused", B: 2}, B, [], id="the primary alone answers"),
    pytest.param({A: 1, B: 2, C: 0}, B, [REPLACED], id="the old primary is back"),
]


@pytest.mark.parametrize(("answers", "expected", "told"), CHOICES)
def test_the_server_that_was_promoted_last_is_used(
    answers: dict[Place, int | str], expected: Place, told: list[str]
) -> None:
    sentences: list[str] = []
    assert chosen(answers, sentences.append) == expected
    assert sentences == told


def test_of_two_servers_that_take_changes_alike_none_is_used() -> None:
    with pytest.raises(StoreError, match="a:1 and b:2 both take changes"):
        chosen({A: 2, B: 2, C: 1}, untold)


def test_standbys_are_not_used() -> None:
    with pytest.raises(AwayError, match=r"\(a:1: a standby; b:2: refused\)"):
        chosen({A: 0, B: "refused"}, untold)


def untold(text: str) -> None:
    raise AssertionError(text)


# ---- with servers


@pytest.fixture
def server() -> Server:
    return postgres.server()


@pytest.fixture
async def mute() -> AsyncIterator[int]:
    """Yield a port at which connections are accepted, and nothing is answered."""
    over = asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield int(listening.sockets[0].getsockname()[1])
    over.set()
    listening.close()


async def test_servers_that_do_not_answer_are_not_waited_for_long(
    server: Server, mute: int
) -> None:
    place = (str(server.folder), 5432)
    hosts = f"127.0.0.1:{free_port()},127.0.0.1:{mute},{quote(str(server.folder), safe='')}"
    began_s = asyncio.get_running_loop().time()
    assert await writable(server.url(server.database(), host=hosts), untold) == place
    assert asyncio.get_running_loop().time() - began_s < 3, "half a second on an idle machine"


async def test_a_promotion_is_seen_though_the_old_primary_never_answers(mute: int) -> None:
    """Its machine is without power: a connection to it takes long to fail."""
    primary = postgres.server("replicated")
    primary.see_to_it_that_it_runs()
    database = primary.database()
    replica = Replica(primary)
    try:
        socket = quote(str(replica.folder), safe="")
        url = replica.url(database, host=f"127.0.0.1:{mute},{socket}")
        asking = asyncio.create_task(writable(url, untold))
        while not asking.done() and not await replica.sql(ASKS):
            pass
        await asyncio.to_thread(replica.promote)
        assert await asking == (str(replica.folder), 5432)
    finally:
        replica.remove()


async def test_a_url_of_one_server_is_not_asked(mute: int) -> None:
    assert await writable(f"postgresql://127.0.0.1:{mute}/jms", untold) is None
