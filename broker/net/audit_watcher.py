"""Records in the audit what happens to connections, and passes everything on to the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.audit.audit import Audit
from broker.audit.record import BROKER, DONE, FAILED, REFUSED, AuditEvent, cut, time_text
from broker.links.access import Right
from broker.links.container import Container
from broker.links.coordinator import ROLLED_BACK_BY_CLIENT
from broker.links.peer import Peer
from broker.links.watcher import Watcher
from broker.log_events import Notice
from broker.management.auditing import actor_at, denied, event_of
from broker.routing.context import RoutingChange
from broker.security.decision import Decision
from broker.security.entrance import Entrance
from broker.security.identity import Identity

AUTH_SUCCESS: Final = "auth.success"
AUTH_FAILURE: Final = "auth.failure"
AUTH_THROTTLED: Final = "auth.throttled"
AUTH_REFRESHED: Final = "auth.refreshed"
AUTH_EXPIRED: Final = "auth.expired"
CONNECTION_REFUSED: Final = "connection.refused"
ROLLED_BACK: Final = "transaction.rolled_back"


class AuditWatcher(Watcher):
    """A watcher that records logins, refusals and changes, before `log` reports them.

    Clients cause these events as often as they like, so repeated ones are counted.
    """

    def __init__(self, log: Watcher, audit: Audit) -> None:
        self._log: Final = log
        self._audit: Final = audit

    # -- logins and connections

    def authenticated(self, peer: Peer) -> None:
        entrance = peer.entrance
        if peer.identity.user:  # a client without a login has shown nothing
            facts = {
                "mechanism": peer.identity.mechanism,
                "listener": entrance.listener,
                "tls": entrance.is_tls,
            }
            self._record(peer, AUTH_SUCCESS, _user(peer), result=DONE, facts=facts)
        self._log.authenticated(peer)

    def rejected(self, peer: Peer, reason: str) -> None:
        self._turned_away(peer, AUTH_FAILURE, FAILED, reason=reason)
        self._log.rejected(peer, reason)

    def undecided(self, peer: Peer, reason: str) -> None:
        self._turned_away(peer, AUTH_THROTTLED, REFUSED, reason=reason)
        self._log.undecided(peer, reason)

    def refused(self, peer: Peer, reason: str) -> None:
        self._turned_away(peer, CONNECTION_REFUSED, REFUSED, reason=reason)
        self._log.refused(peer, reason)

    def _turned_away(self, peer: Peer, action: str, result: str, *, reason: str) -> None:
        facts: dict[str, object] = {"reason": reason}
        if peer.container_id:
            facts["container_id"] = peer.container_id
        if peer.identity.claimed_user:
            facts["claimed_user"] = peer.identity.claimed_user
        resource = f"connection:{peer.entrance.listener}"
        self._record(peer, action, resource, result=result, facts=facts, of=reason)

    def renewed(self, peer: Peer) -> None:
        self._record(peer, AUTH_REFRESHED, _user(peer), result=DONE)
        self._log.renewed(peer)

    def not_renewed(self, peer: Peer, reason: str) -> None:
        facts = {"reason": reason}
        self._record(peer, AUTH_REFRESHED, _user(peer), result=REFUSED, facts=facts, of=reason)
        self._log.not_renewed(peer, reason)

    def expired(self, peer: Peer) -> None:
        until = time_text(int(peer.identity.valid_until_ms))
        self._record(peer, AUTH_EXPIRED, _user(peer), result=DONE, facts={"valid_until": until})
        self._log.expired(peer)

    def rolled_back(self, peer: Peer, operations: int, reason: str) -> None:
        facts = {"reason": reason, "operations": operations, "container_id": peer.container_id}
        result = DONE if reason == ROLLED_BACK_BY_CLIENT else FAILED
        resource = f"connection:{peer.entrance.listener}"
        self._record(peer, ROLLED_BACK, resource, result=result, facts=facts, of=reason)
        self._log.rolled_back(peer, operations, reason)

    def _record(
        self,
        peer: Peer,
        action: str,
        resource: str,
        *,
        result: str,
        facts: Mapping[str, object] | None = None,
        of: str = "",
    ) -> None:
        """Record an event, once a minute for each user, host and text `of`."""
        self._audit.record(
            AuditEvent(
                action=action,
                resource=resource,
                actor=actor_at(peer.identity, peer.entrance),
                result=result,
                after=facts,
                repeat_key=(action, peer.identity.user, peer.entrance.host, cut(of)),
            )
        )

    def denied(self, peer: Peer, right: Right, decision: Decision) -> None:
        actor = actor_at(peer.identity, peer.entrance)
        self._audit.record(denied(actor, right.verb, right.resource, decision=decision))
        self._log.denied(peer, right, decision)

    def changed(self, peer: Peer | None, changes: list[RoutingChange]) -> None:
        actor = BROKER if peer is None else actor_at(peer.identity, peer.entrance)
        host = actor.address.rpartition(":")[0]
        for change in changes:
            self._audit.record(event_of(change, actor, host=host))
        self._log.changed(peer, changes)

    # -- what is only logged

    def opened(self, peer: Peer) -> None:
        self._log.opened(peer)

    def closed(self, peer: Peer, reason: str) -> None:
        self._log.closed(peer, reason)

    def limited(self, peer: Peer, refusal: str) -> None:
        self._log.limited(peer, refusal)

    def stalled(self, peer: Peer, timeout_ms: int) -> None:
        self._log.stalled(peer, timeout_ms)

    def managed(self, identity: Identity, address: str, change: dict[str, str]) -> None:
        self._log.managed(identity, address, change)

    def noticed(self, notice: Notice) -> None:
        self._log.noticed(notice)

    def failed(self, peer: Peer, error: Exception) -> None:
        self._log.failed(peer, error)

    def request_failed(self, container: Container, entrance: Entrance, error: Exception) -> None:
        self._log.request_failed(container, entrance, error)


def _user(peer: Peer) -> str:
    return f"user:{peer.identity.user}"
