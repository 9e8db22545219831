"""AMQP values as the reader of a report knows them: composites and fields by name."""

from __future__ import annotations

from typing import Final

from broker.amqp import descriptors
from broker.amqp.types import Array, Described, Integer, Map, Symbol, ULong

NAMES: Final[dict[int, str]] = {
    code: symbol.decode().split(":")[1] for symbol, code in descriptors.BY_SYMBOL.items()
}

TEXT_MAX: Final = 80

FIELDS: Final[dict[int, str]] = {
    descriptors.OPEN: "container-id hostname max-frame-size channel-max idle-time-out"
    " outgoing-locales incoming-locales offered-capabilities desired-capabilities properties",
    descriptors.BEGIN: "remote-channel next-outgoing-id incoming-window outgoing-window handle-max"
    " offered-capabilities desired-capabilities properties",
    descriptors.ATTACH: "name handle role snd-settle-mode rcv-settle-mode source target unsettled"
    " incomplete-unsettled initial-delivery-count max-message-size offered-capabilities"
    " desired-capabilities properties",
    descriptors.FLOW: "next-incoming-id incoming-window next-outgoing-id outgoing-window handle"
    " delivery-count link-credit available drain echo properties",
    descriptors.TRANSFER: "handle delivery-id delivery-tag message-format settled more"
    " rcv-settle-mode state resume aborted batchable",
    descriptors.DISPOSITION: "role first last settled state batchable",
    descriptors.DETACH: "handle closed error",
    descriptors.END: "error",
    descriptors.CLOSE: "error",
    descriptors.ERROR: "condition description info",
    descriptors.SOURCE: "address durable expiry-policy timeout dynamic dynamic-node-properties"
    " distribution-mode filter default-outcome outcomes capabilities",
    descriptors.TARGET: "address durable expiry-policy timeout dynamic dynamic-node-properties"
    " capabilities",
    descriptors.SASL_MECHANISMS: "sasl-server-mechanisms",
    descriptors.SASL_INIT: "mechanism initial-response hostname",
    descriptors.SASL_OUTCOME: "code additional-data",
    descriptors.MODIFIED: "delivery-failed undeliverable-here message-annotations",
    descriptors.REJECTED: "error",
}


def in_words(value: object) -> str:
    """Return a decoded value in one line; long texts are cut."""
    if isinstance(value, Described):
        return _described(value)
    if isinstance(value, Integer):
        return str(value.value)
    if isinstance(value, Symbol):
        return value.text if value.text.isprintable() else repr(value.text)
    if isinstance(value, Array):
        return f"[{', '.join(in_words(each) for each in value.values)}]"
    if isinstance(value, list):
        return f"[{', '.join(in_words(each) for each in value)}]"
    if isinstance(value, Map):
        return f"{{{', '.join(f'{in_words(key)}: {in_words(held)}' for key, held in value.pairs)}}}"
    if value is None:
        return "null"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}…"


def _described(value: Described) -> str:
    code = _code(value.descriptor)
    name = NAMES.get(code, f"described {in_words(value.descriptor)}")
    if code not in FIELDS or not isinstance(value.value, list):
        return name if value.value == [] else f"{name} {in_words(value.value)}"
    names = FIELDS[code].split()
    if code == descriptors.SASL_INIT:  # its other fields may contain a password
        return f"{name}(mechanism={in_words(value.value[0]) if value.value else ''}, …)"
    held = [
        f"{names[place] if place < len(names) else f'field {place}'}={in_words(each)}"
        for place, each in enumerate(value.value)
        if each is not None
    ]
    return f"{name}({', '.join(held)})"


def _code(descriptor: ULong | Symbol) -> int:
    if isinstance(descriptor, ULong):
        return descriptor.value
    return descriptors.BY_SYMBOL.get(descriptor.text.encode(), -1)
