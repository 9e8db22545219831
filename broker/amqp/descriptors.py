"""The numeric descriptors of core spec parts 2 to 5, and the symbols that mean the same."""

from __future__ import annotations

from typing import Final

# 2.7
OPEN: Final = 0x10
BEGIN: Final = 0x11
ATTACH: Final = 0x12
FLOW: Final = 0x13
TRANSFER: Final = 0x14
DISPOSITION: Final = 0x15
DETACH: Final = 0x16
END: Final = 0x17
CLOSE: Final = 0x18

# 2.8.14
ERROR: Final = 0x1D

# 3.4
RECEIVED: Final = 0x23
ACCEPTED: Final = 0x24
REJECTED: Final = 0x25
RELEASED: Final = 0x26
MODIFIED: Final = 0x27

# 3.5
SOURCE: Final = 0x28
TARGET: Final = 0x29
DELETE_ON_CLOSE: Final = 0x2B
DELETE_ON_NO_LINKS: Final = 0x2C
DELETE_ON_NO_MESSAGES: Final = 0x2D
DELETE_ON_NO_LINKS_OR_MESSAGES: Final = 0x2E

# 4.5
COORDINATOR: Final = 0x30
DECLARE: Final = 0x31
DISCHARGE: Final = 0x32
DECLARED: Final = 0x33
TRANSACTIONAL_STATE: Final = 0x34

# 5.3.3
SASL_MECHANISMS: Final = 0x40
SASL_INIT: Final = 0x41
SASL_CHALLENGE: Final = 0x42
SASL_RESPONSE: Final = 0x43
SASL_OUTCOME: Final = 0x44

# 3.2
HEADER: Final = 0x70
DELIVERY_ANNOTATIONS: Final = 0x71
MESSAGE_ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION_PROPERTIES: Final = 0x74
DATA: Final = 0x75
AMQP_SEQUENCE: Final = 0x76
AMQP_VALUE: Final = 0x77
FOOTER: Final = 0x78

# Apache's registered filters
NO_LOCAL_FILTER: Final = 0x0000_468C_0000_0003
SELECTOR_FILTER: Final = 0x0000_468C_0000_0004

# Compared as whole names only: a reader that compares prefixes can be made to read
# `amqp:data:binaryX` as something that the next reader does not.
BY_SYMBOL: Final[dict[bytes, int]] = {
    b"amqp:open:list": OPEN,
    b"amqp:begin:list": BEGIN,
    b"amqp:attach:list": ATTACH,
    b"amqp:flow:list": FLOW,
    b"amqp:transfer:list": TRANSFER,
    b"amqp:disposition:list": DISPOSITION,
    b"amqp:detach:list": DETACH,
    b"amqp:end:list": END,
    b"amqp:close:list": CLOSE,
    b"amqp:error:list": ERROR,
    b"amqp:received:list": RECEIVED,
    b"amqp:accepted:list": ACCEPTED,
    b"amqp:rejected:list": REJECTED,
    b"amqp:released:list": RELEASED,
    b"amqp:modified:list": MODIFIED,
    b"amqp:source:list": SOURCE,
    b"amqp:target:list": TARGET,
    b"amqp:delete-on-close:list": DELETE_ON_CLOSE,
    b"amqp:delete-on-no-links:list": DELETE_ON_NO_LINKS,
    b"amqp:delete-on-no-messages:list": DELETE_ON_NO_MESSAGES,
    b"amqp:delete-on-no-links-or-messages:list": DELETE_ON_NO_LINKS_OR_MESSAGES,
    b"amqp:coordinator:list": COORDINATOR,
    b"amqp:declare:list": DECLARE,
    b"amqp:discharge:list": DISCHARGE,
    b"amqp:declared:list": DECLARED,
    b"amqp:transactional-state:list": TRANSACTIONAL_STATE,
    b"amqp:sasl-mechanisms:list": SASL_MECHANISMS,
    b"amqp:sasl-init:list": SASL_INIT,
    b"amqp:sasl-challenge:list": SASL_CHALLENGE,
    b"amqp:sasl-response:list": SASL_RESPONSE,
    b"amqp:sasl-outcome:list": SASL_OUTCOME,
    b"amqp:header:list": HEADER,
    b"amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    b"amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    b"amqp:properties:list": PROPERTIES,
    b"amqp:application-properties:map": APPLICATION_PROPERTIES,
    b"amqp:data:binary": DATA,
    b"amqp:amqp-sequence:list": AMQP_SEQUENCE,
    b"amqp:amqp-value:*": AMQP_VALUE,
    b"amqp:footer:map": FOOTER,
    b"apache.org:no-local-filter:list": NO_LOCAL_FILTER,
    b"apache.org:selector-filter:string": SELECTOR_FILTER,
}
