"""The resource of which an operator asks: names are spelled as in an address, or as in a rule."""

from __future__ import annotations

from broker.routing.addresses.address import MANAGEMENT
from broker.routing.addresses.prefixes import Prefixes
from broker.routing.errors import RoutingError
from broker.security import resources
from broker.security.resources import Resource, ResourceError, resource_of


def asked_resource(text: str, verb: str, prefixes: Prefixes) -> Resource:
    """Return the canonical resource that `text` means, such as `queue:queue://orders`.

    Raise ResourceError if it means none, or its kind has no such verb.
    """
    kind, _, name = text.partition(":")
    if kind not in (resources.QUEUE, resources.TOPIC) or not name:
        return resource_of(text, verb)
    try:
        address = prefixes.parse(name, kind)
    except RoutingError as error:
        raise ResourceError(str(error)) from None
    if address.text == MANAGEMENT:
        return resource_of(f"{resources.MANAGEMENT}:{resources.EVERY}", verb)
    if address.is_temporary:
        return resource_of(f"{resources.TEMPORARY}:{kind}", verb)
    if kind == resources.TOPIC:
        plain = f"{address.words}/{address.key}" if address.key else address.words
        return resource_of(f"{kind}:{plain}", verb)
    return resource_of(f"{kind}:{address.text.removeprefix(address.begins)}", verb)
