"""Requests to `$management` of an embedded broker."""

from __future__ import annotations

import pytest

from broker import Broker
from broker.cli.requests import managed

pytest.importorskip("proton")


def test_requests_over_amqp() -> None:
    with Broker() as broker, managed(broker.url, 10.0) as requests:
        assert requests.build()
        assert requests.find("queue", "missing") is None
        assert requests.ask("CREATE", "queue", "made")["name"] == "made"
        assert [each["name"] for each in requests.records("queue")] == ["made"]
        assert not requests.connection_has_ended()
