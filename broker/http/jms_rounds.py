"""Rounds of work after requests of JMS over HTTP, and the audit of the nodes that they change."""

from __future__ import annotations

from dataclasses import replace

from broker.links.container import Container
from broker.links.linkless import LinklessClient
from broker.management.auditing import actor_at, event_of


def run_round(container: Container, client: LinklessClient | None) -> None:
    """Record the changes that `client` has caused, if any, and run a round of work."""
    if client is not None and container.router.changes.found:
        actor = actor_at(client.identity, client.entrance)
        for change in container.router.changes.take():
            event = event_of(change, actor)
            key = (event.action, actor.user, client.entrance.host, event.resource)
            container.audit.record(replace(event, repeat_key=key))
    container.run_round()
