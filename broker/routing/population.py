"""Limits on the number of nodes, owners of temporary nodes, and the nodes that clients made.

A node is auto-created if a client made it by naming it (DST-02). The store remembers which are.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.log_events import UNUSED_DELETED
from broker.routing.errors import LimitReached
from broker.routing.queues.node import Node
from broker.routing.timer_queue import TimerCallback
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.router import Router

NODES_MAX: Final[i64] = 100_000
"""Maximum queues and topics together, temporary ones included: clients choose their names."""

LOOK_EVERY_MS: Final[i64] = 1000
"""Interval, in ms, at which auto-created nodes are checked for disuse."""

LOOKED_AT_ONCE: Final[i64] = 1000
"""Maximum nodes checked at a time: 50,000 nodes take 50 s, and no check delays other work."""

IDS_AT_ONCE: Final[i64] = 10_000
"""Maximum remembered ids, of all nodes, that one check forgets because they are too old: 10 ms."""

NAMED_IN_NOTICE: Final = 5
"""Maximum nodes deleted by one check that the log names."""

IN_USE: Final[i64] = -1


@final
class Candidate:
    """An auto-created node that is to be deleted once it has been unused for long enough.

    `since_ms` is when it was first seen unused, on the steady clock; IN_USE if it is in use. `seen`
    is its count of uses at the latest check: messages published, and links that left.
    """

    def __init__(self, node: Node) -> None:
        self.node: Final = node
        self.since_ms: i64 = IN_USE
        self.seen: i64 = 0

    def look(self, now_ms: i64) -> bool:
        """Check the node; return whether it has been unused for as long as its address asks for."""
        node = self.node
        used = node.published + node.uses_ended
        if not node.is_unused():
            self.since_ms = IN_USE
        elif self.since_ms == IN_USE or used != self.seen:
            self.since_ms = now_ms
        self.seen = used
        after_ms = node.policy.auto_delete_after_ms
        return self.since_ms != IN_USE and now_ms - self.since_ms >= after_ms


@final
class Population(TimerCallback):
    """The limits on nodes of one broker. `is_due`: it is time to look for unused nodes.

    `auto_created` are all nodes that clients made by naming them and that outlast their connection.
    """

    def __init__(self, router: Router, nodes_max: i64, auto_create_max: i64) -> None:
        self.auto_created: Final[dict[Node, None]] = {}
        self.auto_create_max: i64 = auto_create_max
        self.is_due = False
        self._router: Final = router
        self._nodes_max: Final[i64] = nodes_max
        self._owned: Final[dict[int, dict[Node, None]]] = {}
        self._created: Final[dict[str, dict[Node, None]]] = {}
        self._candidates: Final[deque[Candidate]] = deque()
        self._is_set = False

    # -- limits

    def check(self, nodes: int) -> None:
        """Raise LimitReached if the broker has `nodes` nodes and may have no more."""
        if i64(nodes) >= self._nodes_max:
            raise LimitReached(f"the broker has its {self._nodes_max} queues and topics")

    def check_auto_created(self) -> None:
        """Raise LimitReached if clients may make no more nodes by naming them."""
        if 0 < self.auto_create_max <= i64(len(self.auto_created)):
            raise LimitReached(
                f"clients have made {len(self.auto_created)} queues and topics by naming them, as"
                " many as auto_create_max allows: delete some, or set auto_delete_after_ms"
            )

    # -- creators

    def created_by(self, user: str, node: Node) -> None:
        """Count `node` as one that `user` created."""
        node.creator = user
        self._created.setdefault(user, {})[node] = None

    def created(self, user: str) -> int:
        """Return how many of the present nodes `user` has created."""
        return len(self._created.get(user, {}))

    def created_bytes(self, user: str) -> i64:
        """Return the bytes of messages in these nodes."""
        return self._bytes_of(self._created.get(user, {}))

    def _bytes_of(self, nodes: dict[Node, None]) -> i64:
        size: i64 = 0
        for node in nodes:
            queue = self._router.queues.get(node.address)
            if queue is node:
                size += queue.state.bytes
        return size

    def _uncount(self, node: Node) -> None:
        creator = node.creator
        if creator is not None:
            node.creator = None
            created = self._created[creator]
            del created[node]
            if not created:
                del self._created[creator]

    # -- temporary nodes

    def owns(self, owner: i64, node: Node) -> None:
        """Record that `node` belongs to the connection `owner`, and ends with it (TMP-03)."""
        self._owned.setdefault(int(owner), {})[node] = None

    def owned_by(self, owner: i64) -> list[Node]:
        """Return the temporary nodes of the connection `owner`."""
        return list(self._owned.get(int(owner), {}))

    def owned_bytes(self, owner: i64) -> i64:
        """Return the bytes of messages in the temporary nodes of the connection `owner`."""
        return self._bytes_of(self._owned.get(int(owner), {}))

    def gone(self, node: Node) -> None:
        """Forget `node`, which is deleted."""
        self.auto_created.pop(node, None)
        self._uncount(node)
        owned = self._owned.get(int(node.owner))
        if owned is not None:
            owned.pop(node, None)
            if not owned:
                del self._owned[int(node.owner)]

    # -- auto-created nodes

    def made_by_client(self, node: Node) -> None:
        """Count `node` as auto-created; delete it once it is unused, if its address says so."""
        self.auto_created[node] = None
        if node.policy.auto_delete_after_ms > 0:
            self._candidates.append(Candidate(node))
            self._look_later()

    def _look_later(self) -> None:
        if not self._is_set:
            self._is_set = True
            self._router.timer_queue.at(self._router.clock.now_ms() + LOOK_EVERY_MS, self)

    def due(self, now_ms: i64) -> None:  # noqa: ARG002 - a repeated call is harmless
        self._is_set = False
        self.is_due = True

    def collect(self, batch: Batch) -> None:
        """Check the next LOOKED_AT_ONCE candidates; delete those unused for long enough.

        Their remembered ids that are too old are forgotten first: no message comes to do so.
        """
        self.is_due = False
        ids_left = IDS_AT_ONCE
        now_ms = self._router.clock.now_ms()
        deleted: list[str] = []
        for _ in range(min(LOOKED_AT_ONCE, i64(len(self._candidates)))):
            candidate = self._candidates.popleft()
            node = candidate.node
            if node not in self.auto_created:
                continue
            if node.duplicates is not None:
                ids_left -= node.duplicates.forget_aged(batch, ids_left)
            if candidate.look(now_ms) and not self._router.leases.has_any_on(node):
                self._router.delete(node, batch)
                deleted.append(f"{node.kind} {node.address}")
            else:
                self._candidates.append(candidate)
        if deleted:
            self._tell(deleted)
        if self._candidates:
            self._look_later()

    def _tell(self, deleted: list[str]) -> None:
        self._router.stats.auto_deleted += len(deleted)
        named = ", ".join(deleted[:NAMED_IN_NOTICE])
        more = len(deleted) - NAMED_IN_NOTICE
        others = f" and {more} others" if more > 0 else ""
        self._router.notices.append(
            UNUSED_DELETED.notice(f"unused for auto_delete_after_ms, deleted: {named}{others}")
        )
