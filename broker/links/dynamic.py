"""The nodes that links of one connection make (TMP-01 to TMP-03), and what becomes of those links.

A dynamic node hangs on the terminus that made it. That goes on as its
expiry-policy says; an attach of the same name then finds the same node. When it
has gone, the lifetime-policy of the node counts. Nothing outlives the connection.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.link import Link
from broker.amqp.terminus import CONNECTION_CLOSE, NEVER
from broker.amqp.types import Described, ULong
from broker.links.attach import DELETE_POLICIES, LIFETIME_POLICY
from broker.links.ending import ending_of
from broker.routing.queues.node import QUEUE, Node
from broker.routing.router import Router
from broker.routing.topics.dynamic import DeletePolicy
from broker.routing.topics.lifetime import Expiring, Expiry, ExpiryPolicy
from storage.batch import Batch

CODES: Final[dict[DeletePolicy, int]] = {policy: code for code, policy in DELETE_POLICIES.items()}


def dynamic_terms(expiry_policy: str, timeout_s: i64) -> ExpiryPolicy:
    """The terms that the terminus of a dynamic node really gets, of those that it asks for."""
    if expiry_policy in (NEVER, CONNECTION_CLOSE):
        return ExpiryPolicy(CONNECTION_CLOSE)
    return ExpiryPolicy(expiry_policy, timeout_s=timeout_s)


def dynamic_properties(policy: DeletePolicy) -> dict[str, object]:
    """The dynamic-node-properties that tell which lifetime a node really has."""
    return {LIFETIME_POLICY: Described(ULong(CODES[policy]), [])}


@final
class DynamicTerminus(Expiring):
    """A dynamic node and the terminus that made it, which its links in turn are the ends of."""

    def __init__(
        self, home: DynamicNodes, node: Node, *, policy: DeletePolicy, terms: ExpiryPolicy
    ) -> None:
        self.node: Final = node
        self.policy: Final = policy
        self.expiry: Final = Expiry(self, terms)
        self.key: tuple[str, bool] | None = None
        self._home: Final = home

    def expired(self, batch: Batch) -> None:
        self._home.outlived(self, batch)


@final
class DynamicNodes:
    """What the links of one connection have made, and what may be asked for again by name."""

    def __init__(self, connection: i64, router: Router) -> None:
        self._connection: Final[i64] = connection
        self._router: Final = router
        self._suspended: Final[dict[tuple[str, bool], DynamicTerminus]] = {}

    def make(self, kind: str, policy: DeletePolicy, terms: ExpiryPolicy) -> DynamicTerminus:
        """A new node, a queue unless `kind` says otherwise."""
        node = self._router.create_temporary(kind or QUEUE, self._connection)
        return DynamicTerminus(self, node, policy=policy, terms=terms)

    def claim(
        self,
        link: Link,
        node: Node | None,
        batch: Batch,
        *,
        made: DynamicTerminus | None,
        incoming: bool,
    ) -> DynamicTerminus | None:
        """What `link`, whose name is its own now, goes on with: `made`, or an earlier link's.

        A link that was to make a node goes on with the earlier one's, if that is of the same
        kind; as does one to that very `node`. Any other has replaced that terminus, which is over.
        """
        earlier = self._suspended.pop((link.name, incoming), None)
        if earlier is None:
            return made
        earlier.key = None
        expiries = self._router.expiries
        expiries.resume(earlier.expiry)
        if not self._exists(earlier.node):
            expiries.end(earlier.expiry)
            return made
        if made is not None and made.node.kind == earlier.node.kind:
            expiries.end(made.expiry)
            self._router.delete(made.node, batch)
            return earlier
        if made is None and node is earlier.node:
            return earlier
        expiries.end(earlier.expiry)
        earlier.expired(batch)
        return made

    def link_ended(
        self, creation: DynamicTerminus, link: Link, batch: Batch, *, closed: bool, incoming: bool
    ) -> None:
        """The link that made a node has ended: for good, or for as long as its terms say."""
        if not self._exists(creation.node):
            self._router.expiries.end(creation.expiry)
            return
        key = (link.name, incoming)
        creation.key = key
        self._suspended[key] = creation
        self._router.expiries.link_ended(
            creation.expiry,
            ending_of(link, closed=closed),
            batch,
            connection=self._connection,
            session=link.session.channel,
        )

    def _exists(self, node: Node) -> bool:
        return self._router.has(node)

    def outlived(self, creation: DynamicTerminus, batch: Batch) -> None:
        """The terminus of `creation` is gone: its node lives by the node's own policy now."""
        if creation.key is not None:
            self._suspended.pop(creation.key, None)
        self._router.outlive(creation.node, creation.policy, batch)

    def connection_ended(self) -> None:
        """No link can come back."""
        for creation in self._suspended.values():
            self._router.expiries.end(creation.expiry)
        self._suspended.clear()

    def suspended(self) -> int:
        """How many of the links may come back."""
        return len(self._suspended)
