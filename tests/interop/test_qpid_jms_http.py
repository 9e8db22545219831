"""SOAP over JMS between clients of HTTP and a service on Qpid JMS: request, reply and fault."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tests.interop.broker_process import BrokerProcess
from tests.interop.junit import JUnit
from tests.interop.test_jms_over_http import SETTINGS, SOAP_11, SOAP_12, Request, envelope

pytestmark = pytest.mark.slow

VERSIONS = (("text/xml; charset=utf-8", SOAP_11), ("application/soap+xml", SOAP_12))
KINDS = ("TextMessage", "BytesMessage")
WORDS = {"buy": "false", "buy fault": "true"}
"""The words of requests, and whether the reply is a fault."""


@pytest.mark.requirement("MAP-09")
def test_soap_over_jms_with_qpid_jms(junit: JUnit, tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    cases = list(product(VERSIONS, KINDS, WORDS))
    sent = [
        Request(
            f"{broker.http_url}/jms/queue/soap.service?JMS-Property=number%3D5%3Btype%3Dint",
            [
                ("Content-Type", content_type),
                ("SOAPJMS-targetService", "shop"),
                ("SOAPAction", '"urn:buy"'),
                ("JMSType", "kind"),
                ("jms.priority", "7"),
                ("jms.messageType", kind),
                ("Prefer", "wait=60"),
            ],
            envelope(namespace, words),
        )
        for (content_type, namespace), kind, words in cases
    ]
    url = broker.url
    junit.phase("SoapPhases#serve", tmp_path, url=url, properties={"requests": str(len(cases))})
    for request, ((content_type, namespace), kind, words) in zip(sent, cases, strict=True):
        answer = request.result()
        is_fault = WORDS[words]
        reply = words.replace("buy", "Fault" if is_fault == "true" else "bought")
        assert (answer.status, answer.body) == (200, envelope(namespace, reply)), answer
        assert answer.header("JMS-Message-Type") == kind
        assert answer.header("SOAPJMS_isFault") == is_fault
        assert answer.header("JMSCorrelationID") == answer.header("JMS-Request-MessageID")
        assert str(answer.header("content-type")).startswith(content_type)
    assert broker.stop() == 0
