"""The event log read from the store itself: the same rows as from the broker."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from broker import Broker
from pyspark_amqp.errors import BrokerError
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import Options, read_options
from pyspark_amqp.rows.columns import EVENT_LOG_COLUMNS
from pyspark_amqp.source import events
from tests.support import postgres
from tests.unit.pyspark_amqp.sending import message, send

LOGGED = [{"pattern": "told", "event_log": True}]
COUNT = 30


def table(options: Options, names: list[str]) -> pa.Table:
    first, last = events.bounds(options)
    assert (first, last) == (1, COUNT)
    return pa.Table.from_batches(events.rows(options, names, 2, 29)).combine_chunks()


def options(**given: str) -> Options:
    return read_options({"mode": "events", **given}, Use.BATCH)


@pytest.mark.requirement("PIP-36")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_store_has_the_rows_that_the_broker_tells(kind: str, tmp_path: Path) -> None:
    """PostgreSQL is read while its broker runs, an SQLite file after the broker has stopped."""
    server = postgres.server() if kind == "postgresql" else None
    store = server.url(server.database()) if server else f"sqlite:///{tmp_path / 'store.db'}"
    with Broker(store=store, http={"port": 0}, address=LOGGED) as running:
        send(running.url, "told", [message(at) for at in range(COUNT)])
        by_http = table(options(managementUrl=running.http_url), list(EVENT_LOG_COLUMNS))
        by_amqp = table(options(url=running.url), list(EVENT_LOG_COLUMNS))
        live = server is None or table(options(storeUrl=store), list(EVENT_LOG_COLUMNS)) == by_http
    assert live
    assert table(options(storeUrl=store), list(EVENT_LOG_COLUMNS)) == by_http == by_amqp
    few = table(options(storeUrl=store), ["kind", "id"])
    assert few == by_http.select(["kind", "id"])
    chosen = options(storeUrl=store, address="told", kind="accepted")
    assert list(events.rows(chosen, ["id"], 0, COUNT)) == []


@pytest.mark.requirement("PIP-36")
def test_an_empty_store_has_no_rows_and_no_store_is_an_error(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    with pytest.raises(BrokerError, match="there is no file"):
        events.bounds(options(storeUrl=store))
    with Broker(store=store):
        pass
    assert events.bounds(options(storeUrl=store)) == (0, 0)
