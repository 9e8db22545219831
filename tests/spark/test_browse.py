"""Queues as tables: browsing shows the messages, which stay in the queue."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.interop.broker_process import ROOT, BrokerProcess
from tests.interop.proton_peer import Peer
from tests.spark.leasing import Stream, entity, ids
from tests.spark.sent import send, texts

SETTINGS = """
store = "sqlite:///store.db"
[http]
port = 0
[[address]]
pattern = "orders"
event_log = true
"""
COUNT = 500

PAGE = ROOT / "docs" / "spark" / "data-source.md"
SQL = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Yield a broker with five hundred messages to be browsed."""
    process = BrokerProcess(tmp_path_factory.mktemp("shown"), settings=SETTINGS)
    send(process.url, "shown", texts(COUNT, address="shown", groups=10))
    yield process
    assert process.stop() == 0


@pytest.mark.requirement("PIP-33")
@pytest.mark.parametrize("way", ["amqp", "http"])
def test_each_look_shows_every_message_once(
    spark: SparkSession, shown: BrokerProcess, way: str
) -> None:
    options = {"url": shown.url, "address": "shown", "numPartitions": "3"}
    if way == "http":
        options["managementUrl"] = shown.http_url
    frame = spark.read.format("amqp").options(**options).load()
    assert frame.rdd.getNumPartitions() == 3
    for _ in range(2):
        rows = frame.select("JMSMessageID", "bodyText", "properties.number.long").collect()
        assert sorted(row.JMSMessageID for row in rows) == ids("shown", range(COUNT))
        assert all(row.bodyText == f"text {row.long}" for row in rows)
    texts = spark.read.format("amqp").options(**options, propertiesAs="string").load()
    assert texts.filter("cast(properties['number'] AS BIGINT) >= 0").count() == COUNT
    groups = Counter(row.JMSXGroupID for row in frame.select("JMSXGroupID").collect())
    assert groups == {f"group-{number}": COUNT // 10 for number in range(10)}
    assert entity(shown.url, "queue", "shown")["messages"] == COUNT


@pytest.mark.requirement("PIP-45")
def test_conditions_are_judged_by_the_broker_where_that_is_wanted(
    spark: SparkSession, shown: BrokerProcess
) -> None:
    """Spark has fewer rows to filter; a user only sees that the rows are the same."""
    name = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(name, "true")
    frame = (
        spark.read.format("amqp")
        .options(url=shown.url, address="shown", selector="number < 100", pushdown="true")
        .load()
        .where("JMSXGroupID IN ('group-1', 'group-2') AND bodyText <> 'text 1'")
    )
    found = sorted(row.JMSMessageID for row in frame.select("JMSMessageID").collect())
    spark.conf.unset(name)
    wanted = [number for number in range(100) if number % 10 in (1, 2) and number != 1]
    assert found == sorted(f"ID:shown-{number}" for number in wanted)


@pytest.mark.requirement("PIP-49")
def test_a_queue_that_is_not_there_is_told_or_created(
    spark: SparkSession, shown: BrokerProcess, tmp_path: Path
) -> None:
    options = {"url": shown.url, "address": "nobody.knows"}
    told = r"option address: there is no queue nobody\.knows; .*createAddress=true"
    with pytest.raises(PySparkException, match=told):
        spark.read.format("amqp").options(**options).load().count()
    with pytest.raises(PySparkException, match=told):
        Stream(spark, tmp_path, options).run()
    created = options | {"createAddress": "true"}
    assert spark.read.format("amqp").options(**created).load().count() == 0
    assert entity(shown.url, "queue", "nobody.knows")["messages"] == 0


@pytest.mark.requirement("PIP-44")
def test_a_stream_by_http_has_every_message_once(
    spark: SparkSession, shown: BrokerProcess, tmp_path: Path
) -> None:

    send(shown.url, "taken", texts(300, address="taken", groups=3))
    options = {"url": shown.url, "managementUrl": shown.http_url, "address": "taken"}
    stream = Stream(spark, tmp_path, {**options, "maxMessagesPerTrigger": "200"})
    stream.run()
    assert stream.counts == Counter(ids("taken", range(300)))
    assert [len(batch.rows) for batch in stream.batches] == [200, 100]


@pytest.mark.requirement("PIP-33")
def test_views_in_sql_as_the_page_prints_them(spark: SparkSession, shown: BrokerProcess) -> None:
    send(shown.url, "orders", texts(3, address="orders"))
    (printed,) = SQL.findall(PAGE.read_text())
    statements = printed.replace("amqp://localhost:5672", shown.url).split(";")
    *views, select, insert, end = statements
    assert not end.strip()
    for each in views:
        spark.sql(each)
    try:
        found = [row.messageId for row in spark.sql(select).collect()]
        assert sorted(found) == ids("orders", range(3))
        spark.sql(insert)
    finally:
        for name in ("orders", "events"):
            spark.catalog.dropTempView(name)
    with Peer(shown.url) as peer:
        peer.opened()
        bodies = [str(body) for body in peer.bodies("orders")]
    assert sorted(bodies[:3]) == [f"TEXT {number}" for number in range(3)], "they are urgent"
    assert bodies[3:] == [f"text {number}" for number in range(3)]
