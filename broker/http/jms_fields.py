"""The JMS headers, settings and properties of a request, given as HTTP headers or in the query.

HTTP does not keep the case of header names, so only known names are headers of their own, and an
application's properties are values of `JMS-Property`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from broker.amqp.types import Byte, Float, Int, Short
from broker.http.jms_problems import JmsProblem
from broker.http.limits import JMS_FIELDS_BYTES_MAX, JMS_PROPERTIES_MAX
from broker.jms.soap import REFUSED
from broker.management.request import BAD_REQUEST

PROPERTY: Final = "JMS-Property"
SOAP: Final = "SOAPJMS_"
RECEIPT: Final = "JMS-Receipt"

REQUEST_URI: Final = "SOAPJMS_requestURI"
BINDING_VERSION: Final = "SOAPJMS_bindingVersion"
SOAP_ACTION: Final = "SOAPJMS_soapAction"
TARGET_SERVICE: Final = "SOAPJMS_targetService"
CONTENT_TYPE: Final = "SOAPJMS_contentType"
IS_FAULT: Final = "SOAPJMS_isFault"

SOAP_NAMES: Final = (
    REQUEST_URI,
    BINDING_VERSION,
    SOAP_ACTION,
    TARGET_SERVICE,
    CONTENT_TYPE,
    IS_FAULT,
)
"""The properties of SOAP over JMS that a request may give; the last one in replies."""

NAMES: Final = (
    *("jms.deliveryMode", "jms.priority", "jms.timeToLive", "jms.messageType"),
    *("JMSType", "JMSCorrelationID", "JMSXGroupID", "JMSXGroupSeq"),
    *SOAP_NAMES,
)
"""Everything but an application's properties that a request may give."""

KNOWN: Final = {name.lower(): name for name in NAMES} | {
    # proxies drop header fields with an underscore
    name.lower().replace("_", "-"): name
    for name in SOAP_NAMES
}

REFUSED_NAMES: Final = {name.lower(): name for name in REFUSED}

WHOLE: Final = re.compile(r"-?[0-9]{1,19}")

BOOLEANS: Final = {"true": True, "false": False, "1": True, "0": False}


def _boolean(text: str) -> bool:
    if text.lower() not in BOOLEANS:
        raise ValueError(text)
    return BOOLEANS[text.lower()]


def _whole(text: str) -> int:
    """Return a whole number, of which Python also reads other forms than JMS has."""
    if WHOLE.fullmatch(text) is None:
        raise ValueError(text)
    return int(text)


def _long(text: str) -> int:
    number = _whole(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError(text)
    return number


TYPES: Final[dict[str, Callable[[str], object]]] = {
    "string": str,
    "boolean": _boolean,
    "byte": lambda text: Byte(_whole(text)),
    "short": lambda text: Short(_whole(text)),
    "int": lambda text: Int(_whole(text)),
    "long": _long,
    "float": lambda text: Float(float(text)),
    "double": float,
}
"""The types of an application's properties, with the function that reads a value."""

TYPE_MARK: Final = ";type="


@dataclass
class JmsFields:
    """The fields of one request: `given` by their JMS names, and an application's `properties`."""

    given: dict[str, str] = field(default_factory=dict)
    properties: dict[str, object] = field(default_factory=dict)
    size: int = 0

    def add(self, name: str, text: str) -> None:
        """Add a field; JmsProblem if it is not allowed, or was given with another value before."""
        self.size += len(name) + len(text.encode())
        if self.size > JMS_FIELDS_BYTES_MAX:
            raise JmsProblem(
                BAD_REQUEST,
                "too-many-fields",
                f"the JMS headers and properties of a message have at most {JMS_FIELDS_BYTES_MAX}"
                " bytes",
            )
        lower = name.lower()
        if lower == PROPERTY.lower():
            self._add_property(text)
            return
        known = KNOWN.get(lower)
        if known is None:
            raise not_allowed(REFUSED_NAMES.get(lower, name))
        self._give(known, text)

    def _give(self, name: str, text: str) -> None:
        before = self.given.setdefault(name, text)
        if before != text:
            raise _twice(name)

    def _add_property(self, text: str) -> None:
        name, separator, rest = text.partition("=")
        if not separator or not name:
            raise JmsProblem(
                BAD_REQUEST,
                "invalid-property",
                f"{PROPERTY} is name=value or name=value;type=int, not {text:.100}",
            )
        if name.lower() in KNOWN:
            self._give(KNOWN[name.lower()], rest)
            return
        if name.upper().startswith("JMS") or name.upper().startswith(SOAP):
            raise not_allowed(REFUSED_NAMES.get(name.lower(), name))
        value = _typed(name, rest)
        if name in self.properties and self.properties[name] != value:
            raise _twice(name)
        self.properties[name] = value
        if len(self.properties) > JMS_PROPERTIES_MAX:
            raise JmsProblem(
                BAD_REQUEST,
                "too-many-fields",
                f"a message has at most {JMS_PROPERTIES_MAX} properties",
            )

    def names_soap(self) -> bool:
        """Return whether a property of SOAP over JMS was given."""
        return any(name.startswith(SOAP) for name in self.given)


def fields_of(
    headers: Iterable[tuple[bytes, bytes]], query: Iterable[tuple[str, str]]
) -> JmsFields:
    """Return the fields of a request; JmsProblem if one is not allowed, or two contradict.

    Values of headers are percent-encoded UTF-8, as in responses.
    """
    found = JmsFields()
    for raw_name, raw_value in headers:
        name = raw_name.decode("latin-1")
        if is_field(name):
            found.add(name, _decoded(name, raw_value))
    for name, value in query:
        if not is_field(name):
            raise JmsProblem(BAD_REQUEST, "bad-request", f"no argument {name:.50}")
        found.add(name, value)
    return found


def is_field(name: str) -> bool:
    """Return whether the name of a header or an argument is one of JMS, allowed or not."""
    return name.lower().startswith(("jms", "soapjms"))


def _decoded(name: str, raw: bytes) -> str:
    try:
        return unquote(raw.decode(), errors="strict")
    except UnicodeDecodeError:
        raise JmsProblem(
            BAD_REQUEST, "bad-request", f"the header {name} is not percent-encoded UTF-8"
        ) from None


def _typed(name: str, text: str) -> object:
    """Return the value of a property, a string unless a type is named behind it."""
    value, separator, type_ = text.rpartition(TYPE_MARK)
    if not separator:
        return text
    if type_ not in TYPES:
        raise JmsProblem(
            BAD_REQUEST,
            "invalid-property",
            f"{name:.100}: no type {type_:.50}; there are {', '.join(TYPES)}",
        )
    try:
        return TYPES[type_](value)
    except (ValueError, OverflowError):
        raise JmsProblem(
            BAD_REQUEST, "invalid-property", f"{name:.100}: {value:.100} is no {type_}"
        ) from None


def not_allowed(name: str) -> JmsProblem:
    """Return the problem of a header that the client may not give."""
    return JmsProblem(
        BAD_REQUEST, "header-not-allowed", f"{name:.100} is not for the sender to give"
    )


def _twice(name: str) -> JmsProblem:
    return JmsProblem(
        BAD_REQUEST, "conflicting-values", f"{name:.100} is given twice, with different values"
    )
