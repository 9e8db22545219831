"""The filters of a source: what they say, and which of them are in force (RCV-05, core 3.5.8)."""

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
"""The filters of JMS by name (JMS mapping 8.3, 8.4)."""


@final
class FiltersInForce:
    """What a receiver says of the messages that it wants. `stated` is to be echoed.

    `part` and `lease_slice` are for those who get copies.
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
        """The filter for a receiver of that container, None where it wants everything."""
        if self.selector is None and not self.no_local and self.part is None:
            return None
        return ConsumerFilter(self.selector, container_id if self.no_local else "", self.part)


def filters_of(source: Source) -> FiltersInForce:
    """The filters of `source` that are known here; InvalidSelector or LinkFault where one is wrong.

    A message passes all of them, so two selectors are one that joins them (3.5.8).
    """
    return in_force(source.filter)


def in_force(asked: list[SourceFilter]) -> FiltersInForce:
    """Those of `asked` that are known here; InvalidSelector or LinkFault where one is wrong."""
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
                parse_selector(text)
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
    """One selector for what all of `texts` take."""
    if not texts:
        return None
    if len(texts) == 1:
        return parse_selector(texts[0])
    return parse_selector(" AND ".join([f"({text})" for text in texts]))


def kind_of(stated: SourceFilter) -> int:
    """The number of its descriptor, however it was given; -1 for names that are not known."""
    descriptor = stated.descriptor
    if isinstance(descriptor, int):
        return descriptor
    if isinstance(descriptor, str):
        return DESCRIPTORS.get(descriptor, -1)
    if stated.value is not None:
        # somebody means something by it, though nobody can tell what
        raise LinkFault(INVALID_FIELD, "the value of a filter is described, or null (3.5.8)")
    return -1


def text_of(stated: SourceFilter) -> str:
    """What a selector says, empty where it is null or blank: then it asks for nothing (3.8.1.1)."""
    value = stated.value
    if value is None:
        return ""
    if isinstance(value, Symbol):
        value = value.text
    if not isinstance(value, str):
        raise LinkFault(INVALID_FIELD, "a selector is a string")
    return value if value.strip() else ""
