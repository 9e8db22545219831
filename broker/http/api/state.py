"""The state of the broker that no entity has: its alarms, and its listeners."""

from __future__ import annotations

from collections import Counter
from typing import Final

from broker.http.api.endpoint import Call, CallResult
from broker.management.alarms import alarms_of
from broker.management.entity import VIEW
from broker.security.resources import MANAGEMENT, Resource

METRICS: Final = Resource(MANAGEMENT, "metrics")


async def list_alarms(call: Call) -> CallResult:
    """Return every alarm, and whether it holds now."""
    call.demand(VIEW, METRICS)
    found = alarms_of(call.site.container, call.site.store)
    items = [{"name": name, "holds": holds} for name, holds in found.items()]
    return CallResult(body={"items": items, "next": None})


async def list_listeners(call: Call) -> CallResult:
    """Return the listeners; of HTTP only the end of its certificate is known, if it has TLS."""
    call.demand(VIEW, METRICS)
    container = call.site.container
    open_now = Counter(peer.entrance.listener for peer in container.peers())
    items = [
        {
            "name": name,
            "connections": open_now[name],
            "opened": int(each.opened),
            "closed": int(each.closed),
            "received_bytes": int(each.received_bytes),
            "sent_bytes": int(each.sent_bytes),
            "certificate_ends_at": int(each.certificate_end_s * 1000) or None,
        }
        for name, each in container.stats.listeners.items()
    ]
    return CallResult(body={"items": items, "next": None})
