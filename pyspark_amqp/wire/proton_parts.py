"""The private parts of Proton that readers and writers use; its version is bounded for them.

Creating Proton's object for a delivery takes twice as long as everything else done for a message.
So its C functions are called instead, with the objects that Proton's own classes wrap.
"""

from __future__ import annotations

from typing import Any, cast

from cproton import (
    isnull,
    pn_delivery,
    pn_delivery_aborted,
    pn_delivery_partial,
    pn_delivery_pending,
    pn_delivery_remote_state,
    pn_delivery_settle,
    pn_delivery_settled,
    pn_link_advance,
    pn_link_credit,
    pn_link_current,
    pn_link_recv,
    pn_link_send,
)
from proton import Delivery, Link

__all__ = [
    "c_link",
    "delivery_of",
    "isnull",
    "pn_delivery",
    "pn_delivery_aborted",
    "pn_delivery_partial",
    "pn_delivery_pending",
    "pn_delivery_remote_state",
    "pn_delivery_settle",
    "pn_delivery_settled",
    "pn_link_advance",
    "pn_link_credit",
    "pn_link_current",
    "pn_link_recv",
    "pn_link_send",
]


def c_link(link: Link) -> Any:
    """Return the C object of `link`, which the C functions of links take."""
    return link._impl  # noqa: SLF001 - there is no public way


def delivery_of(c_delivery: Any) -> Delivery:
    """Return Proton's object for a delivery of C."""
    delivery: Delivery = cast("Any", Delivery).wrap(c_delivery)
    return delivery
