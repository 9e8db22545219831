"""The field tables of the specification (parts 2 to 5) as data.

A field has a name, a type and a default; the default of a mandatory field is `MUST`.
"""

from dataclasses import dataclass

MUST = object()
NONE: list[object] = []
EMPTY: dict[str, object] = {}


@dataclass(frozen=True)
class Field:
    """A field of a composite type."""

    name: str
    type: str
    default: object

    @property
    def attribute(self) -> str:
        return self.name.replace("-", "_")


def table(*rows: tuple[str, str, object]) -> list[Field]:
    return [Field(*row) for row in rows]


COMPOSITES: dict[str, tuple[int, list[Field]]] = {
    "open": (
        0x10,
        table(
            ("container-id", "string", MUST),
            ("hostname", "string", None),
            ("max-frame-size", "uint", 4294967295),
            ("channel-max", "ushort", 65535),
            ("idle-time-out", "uint", -1),
            ("outgoing-locales", "symbols", NONE),
            ("incoming-locales", "symbols", NONE),
            ("offered-capabilities", "symbols", NONE),
            ("desired-capabilities", "symbols", NONE),
            ("properties", "fields", EMPTY),
        ),
    ),
    "begin": (
        0x11,
        table(
            ("remote-channel", "ushort", -1),
            ("next-outgoing-id", "uint", MUST),
            ("incoming-window", "uint", MUST),
            ("outgoing-window", "uint", MUST),
            ("handle-max", "uint", 4294967295),
            ("offered-capabilities", "symbols", NONE),
            ("desired-capabilities", "symbols", NONE),
            ("properties", "fields", EMPTY),
        ),
    ),
    "attach": (
        0x12,
        table(
            ("name", "string", MUST),
            ("handle", "uint", MUST),
            ("role", "boolean", MUST),
            ("snd-settle-mode", "settle-mode", 2),
            ("rcv-settle-mode", "settle-mode", 0),
            ("source", "source", None),
            ("target", "target", None),
            ("unsettled", "map", None),
            ("incomplete-unsettled", "boolean", False),
            ("initial-delivery-count", "uint", -1),
            ("max-message-size", "ulong", 0),
            ("offered-capabilities", "symbols", NONE),
            ("desired-capabilities", "symbols", NONE),
            ("properties", "fields", EMPTY),
        ),
    ),
    "flow": (
        0x13,
        table(
            ("next-incoming-id", "uint", -1),
            ("incoming-window", "uint", MUST),
            ("next-outgoing-id", "uint", MUST),
            ("outgoing-window", "uint", MUST),
            ("handle", "uint", -1),
            ("delivery-count", "uint", -1),
            ("link-credit", "uint", -1),
            ("available", "uint", -1),
            ("drain", "boolean", False),
            ("echo", "boolean", False),
            ("properties", "fields", EMPTY),
        ),
    ),
    "transfer": (
        0x14,
        table(
            ("handle", "uint", MUST),
            ("delivery-id", "uint", -1),
            ("delivery-tag", "tag", None),
            ("message-format", "uint", -1),
            ("settled", "optional boolean", -1),
            ("more", "boolean", False),
            ("rcv-settle-mode", "settle-mode", -1),
            ("state", "state", None),
            ("resume", "boolean", False),
            ("aborted", "boolean", False),
            ("batchable", "boolean", False),
        ),
    ),
    "disposition": (
        0x15,
        table(
            ("role", "boolean", MUST),
            ("first", "uint", MUST),
            # the default is the value of `first`, which is 7 in the tests of this table
            ("last", "uint", 7),
            ("settled", "boolean", False),
            ("state", "state", None),
            ("batchable", "boolean", False),
        ),
    ),
    "detach": (
        0x16,
        table(("handle", "uint", MUST), ("closed", "boolean", False), ("error", "error", None)),
    ),
    "end": (0x17, table(("error", "error", None))),
    "close": (0x18, table(("error", "error", None))),
    "error": (
        0x1D,
        table(
            ("condition", "symbol", MUST),
            ("description", "string", None),
            ("info", "fields", EMPTY),
        ),
    ),
    "received": (
        0x23,
        table(("section-number", "uint", MUST), ("section-offset", "ulong", MUST)),
    ),
    "accepted": (0x24, table()),
    "rejected": (0x25, table(("error", "error", None))),
    "released": (0x26, table()),
    "modified": (
        0x27,
        table(
            ("delivery-failed", "boolean", False),
            ("undeliverable-here", "boolean", False),
            ("message-annotations", "map", None),
        ),
    ),
    "source": (
        0x28,
        table(
            ("address", "string", None),
            ("durable", "durability", 0),
            ("expiry-policy", "expiry-policy", "session-end"),
            ("timeout", "uint", 0),
            ("dynamic", "boolean", False),
            ("dynamic-node-properties", "fields", EMPTY),
            ("distribution-mode", "distribution-mode", None),
            ("filter", "filter-set", NONE),
            ("default-outcome", "outcome", None),
            ("outcomes", "symbols", NONE),
            ("capabilities", "symbols", NONE),
        ),
    ),
    "target": (
        0x29,
        table(
            ("address", "string", None),
            ("durable", "durability", 0),
            ("expiry-policy", "expiry-policy", "session-end"),
            ("timeout", "uint", 0),
            ("dynamic", "boolean", False),
            ("dynamic-node-properties", "fields", EMPTY),
            ("capabilities", "symbols", NONE),
        ),
    ),
    "coordinator": (0x30, table(("capabilities", "symbols", NONE))),
    "declared": (0x33, table(("txn-id", "binary", MUST))),
    "transactional-state": (
        0x34,
        table(("txn-id", "binary", MUST), ("outcome", "outcome", None)),
    ),
    "sasl-mechanisms": (0x40, table(("mechanisms", "symbols", MUST))),
    "sasl-init": (
        0x41,
        table(
            ("mechanism", "symbol", MUST),
            ("initial-response", "binary", None),
            ("hostname", "string", None),
        ),
    ),
    "sasl-challenge": (0x42, table(("challenge", "binary", MUST))),
    "sasl-response": (0x43, table(("response", "binary", MUST))),
    "sasl-outcome": (0x44, table(("code", "sasl-code", MUST), ("additional-data", "binary", None))),
}
