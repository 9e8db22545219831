"""The stream that takes messages, without Spark: the errors if a node or lease is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from broker import Broker
from pyspark_amqp.errors import BrokerError
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import Options, read_options
from pyspark_amqp.source.lease import LeaseLostError
from pyspark_amqp.source.lease_stream import LeaseStreamReader
from pyspark_amqp.wire.broker_client import opened
from tests.unit.pyspark_amqp.sending import message, send

FEW: Final = ReadMaxRows(4)
COUNT: Final = 12


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def options(broker: Broker, **given: str) -> Options:
    return read_options({"url": broker.url, "pollTimeoutMs": "0", **given}, Use.STREAM)


def test_a_subscription_that_is_not_there_is_no_lost_lease(broker: Broker) -> None:
    stream = LeaseStreamReader(options(broker, subscription="durable/me/none"), ["position"])
    told = r"^no subscription durable/me/none: name it as .* list` does, or give the option topic$"
    with pytest.raises(BrokerError, match=told):
        stream.latestOffset(stream.initialOffset(), FEW)


def test_a_queue_that_is_not_there_is_no_lost_lease() -> None:
    with Broker(address=[{"pattern": "nowhere", "auto_create": False}]) as strict:
        stream = LeaseStreamReader(options(strict, address="nowhere"), ["position"])
        with pytest.raises(BrokerError, match=r"there is no queue nowhere; .*createAddress=true"):
            stream.latestOffset(stream.initialOffset(), FEW)
        asked = options(strict, address="nowhere", createAddress="true")
        stream = LeaseStreamReader(asked, ["position"])
        with pytest.raises(BrokerError, match=r"^OPEN lease: .*nowhere"):
            stream.latestOffset(stream.initialOffset(), FEW)


@pytest.mark.requirement("PIP-42")
@pytest.mark.parametrize("fails", [True, False])
def test_a_batch_whose_lease_is_lost_fails_or_comes_again(broker: Broker, fails: bool) -> None:
    """Spark's batch consists of two batches of the lease; this process knows only the second."""
    address = f"lost-{fails}"
    send(broker.url, address, [message(at, address) for at in range(COUNT)])
    given = options(broker, address=address, failOnLeaseLoss=str(fails))
    stream = LeaseStreamReader(given, ["position"])
    start = stream.initialOffset()
    first = stream.latestOffset(start, FEW)
    end = stream.latestOffset(first, FEW)
    assert [offset["batch"] for offset in (start, first, end)] == [0, 1, 2]
    with opened(given) as asked:
        asked.ask("RELEASE", "lease", end["lease"])
    if fails:
        with pytest.raises(LeaseLostError, match="failOnLeaseLoss=false goes on"):
            stream.partitions(start, end)
        stream.stop()
        return
    assert stream.partitions(start, end) == []
    again = stream.latestOffset(end, ReadMaxRows(COUNT))
    assert again["lease"] != end["lease"]
    assert len(stream.partitions(end, again)) > 0
    stream.stop()


def test_an_offset_of_an_older_checkpoint_is_read(broker: Broker) -> None:
    send(broker.url, "older", [message(at, "older") for at in range(COUNT)])
    stream = LeaseStreamReader(options(broker, address="older"), ["position"])
    first = stream.latestOffset(stream.initialOffset(), FEW)
    older = {name: first[name] for name in ("v", "lease", "base")} | {"epoch": first["batch"]}
    assert stream.latestOffset(older, FEW) == {**first, "batch": first["batch"] + 1}
    stream.stop()


@pytest.mark.requirement("PIP-78")
def test_a_stream_tells_how_far_it_is_behind(broker: Broker) -> None:
    send(broker.url, "behind", [message(at, "behind") for at in range(COUNT)])
    stream = LeaseStreamReader(options(broker, address="behind"), ["position"])
    assert stream.reportLatestOffset() is None, "there is no lease yet"
    end = stream.latestOffset(stream.initialOffset(), FEW)
    told = stream.reportLatestOffset()
    assert told is not None
    age_ms, size = told.pop("oldestAgeMs"), told.pop("queueBytes")
    assert 0 <= age_ms < 60_000
    assert size > 0
    assert told == {
        **end,
        "settledBatch": 0,
        "leaseState": "open",
        "messagesBehind": COUNT - 4,
    }
    stream.stop()


@pytest.mark.requirement("PIP-78")
def test_a_lag_that_cannot_be_asked_fails_no_query(caplog: pytest.LogCaptureFixture) -> None:
    with Broker() as short:
        send(short.url, "behind", [message(0, "behind")])
        given = options(short, address="behind", **{"amqp.timeout": "100ms"})
        stream = LeaseStreamReader(given, ["position"])
        end = stream.latestOffset(stream.initialOffset(), FEW)
    told = stream.reportLatestOffset()
    assert told == {**end, "settledBatch": 0, "leaseState": "open"}
    assert "how far the stream is behind is unknown" in caplog.text
    stream.stop()
