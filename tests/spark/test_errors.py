"""Errors as a Spark program gets them: the line that names what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.interop.broker_process import BrokerProcess

NOBODY: Final = "amqp://127.0.0.1:1"
"""A URL at which no broker listens."""

AWAY: Final = {"url": NOBODY, "amqp.timeout": "200ms"}


def read(spark: SparkSession, options: dict[str, str], _: Path) -> None:
    spark.read.format("amqp").options(**options).load().select("position").collect()


def write(spark: SparkSession, options: dict[str, str], _: Path) -> None:
    spark.range(1).selectExpr("'text' AS value").write.format("amqp").mode("append").options(
        **options
    ).save()


def stream(spark: SparkSession, options: dict[str, str], folder: Path) -> None:
    rows = spark.readStream.format("amqp").options(**options).load().select("position")
    target = rows.writeStream.format("noop").option("checkpointLocation", str(folder))
    target.trigger(availableNow=True).start().awaitTermination()


CASES: Final = [
    pytest.param(read, {"adress": "q"}, "option adress: there is none; did you", id="slip"),
    pytest.param(read, {}, "OptionError: option address: either it or", id="no address"),
    pytest.param(read, {"address": "none"}, "there is no queue none; correct", id="no queue"),
    pytest.param(stream, {"address": "none"}, "there is no queue none; correct", id="streamed"),
    pytest.param(read, {**AWAY, "address": "q"}, f"no broker: {NOBODY}", id="no broker"),
    pytest.param(write, {**AWAY, "address": "q"}, f"no broker: {NOBODY}", id="nobody to send to"),
]


@pytest.mark.requirement("PIP-76")
@pytest.mark.parametrize(("work", "options", "text"), CASES)
def test_an_error_is_one_line_that_names_what_is_wrong(
    spark: SparkSession,
    broker: BrokerProcess,
    tmp_path: Path,
    work: Callable[[SparkSession, dict[str, str], Path], None],
    options: dict[str, str],
    text: str,
) -> None:
    with pytest.raises(PySparkException) as raised:
        work(spark, {"url": broker.url, **options}, tmp_path)
    told = str(raised.value)
    assert "Traceback" not in told
    (line,) = [line for line in told.splitlines() if "pyspark_amqp." in line and "Error: " in line]
    assert text in line
