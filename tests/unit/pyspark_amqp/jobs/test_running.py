"""The cause that a job reports if Spark fails."""

from __future__ import annotations

from pyspark_amqp.jobs.running import cause_of

LOST = """Traceback (most recent call last):
  File "worker.py", line 1, in main
pyspark_amqp.source.lease.LeaseLostError: the lease l is gone: it ran out
SQLSTATE: 38000
org.apache.spark.SparkException: Job aborted due to stage failure
"""


def test_a_lease_that_was_lost_is_told_of_and_not_what_spark_made_of_it() -> None:
    assert cause_of(LOST) == "the lease l is gone: it ran out"
