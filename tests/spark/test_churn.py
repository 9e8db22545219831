"""The audit finds no fault in what a real broker records, whatever its clients do, and over kills.

More with other seeds: `python -m tests.spark.test_churn SEED` prints the verdict of a longer run.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Final

import pytest

from pyspark_amqp.engines.duckdb_engine import duckdb_engine as opened
from pyspark_amqp.engines.engine import Engine, Table
from pyspark_amqp.jobs.auditing import Auditing, lines_of, notes_of, table_of
from pyspark_amqp.jobs.findings import CHECKS
from pyspark_amqp.jobs.verdict import Verdict
from tests.faults.server import Place, Server
from tests.spark.churn import SETTINGS, churned

RETENTION: Final = "event_log_max_events = 1500\n"
"""The oldest rows of some messages are gone when the audit reads the log."""


async def audited(
    engine: Engine, server: Server, seed: int, lives_s: tuple[float, ...]
) -> tuple[Verdict, Table]:
    """Return the verdict on a broker that was killed after each of its lives."""
    try:
        await churned(server, seed, lives_s)
        audit = Auditing(None, {"url": f"amqp://127.0.0.1:{server.port}"})
        return await asyncio.to_thread(audit.run, engine, print)
    finally:
        await server.close()


@pytest.mark.requirement("PIP-64")
def test_a_broker_that_works_and_is_killed_is_without_fault(
    duckdb_engine: Engine, tmp_path: Path
) -> None:
    server = Server(Place(tmp_path, settings=RETENTION + SETTINGS))
    verdict, offending = asyncio.run(audited(duckdb_engine, server, 1, (1.5, 1.5)))
    assert verdict.holds, lines_of(offending, 20)
    assert verdict.known.first > 1
    assert verdict.known.missing == 0
    unjudged = [check for check in CHECKS if verdict.judged[check] < 10]
    assert unjudged == [], "there was enough of everything"


def main(seed: int) -> None:
    """Print the verdict on a minute of work, with five kills and all rows."""
    with tempfile.TemporaryDirectory() as folder, opened() as engine:
        server = Server(Place(Path(folder), settings=SETTINGS))
        verdict, offending = asyncio.run(audited(engine, server, seed, (12,) * 5))
        for line in (*table_of(verdict), *notes_of(verdict), *lines_of(offending, 20)):
            print(line)


if __name__ == "__main__":
    main(int(sys.argv[1]))
