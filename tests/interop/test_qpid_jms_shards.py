"""Qpid JMS and shards: it connects to one, names a host of the other, and works there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.shards import ShardedBroker
from tests.interop.junit import JUnit

pytestmark = [pytest.mark.slow, pytest.mark.requirement("OPS-20")]

STORES = {"a": "memory", "b": "memory"}

OPTIONS = {"broker.login": "failover.nested.amqp.vhost=localhost"}
"""The property whose value is put behind the options of each URL."""


def test_a_client_follows_the_redirect_to_the_shard_of_its_host(
    junit: JUnit, tmp_path: Path
) -> None:
    with ShardedBroker(tmp_path, stores=STORES, hosts={"b": "localhost"}) as broker:
        broker.ready()
        url = f"failover:(amqp://127.0.0.1:{broker.ports['a']})"
        test = "SendReceiveTest#manyInOrder"
        junit.phase(test, tmp_path, url=url, properties=OPTIONS)
        broker.process.kill()
        output = broker.ended()
    opened = [line for line in output.splitlines() if "CON-001" in line]
    assert "localhost is the host of another shard" in output
    assert opened
    assert all("shard=b" in line for line in opened)
