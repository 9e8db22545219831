"""Sources, targets and coordinators (core spec 3.5 and 4.5.1): the ends of a link.

A well-formed value that no node can honour (an address that is no string, an unknown
durability or outcome) raises `LinkFault`, so that the link alone is refused.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.composite import FieldReader, FieldWriter
from broker.amqp.decode import (
    descriptor_at,
    encoded_value,
    malformed,
    open_compound,
    take_value,
)
from broker.amqp.descriptors import (
    ACCEPTED,
    COORDINATOR,
    MODIFIED,
    REJECTED,
    RELEASED,
    SOURCE,
    TARGET,
)
from broker.amqp.encode import BytesWriter, put_compound, put_symbol
from broker.amqp.errors import INVALID_FIELD, NOT_IMPLEMENTED, LinkFault
from broker.amqp.limits import FIELD_VALUES_MAX
from broker.amqp.outcomes import Outcome, put_state, read_outcome
from broker.amqp.types import Described, Symbol, ULong

# terminus-durability, 3.5.5
NOT_DURABLE: Final = 0
CONFIGURATION: Final = 1
UNSETTLED_STATE: Final = 2

# terminus-expiry-policy, 3.5.6
LINK_DETACH: Final = "link-detach"
SESSION_END: Final = "session-end"
CONNECTION_CLOSE: Final = "connection-close"
NEVER: Final = "never"

# std-dist-mode, 3.5.7
MOVE: Final = "move"
COPY: Final = "copy"


@final
class SourceFilter:
    """One filter of a source (3.5.8): its key, its value, and its bytes, to be echoed.

    The descriptor is a number or a symbol's text; None if the value has none.
    """

    def __init__(
        self, *, key: str, descriptor: int | str | None, value: object, encoded: bytes
    ) -> None:
        self.key: Final = key
        self.descriptor: Final = descriptor
        self.value: Final = value
        self.encoded: Final = encoded


@final
class Source:
    """The source of a link: the node from which its messages are sent, 3.5.3.

    `tells_expiry_policy` is False if a durable one leaves it out, which means session-end.
    """

    def __init__(
        self,
        *,
        address: str | None = None,
        durable: i64 = NOT_DURABLE,
        expiry_policy: str = SESSION_END,
        timeout: i64 = 0,
        dynamic: bool = False,
        dynamic_node_properties: dict[str, object] | None = None,
        distribution_mode: str | None = None,
        filter: list[SourceFilter] | None = None,
        default_outcome: Outcome | None = None,
        outcomes: list[str] | None = None,
        capabilities: list[str] | None = None,
        tells_expiry_policy: bool = True,
    ) -> None:
        self.address: Final = address
        self.durable: Final[i64] = durable
        self.expiry_policy: Final = expiry_policy
        self.tells_expiry_policy: Final = tells_expiry_policy
        self.timeout: Final[i64] = timeout
        self.dynamic: Final = dynamic
        self.dynamic_node_properties: Final[dict[str, object]] = (
            dynamic_node_properties if dynamic_node_properties is not None else {}
        )
        self.distribution_mode: Final = distribution_mode
        self.filter: Final[list[SourceFilter]] = filter if filter is not None else []
        self.default_outcome: Final = default_outcome
        self.outcomes: Final[list[str]] = outcomes if outcomes is not None else []
        self.capabilities: Final[list[str]] = capabilities if capabilities is not None else []

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.string(self.address)
        fields.uint(self.durable, NOT_DURABLE)
        if not self.tells_expiry_policy:
            fields.skip()
        else:
            fields.symbol(self.expiry_policy, SESSION_END if self.durable == NOT_DURABLE else None)
        fields.uint(self.timeout, 0)
        fields.boolean(self.dynamic)
        fields.fields(self.dynamic_node_properties)
        fields.symbol(self.distribution_mode)
        if self.filter:
            _put_filters(fields.field(), self.filter)
        else:
            fields.skip()
        if self.default_outcome is not None:
            put_state(fields.field(), self.default_outcome)
        else:
            fields.skip()
        fields.symbols(self.outcomes)
        fields.symbols(self.capabilities)
        fields.close(out, SOURCE)


@final
class Target:
    """The target of a link: the node to which its messages are sent, 3.5.4."""

    def __init__(
        self,
        *,
        address: str | None = None,
        durable: i64 = NOT_DURABLE,
        expiry_policy: str = SESSION_END,
        timeout: i64 = 0,
        dynamic: bool = False,
        dynamic_node_properties: dict[str, object] | None = None,
        capabilities: list[str] | None = None,
    ) -> None:
        self.address: Final = address
        self.durable: Final[i64] = durable
        self.expiry_policy: Final = expiry_policy
        self.timeout: Final[i64] = timeout
        self.dynamic: Final = dynamic
        self.dynamic_node_properties: Final[dict[str, object]] = (
            dynamic_node_properties if dynamic_node_properties is not None else {}
        )
        self.capabilities: Final[list[str]] = capabilities if capabilities is not None else []

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.string(self.address)
        fields.uint(self.durable, NOT_DURABLE)
        fields.symbol(self.expiry_policy, SESSION_END)
        fields.uint(self.timeout, 0)
        fields.boolean(self.dynamic)
        fields.fields(self.dynamic_node_properties)
        fields.symbols(self.capabilities)
        fields.close(out, TARGET)


@final
class Coordinator:
    """The target of a link that controls transactions, 4.5.1."""

    def __init__(self, *, capabilities: list[str] | None = None) -> None:
        self.capabilities: Final[list[str]] = capabilities if capabilities is not None else []

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.symbols(self.capabilities)
        fields.close(out, COORDINATOR)


def read_source(data: bytes, at: i64, end: i64) -> Source:
    """Read the source after its descriptor. Raise LinkFault if no node can honour it."""
    fields = FieldReader(data, at, end, "source")
    address_at = fields.composite()
    durable = fields.uint(NOT_DURABLE)
    expiry_policy = fields.symbol()
    timeout = fields.uint(0)
    dynamic = fields.boolean(False)
    properties = fields.fields()
    distribution_mode = fields.symbol()
    filter_at = fields.composite()
    outcome_at = fields.composite()
    outcomes = fields.symbols()
    capabilities = fields.symbols()
    fields.close()
    if distribution_mode is not None and distribution_mode not in (MOVE, COPY):
        raise LinkFault(INVALID_FIELD, f"distribution-mode {distribution_mode:.100}")
    return Source(
        address=_address(data, address_at, fields.end),
        durable=_durability(durable),
        expiry_policy=_expiry_policy(expiry_policy),
        timeout=timeout,
        dynamic=dynamic,
        dynamic_node_properties=properties,
        distribution_mode=distribution_mode,
        filter=[] if filter_at < 0 else _read_filters(data, filter_at, fields.end),
        default_outcome=_default_outcome(data, outcome_at, fields.end),
        outcomes=outcomes,
        capabilities=capabilities,
        tells_expiry_policy=expiry_policy is not None or durable == NOT_DURABLE,
    )


def read_target(data: bytes, at: i64, end: i64) -> Target:
    """Read the target after its descriptor. Raise LinkFault if no node can honour it."""
    fields = FieldReader(data, at, end, "target")
    address_at = fields.composite()
    durable = fields.uint(NOT_DURABLE)
    expiry_policy = fields.symbol()
    timeout = fields.uint(0)
    dynamic = fields.boolean(False)
    properties = fields.fields()
    capabilities = fields.symbols()
    fields.close()
    return Target(
        address=_address(data, address_at, fields.end),
        durable=_durability(durable),
        expiry_policy=_expiry_policy(expiry_policy),
        timeout=timeout,
        dynamic=dynamic,
        dynamic_node_properties=properties,
        capabilities=capabilities,
    )


def read_coordinator(data: bytes, at: i64, end: i64) -> Coordinator:
    """Read the coordinator after its descriptor."""
    fields = FieldReader(data, at, end, "coordinator")
    capabilities = fields.symbols()
    fields.close()
    return Coordinator(capabilities=capabilities)


def _address(data: bytes, at: i64, end: i64) -> str | None:
    """Return the address, None if it is absent.

    The specification allows any type; this broker's addresses are strings.
    """
    if at < 0:
        return None
    value, _ = take_value(data, at, end, FIELD_VALUES_MAX)
    if not isinstance(value, str):
        raise LinkFault(INVALID_FIELD, "an address that is not a string")
    return value


def _durability(durable: i64) -> i64:
    if durable > UNSETTLED_STATE:
        raise LinkFault(INVALID_FIELD, f"terminus durability {int(durable)}")
    return durable


def _expiry_policy(policy: str | None) -> str:
    if policy is None:
        return SESSION_END
    if policy not in (LINK_DETACH, SESSION_END, CONNECTION_CLOSE, NEVER):
        raise LinkFault(INVALID_FIELD, f"expiry-policy {policy:.100}")
    return policy


def _default_outcome(data: bytes, at: i64, end: i64) -> Outcome | None:
    if at < 0:
        return None
    code, _ = descriptor_at(data, at, end)
    if code not in (ACCEPTED, REJECTED, RELEASED, MODIFIED):
        raise LinkFault(NOT_IMPLEMENTED, "a default-outcome that is not known here")
    return read_outcome(data, at, end)


def _read_filters(data: bytes, at: i64, end: i64) -> list[SourceFilter]:
    if data[at] != 0xC1 and data[at] != 0xD1:
        raise malformed("source: filter is not a map")
    count, at, end = open_compound(data, at, end)
    filters: list[SourceFilter] = []
    for _ in range(count >> 1):
        key, at = take_value(data, at, end, 1)
        if not isinstance(key, Symbol):
            raise malformed("source: the key of a filter is not a symbol")
        encoded = encoded_value(data, at, end)
        value, at = take_value(data, at, end, FIELD_VALUES_MAX)
        filters.append(_filter(key.text, value, encoded))
    if at != end:
        raise malformed("source: the size of filter does not match its content")
    return filters


def _filter(key: str, value: object, encoded: bytes) -> SourceFilter:
    if not isinstance(value, Described):
        return SourceFilter(key=key, descriptor=None, value=value, encoded=encoded)
    descriptor = value.descriptor
    name = descriptor.value if isinstance(descriptor, ULong) else descriptor.text
    return SourceFilter(key=key, descriptor=name, value=value.value, encoded=encoded)


def filter_from(key: str, encoded: bytes) -> SourceFilter:
    """Return the filter of `key` whose encoded value is `encoded`."""
    value, _ = take_value(encoded, 0, i64(len(encoded)), FIELD_VALUES_MAX)
    return _filter(key, value, encoded)


def _put_filters(out: BytesWriter, filters: list[SourceFilter]) -> None:
    content = BytesWriter()
    for each in filters:
        put_symbol(content, each.key)
        content.write(each.encoded)
    put_compound(out, 0xC1, content, count=2 * len(filters))
