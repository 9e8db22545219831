"""SOAP faults of both versions, as responses to requests that the broker refuses."""

from __future__ import annotations

import re
from typing import Final
from xml.sax.saxutils import escape

from starlette.responses import Response

from broker.http.jms_problems import JmsProblem
from broker.http.soap_jms import SOAP_11, SOAP_12, SOAP_XML, TEXT_XML, SoapFault
from broker.management.request import BAD_REQUEST, FAILED

SOAP_JMS: Final = "http://www.w3.org/2010/soapjms/"
"""The namespace of the subcodes of SOAP over JMS."""

NOT_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may have."""

FAULT_11: Final = (
    '<env:Envelope xmlns:env="{soap}"><env:Body><env:Fault>'
    '<faultcode xmlns:soapjms="{soap_jms}">{code}</faultcode>'
    "<faultstring>{reason}</faultstring>"
    "</env:Fault></env:Body></env:Envelope>"
)

FAULT_12: Final = (
    '<env:Envelope xmlns:env="{soap}"><env:Body><env:Fault>'
    "<env:Code><env:Value>{code}</env:Value>{subcode}</env:Code>"
    '<env:Reason><env:Text xml:lang="en">{reason}</env:Text></env:Reason>'
    "</env:Fault></env:Body></env:Envelope>"
)

SUBCODE_12: Final = (
    '<env:Subcode><env:Value xmlns:soapjms="{soap_jms}">soapjms:{subcode}</env:Value></env:Subcode>'
)


def soap_response(problem: JmsProblem, *, is_12: bool) -> Response:
    """Return the fault that reports `problem`.

    A fault of the sender has status 500 in SOAP 1.1, and 400 in SOAP 1.2. Other problems keep their
    status, so that clients log in or try again as usual.
    """
    subcode = problem.subcode if isinstance(problem, SoapFault) else ""
    reason = problem.reason if isinstance(problem, SoapFault) else str(problem)
    reason = escape(NOT_XML.sub("?", reason))
    if is_12:
        sender = "env:Sender" if problem.status < FAILED else "env:Receiver"
        inner = SUBCODE_12.format(soap_jms=SOAP_JMS, subcode=subcode) if subcode else ""
        body = FAULT_12.format(soap=SOAP_12, code=sender, subcode=inner, reason=reason)
        return Response(
            body, problem.status, headers=problem.headers, media_type=f"{SOAP_XML}; charset=utf-8"
        )
    sender = "env:Client" if problem.status < FAILED else "env:Server"
    code = f"soapjms:{subcode}" if subcode else sender
    body = FAULT_11.format(soap=SOAP_11, soap_jms=SOAP_JMS, code=code, reason=reason)
    status = FAILED if problem.status == BAD_REQUEST else problem.status
    return Response(body, status, headers=problem.headers, media_type=f"{TEXT_XML}; charset=utf-8")
