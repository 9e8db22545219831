"""The address of a request that asks about a producer: of the node that one would send to."""

from __future__ import annotations

from broker.links.attach import KINDS, kind_of
from broker.management.request import BAD_REQUEST, Refused, Request
from broker.routing.addresses import address as addresses
from broker.routing.addresses.address import Address
from broker.routing.router import Router


def producer_address(router: Router, request: Request) -> Address:
    """Return `address` of the request, with the kind of node that a producer would get.

    `kind` is the capability that the producer gives. Raise Refused for any other word.
    """
    word = request.text("kind", "")
    if word and word not in KINDS:
        raise Refused(BAD_REQUEST, f"kind must be one of {', '.join(KINDS)}")
    text = addresses.check(request.text("address"))
    address = router.parse(text, kind_of([word] if word else []))
    return address.of_kind(router.kind_of(address))
