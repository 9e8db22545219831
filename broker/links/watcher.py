"""The reports of the broker to its operator: on connections, and on events in routing."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from broker.links.access import Right
from broker.log_events import Notice
from broker.routing.context import RoutingChange
from broker.security.decision import Decision
from broker.security.entrance import Entrance
from broker.security.identity import Identity

if TYPE_CHECKING:
    from broker.links.container import Container
    from broker.links.peer import Peer


@mypyc_attr(allow_interpreted_subclasses=True)
class Watcher:
    """Reports to the operator what happens to connections and in routing."""

    @abstractmethod
    def opened(self, peer: Peer) -> None:
        """Report that a connection was opened."""

    @abstractmethod
    def refused(self, peer: Peer, reason: str) -> None:
        """Report that a connection was refused, or that its authentication failed."""

    def authenticated(self, peer: Peer) -> None:
        """Report that a client has logged in; its `opened` or `refused` follows."""

    def rejected(self, peer: Peer, reason: str) -> None:
        """Report that a login has failed."""
        self.refused(peer, reason)

    def undecided(self, peer: Peer, reason: str) -> None:
        """Report that a login was not checked, as those before it have failed."""
        self.refused(peer, reason)

    def renewed(self, peer: Peer) -> None:
        """Report that a client has renewed its login by a token."""

    def expired(self, peer: Peer) -> None:
        """Report that the login of a client has ended by time; its `closed` follows."""

    def rolled_back(self, peer: Peer, operations: int, reason: str) -> None:
        """Report that a transaction with `operations` has ended without a commit.

        `reason` is one of few texts, and has nothing of the client's.
        """

    @abstractmethod
    def not_renewed(self, peer: Peer, reason: str) -> None:
        """Report that a token that was to renew a login was refused."""

    @abstractmethod
    def denied(self, peer: Peer, right: Right, decision: Decision) -> None:
        """Report that a client lacked a right, by the rule that `decision` names."""

    def changed(self, peer: Peer | None, changes: list[RoutingChange]) -> None:
        """Report changes that `peer` caused, or the broker by itself (None), for the audit."""

    @abstractmethod
    def limited(self, peer: Peer, refusal: str) -> None:
        """Report that a limit of its user refused a request; `refusal` names the limit."""

    @abstractmethod
    def closed(self, peer: Peer, reason: str) -> None:
        """Report that a connection that was open has ended."""

    @abstractmethod
    def stalled(self, peer: Peer, timeout_ms: int) -> None:
        """Report a cut: the client read nothing for `timeout_ms` (setting `stall_timeout_ms`)."""

    @abstractmethod
    def managed(self, identity: Identity, address: str, change: dict[str, str]) -> None:
        """Report a change that the client at `address` made through management.

        `change` has `operation`, `type` and `name` of the entity, `arguments` and `result` if
        there are any.
        """

    @abstractmethod
    def noticed(self, notice: Notice) -> None:
        """Report an event in routing that no client or administrator has directly requested."""

    @abstractmethod
    def failed(self, peer: Peer, error: Exception) -> None:
        """Report a bug: an unexpected exception while a connection was served."""

    def request_failed(self, container: Container, entrance: Entrance, error: Exception) -> None:
        """Report a bug: an unexpected exception while a request over HTTP was answered."""
