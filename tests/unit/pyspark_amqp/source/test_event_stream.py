"""The stream of the event log without Spark: lost rows are reported, and none is skipped."""

from __future__ import annotations

from typing import Final

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from broker import Broker
from pyspark_amqp.errors import DataLossError
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import read_options
from pyspark_amqp.source import events
from pyspark_amqp.source.event_stream import EventStreamReader
from tests.unit.pyspark_amqp.sending import message, send

KEPT: Final = 50
SOME: Final = 1000
"""Rows that make the broker trim its event log; it then keeps KEPT rows at most."""

WAYS: Final = ("amqp", "http")


def kept(**settings: object) -> Broker:
    told = {"pattern": "told", "event_log": True}
    return Broker(http={"port": 0}, address=[told], **settings)  # type: ignore[arg-type]


def reader(broker: Broker, way: str, **given: str) -> EventStreamReader:
    ways = {} if way == "amqp" else {"managementUrl": broker.http_url}
    options = {"mode": "events", "url": broker.url, "pollTimeoutMs": "0", **ways, **given}
    return EventStreamReader(read_options(options, Use.STREAM), ["id"])


def add(broker: Broker, count: int) -> None:
    send(broker.url, "told", [message(at, "told") for at in range(count)])


def at(number: int) -> dict[str, int]:
    return {"v": 1, "base": 0, "id": number}


@pytest.mark.requirement("PIP-35")
@pytest.mark.parametrize("careful", ["true", "false"])
@pytest.mark.parametrize("way", WAYS)
def test_ids_that_went_back_end_the_query(way: str, careful: str) -> None:
    """A checkpoint of another store has such ids.

    The first look of a process ends the query, and so do a later look and a batch planned before.
    """
    with kept() as broker:
        add(broker, 5)
        for begun in (False, True):
            stream = reader(broker, way, failOnDataLoss=careful)
            limit = stream.getDefaultReadLimit()
            if begun:
                assert stream.latestOffset(at(0), limit)["id"] == 5
                assert len(stream.partitions(at(2), at(5))) == 3
                assert stream.latestOffset(at(5), limit)["id"] == 5
            with pytest.raises(DataLossError, match="ends at id 5, before id 7"):
                stream.latestOffset(at(7), limit)
            with pytest.raises(DataLossError, match="ends at id 5, before id 7"):
                stream.partitions(at(3), at(7))


@pytest.mark.requirement("PIP-35")
@pytest.mark.parametrize("way", WAYS)
def test_rows_that_were_trimmed_when_a_batch_is_planned_or_read_end_the_query(way: str) -> None:
    with kept(event_log_max_events=KEPT) as broker:
        add(broker, SOME)
        stream = reader(broker, way)
        first, _ = events.bounds(stream._options)
        assert first > 1
        with pytest.raises(DataLossError, match=f"begins at id {first}, rows from 1 on"):
            stream.partitions(at(0), at(SOME))
        [early, *_] = reader(broker, way, failOnDataLoss="false").partitions(at(0), at(SOME))
        with pytest.raises(DataLossError, match="rows from 1 on were removed"):
            list(stream.read(early))


@pytest.mark.requirement("PIP-78")
@pytest.mark.parametrize("way", WAYS)
def test_a_stream_tells_how_far_it_is_behind(way: str) -> None:
    with kept() as broker:
        add(broker, 5)
        stream = reader(broker, way)
        assert stream.reportLatestOffset() == {"v": 1, "base": 0, "id": 0}, "nothing was asked yet"
        end = stream.latestOffset(at(0), ReadMaxRows(2))
        told = stream.reportLatestOffset()
        assert told is not None
        assert (end["id"], told["id"], told["rowsBehind"]) == (2, 5, 3)
        assert 0 <= told["oldestAgeMs"] < 60_000
        stream.latestOffset(at(2), ReadMaxRows(9))
        assert stream.reportLatestOffset() == {"v": 1, "base": 0, "id": 5, "rowsBehind": 0}
