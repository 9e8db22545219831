"""PostgreSQL: its required settings, refusals, and the meaning of its errors."""

import asyncpg
import pytest

from storage.api import StoreError
from storage.batch import Batch
from storage.sql.index import Index
from storage.sql.postgresql import postgres
from storage.sql.postgresql.postgres import (
    AwayError,
    Facts,
    columns_of,
    connect,
    explained,
    is_passing,
    is_plain,
    name_of,
    refusal,
)
from tests.unit.storage.test_batch import stored

DURABLE = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "synchronous_standby_names": "",
    "server_encoding": "UTF8",
}


def facts(
    version: int = 150018,
    process: int = 7,
    *,
    hosts: int = 1,
    is_standby: bool = False,
    **settings: str,
) -> Facts:
    return Facts(
        version=version,
        settings=DURABLE | settings,
        is_standby=is_standby,
        process=process,
        processes=[7, 7],
        hosts=hosts,
    )


REFUSALS = [
    pytest.param(facts(), "", id="a server as it comes"),
    pytest.param(facts(synchronous_commit="remote_apply"), "", id="a standby must have it"),
    pytest.param(facts(version=140011), "15 or newer", id="too old"),
    pytest.param(facts(process=8), "pooler", id="another session than the greeting named"),
    pytest.param(facts(fsync="off"), "set fsync = on", id="nothing is synced"),
    pytest.param(facts(full_page_writes="off"), "set full_page_writes = on", id="torn pages"),
    pytest.param(facts(synchronous_commit="off"), "ALTER ROLE", id="commits are not waited for"),
    pytest.param(facts(synchronous_commit="local"), "ALTER ROLE", id="the standby is not"),
    pytest.param(facts(server_encoding="LATIN1"), "ENCODING 'UTF8'", id="another encoding"),
    pytest.param(facts(hosts=2), "set synchronous_standby_names", id="two servers, each alone"),
    pytest.param(
        facts(hosts=2, synchronous_standby_names="ANY 1 (b)"), "", id="two servers, one waits"
    ),
    pytest.param(facts(hosts=2, is_standby=True), "", id="the one of them that is a standby"),
]


@pytest.mark.requirement("PRD-03")
@pytest.mark.parametrize(("given", "says"), REFUSALS)
def test_what_would_not_be_durable_is_refused(given: Facts, says: str) -> None:
    why = refusal(given)
    assert says in why
    assert bool(says) is bool(why)


NAMES = [
    pytest.param("postgresql://me:secret@db.example:5433/jms?sslmode=require", "db.example:5433"),
    pytest.param("postgresql://me:se@cret@db.example/jms", "db.example"),
    pytest.param("postgresql://me:se@/cret@db.example/jms", "db.example"),
    pytest.param("postgresql://db.example/jms", "db.example"),
    pytest.param("postgresql:///jms?host=%2Ftmp&password=secret", ""),
]


@pytest.mark.parametrize(("url", "host"), NAMES)
def test_a_name_tells_no_secret(url: str, host: str) -> None:
    assert name_of(url) == f"postgresql://{host}/jms"


async def test_a_url_that_cannot_be_read_is_told_without_its_password() -> None:
    with pytest.raises(StoreError, match="see host, port and options") as refused:
        await connect("postgresql://me:secret@db.example:port/jms", "test")
    assert "secret" not in str(refused.value)


def server_error(code: str) -> Exception:
    failed: Exception = asyncpg.PostgresError("said the server")
    vars(failed)["sqlstate"] = code
    return failed


ERRORS = [
    pytest.param(ConnectionResetError(), True, id="the connection is gone"),
    pytest.param(TimeoutError(), True, id="nobody answers"),
    pytest.param(AwayError("standby"), True, id="it is a standby, for now"),
    pytest.param(asyncpg.InterfaceError("connection is closed"), True, id="the driver knows"),
    pytest.param(server_error("08006"), True, id="connection failure"),
    pytest.param(server_error("57P01"), True, id="ended by an administrator"),
    pytest.param(server_error("57P03"), True, id="starting up"),
    pytest.param(server_error("55P03"), True, id="somebody else has a lock"),
    pytest.param(server_error("28P01"), False, id="wrong password"),
    pytest.param(server_error("53100"), False, id="disk full"),
    pytest.param(server_error("23505"), False, id="there already"),
    pytest.param(StoreError("taken over"), False, id="our own refusal"),
    pytest.param(ValueError("not a number"), False, id="our own mistake"),
]


@pytest.mark.parametrize(("error", "expected"), ERRORS)
def test_what_may_pass(error: Exception, expected: bool) -> None:
    assert is_passing(error) is expected


def test_errors_say_what_to_do() -> None:
    assert "createdb" in str(explained(server_error("3D000"), "postgresql://h/d"))
    assert str(explained(server_error("XX000"), "n")) == "the store n failed: said the server"
    assert str(explained(TimeoutError(), "n")) == "the store n failed: TimeoutError"
    refused = StoreError("refused")
    assert explained(refused, "n") is refused


def test_no_rows_are_empty_columns() -> None:
    assert columns_of([], 2) == [(), ()]
    assert columns_of([(1, b"a"), (2, b"b")], 2) == [(1, 2), (b"a", b"b")]


def test_one_statement_takes_what_comes_and_goes() -> None:
    index = Index()
    index.speak_for(numbers=1000, queues=100)
    batch = Batch()
    batch.append(stored(1))
    assert not is_plain(index.apply(batch)), "its queue is new"
    batch = Batch()
    batch.append(stored(2))
    batch.append(stored(3))
    batch.remove(1)
    assert is_plain(index.apply(batch))
    batch = Batch()
    batch.count(2, 1)
    assert is_plain(index.apply(batch)), "a record is written anew"
    batch = Batch()
    batch.append(stored(4).with_bytes(bytes(postgres.STATEMENT_BYTES_MAX + 1)))
    assert not is_plain(index.apply(batch)), "too large for one value"
