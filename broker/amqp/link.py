"""A link's end at the broker: its life cycle, and what both directions share.

Directions are the broker's: the peer sends on an `IncomingLink` and receives on an
`OutgoingLink`. Both are created by an attach of the peer's, answered at once by
`accept` or `refuse` (core 2.6.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from broker.amqp.errors import Fault
from broker.amqp.lifecycle import LinkEvent, LinkState, link_after
from broker.amqp.outcomes import Error, error_of
from broker.amqp.performatives import RECEIVER, SND_MIXED, Attach, Detach
from broker.amqp.terminus import Coordinator, Source, Target
from broker.amqp.unsettled_map import UnsettledStates, put_unsettled_map

if TYPE_CHECKING:
    from broker.amqp.session import Session


class Link:
    """The base of both directions. `handle` is the peer's number for it, `our_handle` the broker's.

    `asked` is the peer's attach until it is answered. `detach_error` is the error in the broker's
    answer to the peer's detach, None for none; the owner sets it while the link ends. `ended_by` is
    the fault with which the broker has closed it. `told_all` is False if the unsettled map of the
    broker's attach was incomplete (2.7.3).
    """

    def __init__(self, session: Session, attach: Attach, our_handle: i64) -> None:
        self.session: Final = session
        self.name: Final = attach.name
        self.handle: Final[i64] = attach.handle
        self.our_handle: Final[i64] = our_handle
        self.asked: Attach | None = attach
        self.detach_error: Fault | None = None
        self.ended_by: Fault | None = None
        self.told_all = True
        self.state: LinkState = link_after(LinkState.DETACHED, LinkEvent.ATTACH_IN)

    def refuse(self, fault: Fault) -> None:
        """Answer the attach with a null terminus, then detach at once (2.6.3)."""
        asked = self.asked
        assert asked is not None
        if asked.role is RECEIVER:
            self._answer(source=None, target=_target(asked), initial_delivery_count=0)
        else:
            self._answer(source=asked.source, target=None)
        self.detach(fault)

    def _answer(
        self,
        *,
        source: Source | None,
        target: Target | Coordinator | None,
        snd_settle_mode: i64 = SND_MIXED,
        initial_delivery_count: i64 = -1,
        max_message_size: i64 = 0,
        offered_capabilities: list[str] | None = None,
        properties: dict[str, object] | None = None,
        unsettled: UnsettledStates | None = None,
    ) -> None:
        asked = self.asked
        assert asked is not None
        self.state = link_after(self.state, LinkEvent.ATTACH_OUT)
        self.session.attached += 1
        answer = Attach(
            name=self.name,
            handle=self.our_handle,
            role=not asked.role,
            snd_settle_mode=snd_settle_mode,
            rcv_settle_mode=asked.rcv_settle_mode,
            source=source,
            target=target,
            initial_delivery_count=initial_delivery_count,
            max_message_size=max_message_size,
            offered_capabilities=offered_capabilities,
            properties=properties,
        )
        if unsettled is not None:
            size = self.session.connection.output.frame_size_max
            self.told_all = put_unsettled_map(answer, unsettled, size)
        self.session.put(answer)
        self.asked = None

    def detach(self, fault: Fault | None, *, closed: bool = True) -> None:
        """End the link from the broker's side, with `fault` as the error if given. Idempotent."""
        if self.state is not LinkState.ATTACHED:
            return
        self.state = link_after(self.state, LinkEvent.DETACH_OUT)
        self.session.attached -= 1
        self.session.flush_accepted()
        if self.session.takes_frames():
            error: Error | None = None if fault is None else error_of(fault)
            self.session.put(Detach(handle=self.our_handle, closed=closed, error=error))
        self.session.forget(self)
        if closed:
            self.ended_by = fault
        self.end(closed=False)

    def on_detach(self, detach: Detach) -> None:
        """Handle the peer's detach, or its answer to the broker's."""
        answer = self.state is LinkState.ATTACHED
        self.state = link_after(self.state, LinkEvent.DETACH_IN)
        if answer:
            self.session.attached -= 1
            self.end(closed=detach.closed)
            self.session.flush_accepted()
            detach_error = self.detach_error
            error = None if detach_error is None else error_of(detach_error)
            self.session.put(Detach(handle=self.our_handle, closed=detach.closed, error=error))

    def lost(self) -> None:
        """End this link because its session has ended."""
        attached = self.state is LinkState.ATTACHED
        self.state = LinkState.DETACHED
        if attached:
            self.session.attached -= 1
            self.end(closed=False)

    def put_flow(self) -> None:
        """Send the link's delivery-count and credit to the peer."""
        raise NotImplementedError

    def end(self, *, closed: bool) -> None:
        """Release everything and call the owner; called once in the life of an attached link."""
        raise NotImplementedError


def _target(asked: Attach) -> Target | None:
    """Return the target of an attach, None if it is one that a receiver cannot have."""
    target = asked.target
    return None if isinstance(target, Coordinator) else target
