"""Plans of loads for the tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from broker.cli.load.plan import LoadPattern, LoadPlan

PLAN: Final = LoadPlan(
    url="amqp://127.0.0.1",
    tls=None,
    address="orders",
    pattern=LoadPattern.QUEUE,
    senders=1,
    receivers=1,
    processes=1,
    rate=None,
    size=100,
    durable=False,
    tx=0,
    in_flight=1000,
    credit=1000,
    warm_up_s=0.0,
    duration_s=10.0,
    timeout_s=10.0,
    run_id=b"RUN-1234",
)


def plan_of(**changes: Any) -> LoadPlan:
    """Return a plan that differs from PLAN in `changes`."""
    return replace(PLAN, **changes)
