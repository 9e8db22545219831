"""Rounds of work after requests of JMS over HTTP, and the audit of the nodes that they change."""

from __future__ import annotations

from broker.links.container import Container
from broker.links.linkless import LinklessClient
from broker.management.auditing import actor_at, event_of


def run_round(container: Container, client: LinklessClient | None) -> None:
    """Record the changes that `client` has caused, if any, and run a round of work."""
    if client is not None:
        record_changes(container, client)
    container.run_round()


def record_changes(container: Container, client: LinklessClient) -> None:
    """Record the changes that `client` has caused.

    To be called when a node was found for it: if the rest of its request is refused, the node that
    was created for it stays, and would be recorded as the next client's.
    """
    if container.router.changes.found:
        actor = actor_at(client.identity, client.entrance)
        for change in container.router.changes.take():
            container.audit.record(event_of(change, actor, host=client.entrance.host))
