"""JMS over HTTP on one end, python-qpid-proton on the other, with a broker process between them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from proton import Message, symbol

from tests.interop.broker_process import BrokerProcess
from tests.interop.proton_peer import Peer
from tests.support.jms_http import JmsAnswer, request

SETTINGS = 'store = "sqlite:///data/store.db"\n[http]\nport = 0\njms = true\n'

SOAP_11 = "http://schemas.xmlsoap.org/soap/envelope/"
SOAP_12 = "http://www.w3.org/2003/05/soap-envelope"

TYPES = [
    pytest.param("text/xml; charset=utf-8", SOAP_11, id="SOAP 1.1"),
    pytest.param('application/soap+xml; action="urn:buy"', SOAP_12, id="SOAP 1.2"),
]
"""Each version's content type and namespace."""


@pytest.fixture(scope="module")
def http_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Yield a broker with JMS over HTTP."""
    process = BrokerProcess(tmp_path_factory.mktemp("http-broker"), settings=SETTINGS)
    yield process
    assert process.running, f"the broker died, see {process.log}"
    assert process.stop() == 0


def envelope(namespace: str, text: str) -> bytes:
    """Return an envelope."""
    return f'<e:Envelope xmlns:e="{namespace}"><e:Body>{text}</e:Body></e:Envelope>'.encode()


class Request(threading.Thread):
    """A request over HTTP under way, since it waits for its reply."""

    def __init__(self, url: str, headers: list[tuple[str, str]], body: bytes) -> None:
        super().__init__()
        self.answer: JmsAnswer | None = None
        self._url = url
        self._headers = headers
        self._body = body
        self.start()

    def run(self) -> None:
        self.answer = request("POST", self._url, self._headers, self._body)

    def result(self) -> JmsAnswer:
        """Return the answer."""
        self.join()
        assert self.answer is not None
        return self.answer


def receive(peer: Peer, address: str) -> Message:
    """Receive and accept the next message of a queue."""
    receiver = peer.receiver(address, credit=1)
    delivery, message = peer.take(receiver)
    peer.accept(delivery)
    return message


@pytest.mark.requirement("MAP-09")
@pytest.mark.parametrize(("content_type", "namespace"), TYPES)
@pytest.mark.parametrize("is_fault", [False, True], ids=["reply", "fault"])
def test_soap_over_jms_with_an_amqp_receiver(
    http_broker: BrokerProcess, content_type: str, namespace: str, is_fault: bool
) -> None:
    headers = [
        ("Content-Type", content_type),
        ("SOAPJMS-targetService", "shop"),
        ("SOAPAction", '"urn:buy"'),
        ("Prefer", "wait=15"),
        ("JMS-Property", "try=1;type=int"),
    ]
    asked = envelope(namespace, "buy")
    sending = Request(f"{http_broker.http_url}/jms/queue/shop", headers, asked)
    with Peer(http_broker.url) as peer:
        message = receive(peer, "shop")
        assert message.body == asked
        assert message.durable
        properties: object = message.properties
        assert properties == {
            "SOAPJMS_requestURI": "jms:queue:shop",
            "SOAPJMS_bindingVersion": "1.0",
            "SOAPJMS_soapAction": "urn:buy",
            "SOAPJMS_targetService": "shop",
            "SOAPJMS_contentType": content_type,
            "try": 1,
        }
        answer = Message(
            body=envelope(namespace, "Fault" if is_fault else "bought"),
            correlation_id=message.id,
            properties={
                "SOAPJMS_bindingVersion": "1.0",
                "SOAPJMS_contentType": content_type,
                "SOAPJMS_isFault": is_fault,
            },
            inferred=True,
        )
        answer.content_type = symbol("application/octet-stream")
        peer.send(peer.sender(message.reply_to), answer)
        got = sending.result()
    assert got.status == 200
    assert got.body == answer.body
    assert got.header("content-type") == content_type
    assert got.header("SOAPJMS_isFault") == str(is_fault).lower()
    assert got.header("JMSCorrelationID") == message.id


@pytest.mark.requirement("MAP-09")
def test_a_client_of_http_replies_to_an_amqp_requester(http_broker: BrokerProcess) -> None:
    url = http_broker.http_url
    with Peer(http_broker.url) as peer:
        asked = Message(body="?", reply_to="answers", id="ID:1", durable=True)
        peer.send(peer.sender("questions"), asked)
        got = request("POST", f"{url}/jms/receive/queue/questions?wait=10")
        assert (got.body, got.header("JMSReplyTo")) == (b"?", "queue:answers")
        headers = [("JMSCorrelationID", "ID:1"), ("jms.messageType", "TextMessage")]
        assert request("POST", f"{url}/jms/queue/answers", headers, b"!").status == 201
        accepted = request("DELETE", f"{url}/jms/receipts/{got.header('JMS-Receipt')}")
        assert accepted.status == 204
        answer = receive(peer, "answers")
    assert (answer.body, answer.correlation_id) == ("!", "ID:1")


@pytest.mark.requirement("MAP-09", "PRD-03")
def test_what_was_answered_outlives_a_kill(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    url = broker.http_url
    for number in range(3):
        posted = request("POST", f"{url}/jms/queue/q", [], b"%d" % number)
        assert posted.status == 201
    first = request("POST", f"{url}/jms/receive/queue/q")
    receipt = first.header("JMS-Receipt")
    assert request("DELETE", f"{url}/jms/receipts/{receipt}").status == 204
    held = request("POST", f"{url}/jms/receive/queue/q")
    assert held.body == b"1"
    broker.kill()
    again = BrokerProcess(tmp_path, settings=SETTINGS)
    url = again.http_url
    lost = request("DELETE", f"{url}/jms/receipts/{held.header('JMS-Receipt')}")
    assert lost.status == 404
    left = [request("POST", f"{url}/jms/receive/queue/q") for _ in range(3)]
    assert [each.body for each in left] == [b"1", b"2", b""]
    assert left[0].header("JMSRedelivered") == "true"
    assert again.stop() == 0
