"""Faults of both SOAP versions."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from broker.http.jms_problems import JmsProblem
from broker.http.soap_faults import SOAP_JMS, soap_response
from broker.http.soap_jms import SOAP_11, SOAP_12, SoapFault

pytestmark = pytest.mark.requirement("MAP-09")

BROKEN = SoapFault("missingContentType", "no <type> & \x00 no action")
BUSY = JmsProblem(503, "busy", "later", headers={"retry-after": "1"})


def test_a_fault_of_soap_11_has_the_subcode_as_its_code() -> None:
    response = soap_response(BROKEN, is_12=False)
    root = ET.fromstring(response.body)
    fault = root.find(f"{{{SOAP_11}}}Body/{{{SOAP_11}}}Fault")
    assert fault is not None
    assert (response.status_code, response.media_type) == (500, "text/xml; charset=utf-8")
    assert fault.findtext("faultcode") == "soapjms:missingContentType"
    assert fault.findtext("faultstring") == "no <type> & ? no action"
    assert SOAP_JMS.encode() in bytes(response.body)


def test_a_fault_of_soap_12_is_the_senders_with_a_subcode() -> None:
    response = soap_response(BROKEN, is_12=True)
    env = f"{{{SOAP_12}}}"
    fault = ET.fromstring(response.body).find(f"{env}Body/{env}Fault")
    assert fault is not None
    assert response.status_code == 400
    assert response.media_type == "application/soap+xml; charset=utf-8"
    assert fault.findtext(f"{env}Code/{env}Value") == "env:Sender"
    subcode = fault.findtext(f"{env}Code/{env}Subcode/{env}Value")
    assert subcode == "soapjms:missingContentType"
    assert fault.findtext(f"{env}Reason/{env}Text") == "no <type> & ? no action"


@pytest.mark.parametrize(
    ("is_12", "problem", "status", "code"),
    [
        pytest.param(False, BUSY, 503, b">env:Server<", id="the broker's, 1.1"),
        pytest.param(True, BUSY, 503, b">env:Receiver<", id="the broker's, 1.2"),
        pytest.param(False, JmsProblem(403, "x", "y"), 403, b">env:Client<", id="a right, 1.1"),
        pytest.param(True, JmsProblem(403, "x", "y"), 403, b">env:Sender<", id="a right, 1.2"),
        pytest.param(False, SoapFault("", "a DTD"), 500, b">env:Client<", id="no subcode"),
    ],
)
def test_other_problems_keep_their_status(
    is_12: bool, problem: JmsProblem, status: int, code: bytes
) -> None:
    response = soap_response(problem, is_12=is_12)
    assert response.status_code == status
    assert code in bytes(response.body)
    assert all(response.headers[name] == value for name, value in problem.headers.items())
