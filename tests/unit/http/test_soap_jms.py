"""The rules of W3C SOAP over JMS 1.0, row by row."""

from __future__ import annotations

import time

import pytest

from broker.http.jms_fields import JmsFields
from broker.http.jms_problems import JmsProblem
from broker.http.limits import XML_BYTES_MAX
from broker.http.soap_jms import (
    SOAP_11,
    SOAP_12,
    SoapCall,
    SoapFault,
    answers_as_soap,
    complete,
    is_soap,
    is_version_12,
    parameter,
    plain,
    root_namespace,
)

pytestmark = pytest.mark.requirement("MAP-09")

ENVELOPE_11 = f'<env:Envelope xmlns:env="{SOAP_11}"><env:Body/></env:Envelope>'.encode()
ENVELOPE_12 = f"<Envelope xmlns='{SOAP_12}'><Body/></Envelope>".encode()


def call(
    content_type: str = "text/xml", action: str | None = None, name: str = "orders"
) -> SoapCall:
    return SoapCall(content_type=content_type, soap_action=action, kind="queue", name=name)


def fields(**given: str) -> JmsFields:
    names = {name: f"SOAPJMS_{name}" for name in given}
    names["messageType"] = "jms.messageType"
    return JmsFields(given={names[name]: value for name, value in given.items()})


def test_the_call_gives_what_the_sender_does_not() -> None:
    assert complete(call("text/xml; charset=utf-8", '"urn:buy"'), fields(), ENVELOPE_11) == {
        "SOAPJMS_requestURI": "jms:queue:orders",
        "SOAPJMS_bindingVersion": "1.0",
        "SOAPJMS_contentType": "text/xml; charset=utf-8",
        "SOAPJMS_soapAction": "urn:buy",
    }


def test_what_the_sender_gives_stays() -> None:
    given = {
        "requestURI": "jms:jndi:orders?x=1",
        "targetService": "buying",
        "contentType": "application/soap+xml",
        "soapAction": "urn:buy",
        "isFault": "true",
    }
    found = complete(call("application/soap+xml"), fields(**given), ENVELOPE_12)
    assert found["SOAPJMS_isFault"] is True
    assert found["SOAPJMS_requestURI"] == "jms:jndi:orders?x=1"
    assert found["SOAPJMS_targetService"] == "buying"


RULES = [
    ("missingRequestURI", call(), {"requestURI": ""}, ENVELOPE_11),
    ("malformedRequestURI", call(), {"requestURI": "http:queue:a"}, ENVELOPE_11),
    ("malformedRequestURI", call(), {"requestURI": "jms:orders"}, ENVELOPE_11),
    (
        "targetServiceNotAllowedInRequestURI",
        call(),
        {"requestURI": "jms:queue:a?b=1&targetService=c"},
        ENVELOPE_11,
    ),
    ("unrecognizedBindingVersion", call(), {"bindingVersion": "1.1"}, ENVELOPE_11),
    ("missingContentType", call(""), {"soapAction": "urn:x"}, ENVELOPE_11),
    ("contentTypeMismatch", call("text/plain"), {"soapAction": "urn:x"}, ENVELOPE_11),
    ("contentTypeMismatch", call(), {"contentType": "application/soap+xml"}, ENVELOPE_11),
    ("contentTypeMismatch", call(), {}, ENVELOPE_12),
    ("contentTypeMismatch", call("application/soap+xml"), {}, ENVELOPE_11),
    ("contentTypeMismatch", call(), {}, b"no envelope"),
    (
        "mismatchedSoapAction",
        call('application/soap+xml; action="urn:a"'),
        {"soapAction": "urn:b"},
        ENVELOPE_12,
    ),
    ("unsupportedJMSMessageFormat", call(), {"messageType": "MapMessage"}, ENVELOPE_11),
    (
        "unsupportedJMSMessageFormat",
        call(),
        {"messageType": "TextMessage"},
        ENVELOPE_11 + b"<!-- \xff -->",
    ),
    ("", call(), {}, b"<!DOCTYPE a>" + ENVELOPE_11),
]


@pytest.mark.parametrize(("subcode", "of", "given", "envelope"), RULES)
def test_each_rule_has_its_fault(
    subcode: str, of: SoapCall, given: dict[str, str], envelope: bytes
) -> None:
    with pytest.raises(SoapFault) as refused:
        complete(of, fields(**given), envelope)
    assert refused.value.subcode == subcode


def test_the_action_of_the_type_is_that_of_the_message() -> None:
    of = call('application/soap+xml; action="urn:a"', "urn:a")
    assert complete(of, fields(), ENVELOPE_12)["SOAPJMS_soapAction"] == "urn:a"


def test_two_actions_contradict() -> None:
    with pytest.raises(JmsProblem) as refused:
        complete(call(action="urn:a"), fields(soapAction="urn:b"), ENVELOPE_11)
    assert refused.value.slug == "conflicting-values"


def test_a_fault_is_marked_by_a_boolean() -> None:
    assert complete(call(), fields(isFault="0"), ENVELOPE_11)["SOAPJMS_isFault"] is False
    with pytest.raises(JmsProblem, match="SOAPJMS_isFault is true or false"):
        complete(call(), fields(isFault="yes"), ENVELOPE_11)


def test_a_package_is_not_looked_into() -> None:
    package = 'multipart/related; type="application/soap+xml"'
    assert complete(call(package), fields(), b"--b\r\n")["SOAPJMS_contentType"] == package


def test_the_name_of_a_queue_is_part_of_a_uri() -> None:
    found = complete(call(name="my orders"), fields(), ENVELOPE_11)
    assert found["SOAPJMS_requestURI"] == "jms:queue:my%20orders"


ROOTS = [
    pytest.param(ENVELOPE_11, SOAP_11, id="with a prefix"),
    pytest.param(ENVELOPE_12, SOAP_12, id="of the default namespace"),
    pytest.param(
        b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- a > b --><?pi?>\n' + ENVELOPE_11,
        SOAP_11,
        id="all before",
    ),
    pytest.param(ENVELOPE_12.decode().encode("utf-16"), SOAP_12, id="UTF-16"),
    pytest.param(b"<Body xmlns='x'/>", None, id="no Envelope"),
    pytest.param(b"<a:Envelope xmlns:b='x'>", None, id="an unknown prefix"),
    pytest.param(b"<Envelope a='<b>'>", None, id="no namespace"),
    pytest.param(b"<!-- " + b"x" * XML_BYTES_MAX + b"-->" + ENVELOPE_11, None, id="too far away"),
    pytest.param(b"<Envelope " + b'a="' * 1300, None, id="quotes without end"),
    pytest.param(b"<!-- " * 800, None, id="comments without end"),
    pytest.param(b"<" + b"a" * 4000, None, id="a name without end"),
    pytest.param(b"<a:" + b"a" * 4000, None, id="a name with a prefix without end"),
    pytest.param(b"<a" + b"a'\"'" * 1000, None, id="a name with quotes without end"),
    pytest.param(b"", None, id="nothing"),
]


@pytest.mark.parametrize(("envelope", "namespace"), ROOTS)
@pytest.mark.attack("C7")
def test_only_the_namespace_of_the_root_is_read(envelope: bytes, namespace: str | None) -> None:
    began_s = time.process_time()
    assert root_namespace(envelope) == namespace
    assert time.process_time() - began_s < 0.1


@pytest.mark.parametrize(
    ("of", "given", "soap", "as_soap", "is_12"),
    [
        pytest.param(call("text/plain"), {}, False, False, False, id="a plain message"),
        pytest.param(call(), {}, False, False, False, id="XML that may be anything"),
        pytest.param(call(action=""), {}, True, False, False, id="an action of HTTP"),
        pytest.param(
            call("application/soap+xml"), {}, True, False, True, id="the type of SOAP 1.2"
        ),
        pytest.param(call(), {"bindingVersion": "1.0"}, True, True, False, id="a property"),
        pytest.param(
            call("text/plain"), {"bindingVersion": "1.0"}, True, False, False, id="of another type"
        ),
        pytest.param(
            call(
                'multipart/related; type="application/xop+xml"; start-info="application/soap+xml"'
            ),
            {"bindingVersion": "1.0"},
            True,
            True,
            True,
            id="a package of SOAP 1.2",
        ),
    ],
)
def test_what_is_soap(
    of: SoapCall, given: dict[str, str], soap: bool, as_soap: bool, is_12: bool
) -> None:
    assert is_soap(of, fields(**given)) == soap
    assert answers_as_soap(of, fields(**given)) == as_soap
    assert is_version_12(of.content_type) == is_12


def test_a_plain_message_has_what_was_given() -> None:
    found = JmsFields(given={"JMSType": "t"}, properties={"n": 1})
    assert plain(found) == {"JMSType": "t", "n": 1}


def test_parameters_of_a_content_type() -> None:
    assert parameter('a/b; Action="urn:a;b"; c=d', "action") == "urn:a;b"
    assert parameter("a/b; c=d", "c") == "d"
    assert parameter("a/b", "c") is None
