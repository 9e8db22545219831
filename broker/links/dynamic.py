"""Dynamic nodes of one connection, and the termini that created them (TMP-01 to TMP-03).

A dynamic node belongs to the terminus that created it. After its link has ended, the terminus
lives on as its expiry-policy says, and an attach of the same name resumes it with its node. Once
the terminus has expired, the lifetime-policy of the node applies. Nothing outlives the connection.
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
    """Return the actual expiry terms of a dynamic terminus, which never outlasts its connection."""
    if expiry_policy in (NEVER, CONNECTION_CLOSE):
        return ExpiryPolicy(CONNECTION_CLOSE)
    return ExpiryPolicy(expiry_policy, timeout_s=timeout_s)


def is_alike(node: Node, other: Node) -> bool:
    """Return whether two dynamic nodes are of one kind, and other connections may do the same."""
    return node.kind == other.kind and node.is_exclusive == other.is_exclusive


def dynamic_properties(policy: DeletePolicy) -> dict[str, object]:
    """Return the dynamic-node-properties that report the actual lifetime policy of a node."""
    return {LIFETIME_POLICY: Described(ULong(CODES[policy]), [])}


@final
class DynamicTerminus(Expiring):
    """A dynamic node and the terminus that created it; one link after the other may use it.

    `key` (link name, incoming) is set while the terminus has no link and can be resumed.
    """

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
    """Creates the dynamic nodes of one connection, and keeps the termini that can be resumed.

    `creator` is the user of the connection, None until its open.
    """

    def __init__(self, connection: i64, router: Router) -> None:
        self.creator: str | None = None
        self._connection: Final[i64] = connection
        self._router: Final = router
        self._suspended: Final[dict[tuple[str, bool], DynamicTerminus]] = {}

    def make(
        self, kind: str, policy: DeletePolicy, terms: ExpiryPolicy, *, exclusive: bool
    ) -> DynamicTerminus:
        """Create a node, a queue unless `kind` says otherwise, and return its terminus.

        If `exclusive`, no other connection may receive from the node, whatever its rights (TMP-04).
        """
        node = self._router.create_temporary(kind or QUEUE, self._connection, creator=self.creator)
        node.is_exclusive = exclusive
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
        """Return the terminus that `link` goes on with: `made`, or that of an earlier link.

        Call it once `link` is registered under its name. A link that asked for a dynamic node gets
        the earlier one if that is of the same kind, and `made` is deleted; a link to that very
        `node` resumes its terminus. Any other link replaces the earlier terminus, which expires.
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
        if made is not None and is_alike(made.node, earlier.node):
            expiries.end(made.expiry)
            self._router.delete(made.node, batch)
            return earlier
        if made is None and node is earlier.node:
            return earlier
        expiries.end(earlier.expiry)
        earlier.expired(batch)
        return made

    def link_ended(
        self, terminus: DynamicTerminus, link: Link, batch: Batch, *, closed: bool, incoming: bool
    ) -> None:
        """Keep `terminus`, whose link has ended, to be resumed for as long as its terms say."""
        if not self._exists(terminus.node):
            self._router.expiries.end(terminus.expiry)
            return
        key = (link.name, incoming)
        terminus.key = key
        self._suspended[key] = terminus
        self._router.expiries.link_ended(
            terminus.expiry,
            ending_of(link, closed=closed),
            batch,
            connection=self._connection,
            session=link.session.channel,
        )

    def _exists(self, node: Node) -> bool:
        return self._router.has(node)

    def outlived(self, terminus: DynamicTerminus, batch: Batch) -> None:
        """Apply the lifetime policy of the node, now that the terminus `terminus` has expired."""
        if terminus.key is not None:
            self._suspended.pop(terminus.key, None)
        self._router.outlive(terminus.node, terminus.policy, batch)

    def connection_ended(self) -> None:
        """Drop all termini that wait for a link, because the connection has ended."""
        for terminus in self._suspended.values():
            self._router.expiries.end(terminus.expiry)
        self._suspended.clear()

    def suspended(self) -> int:
        """Return the number of termini that wait for a link to resume them."""
        return len(self._suspended)
