"""The rules of W3C SOAP over JMS 1.0 for a request to send an envelope.

Of the envelope only the namespace of the root element is read; XML is not parsed beyond that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from broker.http.jms_fields import (
    BINDING_VERSION,
    CONTENT_TYPE,
    IS_FAULT,
    REQUEST_URI,
    SOAP_ACTION,
    JmsFields,
)
from broker.http.jms_problems import JmsProblem
from broker.http.limits import XML_BYTES_MAX
from broker.jms.soap import MESSAGE_TYPE
from broker.management.request import BAD_REQUEST

TEXT_XML: Final = "text/xml"
SOAP_XML: Final = "application/soap+xml"
MULTIPART: Final = "multipart/related"

SOAP_11: Final = "http://schemas.xmlsoap.org/soap/envelope/"
SOAP_12: Final = "http://www.w3.org/2003/05/soap-envelope"

NAMESPACES: Final = {TEXT_XML: SOAP_11, SOAP_XML: SOAP_12}
"""The namespaces of envelopes, by media type; a package may hold either."""

MEDIA_TYPES: Final = (TEXT_XML, SOAP_XML, MULTIPART)

MESSAGE_TYPES: Final = ("TextMessage", "BytesMessage")

BINDING: Final = "1.0"

REQUEST_URI_FORM: Final = re.compile(r"jms:[^:?\s]+:[^?\s]+(\?(?P<query>\S*))?", re.IGNORECASE)

BEFORE_ROOT: Final = re.compile(r"\s+|<\?[^>]*\?>|<!--(?:(?!-->).)*-->", re.DOTALL)
ROOT: Final = re.compile(
    r"""<(?:(\w[\w.-]*+):)?+(\w[\w.-]*+)((?:[^<>"']++|"[^"]*+"|'[^']*+')*+)>"""
)
"""The start tag of the root element. It gives nothing back (`+`): else a name of thousands of
characters that is not ended would be tried at each of its lengths."""

NAMESPACE: Final = re.compile(r"""\sxmlns(?::(\w[\w.-]*))?\s*=\s*(?:"([^"]*)"|'([^']*)')""")

FAULT_VALUES: Final = ("true", "false", "1", "0")


class SoapFault(JmsProblem):
    """A request that breaks a rule of SOAP over JMS; `subcode` is that rule's fault."""

    def __init__(self, subcode: str, detail: str) -> None:
        super().__init__(BAD_REQUEST, "soap-jms", f"{subcode}: {detail}" if subcode else detail)
        self.subcode: Final = subcode
        self.reason: Final = detail


@dataclass(frozen=True, kw_only=True)
class SoapCall:
    """The facts about a request, beside its fields: its headers, and where it is sent to."""

    content_type: str
    soap_action: str | None
    kind: str
    name: str


def is_soap(call: SoapCall, fields: JmsFields) -> bool:
    """Return whether the request sends an envelope: its type or a header of SOAP says so."""
    return (
        fields.names_soap()
        or call.soap_action is not None
        or media_type(call.content_type) == SOAP_XML
    )


def answers_as_soap(call: SoapCall, fields: JmsFields) -> bool:
    """Return whether errors are SOAP faults: if the type is SOAP's and a SOAPJMS name was given."""
    return fields.names_soap() and media_type(call.content_type) in MEDIA_TYPES


def is_version_12(content_type: str) -> bool:
    """Return whether envelopes of that type are of SOAP 1.2."""
    if media_type(content_type) == MULTIPART:
        root = parameter(content_type, "type") or "", parameter(content_type, "start-info") or ""
        return any(SOAP_XML in text.lower() for text in root)
    return media_type(content_type) == SOAP_XML


def complete(call: SoapCall, fields: JmsFields, envelope: bytes) -> dict[str, object]:
    """Return the properties of the message, with defaults from the call.

    Raise SoapFault if a rule is broken, JmsProblem if two values contradict.
    """
    given = dict(fields.given)
    given.setdefault(REQUEST_URI, f"jms:{call.kind}:{quote(call.name)}")
    given.setdefault(BINDING_VERSION, BINDING)
    given.setdefault(CONTENT_TYPE, call.content_type)
    _check_request_uri(given[REQUEST_URI])
    if given[BINDING_VERSION] != BINDING:
        raise SoapFault("unrecognizedBindingVersion", f"the version is {BINDING}")
    _check_content_type(given[CONTENT_TYPE], call.content_type, envelope)
    action = _action(given, call)
    if action is not None:
        given[SOAP_ACTION] = action
    if given.get(MESSAGE_TYPE, MESSAGE_TYPES[0]) not in MESSAGE_TYPES:
        raise SoapFault(
            "unsupportedJMSMessageFormat", f"{MESSAGE_TYPE} is one of {', '.join(MESSAGE_TYPES)}"
        )
    if given.get(MESSAGE_TYPE) == MESSAGE_TYPES[0] and not _is_utf8(envelope):
        raise SoapFault("unsupportedJMSMessageFormat", "a TextMessage needs an envelope in UTF-8")
    properties: dict[str, object] = {**fields.properties, **given}
    if IS_FAULT in given:
        properties[IS_FAULT] = _is_fault(given[IS_FAULT])
    return properties


def plain(fields: JmsFields) -> dict[str, object]:
    """Return the properties of a message that is no envelope."""
    return {**fields.properties, **fields.given}


def _check_request_uri(uri: str) -> None:
    if not uri:
        raise SoapFault("missingRequestURI", f"{REQUEST_URI} is empty")
    found = REQUEST_URI_FORM.fullmatch(uri)
    if found is None:
        raise SoapFault(
            "malformedRequestURI", f"{REQUEST_URI} is jms:queue:NAME or alike, not {uri:.100}"
        )
    arguments = (found["query"] or "").split("&")
    if any(each.partition("=")[0] == "targetService" for each in arguments):
        raise SoapFault(
            "targetServiceNotAllowedInRequestURI",
            "the target service is the property SOAPJMS_targetService",
        )


def _check_content_type(given: str, of_call: str, envelope: bytes) -> None:
    if not given:
        raise SoapFault("missingContentType", f"the request has neither a type nor {CONTENT_TYPE}")
    type_ = media_type(given)
    if type_ not in MEDIA_TYPES:
        raise SoapFault("contentTypeMismatch", f"{type_:.100} is none of {', '.join(MEDIA_TYPES)}")
    if of_call and media_type(of_call) != type_:
        raise SoapFault(
            "contentTypeMismatch", f"{CONTENT_TYPE} is {type_:.100}, and the request another type"
        )
    if type_ == MULTIPART:
        return
    found = root_namespace(envelope)
    if found != NAMESPACES[type_]:
        raise SoapFault(
            "contentTypeMismatch",
            f"the root element of {type_} is an Envelope of {NAMESPACES[type_]}, in the first"
            f" {XML_BYTES_MAX} bytes",
        )


def _action(given: dict[str, str], call: SoapCall) -> str | None:
    """Return the action of the request, None if none is given; they must all be the same."""
    action = given.get(SOAP_ACTION)
    if call.soap_action is not None:
        header = call.soap_action.strip().strip('"')
        if action is not None and action != header:
            raise JmsProblem(
                BAD_REQUEST,
                "conflicting-values",
                f"SOAPAction and {SOAP_ACTION} are given with different values",
            )
        action = header
    of_type = parameter(given[CONTENT_TYPE], "action")
    if media_type(given[CONTENT_TYPE]) != SOAP_XML or of_type is None:
        return action
    if action is not None and action != of_type:
        raise SoapFault(
            "mismatchedSoapAction", f"{SOAP_ACTION} is not the action of the content type"
        )
    return of_type


def _is_fault(text: str) -> bool:
    if text.lower() not in FAULT_VALUES:
        raise JmsProblem(BAD_REQUEST, "invalid-property", f"{IS_FAULT} is true or false")
    return text.lower() in ("true", "1")


def _is_utf8(envelope: bytes) -> bool:
    try:
        envelope.decode()
    except UnicodeDecodeError:
        return False
    return True


def root_namespace(envelope: bytes) -> str | None:
    """Return the namespace of the root element, None if that is not found or is no Envelope.

    Raise SoapFault if a DTD precedes it.
    """
    text = _beginning(envelope)
    at = 0
    while (skipped := BEFORE_ROOT.match(text, at)) is not None:
        at = skipped.end()
    if text.startswith("<!", at) and not text.startswith("<!--", at):
        raise SoapFault("", "an envelope has no document type declaration (DTD)")
    root = ROOT.match(text, at)
    if root is None or root[2] != "Envelope":
        return None
    for prefix, double, single in NAMESPACE.findall(root[3]):
        if prefix == (root[1] or ""):
            return str(double or single)
    return None


def _beginning(envelope: bytes) -> str:
    head = envelope[:XML_BYTES_MAX]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return head.decode("utf-16", errors="replace")
    return head.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")


def media_type(content_type: str) -> str:
    """Return the media type of a content type, in lower case and without parameters."""
    return content_type.partition(";")[0].strip().lower()


PARAMETER: Final = re.compile(r""";\s*([\w!#$&^.+-]+)\s*=\s*(?:"([^"]*)"|([^\s;"]*))""")


def parameter(content_type: str, name: str) -> str | None:
    """Return a parameter of a content type, None if it has none of that name."""
    for found, quoted, bare in PARAMETER.findall(content_type):
        if found.lower() == name:
            return str(quoted or bare)
    return None
