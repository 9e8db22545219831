"""The filters of a source: their meaning, and which are in force (RCV-05, core 3.5.8)."""

from __future__ import annotations

from typing import Final, final

from broker.amqp.descriptors import NO_LOCAL_FILTER, SELECTOR_FILTER
from broker.amqp.errors import INVALID_FIELD, LinkFault
from broker.amqp.terminus import Source, SourceFilter
from broker.amqp.types import Symbol
from broker.links.slices import BROWSE_SLICE, LEASE_SLICE, LeaseSlice, lease_slice_of, part_of
from broker.routing.entries.browse_slice import BrowseSlice
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.selector import Selector, parse_selector

DESCRIPTORS: Final[dict[str, int]] = {
    "apache.org:selector-filter:string": SELECTOR_FILTER,
    "apache.org:no-local-filter:list": NO_LOCAL_FILTER,
}
"""Numeric descriptors of the JMS filters, by their names (JMS mapping 8.3, 8.4)."""


@final
class FiltersInForce:
    """The filters of a receiver that the broker applies: `stated`, to be echoed in the answer.

    `part` and `lease_slice` are only for receivers that get copies.
    """

    def __init__(
        self,
        stated: list[SourceFilter],
        selector: Selector | None,
        *,
        no_local: bool,
        part: BrowseSlice | None = None,
        lease_slice: LeaseSlice | None = None,
    ) -> None:
        self.stated: Final = stated
        self.selector: Final = selector
        self.no_local: Final = no_local
        self.part: Final = part
        self.lease_slice: Final = lease_slice

    def of(self, container_id: str) -> ConsumerFilter | None:
        """Return the filter for a receiver of that container; None if it wants every message."""
        if self.selector is None and not self.no_local and self.part is None:
            return None
        excluded = container_id if self.no_local else ""
        return ConsumerFilter(self.selector, excluded, part=self.part)


def filters_of(source: Source) -> FiltersInForce:
    """Return the known filters of `source`; raise InvalidSelector or LinkFault if one is invalid.

    A message must pass all of them, so two selectors are joined into one (3.5.8).
    """
    return in_force(source.filter)


def in_force(asked: list[SourceFilter]) -> FiltersInForce:
    """Return the known filters of `asked`; raise InvalidSelector or LinkFault if one is invalid."""
    stated: list[SourceFilter] = []
    texts: list[str] = []
    no_local = False
    part: BrowseSlice | None = None
    lease_slice: LeaseSlice | None = None
    for each in asked:
        kind = kind_of(each)
        if kind == NO_LOCAL_FILTER:
            no_local = True
        elif kind == SELECTOR_FILTER:
            text = text_of(each)
            if text:
                parse_selector(text)  # each must be valid by itself, not only joined
                texts.append(text)
        elif each.descriptor == BROWSE_SLICE:
            part = part_of(each)
        elif each.descriptor == LEASE_SLICE:
            lease_slice = lease_slice_of(each)
        else:
            continue
        stated.append(each)
    return FiltersInForce(
        stated, joined(texts), no_local=no_local, part=part, lease_slice=lease_slice
    )


def joined(texts: list[str]) -> Selector | None:
    """Return one selector for the messages that all of `texts` select; None without any."""
    if not texts:
        return None
    if len(texts) == 1:
        return parse_selector(texts[0])
    return parse_selector(" AND ".join([f"({text})" for text in texts]))


def kind_of(stated: SourceFilter) -> int:
    """Return the numeric descriptor of a filter, -1 if unknown; LinkFault if a value has none."""
    descriptor = stated.descriptor
    if isinstance(descriptor, int):
        return descriptor
    if isinstance(descriptor, str):
        return DESCRIPTORS.get(descriptor, -1)
    if stated.value is not None:
        # the client means a filter by it, and the broker cannot tell which
        raise LinkFault(INVALID_FIELD, "the value of a filter is described, or null (3.5.8)")
    return -1


def text_of(stated: SourceFilter) -> str:
    """Return the text of a selector; empty if it is null or blank: no restriction (3.8.1.1)."""
    value = stated.value
    if value is None:
        return ""
    if isinstance(value, Symbol):
        value = value.text
    if not isinstance(value, str):
        raise LinkFault(INVALID_FIELD, "a selector is a string")
    return value if value.strip() else ""
