"""The state that a session keeps of a delivery until both ends have settled it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64, mypyc_attr

if TYPE_CHECKING:
    from broker.amqp.events import OutgoingOwner


@mypyc_attr(acyclic=True)
class Delivery:
    """A delivery in flight. Owners derive classes from it, so that one object serves both.

    `sent_to` is the owner of the link on which it was sent; incoming deliveries have
    none. Acyclic: the cyclic garbage collector does not examine it. Code that ends a
    link, session or connection removes its deliveries from `UnsettledDeliveries`.
    """

    def __init__(self) -> None:
        self.delivery_id: i64 = -1
        self.sent_to: OutgoingOwner | None = None
