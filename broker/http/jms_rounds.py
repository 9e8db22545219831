"""Rounds of work after requests of JMS over HTTP, and the audit of the nodes that they change."""

from __future__ import annotations

from broker.links.container import Container
from broker.links.linkless import LinklessClient
from broker.management.auditing import actor_at, event_of


def run_round(container: Container, client: LinklessClient | None) -> None:
    """Record the changes that `client` has caused, if any, and run a round of work."""
    if client is not None and container.router.changes.found:
        actor = actor_at(client.identity, client.entrance)
        for change in container.router.changes.take():
            container.audit.record(event_of(change, actor, host=client.entrance.host))
    container.run_round()
