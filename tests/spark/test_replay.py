"""The archived messages that a replay selects, and the order in which it sends them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyspark_amqp.engines.engine import Engine, Table
from pyspark_amqp.engines.spark_engine import SparkEngine, SparkTable
from pyspark_amqp.jobs.layout import MESSAGES, Archive
from pyspark_amqp.jobs.replay import ORDER, ReplayChoice, chosen, numbered, plan
from pyspark_amqp.jobs.selector import condition
from pyspark_amqp.jobs.statements import SAME, query, union
from pyspark_amqp.rows.columns import MESSAGE_COLUMNS, V_DDL
from tests.spark.event_logs import START
from tests.spark.test_archive import snapshot

DAY: Final = timedelta(days=1)
COUNT: Final = 6
V: Final = ("type", "boolean", "long", "double", "string", "binary")


def archived(engine: Engine, folder: Path) -> Table:
    """Return messages 0 to 5, a day apart, of two addresses in turn; some are archived twice."""
    columns = {**MESSAGE_COLUMNS}
    rows = []
    for number in range(COUNT):
        row: dict[str, object] = dict.fromkeys(columns)
        row["address"] = "even" if number % 2 == 0 else "odd"
        row["subscription"] = "durable/c/n" if number == 4 else None
        # two have the same time: their positions decide
        row["enqueuedAt"] = START + DAY * (number if number != 5 else 3)
        row["position"] = (number * 10 + 4) if number != 5 else 4
        row["JMSMessageID"] = f"ID:{number}"
        row["JMSType"] = "order" if number < 3 else None
        row["properties"] = {"n": {**dict.fromkeys(V), "type": "int", "long": number}}
        row["amqp"] = bytes([number]) * (number + 1)
        rows.append(tuple(row.values()))
    archive = Archive(folder)
    snapshot(archive, engine.table(columns, rows))
    other = Archive(folder.with_name("other"))
    snapshot(other, engine.table(columns, rows[:2]))
    for file in other.files(MESSAGES):
        target = archive.root / file.relative_to(other.root)
        file.rename(target)
    assert V_DDL in MESSAGE_COLUMNS["properties"]
    return archive.read(engine, MESSAGES)


ALL: Final = ReplayChoice()


@pytest.mark.requirement("PIP-67")
@pytest.mark.requirement("PIP-75")
def test_what_is_meant_and_in_which_order(engine: Engine, tmp_path: Path) -> None:
    messages = archived(engine, tmp_path / "archive").kept()
    assert len(messages.rows()) == COUNT + 2, "some are archived twice"
    noon = START + timedelta(hours=1)
    cases = [
        ("all", ALL, [0, 1, 2, 5, 3, 4]),
        ("since", replace(ALL, since=noon), [1, 2, 5, 3, 4]),
        ("since that very moment", replace(ALL, since=START + DAY), [1, 2, 5, 3, 4]),
        ("until that very moment", replace(ALL, until=START + DAY), [0]),
        ("a window", replace(ALL, since=noon, until=START + 3 * DAY), [1, 2]),
        ("an address", replace(ALL, addresses=("odd",)), [1, 5, 3]),
        ("two addresses", replace(ALL, addresses=("odd", "even")), [0, 1, 2, 5, 3, 4]),
        ("a subscription", replace(ALL, subscription="durable/c/n"), [4]),
        ("ids", replace(ALL, ids=("ID:3", "ID:0", "ID:0", "ID:9")), [0, 3]),
        (
            "a selector",
            replace(ALL, selected=condition("n BETWEEN 1 AND 4 AND JMSType IS NULL")),
            [3, 4],
        ),
        (
            "all together",
            replace(ALL, since=noon, addresses=("even",), selected=condition("JMSType = 'order'")),
            [2],
        ),
    ]
    # one query for all cases, each numbered by itself
    parts = [
        query(
            "SELECT {index} AS index, number, amqp FROM {numbers}",
            numbers=numbered(chosen(messages, choice)),
            index=index,
        )
        for index, (_, choice, _) in enumerate(cases)
    ]
    found: dict[str, list[tuple[int, bytes]]] = {name: [] for name, _, _ in cases}
    for row in union(parts).rows():
        found[cases[row["index"]][0]].append((row["number"], bytes(row["amqp"])))
    for name, _, expected in cases:
        assert sorted(found[name]) == [
            (place, bytes([number]) * (number + 1)) for place, number in enumerate(expected)
        ], name
    messages.release()


@pytest.mark.requirement("PIP-68")
def test_a_plan_says_what_would_be_sent(engine: Engine, tmp_path: Path) -> None:
    messages = chosen(archived(engine, tmp_path / "archive"), ALL)
    planned = plan(messages, ["ID:1", "ID:99"])
    assert (planned.messages, planned.bytes, planned.without_bytes) == (COUNT, 21, 0)
    assert (planned.first, planned.last) == (START, START + 4 * DAY)
    assert planned.addresses == {"even": 3, "odd": 3}
    assert planned.missing_ids == ("ID:99",)
    assert planned.of_other_formats == 0
    odd = "SELECT {same}, CAST(NULL AS BINARY) AS amqp, 7 AS messageFormat FROM {messages}"
    bare = plan(query(odd, messages=messages))
    assert (bare.without_bytes, bare.of_other_formats, bare.bytes) == (COUNT, COUNT, 0)


@pytest.mark.requirement("PIP-67")
def test_the_bytes_tell_messages_apart_only_where_nothing_else_does(engine: Engine) -> None:
    """The header of a message that is read twice differs: in its ttl, and in its delivery count."""
    known, no_position = ("q", None, 14, START, "ID:1"), ("q", None, None, START, "ID:2")
    rows = [
        *((*known, header, 7) for header in (b"ttl 9", b"ttl 8", None)),
        *((*no_position, bytes_, None) for bytes_ in (b"a", b"b", b"b")),
    ]
    columns = {name: MESSAGE_COLUMNS[name] for name in (*SAME, "amqp", "messageFormat")}
    found = chosen(engine.table(columns, rows), ALL).rows()
    assert sorted(row["JMSMessageID"] for row in found) == ["ID:1", "ID:2", "ID:2"]
    assert {bytes(row["amqp"]) for row in found} == {b"ttl 9", b"a", b"b"}


@pytest.mark.requirement("PIP-67")
def test_what_is_not_staged_goes_in_one_part(spark: SparkSession) -> None:
    """Parts are sent at the same time: two would mix their messages."""
    rows = [("q", None, number, START, f"ID:{number}", b"") for number in (5, 2, 9, 1, 7, 3)]
    columns = ", ".join(f"{name} {MESSAGE_COLUMNS[name]}" for name in (*SAME, "amqp"))
    engine = SparkEngine(spark)
    messages = SparkTable(engine, spark.createDataFrame(rows, columns).repartition(3))
    sent = engine.ordered(messages, ORDER, is_staged=False).frame
    parts = sent.select("position", F.spark_partition_id())
    assert [tuple(row) for row in parts.collect()] == [(each, 0) for each in (1, 2, 3, 5, 7, 9)]
    assert "rangepartitioning" not in parts._jdf.queryExecution().toString()
